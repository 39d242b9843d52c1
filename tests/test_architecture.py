"""The layers of the package, as code: who may import whom, what `import fastcompress` loads, and true stubs."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastcompress
from fastcompress import _core

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "fastcompress"

# A module may import from its own layer and those after it; the SHARED ones serve all of them.
LAYERS = [
    {"cli"},
    {"study"},
    {"training"},
    {"evaluation"},
    {"models"},
    {"data"},
    {"codec", "compat"},
    {"bpe", "lz77", "equal_info", "greedy_dictionary", "archive"},
    {"arithmetic"},
    {"pretokenizer", "formats"},
    {"_core"},
]
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
SHARED = {"_arguments", "_canonical", "_fronts", "errors", "_deprecated", "_files", "_locks", "__version__"}

# C++: what a core may include besides itself.
CPP_MAY_INCLUDE = {
    "bindings": {
        "archive",
        "arithmetic",
        "bpe",
        "common",
        "context_mixer",
        "equal_info",
        "greedy_dictionary",
        "lz77",
        "pretokenizer",
        "unicode",
    },
    "archive": {"arithmetic", "common", "context_mixer", "lz77"},
    "greedy_dictionary": {"common", "equal_info"},
    "equal_info": {"arithmetic", "common", "context_mixer"},
    "context_mixer": {"arithmetic", "common"},
    "arithmetic": {"common"},
    "bpe": {"common", "pretokenizer", "unicode"},
    "lz77": {"common"},
    "pretokenizer": {"common", "unicode"},
    "unicode": {"common"},
    "common": set(),
}


def imports_of(path: Path) -> set[str]:
    """The top-level names under `fastcompress` that a file imports, at any depth of the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
            assert "fastcompress" not in modules, f"{path}: import the module that is meant, not the whole package"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; the package spells its imports out"
            modules = [node.module or ""]
            if node.module == "fastcompress":
                modules = [f"fastcompress.{alias.name}" for alias in node.names]
        else:
            continue
        names |= {module.split(".")[1] for module in modules if module.startswith("fastcompress.")}
    return names


