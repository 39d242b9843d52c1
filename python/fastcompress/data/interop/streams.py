"""Streams of ids in which only an end-of-text id divides documents: nanoGPT's .bin, and that of llm.c.

FORMAT of nanoGPT: ids and nothing else, little endian, uint16 as its trainer reads them; its scripts put the
end-of-text id after each document.

FORMAT of llm.c, also modded-nanogpt's, whose files are cut anywhere, within a document too:

====== ===== =============================================================================
offset bytes field
====== ===== =============================================================================
0      4     magic: 20240520 for uint16 ids, 20240801 for uint32 (llm.c only)
4      4     version: 1 for uint16 ids, 7 for uint32
8      4     the number of ids, int32 and so less than 2**31
12     1012  zero
1024   ...   ids, little endian; the scripts put the end-of-text id before each document
====== ===== =============================================================================
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fastcompress._files import open_atomically
from fastcompress.data.interop.token_format import (
    IdWriter,
    TokenFormat,
    as_dtype,
    as_end,
    check_stated_dtype,
    file_size,
    map_array,
    read_start,
    releasing,
)
from fastcompress.errors import DataError, FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.data.interop.token_format import Ids

_CHUNK_IDS = 1 << 22
_HEADER_BYTES = 1024
_FIELDS = struct.Struct("<iii")
_VERSIONS = {20240520: (1, "uint16"), 20240801: (7, "uint32")}
_MAGICS = {dtype: magic for magic, (_, dtype) in _VERSIONS.items()}
_MAX_IDS = (1 << 31) - 1


class _Stream(TokenFormat):
    """A format whose files are one stream of ids, in which a document may go on from one file to the next."""

    _mark_first: bool

    def files(self, path: Path) -> list[Path]:
        """Return the one file."""
        return [Path(path)]

    def documents(
        self, paths: Sequence[Path], *, dtype: str | None = None, end_of_text: int | None = None
    ) -> Iterator[Ids]:
        """Yield the documents of the stream that the files are one after the other; see `TokenFormat.documents`.

        Without an end-of-text id, the whole stream is one document.
        """
        arrays = [self._map(Path(path), dtype) for path in paths]
        if not sum(map(len, arrays)):
            raise DataError(f"{', '.join(map(str, paths)) or 'no file'}: there are no ids; name a file that has some")
        if end_of_text is not None:
            end_of_text = max(as_end(end_of_text, array.dtype, self.name) for array in arrays)
        return releasing(_divide(arrays, end_of_text, self._mark_first), arrays)

    @abstractmethod
    def _map(self, path: Path, dtype: str | None) -> npt.NDArray[Any]:
        """Map the ids of a file into memory."""


class NanoGPT(_Stream):
    """nanoGPT's .bin: ids alone. Readers must be told their type, for which "uint16" is the custom."""

    name = "nanogpt"
    states_dtype = False
    _mark_first = False

    def is_recognized(self, path: Path) -> bool:
        """Return False: any file might be one."""
        return False

    def write(
        self,
        path: Path,
        documents: Iterable[Ids],
        *,
        dtype: str = "uint16",
        end_of_text: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the ids of all documents, each followed by the end-of-text id; see `TokenFormat.write`."""
        with open_atomically(path, overwrite=overwrite) as file:
            writer = IdWriter(file, path, self, dtype, end_of_text, mark_first=False)
            for ids in documents:
                writer.add(ids)
            writer.finish()

    def _map(self, path: Path, dtype: str | None) -> npt.NDArray[Any]:
        kind = as_dtype(dtype or "uint16")
        size = file_size(path)
        if size % kind.itemsize:
            raise FormatError(
                f"{path}: has {size:,} bytes, which is not a whole number of {kind} ids; get the file again, or "
                "name its dtype"
            )
        return map_array(path, kind, size // kind.itemsize)


class LlmC(_Stream):
    """The .bin of llm.c and modded-nanogpt: a header of 256 integers, then at most 2**31 - 1 ids."""

    name = "llm.c"
    states_dtype = True
    _mark_first = True

    def is_recognized(self, path: Path) -> bool:
        """Return whether a file begins with one of the two magic numbers."""
        return path.is_file() and int.from_bytes(read_start(path, 4), "little") in _VERSIONS

    def write(
        self,
        path: Path,
        documents: Iterable[Ids],
        *,
        dtype: str = "uint16",
        end_of_text: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the header and the ids of all documents, each after the end-of-text id; see `TokenFormat.write`."""
        with open_atomically(path, overwrite=overwrite) as file:
            writer = IdWriter(file, path, self, dtype, end_of_text, mark_first=True)
            file.write(bytes(_HEADER_BYTES))
            for ids in documents:
                writer.add(ids)
                _check_count(path, writer.num_ids)
            writer.finish()
            _write_header(file, dtype, writer.num_ids)

    def _map(self, path: Path, dtype: str | None) -> npt.NDArray[Any]:
        size = file_size(path)
        header = read_start(path, _HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            raise FormatError(f"{path}: has {size:,} bytes, but a header takes {_HEADER_BYTES:,}; get the file again")
        magic, version, count = _FIELDS.unpack_from(header)
        if magic not in _VERSIONS:
            raise FormatError(
                f"{path}: its magic number is {magic}, not {' or '.join(map(str, _VERSIONS))}; name its own format"
            )
        known, stated = _VERSIONS[magic]
        if version != known:
            raise FormatError(
                f"{path}: is version {version} of magic number {magic}; only version {known} can be read, so write "
                "the file again in that version"
            )
        kind = as_dtype(stated)
        check_stated_dtype(path, kind, dtype)
        expected = _HEADER_BYTES + count * kind.itemsize
        if count < 0 or size != expected:
            raise FormatError(
                f"{path}: has {size:,} bytes, but {expected:,} by its header of {count:,} ids (it is truncated, or "
                "bytes were added); get the file again"
            )
        return map_array(path, kind, count, _HEADER_BYTES)


def _check_count(path: Path, num_ids: int) -> None:
    if num_ids > _MAX_IDS:
        raise DataError(
            f"{path}: there are more than the {_MAX_IDS:,} ids that an llm.c file can hold; divide them among "
            "several files (file_tokens)"
        )


def _write_header(file: BinaryIO, dtype: str, num_ids: int) -> None:
    magic = _MAGICS[dtype]
    file.seek(0)
    file.write(_FIELDS.pack(magic, _VERSIONS[magic][0], num_ids))


def _divide(arrays: Iterable[Ids], end: int | None, mark_first: bool) -> Iterator[Ids]:
    """Yield what is between the ends; an empty stretch before the first mark or after the last is no document."""
    pieces: list[Ids] = []
    num_marks = 0
    for array in arrays:
        begin = 0
        for mark in _positions(array, end):
            pieces.append(array[begin:mark])
            begin = mark + 1
            num_marks += 1
            if not (mark_first and num_marks == 1 and not sum(map(len, pieces))):
                yield _joined(pieces)
            pieces = []
        pieces.append(array[begin:])
    if sum(map(len, pieces)) or (mark_first and num_marks):
        yield _joined(pieces)


def _positions(array: Ids, end: int | None) -> Iterator[int]:
    """Yield the positions of an id."""
    for begin in range(0, len(array), _CHUNK_IDS) if end is not None else ():
        for position in np.flatnonzero(array[begin : begin + _CHUNK_IDS] == end).tolist():
            yield begin + position


def _joined(pieces: list[Ids]) -> Ids:
    filled = [piece for piece in pieces if len(piece)] or pieces[:1]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)
