"""Megatron's indexed dataset: a .bin of ids and an .idx that divides it.

FORMAT of the .idx, little endian, whose arrays follow the header without padding:

====== ===== ================================================================================================
offset bytes field
====== ===== ================================================================================================
0      9     magic ``MMIDIDX\\0\\0``
9      8     version, 1
17     1     type of the ids: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16
18     8     S, the number of sequences
26     8     D, the length of the document index: one more than there are documents
34     4*S   length of each sequence in ids, int32
...    8*S   position of each sequence in the .bin, in bytes, int64
...    8*D   document index: document d is the sequences [index[d], index[d + 1]), int64
...    0, S  modes, a byte a sequence, in multimodal datasets only
====== ===== ================================================================================================

The end-of-text id, if there is one, is the last of a document (`--append-eod`). Each document is written as one
sequence. What is wider than uint16 is written as int32, which holds ids below 2**31.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from fastcompress.data.interop.token_format import (
    IdWriter,
    TokenFormat,
    as_end,
    check_stated_dtype,
    file_size,
    map_array,
    open_together,
    read_start,
    releasing,
)
from fastcompress.errors import ConfigError, DataError, FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.data.interop.token_format import Ids

_MAGIC = b"MMIDIDX\0\0"
_HEADER = struct.Struct("<9sQBQQ")
_READABLE = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
_CODES = {"uint16": 8, "uint32": 4}
_MAX_LENGTH = (1 << 31) - 1


class Megatron(TokenFormat):
    """Megatron's .bin and .idx, of which either names both."""

    name = "megatron"
    states_dtype = True
    dtypes: ClassVar[dict[str, np.dtype[Any]]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<i4")}

    def files(self, path: Path) -> list[Path]:
        """Return the .bin and the .idx."""
        if Path(path).suffix not in (".bin", ".idx"):
            raise ConfigError(f"{path}: is not the name of a Megatron dataset; it must end in .bin")
        return [Path(path).with_suffix(".bin"), Path(path).with_suffix(".idx")]

    def is_recognized(self, path: Path) -> bool:
        """Return whether there is an .idx of that name which begins as one."""
        index = path.with_suffix(".idx") if path.name else path
        return path.suffix in (".bin", ".idx") and index.is_file() and read_start(index, 9) == _MAGIC

    def documents(
        self, paths: Sequence[Path], *, dtype: str | None = None, end_of_text: int | None = None
    ) -> Iterator[Ids]:
        """Yield the documents of the index, each without an end-of-text id at its end; see `TokenFormat.documents`."""
        opened = [(_Index.open(self.files(path)[1]), self.files(path)[0]) for path in paths]
        mapped = []
        for index, path in opened:
            check_stated_dtype(path, index.dtype, dtype)
            end = None if end_of_text is None else as_end(end_of_text, index.dtype, self.name)
            mapped.append((index, index.map_ids(path), end))
        documents = (ids for index, tokens, end in mapped for ids in _documents(index, tokens, end))
        return releasing(documents, [tokens for _, tokens, _ in mapped])

    def write(
        self,
        path: Path,
        documents: Iterable[Ids],
        *,
        dtype: str = "uint16",
        end_of_text: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the .bin and the .idx, a sequence a document; see `TokenFormat.write`."""
        lengths = array("q")
        path = self.files(path)[0]
        with open_together(self.files(path), overwrite=overwrite) as (tokens, index):
            writer = IdWriter(tokens, path, self, dtype, end_of_text, mark_first=False)
            for ids in documents:
                _check_length(path, len(ids), len(lengths) + 1)
                lengths.append(writer.add(ids))
            writer.finish()
            _write_index(index, np.asarray(lengths, np.int64), dtype)


def _check_length(path: Path, num_ids: int, number: int) -> None:
    """Raise DataError for a document whose length, with an end-of-text id, does not fit the index."""
    if num_ids >= _MAX_LENGTH:
        raise DataError(
            f"{path}: document {number:,} has {num_ids:,} ids, but megatron holds less than {_MAX_LENGTH:,}; divide it"
        )


def _write_index(file: BinaryIO, lengths: npt.NDArray[np.int64], dtype: str) -> None:
    """Write the index of documents that follow one another, a sequence each.

    Args:
        file: The stream.
        lengths: The number of ids of each document.
        dtype: The type of the ids.
    """
    pointers = np.zeros(len(lengths), "<i8")
    np.cumsum(lengths[:-1] * Megatron.dtypes[dtype].itemsize, out=pointers[1:])
    file.write(_HEADER.pack(_MAGIC, 1, _CODES[dtype], len(lengths), len(lengths) + 1))
    file.write(lengths.astype("<i4").data)
    file.write(pointers.data)
    file.write(np.arange(len(lengths) + 1, dtype="<i8").data)


@dataclass(frozen=True)
class _Index:
    """The parts of an .idx file, mapped and checked."""

    path: Path
    dtype: np.dtype[Any]
    lengths: npt.NDArray[np.int32]
    pointers: npt.NDArray[np.int64]
    document_index: npt.NDArray[np.int64]

    @classmethod
    def open(cls, path: Path) -> _Index:
        size = file_size(path)
        header = read_start(path, _HEADER.size)
        if header[: len(_MAGIC)] != _MAGIC:
            raise FormatError(f"{path}: is not a Megatron index (wrong magic); name the .bin and .idx of one")
        if len(header) < _HEADER.size:
            raise FormatError(f"{path}: truncated inside its header; get the file again")
        _, version, code, num_sequences, num_entries = _HEADER.unpack(header)
        if version != 1:
            raise FormatError(
                f"{path}: is version {version}; only version 1 can be read, so write it again in that version"
            )
        if code not in _READABLE:
            raise FormatError(
                f"{path}: its ids are of type {code}, which is not an integer type; write it again as integers"
            )
        expected = _HEADER.size + 12 * num_sequences + 8 * num_entries
        if size not in (expected, expected + num_sequences):
            raise FormatError(
                f"{path}: has {size:,} bytes, but {expected:,} by its header (it is truncated, or bytes were added); "
                "get the file again"
            )
        begin = _HEADER.size
        index = cls(
            path,
            np.dtype(_READABLE[code]),
            map_array(path, np.dtype("<i4"), num_sequences, begin),
            map_array(path, np.dtype("<i8"), num_sequences, begin + 4 * num_sequences),
            map_array(path, np.dtype("<i8"), num_entries, begin + 12 * num_sequences),
        )
        entries = index.document_index
        if not num_entries or entries[0] != 0 or entries[-1] != num_sequences or (entries[1:] < entries[:-1]).any():
            raise FormatError(f"{path}: its document index does not divide its sequences; get the file again")
        return index

    def map_ids(self, path: Path) -> npt.NDArray[Any]:
        """Map the ids of the .bin, within which all sequences must be."""
        size, width = file_size(path), self.dtype.itemsize
        if size % width:
            raise FormatError(
                f"{path}: has {size:,} bytes, which is not a whole number of {self.dtype} ids; get it again"
            )
        if not size:
            raise DataError(f"{path}: there are no ids; name a file that has some")
        begins, lengths = self.pointers, self.lengths.astype(np.int64)
        if (lengths < 0).any() or (begins < 0).any() or (begins > size - lengths * width).any():
            raise FormatError(
                f"{path}: has {size:,} bytes, and {self.path} has a sequence outside them (one of the two is truncated "
                "or damaged); get both files again"
            )
        if (begins % width).any():
            raise FormatError(f"{self.path}: a sequence begins within an id; get the file again")
        return map_array(path, self.dtype, size // width)


def _documents(index: _Index, tokens: npt.NDArray[Any], end: int | None) -> Iterator[Ids]:
    width = index.dtype.itemsize
    for first, last in zip(index.document_index[:-1].tolist(), index.document_index[1:].tolist(), strict=True):
        begins = (index.pointers[first:last] // width).tolist()
        stops = [begin + length for begin, length in zip(begins, index.lengths[first:last].tolist(), strict=True)]
        if begins[1:] == stops[:-1]:  # as writers put them
            ids = tokens[begins[0] : stops[-1]] if begins else tokens[:0]
        else:
            ids = np.concatenate([tokens[begin:stop] for begin, stop in zip(begins, stops, strict=True)])
        yield ids[:-1] if end is not None and len(ids) and ids[-1] == end else ids
