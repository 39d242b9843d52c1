"""Token files of other trainers for tests: the oracle of each format, and files of a few documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fastcompress.data.interop import TOKEN_FORMATS
from tests.reference import token_files

ORACLES = {
    "nanogpt": token_files.nanogpt,
    "llm.c": token_files.llm_c,
    "megatron": token_files.megatron,
    "datatrove": token_files.datatrove,
}
SUFFIXES = {"nanogpt": ".bin", "llm.c": ".bin", "megatron": ".bin", "datatrove": ".ds"}
WIDTHS = {"uint16": 2, "uint32": 4}
INDEXED = ("megatron", "datatrove")
DOCUMENTS = [[5, 0, 7], [], [65_535, 1], [9]]
END = 50_256


def arrays(documents: list[list[int]]) -> list[np.ndarray]:
    return [np.array(document, np.uint32) for document in documents]


def lists(documents) -> list[list[int]]:
    return [document.tolist() for document in documents]


def write(folder: Path, name: str, documents=DOCUMENTS, dtype="uint16", end: int | None = END, **settings) -> Path:
    path = folder / f"x{SUFFIXES[name]}"
    TOKEN_FORMATS[name].write(path, arrays(documents), dtype=dtype, end_of_text=end, **settings)
    return path


def put(path: Path, parts: dict[str, bytes]) -> Path:
    """Write the files of an oracle."""
    for suffix, data in parts.items():
        (path.with_suffix(suffix) if path.suffix == ".bin" and suffix else Path(f"{path}{suffix}")).write_bytes(data)
    return path
