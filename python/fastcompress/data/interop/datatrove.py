"""datatrove's token files: a .ds of ids, a .ds.index of document ends, and a .ds.metadata for people.

FORMAT, little endian, each without a header::

    x.ds             ids, uint16 or uint32
    x.ds.index       the end of each document in x.ds, in ids, uint64
    x.ds.metadata    text: the tokenizer's name | bytes an id; the number of ids; the same in short, as 1.5 MT

The width of the ids follows from the last document end and the size of x.ds. The end-of-text id, if there is one, is
the last of a document.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastcompress.data.interop.token_format import (
    DTYPES,
    IdWriter,
    TokenFormat,
    as_end,
    check_stated_dtype,
    file_size,
    map_array,
    open_together,
    releasing,
)
from fastcompress.errors import DataError, FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastcompress.data.interop.token_format import Ids

_UNITS = ("", "k", "M", "G", "T", "P", "E")


class Datatrove(TokenFormat):
    """datatrove's .ds with its index; the metadata is written, and not read."""

    name = "datatrove"
    states_dtype = True

    def files(self, path: Path) -> list[Path]:
        """Return the .ds, its metadata and its index."""
        return [Path(path), Path(f"{path}.metadata"), Path(f"{path}.index")]

    def is_recognized(self, path: Path) -> bool:
        """Return whether the file's name ends in .ds and its index is there."""
        return path.suffix == ".ds" and path.is_file() and self.files(path)[2].is_file()

    def documents(
        self, paths: Sequence[Path], *, dtype: str | None = None, end_of_text: int | None = None
    ) -> Iterator[Ids]:
        """Yield the documents of the index, each without an end-of-text id at its end; see `TokenFormat.documents`."""
        mapped = []
        for path in paths:
            ends = _map_ends(self.files(path)[2])
            tokens = _map_ids(Path(path), ends)
            check_stated_dtype(path, tokens.dtype, dtype)
            end = None if end_of_text is None else as_end(end_of_text, tokens.dtype, self.name)
            mapped.append((ends, tokens, end))
        documents = (ids for ends, tokens, end in mapped for ids in _documents(ends, tokens, end))
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
        """Write the three files; see `TokenFormat.write`."""
        ends = array("Q")
        with open_together(self.files(path), overwrite=overwrite) as (tokens, metadata, index):
            writer = IdWriter(tokens, path, self, dtype, end_of_text, mark_first=False)
            for ids in documents:
                writer.add(ids)
                ends.append(writer.num_ids)
            writer.finish()
            index.write(np.asarray(ends, "<u8").data)
            width = writer.dtype.itemsize
            metadata.write(f"fastcompress|{width}\n{writer.num_ids}\n{_in_short(writer.num_ids)}".encode())


def _in_short(number: int) -> str:
    """Return a number of tokens with three digits and a unit, such as 1.50 MT.

    >>> _in_short(1_500_000)
    '1.50 MT'
    """
    mantissa, exponent = f"{number:.2e}".split("e")  # rounded first, so that 9,996 is 10.0 k
    power, shift = divmod(int(exponent), 3)
    return f"{float(mantissa) * 10**shift:.{2 - shift}f} {_UNITS[power]}T"


def _map_ends(path: Path) -> npt.NDArray[np.uint64]:
    size = file_size(path)
    if size % 8 or not size:
        raise FormatError(f"{path}: has {size:,} bytes, but an index has 8 a document; get the file again")
    ends = map_array(path, np.dtype("<u8"), size // 8)
    if (ends[1:] < ends[:-1]).any():
        raise FormatError(f"{path}: its document ends do not ascend; get the file again")
    return ends


def _map_ids(path: Path, ends: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    size, count = file_size(path), int(ends[-1])
    if not size:
        raise DataError(f"{path}: there are no ids; name a file that has some")
    for kind in DTYPES.values():
        if size == count * kind.itemsize:
            return map_array(path, kind, count)
    raise FormatError(
        f"{path}: has {size:,} bytes, but its index ends at id {count:,}, which makes {2 * count:,} or {4 * count:,} "
        "(one of the two is truncated or damaged); get both files again"
    )


def _documents(ends: npt.NDArray[np.uint64], tokens: npt.NDArray[Any], end: int | None) -> Iterator[Ids]:
    begin = 0
    for stop in ends.tolist():
        ids = tokens[begin:stop]
        begin = stop
        yield ids[:-1] if end is not None and len(ids) and ids[-1] == end else ids