PYTHON_FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.name[:2] != "__"]


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_python_imports_go_to_the_right(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if layer in SHARED:
        assert imports_of(path) <= SHARED
        return
    for imported in imports_of(path) - SHARED:
        assert LAYER_OF[imported] >= LAYER_OF[layer], f"{path.name} of layer {layer} imports {imported}"
        siblings = LAYERS[LAYER_OF[layer]]
        assert imported == layer or imported not in siblings, f"{layer} and {imported} stand beside each other"


def test_no_module_imports_itself_through_others() -> None:
    names = {
        path: ".".join(("fastcompress", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in PYTHON_FILES
    }
    modules = {name.removesuffix(".__init__"): path for path, name in names.items()}
    waiting = {name: modules_imported(path, set(modules)) - {name} for name, path in modules.items()}
    while free := {name for name, imported in waiting.items() if not imported & waiting.keys()}:
        waiting = {name: imported for name, imported in waiting.items() if name not in free}
    assert not waiting, f"import circles among {sorted(waiting)}"


def modules_imported(path: Path, modules: set[str]) -> set[str]:
    """The modules that a file imports at any depth, other than for the sake of types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules else str(node.module))
    return found & modules


def test_every_module_has_a_layer() -> None:
    names = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("__")}
    modules = {name.removesuffix(".py") for name in names if not name.endswith((".so", ".pyd"))}
    assert modules - SHARED - {"py.typed"} == set(LAYER_OF)


@pytest.mark.parametrize("path", sorted((ROOT / "cpp").rglob("*.[hc]*")), ids=lambda path: path.name)
def test_cpp_includes_go_to_the_right(path: Path) -> None:
    if path.suffix not in {".h", ".cc"} or {"tests", "example"} & set(path.parts):
        return
    core = next(part for part in path.parts if part in CPP_MAY_INCLUDE)
    for include in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text(encoding="utf-8")):
        if include.startswith("fastcompress/"):
            assert include.split("/")[1] in CPP_MAY_INCLUDE[core] | {core}
        if "pybind11" in include or "Python.h" in include:
            assert core == "bindings"


def test_every_cpp_file_is_in_the_guide() -> None:
    """cpp/README.md has a line for each header, and for each other file without a header of its name."""
    root = ROOT / "cpp" / "fastcompress"
    files = [path for path in sorted(root.rglob("*")) if path.suffix in {".h", ".cc", ".inc", ".py"}]
    described = {
        path.relative_to(root).as_posix(): path
        for path in files
        if path.suffix != ".cc" or not path.with_suffix(".h").exists()
    }
    guide = (ROOT / "cpp" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z0-9_/]+\.[a-z]+)` \| .+ \|$", guide, re.MULTILINE)
    missing = [
        f"| `{name}` | {described[name].read_text(encoding='utf-8').splitlines()[0].lstrip('/ ')} |"
        for name in sorted(described.keys() - set(named))
    ]
    assert not missing, "cpp/README.md lacks:\n" + "\n".join(missing)
    assert sorted(named) == sorted(described), f"no longer there: {sorted(set(named) - described.keys())}"


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}; import sys; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_import_is_light() -> None:
    """Compared with the interpreter alone, into which the .pth files of other packages may load anything."""
    loaded = modules_after("import fastcompress") - modules_after("pass")
    assert "numpy" in loaded
    assert not {"torch", "pyarrow", "click", "safetensors", "tqdm", "regex"} & loaded
    assert (
        not {f"fastcompress.{name}" for name in ("archive", "arithmetic", "codec", "compat", "equal_info", "lz77")}
        & loaded
    )
    assert not {"urllib.request", "http", "tempfile"} & loaded


def stub_names(path: Path) -> dict[str, set[str]]:
    """What a stub declares: {"": top-level names, class: its members}."""
    declared: dict[str, set[str]] = {"": set()}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            declared[""].add(node.name)
            declared[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            declared[""].add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared[""].add(node.target.id)
    return declared


@pytest.mark.parametrize(
    "name", ["archive", "arithmetic", "bpe", "context_mixer", "equal_info", "lz77", "pretokenizer"]
)
def test_stubs_declare_what_there_is(name: str) -> None:
    module = getattr(_core, name)
    declared = stub_names(PACKAGE / "_core" / f"{name}.pyi")
    assert {name for name in declared.pop("") if name[0] != "_"} == {name for name in vars(module) if name[0] != "_"}
    for class_name, members in declared.items():
        present = {member for member in vars(getattr(module, class_name)) if not member.startswith("_")}
        assert {member for member in members if not member.startswith("__")} == present


def test_the_package_shows_its_public_names_and_nothing_else() -> None:
    public = [name for name in dir(fastcompress) if not name.startswith("_")]
    assert sorted([*public, "__version__"]) == sorted(fastcompress.__all__)
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import pydoc, fastcompress\n"
        "text = pydoc.plain(pydoc.render_doc(fastcompress))\n"
        "assert all(name in text for name in fastcompress.__all__ if name[0] != '_')\n"
        "assert fastcompress.codec.ByteCodec().name == 'byte'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="no attribute 'importlib'"):
        _ = fastcompress.importlib


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastcompress", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"fastcompress {fastcompress.__version__}\n"


def test_public_names_are_documented_and_there() -> None:
    for name in fastcompress.__all__:
        assert hasattr(fastcompress, name)
    for module_name in (
        "archive",
        "arithmetic",
        "arithmetic.models",
        "bpe",
        "equal_info",
        "lz77",
        "pretokenizer",
        "codec",
        "compat.tiktoken",
        "errors",
    ):
        module = importlib.import_module(f"fastcompress.{module_name}")
        assert module.__doc__
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            assert value.__doc__ or not callable(value)


def test_both_builds_state_the_same_version() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{fastcompress.__version__}"' in text
    assert f"VERSION {fastcompress.__version__} " in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
