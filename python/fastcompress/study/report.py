"""The report of a study: ``report.json`` for programs, ``report.html`` for people.

    write_report(study, directory)                                # both files, from the runner's dict
    load_report("runs/quick/report.json")                         # the dict again
    python -m fastcompress.study.report runs/quick/report.json    # the page again, from saved figures

This module knows the schema and the files; ``page.py`` makes the page and ``charts.py`` its drawings.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastcompress._files import write_atomically
from fastcompress.errors import DataError, FastcompressError, FormatError, OutputError
from fastcompress.study.page import render_page

FORMAT, VERSION = "fastcompress-study", 1

# A leaf says what the value must be. A number may be null: JSON has no NaN, and null is how one is saved.
_LEAVES: dict[str, Callable[[object], bool]] = {
    "a string": lambda v: isinstance(v, str),
    "true or false": lambda v: isinstance(v, bool),
    "an integer from 0 to 2^63 - 1": lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**63,
    "a number": lambda v: v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)),
    "an object": lambda v: isinstance(v, Mapping),
}
_TEXT, _FLAG, _COUNT, _NUMBER, _OBJECT = _LEAVES


def _all(leaf: str, *names: str) -> dict[str, Any]:
    return dict.fromkeys(names, leaf)


# A key that ends in "?" may be missing, since the first reports lacked it.
_SPLIT = _all(_COUNT, "documents", "bytes")
_MACHINE = {**_all(_TEXT, "device", "device_name", "python", "torch"), "num_threads": _COUNT}
_EVALUATION = {
    **_all(_NUMBER, "bits_per_byte", "bits_per_byte_text", "perplexity_per_token"),
    **_all(_COUNT, "num_bytes", "num_tokens", "num_documents", "stride", "context_length"),
    "is_exact": _FLAG,
    "precision?": _TEXT,
    "uniform_bits_per_byte?": _NUMBER,
    "boundary_bits_per_byte?": _NUMBER,
}
_ARM = {
    **_all(_TEXT, "name", "label", "prompt", "sample"),
    "codec": {"name": _TEXT, "fingerprint": _TEXT, "vocab_size": _COUNT, "lossless": _FLAG},
    "model": _OBJECT,
    **_all(_COUNT, "num_parameters", "num_parameters_embedding", "context_tokens", "steps", "best_step"),
    **_all(_COUNT, "tokens_seen", "bytes_seen"),
    **_all(_NUMBER, "bytes_per_token", "context_bytes", "training_flops", "flops_per_token", "flops_per_byte"),
    **_all(_NUMBER, "epochs", "tokens_per_second", "train_seconds"),
    "evaluation": _EVALUATION,
    "curve": [
        {
            "step": _COUNT,
            **_all(_NUMBER, "flops", "seconds", "train_bits_per_byte", "validation_bits_per_byte"),
        }
    ],
    "curve_evaluation?": {**_all(_COUNT, "num_bytes", "num_documents", "stride"), "precision": _TEXT},
    "notes": [_TEXT],
    "auxiliary_flops?": _OBJECT,
    "machine?": _MACHINE,
    "finished?": _TEXT,
    "wall_seconds?": _NUMBER,
}
_SEEDS = {
    "values": [{"seed": _COUNT, "bits_per_byte": _NUMBER}],
    **_all(_NUMBER, "mean", "standard_deviation"),
}
SCHEMA: dict[str, Any] = {
    **_all(_TEXT, "name", "created", "package_version", "command", "evaluated_split"),
    "seed": _COUNT,
    "machine": _MACHINE,
    "corpus": {"name": _TEXT, "fingerprint": _TEXT, "splits": {"train": _SPLIT}},
    "budget": {"training_flops": _NUMBER},
    "tuning?": _TEXT,
    "wall_seconds": _NUMBER,
    "arms": [{**_ARM, "seeds?": _SEEDS}],  # an arm that was made under several seeds has them
    "failures?": [_all(_TEXT, "name", "label", "error")],
}


def validate(study: object, *, source: str = "study report") -> None:
    """Check that ``study`` is a version 1 study with at least one arm. Unknown keys are allowed.

    Raises:
        FormatError: naming ``source`` and the key that is missing or has a value of the wrong type, or the
            foreign format or version.
    """
    if not isinstance(study, Mapping):
        raise FormatError(f"{source}: must be an object, not {type(study).__name__}; give a report.json of `study`")
    for key, expected in (("format", FORMAT), ("version", VERSION)):
        if key not in study:
            raise FormatError(f"{source}: the key '{key}' is missing; give a report.json written by `study`")
        if study[key] != expected:
            raise FormatError(
                f"{source}: {key} is {study[key]!r}, this build reads {expected!r}; use the build it is from"
            )
    _check(study, SCHEMA, "", source)
    if not study["arms"]:
        raise FormatError(f"{source}: 'arms' is empty; a report needs at least one arm")
    _check(study["corpus"]["splits"], {study["evaluated_split"]: _SPLIT}, "corpus.splits", source)


def validate_arm(arm: object, *, source: str) -> None:
    """Check an arm as this version's runner writes it, with every key.

    Raises:
        FormatError: naming ``source`` and the key that is missing or has a value of the wrong type.
    """
    _check(arm, _ARM, "entry", source, whole=True)


def _check(
    value: object, schema: dict[str, Any] | list[Any] | str, where: str, source: str, *, whole: bool = False
) -> None:
    """Compare a value with its part of the schema; ``where`` is its path, such as ``arms[2].codec``.

    With ``whole``, keys that older reports may lack are required, too.
    """
    if isinstance(schema, dict):
        if not isinstance(value, Mapping):
            raise FormatError(f"{source}: '{where}' must be an object, not {type(value).__name__}; run the study again")
        for name, inner in schema.items():
            key = name.removesuffix("?")
            path = f"{where}.{key}" if where else key
            if key in value:
                _check(value[key], inner, path, source, whole=whole)
            elif whole or key == name:
                raise FormatError(f"{source}: the key '{path}' is missing; run the study again to write it whole")
    elif isinstance(schema, list):
        if not isinstance(value, (list, tuple)):
            raise FormatError(f"{source}: '{where}' must be a list, not {type(value).__name__}; run the study again")
        for i, item in enumerate(value):
            _check(item, schema[0], f"{where}[{i}]", source, whole=whole)
    elif not _LEAVES[schema](value):
        raise FormatError(f"{source}: '{where}' must be {schema}, not {str(value)[:40]!r}; run the study again")


def write_report(study: Mapping[str, Any], directory: Path | str) -> Path:
    """Write ``report.json`` and ``report.html`` into ``directory``, made if missing; return the path of the page.

    The JSON is the dict with sorted keys; NaN and infinities, which JSON does not have, become null. Each file is
    replaced all or nothing, and neither is changed if ``study`` is invalid. Equal dicts give equal bytes.

    Raises:
        FormatError: ``study`` lacks a key or has a value of the wrong type (``validate``).
        OutputError: The directory or a file cannot be written.
    """
    validate(study)
    page = render_page(study)
    text = json.dumps(_without_nan(study), sort_keys=True, indent=1, allow_nan=False) + "\n"
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{directory}: cannot make the report's folder ({error.strerror}); choose another") from error
    write_atomically(directory / "report.json", text.encode())
    path = directory / "report.html"
    write_atomically(path, page.encode())
    return path


def load_report(path: Path | str) -> dict[str, Any]:
    """Read and check a study that ``write_report`` saved; numbers that were not finite are None.

    Raises:
        DataError: The file cannot be read.
        FormatError: It is not JSON, or not a version 1 study report.
    """
    path = Path(path)
    try:
        study = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); give the report.json of a study") from error
    except (ValueError, RecursionError) as error:  # bad UTF-8, bad JSON
        raise FormatError(f"{path}: not JSON ({error}); give the report.json of a study") from error
    validate(study, source=str(path))
    assert isinstance(study, dict)  # what validate has established
    return study


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(inner) for inner in value]
    return value


def main(arguments: list[str] | None = None) -> int:
    """Render a saved report's page beside it, ``report.html`` for ``report.json``; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fastcompress.study.report", description="Render the page of a saved study anew."
    )
    parser.add_argument("report", type=Path, help="a report.json; the page goes beside it, with the ending .html")
    path: Path = parser.parse_args(arguments).report
    try:
        study = load_report(path)
        page = path.with_suffix(".html")
        write_atomically(page, render_page(study).encode())
    except FastcompressError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
