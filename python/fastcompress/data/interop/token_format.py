"""The interface of a format of token files, and the code that the formats share."""

from __future__ import annotations

import contextlib
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from fastcompress._arguments import as_integer
from fastcompress._files import open_atomically
from fastcompress.data.sources import reading
from fastcompress.errors import ConfigError, DataError, FormatError

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]

DTYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_MAX_END = (1 << 32) - 1
_RELEASE_BYTES = 1 << 26


class TokenFormat(ABC):
    """A format of files that hold token ids. The objects have no state and are safe to share between threads.

    An end-of-text id, which these formats keep among the ids, is an argument everywhere: `documents` takes it away and
    `write` puts it in, so that a document here never holds it. None means that the files have no such id.
    """

    name: ClassVar[str]
    """The name in TOKEN_FORMATS."""

    states_dtype: ClassVar[bool]
    """Whether the files state how wide their ids are."""

    dtypes: ClassVar[dict[str, np.dtype[Any]]] = DTYPES
    """The type in the files for each name of a dtype."""

    @abstractmethod
    def files(self, path: Path) -> list[Path]:
        """Return the files that belong to `path`, the one with the ids first. Raises ConfigError for a wrong name."""

    @abstractmethod
    def is_recognized(self, path: Path) -> bool:
        """Return whether a file's first bytes, or the files beside it, show that it is of this format."""

    @abstractmethod
    def documents(
        self, paths: Sequence[Path], *, dtype: str | None = None, end_of_text: int | None = None
    ) -> Iterator[Ids]:
        """Yield the ids of each document of some files, integers[n], as views of the mapped files where possible.

        Args:
            paths: The files, in order.
            dtype: The type of the ids, "uint16" or "uint32"; None for what the files say, or for "uint16" if they say
                nothing.
            end_of_text: The id that marks the boundary of two documents, which is left out; None if there is none.

        Raises:
            DataError: A file does not exist, cannot be read, or holds no ids.
            FormatError: A file is truncated, damaged, or of another format.
            ConfigError: An argument is out of range, or contradicts what the files say.
        """

    @abstractmethod
    def write(
        self,
        path: Path,
        documents: Iterable[Ids],
        *,
        dtype: str = "uint16",
        end_of_text: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write documents to new files, all or nothing.

        Args:
            path: The file of the ids; others of the format get names beside it.
            documents: The ids of each document, integers[n]; read once.
            dtype: The type of the ids, "uint16" or "uint32".
            end_of_text: The id that marks where documents end or begin; None for no mark. A format without an index
                then loses the boundaries.
            overwrite: Whether to replace files that exist.

        Raises:
            OutputError: A file exists, or cannot be written.
            DataError: An id does not fit, a document holds `end_of_text`, there is nothing to write, or there is more
                than the format can hold.
            ConfigError: An argument is out of range.

        Memory: one document, and for formats with an index 8 bytes a document.
        """

    def dtype_for(self, largest_id: int) -> str:
        """Return the dtype that readers of the format expect for ids up to `largest_id`.

        For a format whose files do not say it, that is always "uint16".
        """
        return "uint32" if self.states_dtype and largest_id > np.iinfo(np.uint16).max else "uint16"


class IdWriter:
    """A writer of documents to a stream, in one type of ids, which refuses ids that do not fit.

    Attributes:
        num_ids: The number of ids written so far, end-of-text ids included.
        num_documents: The number of documents written so far.
    """

    def __init__(
        self, file: BinaryIO, path: Path, form: TokenFormat, dtype: str, end_of_text: int | None, *, mark_first: bool
    ) -> None:
        """Write to `file`, which will be `path`; `mark_first` puts the end-of-text id before each document."""
        self.num_ids = self.num_documents = 0
        self._file, self._path, self._form, self._mark_first = file, path, form, mark_first
        as_dtype(dtype)
        self.dtype = form.dtypes[dtype]
        self._end = None if end_of_text is None else as_end(end_of_text, self.dtype, form.name)

    def add(self, ids: Ids) -> int:
        """Append a document and its mark; return the number of ids of both. Raises DataError if an id does not fit."""
        ids = np.asarray(ids)
        self._check(ids)
        stored = np.empty(len(ids) + (self._end is not None), self.dtype)
        begin = 1 if self._mark_first and self._end is not None else 0
        stored[begin : begin + len(ids)] = ids
        if self._end is not None:
            stored[0 if self._mark_first else -1] = self._end
        self._file.write(stored.data)
        self.num_ids += len(stored)
        self.num_documents += 1
        return len(stored)

    def finish(self) -> None:
        """Flush the stream. Raises DataError if nothing was written."""
        if not self.num_ids:
            raise DataError(f"{self._path}: there are no ids to write; give at least one document that is not empty")
        self._file.flush()

    def _check(self, ids: Ids) -> None:
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise TypeError(f"a document is {ids.dtype} of shape {ids.shape}; it must be one-dimensional integers")
        if not ids.size:
            return
        low, high = int(ids.min()), int(ids.max())
        if low < 0:
            raise DataError(f"{self._path}: id {low} of document {self.num_documents + 1:,} is negative; correct it")
        if high > np.iinfo(self.dtype).max:
            remedy = "pass dtype='uint32'" if self.dtype.itemsize == 2 else "use a smaller vocabulary"
            raise DataError(
                f"{self._path}: id {high} of document {self.num_documents + 1:,} does not fit the {self.dtype} "
                f"ids of this {self._form.name} file; {remedy}"
            )
        if self._end is not None and low <= self._end <= high and (ids == self._end).any():
            raise DataError(
                f"{self._path}: document {self.num_documents + 1:,} holds id {self._end}, which end_of_text "
                "reserves for boundaries; choose an end_of_text that no document holds"
            )


@contextlib.contextmanager
def open_together(paths: Sequence[Path], *, overwrite: bool) -> Iterator[list[BinaryIO]]:
    """Yield streams whose contents become the files when the block ends; the first file gets its name first.

    A reader needs all of them, so the files are whole once the last has its name. Old files but the first are removed
    before, so that an old index never stands beside new ids.
    """
    with contextlib.ExitStack() as stack:
        # The stack closes, and so renames, the stream last opened first.
        files = [stack.enter_context(open_atomically(path, overwrite=overwrite)) for path in reversed(paths)]
        yield files[::-1]
        for path in paths[1:] if overwrite else ():
            Path(os.path.realpath(path)).unlink(missing_ok=True)  # a link stays, as `replacing` promises


def as_dtype(dtype: str) -> np.dtype[Any]:
    """Return the little-endian type of stored ids. Raises ConfigError for an unknown name."""
    if dtype not in DTYPES:
        raise ConfigError(f"dtype is {dtype!r}; it must be 'uint16' or 'uint32'")
    return DTYPES[dtype]


def as_end(end_of_text: int, dtype: np.dtype[Any], name: str) -> int:
    """Return an end-of-text id as an int.

    Args:
        end_of_text: The id.
        dtype: The type of the ids.
        name: The format's name, for errors.

    Raises:
        TypeError: It is not an integer.
        ConfigError: It does not fit `dtype`.
    """
    end = as_integer(end_of_text, "end_of_text", 0, _MAX_END, or_none="no mark")
    if end > np.iinfo(dtype).max:
        raise ConfigError(
            f"end_of_text is {end}; it must be 0 to {np.iinfo(dtype).max} in a {name} file of {dtype} ids"
        )
    return end


def check_stated_dtype(path: Path, stated: np.dtype[Any], dtype: str | None) -> None:
    """Raise ConfigError if the ids of a file, which says their type, are not as wide as the caller says."""
    if dtype is not None and as_dtype(dtype).itemsize != stated.itemsize:
        raise ConfigError(f"dtype is {dtype!r}; it must be left out, since {path} says that its ids are {stated}")


def file_size(path: Path) -> int:
    """Return the size of a file in bytes. Raises DataError if it does not exist or is not a regular file."""
    if not os.path.isfile(path):
        kind = "is a folder" if os.path.isdir(path) else "no such file"
        raise DataError(f"{path}: {kind}; name a file of token ids")
    with reading(path):
        return os.path.getsize(path)


def read_start(path: Path, num_bytes: int) -> bytes:
    """Return the first bytes of a file, fewer if it is shorter. Raises DataError if it cannot be read."""
    file_size(path)
    with reading(path), open(path, "rb") as file:
        return file.read(num_bytes)


def map_array(path: Path, dtype: np.dtype[Any], count: int, offset: int = 0) -> npt.NDArray[Any]:
    """Map part of a file into memory, read-only; the caller has checked that the file is that long.

    Args:
        path: The file.
        dtype: The type of the items.
        count: The number of items.
        offset: The position of the first item, in bytes from the start of the file; any 64-bit number.
    """
    if not count:
        return np.empty(0, dtype)
    with reading(path), open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(mapped) < offset + count * dtype.itemsize:
        raise FormatError(f"{path}: shrank while it was read; get the file again")
    return np.ndarray((count,), dtype, mapped, offset)


def releasing(documents: Iterable[Ids], arrays: Iterable[npt.NDArray[Any]]) -> Iterator[Ids]:
    """Yield documents, and from time to time release the pages of the mapped arrays that they are views of.

    The pages stay in the system's cache; they only stop counting as memory of the process.
    """
    num_bytes = 0
    for ids in documents:
        yield ids
        num_bytes += ids.nbytes
        if num_bytes >= _RELEASE_BYTES:
            num_bytes = 0
            for array in arrays:
                mapped: object = array.base
                if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
                    mapped.madvise(mmap.MADV_DONTNEED)
