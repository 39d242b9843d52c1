"""Documents of files: one after another, in constant memory, from files, folders, patterns and standard input.

- A text file is one document. JSON lines and tables (`fastcompress.data.readers` has all types) have one a row.
- A folder stands for the files below it, in the order of their relative paths, without hidden ones. In one that
  `datasets.save_to_disk` wrote, only its Arrow files are data.
- A pattern, such as "books/**/*.jsonl.zst", stands for the files it matches, in the order of their paths.
- "-" is standard input.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fastcompress._arguments import as_path
from fastcompress.data.documents import Document
from fastcompress.data.readers import STDIN_NAME, TEXT, open_binary, read_rows, reader_by_name
from fastcompress.errors import ConfigError, DataError, FormatError

STDIN = "-"
ON_ERROR = ("fail", "skip")
# Files beside the data in a folder that the library `datasets` wrote.
_DATASET_INFO, _DATASET_STATE, _DATASET_SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"


@dataclass(frozen=True)
class InputFile:
    """A file to read.

    Attributes:
        path: The file, or None for standard input.
        id: The id of the document, if the whole file is one.
        is_named: Whether the user named the file, rather than a folder above it.
    """

    path: Path | None
    id: str
    is_named: bool = True


@dataclass(frozen=True)
class Skipped:
    """A document, or the rest of a file, that could not be read.

    Attributes:
        source: The path of the file.
        index: The position of the document in the file, from 0.
        problem: The message of the error, with the place and a remedy.
        is_rest: Whether all later documents of the file are lost as well, because the file itself is damaged.
    """

    source: str
    index: int
    problem: str
    is_rest: bool


class DocumentReader:
    """The documents of inputs, in order, read as they are needed.

    Memory does not grow with the input, except that a document is held as a whole (and so is a text file, which is
    one). Iterating again reads the inputs again.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> rows = Path(mkdtemp(), "rows.jsonl")
    >>> _ = rows.write_text('{"text": "to be"}\\n{"text": null}\\n{"text": "or not"}\\n')
    >>> reader = DocumentReader([rows], on_error="skip")
    >>> [(document.id, document.data, document.index) for document in reader]
    [('rows.jsonl:1', b'to be', 0), ('rows.jsonl:3', b'or not', 2)]
    >>> [skipped.index for skipped in reader.skipped]
    [1]

    Attributes:
        skipped: What was skipped so far, unless `on_skip` was given.
    """

    def __init__(
        self,
        inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        text_key: str = "text",
        on_error: str = "fail",
        on_skip: Callable[[Skipped], object] | None = None,
        stdin: IO[bytes] | None = None,
        open_file: Callable[[Path], IO[bytes]] = open_binary,
    ) -> None:
        """Prepare to read; nothing is opened yet.

        Args:
            inputs: One or several files, folders, patterns, or "-" for standard input.
            text_key: The key of the text in JSON lines, or the column of the text in a table.
            on_error: "fail" to raise an error at the first bad document; "skip" to go on with the next one, or with
                the next file if a file cannot be read further. An input that does not exist is always an error.
            on_skip: Called with what is skipped, instead of adding it to `skipped`.
            stdin: The stream of standard input; by default that of the process.
            open_file: Opens a file by its name, to read its bytes.

        Raises ConfigError for another `on_error`.
        """
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error is {on_error!r}; it must be one of {', '.join(ON_ERROR)}")
        self.inputs = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
        self.text_key = text_key
        self.on_error = on_error
        self.skipped: list[Skipped] = []
        self._on_skip = on_skip or self.skipped.append
        self._stdin = stdin
        self._open_file = open_file

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents.

        Raises:
            DataError: An input does not exist, cannot be read or is recognized as something that is not read here, or
                a row has no text; the file, the line and a remedy are named.
            FormatError: A file is damaged.
            ConfigError: A file needs pyarrow, which is not installed.
        """
        for name in self.inputs:
            for file in find_files(name):
                yield from self.documents(file)

    def documents(self, file: InputFile) -> Iterator[Document]:
        """Yield the documents of one file. Raises as iterating does."""
        source = STDIN_NAME if file.path is None else str(file.path)
        name = STDIN_NAME if file.path is None else file.path.name
        stdin = self._stdin or getattr(sys.stdin, "buffer", None)
        index = 0
        try:
            rows = read_rows(file.path, self.text_key, is_named=file.is_named, stdin=stdin, open_file=self._open_file)
            for reader, row in rows:
                if row.problem:
                    self._skip(DataError(f"{source}: {reader.row} {row.number} {row.problem}"), source, index)
                else:
                    row_id = row.id or (file.id if row.number is None else f"{name}:{row.number}")
                    is_row = row.number is not None
                    yield Document(row_id, row.text, source=source, index=index, is_row=is_row)
                index += 1
        except (DataError, FormatError) as error:
            if self.on_error == "fail":
                raise
            self._skip(error, source, index, is_rest=True)

    def _skip(self, error: DataError | FormatError, source: str, index: int, *, is_rest: bool = False) -> None:
        """Report what is skipped. Raises the error if that was not wanted."""
        if self.on_error == "fail":
            raise error
        self._on_skip(Skipped(source, index, str(error), is_rest))


