"""One dataset as several token files, x_000000.bin, x_000001.bin and so on, as trainers that read many files expect."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress._arguments import as_integer
from fastcompress._files import remedy_for
from fastcompress.data.interop.token_format import TokenFormat
from fastcompress.errors import DataError, FastcompressError, OutputError

if TYPE_CHECKING:
    from fastcompress.data.interop.token_format import Ids


def write_parts(
    form: TokenFormat,
    path: Path,
    documents: Iterable[Ids],
    *,
    file_tokens: int,
    dtype: str = "uint16",
    end_of_text: int | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write documents to several files, which get their names when all of them are complete.

    Args:
        form: The format.
        path: The name from which those of the files are made: x.bin becomes x_000000.bin, x_000001.bin and so on.
        documents: The ids of each document, integers[n]; read once.
        file_tokens: The number of ids, at least 1, after which the next document begins another file.
        dtype: As for `TokenFormat.write`.
        end_of_text: As for `TokenFormat.write`.
        overwrite: Whether to replace files of these names, those with higher numbers than are written too.

    Returns:
        The file of ids of each part, in order.

    Raises:
        OutputError: A file of such a name exists, or cannot be written.
        DataError: As for `TokenFormat.write`.
        ConfigError: An argument is out of range.
    """
    path, file_tokens = Path(path), as_integer(file_tokens, "file_tokens", 1, (1 << 62) - 1)
    form.files(path)
    _old_parts(path, overwrite)
    parts: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix=".", suffix=".partial", dir=path.parent) as folder:
            for part in _divided(documents, file_tokens):
                parts.append(path.with_name(f"{path.stem}_{len(parts):06d}{path.suffix}"))
                with _naming(path.parent, folder):
                    form.write(Path(folder, parts[-1].name), part, dtype=dtype, end_of_text=end_of_text)
            if not parts:
                raise DataError(f"{path}: there are no documents to write; give at least one")
            for old in _old_parts(path, overwrite):
                old.unlink()
            for file in (file for part_path in parts for file in form.files(part_path)):
                os.rename(Path(folder, file.name), file)
    except FastcompressError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); {remedy_for(error)}") from error
    return parts


@contextlib.contextmanager
def _naming(folder: Path, temporary: str) -> Iterator[None]:
    """Let errors of the block name the folder that files will be in, not the temporary one."""
    try:
        yield
    except (DataError, OutputError) as error:
        if temporary not in str(error):
            raise
        raise type(error)(str(error).replace(temporary, str(folder))) from error


def _old_parts(path: Path, overwrite: bool) -> list[Path]:
    """Return the files whose names are those of parts. Raises OutputError if there are any and none may be replaced."""
    name = re.compile(rf"{re.escape(path.stem)}_\d{{6}}\.(?:idx|{re.escape(path.suffix[1:])}(?:\.index|\.metadata)?)")
    old = sorted(file for file in path.parent.glob("*") if name.fullmatch(file.name))
    if old and not overwrite:
        raise OutputError(f"{old[0]}: exists already; choose another output, or pass overwrite=True")
    return old


def _divided(documents: Iterable[Ids], file_tokens: int) -> Iterator[Iterator[Ids]]:
    """Yield the documents of each file, which must be read before the next."""
    rest = iter(documents)
    for first in rest:
        yield _part(first, rest, file_tokens)


def _part(first: Ids, rest: Iterator[Ids], file_tokens: int) -> Iterator[Ids]:
    yield first
    num_ids = len(first)
    while num_ids < file_tokens and (ids := next(rest, None)) is not None:
        yield ids
        num_ids += len(ids)
