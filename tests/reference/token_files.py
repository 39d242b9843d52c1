"""The bytes of other trainers' token files by their published layouts, one `struct.pack` after the other.

A document is a list of ids, and `width` the number of bytes an id; `end` is the end-of-text id, or None.
"""

from __future__ import annotations

import struct

Documents = list[list[int]]


def nanogpt(documents: Documents, width: int, end: int | None) -> dict[str, bytes]:
    """Return each document and its end, and nothing else."""
    stream = b""
    for document in documents:
        stream += _ids(document, width, False) + _end(end, width, False)
    return {"": stream}


def llm_c(documents: Documents, width: int, end: int | None) -> dict[str, bytes]:
    """Return 256 integers of header, then each document after its mark."""
    stream, count = b"", 0
    for document in documents:
        stream += _end(end, width, False) + _ids(document, width, False)
        count += len(document) + (end is not None)
    magic, version = {2: (20240520, 1), 4: (20240801, 7)}[width]
    return {"": struct.pack("<256i", magic, version, count, *[0] * 253) + stream}


def megatron(documents: Documents, width: int, end: int | None) -> dict[str, bytes]:
    """Return the .bin, and an .idx of one sequence a document."""
    stream = lengths = pointers = b""
    for document in documents:
        pointers += struct.pack("<q", len(stream))
        lengths += struct.pack("<i", len(document) + (end is not None))
        stream += _ids(document, width, True) + _end(end, width, True)
    index = b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", {2: 8, 4: 4}[width])
    index += struct.pack("<Q", len(documents)) + struct.pack("<Q", len(documents) + 1)
    index += lengths + pointers + b"".join(struct.pack("<q", number) for number in range(len(documents) + 1))
    return {".bin": stream, ".idx": index}


def datatrove(documents: Documents, width: int, end: int | None) -> dict[str, bytes]:
    """Return the .ds, and the .ds.index of document ends; not the metadata, which is free text."""
    stream = index = b""
    for document in documents:
        stream += _ids(document, width, False) + _end(end, width, False)
        index += struct.pack("<Q", len(stream) // width)
    return {"": stream, ".index": index}


def _ids(document: list[int], width: int, signed: bool) -> bytes:
    letter = {2: "H", 4: "i" if signed else "I"}[width]
    return struct.pack(f"<{len(document)}{letter}", *document)


def _end(end: int | None, width: int, signed: bool) -> bytes:
    return b"" if end is None else _ids([end], width, signed)