def path_documents(path: Path, text_key: str = "text") -> Iterator[Document]:
    """Yield the documents of a file or folder; see `DocumentReader`, whose errors this raises.

    Args:
        path: A file or folder.
        text_key: The key or column of the text.
    """
    return iter(DocumentReader([path], text_key=text_key))


def is_pattern(name: str) -> bool:
    """Return whether a name has wildcards and is not that of a file."""
    return glob.has_magic(name) and "\0" not in name and not Path(name).exists()


def find_files(name: str | os.PathLike[str]) -> list[InputFile]:
    """Return the files that an input stands for: a file, a folder, a pattern, or "-".

    Raises DataError if there are none, or a data set in a folder lacks a file.
    """
    name = as_path(name, "name")
    if name == STDIN:
        return [InputFile(None, STDIN_NAME)]
    path = Path(name)
    if is_pattern(name):
        found: dict[Path, InputFile] = {}
        for match in sorted(map(Path, glob.glob(name, recursive=True))):
            files = folder_files(match) if match.is_dir() else [InputFile(match, match.as_posix())]
            for file in files:
                found.setdefault(file.path or match, file)
        if not found:
            raise DataError(f"{name}: matches no file; name files that exist")
        return list(found.values())
    if path.is_dir():
        return folder_files(path)
    if not path.exists():
        raise DataError(f"{name}: no such file or folder; name one that exists")
    return [InputFile(path, path.name)]


def folder_files(root: Path) -> list[InputFile]:
    """Return the regular files below `root`, sorted by relative path, without hidden files and folders.

    Where `datasets.save_to_disk` wrote a data set, only its Arrow files are returned. Raises DataError if one is
    missing.
    """
    paths: list[Path] = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        here = [Path(folder, name) for name in files if not name.startswith(".")]
        paths += _data_of(Path(folder), here)
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    return [InputFile(path, path.relative_to(root).as_posix(), is_named=False) for path in paths if path.is_file()]


def _data_of(folder: Path, paths: list[Path]) -> list[Path]:
    """Return the files of a folder that are data: all of them, unless the library `datasets` wrote the folder."""
    names = {path.name for path in paths}
    has_state = _DATASET_STATE in names
    if _DATASET_INFO in names and (has_state or any(name.endswith(".arrow") for name in names)):
        if not has_state:
            return [path for path in paths if path.suffix == ".arrow"]
        listed = _listed_files(folder / _DATASET_STATE)
        if missing := sorted(set(listed) - names):
            raise DataError(f"{folder}: lacks {missing[0]}, which {_DATASET_STATE} lists; get the data set again")
        return [folder / name for name in listed]
    if _DATASET_SPLITS in names:
        return [path for path in paths if path.name != _DATASET_SPLITS]
    return paths


def _listed_files(state: Path) -> list[str]:
    """Return the names of the data files of a data set, from its state.json."""
    try:
        return [str(file["filename"]) for file in json.loads(state.read_bytes())["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{state}: does not list the files of a data set ({error}); get it again") from error


def is_table(path: Path) -> bool:
    """Return whether the name is that of a file with a document per row, such as JSON lines or a CSV table."""
    return reader_by_name(path.name) is not TEXT


def split_name(path: Path) -> str:
    """Return the name that may say to which split a file belongs: its own, or that of its folder in a data set."""
    if path.suffix == ".arrow" and (path.parent.parent / _DATASET_SPLITS).is_file():
        return path.parent.name
    return path.name
