"""Fixtures that several test files share."""

from __future__ import annotations

import lzma
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.formats.rank_cache import cached_path
from tests.forked_commands import Server, serving

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")

# In CI the same examples every time, so that a change is never blamed for a failure that chance found; runs by hand
# look for new ones. Busy machines are slow: no deadline.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI") == "true":
    hypothesis.settings.load_profile("ci")

# Torch's threads sleep while they wait for one another, here and in the processes that tests start. By default they
# spin, and where other work wants the cores, tests of models then take three to fifty times as much processor time.
# (The variable is read when torch is imported.)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Campaigns run only where `-m` names them: an `-m` in addopts would give way to that of `pytest -m "not slow"`."""
    if "campaign" in config.getoption("markexpr"):
        return
    campaigns = [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=campaigns)
    items[:] = [item for item in items if not item.get_closest_marker("campaign")]


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The folder of test corpora that FASTCOMPRESS_DATA names; without it tests skip, or fail in CI."""
    folder = os.environ.get("FASTCOMPRESS_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"FASTCOMPRESS_DATA is {folder!r}, not a folder of test corpora"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def tiktoken_cache(data_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder of tiktoken's with every published file, for it and for us; nothing may be downloaded."""
    folder = tmp_path_factory.mktemp("tiktoken-cache")
    names = {"encodings/": "{}", "gpt-2/encodings/main/": "gpt2-{}"}
    sources = {source for encoding in PUBLISHED_ENCODINGS.values() for source in encoding.sources}
    for source in sources:
        parent, _, name = source.path.rpartition("/")
        packed = data_directory / "vocabs" / (names[parent + "/"].format(name) + ".xz")
        cached_path(folder, source).write_bytes(lzma.decompress(packed.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        patch.setenv("FASTCOMPRESS_OFFLINE", "1")
        yield folder


@pytest.fixture(scope="session")
def forked_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts commands of `fastcompress` as processes that find torch loaded."""
    with serving(tmp_path_factory.mktemp("commands")) as server:
        yield server


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two workers on this machine, which can import the package and these tests."""
    ray = pytest.importorskip("ray")
    root = Path(__file__).parent.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(root), str(root / "python"), os.environ.get("PYTHONPATH", "")]))
        ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
        yield ray
        ray.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium that opens pages: the one that FASTCOMPRESS_CHROMIUM names, or one on PATH."""
    named = os.environ.get("FASTCOMPRESS_CHROMIUM")
    executable = shutil.which(named) if named else next(filter(None, map(shutil.which, _BROWSERS)), None)
    if executable is None:
        wanted = (
            f"FASTCOMPRESS_CHROMIUM={named!r} is no program" if named else f"none of {', '.join(_BROWSERS)} on PATH"
        )
        reason = f"no Chromium: {wanted}; install one or name it in FASTCOMPRESS_CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright import sync_api  # part of the test extra

    as_root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"] if as_root else [])
        yield chromium
        chromium.close()
