"""The codec and the texts of `count` and `stats`: files, folders, patterns and standard input, as a stream of parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress.cli.inputs import file_documents, fixed_codec, make_codec
from fastcompress.cli.streams import naming_stdin, stdin

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.statistics import TextPart


def codec_for(files: Sequence[str], spec: str, text_key: str) -> Codec:
    """Return the codec that a user names; char, bpe-N and others that are learned learn from the files themselves.

    Raises as `cli.inputs.make_codec` does, and DataError for a learned codec of standard input, which is read once.
    """
    if "-" in files:
        return fixed_codec(spec)
    return make_codec(spec, file_documents(files, text_key, None), lambda: file_documents(files, text_key, None))


def parts_of(
    files: Sequence[str], codec: Codec, text_key: str, group_key: str | None = None, spellings: Sequence[str] = ()
) -> Iterator[TextPart]:
    """Yield the texts of files, cut where the codec allows it; "-" is standard input.

    Args:
        files: The names.
        codec: The codec that will encode them.
        text_key: The key or column of the text.
        group_key: The key or column of a row's group; None to group by file.
        spellings: Texts that must stay whole where they occur.

    Raises as `read_parts` does.
    """
    from fastcompress.data.statistics import can_cut, read_parts

    is_cut = can_cut(codec, spellings)
    with naming_stdin():
        yield from read_parts(files, text_key=text_key, group_key=group_key, is_cut=is_cut, stdin=stdin())


def check_files(files: Sequence[str]) -> None:
    """Raise DataError for a name of no file, folder or pattern; to be called before the work starts."""
    from fastcompress.data.corpora import NAMED_CORPORA
    from fastcompress.data.inputs import is_pattern
    from fastcompress.errors import DataError

    for name in files:
        if name != "-" and (not name or not (os.path.exists(name) or is_pattern(name))):
            remedy = f"write the corpus {name} to a file" if name in NAMED_CORPORA else "name one that exists"
            raise DataError(f"{name or 'the empty name'}: no such file or folder; {remedy}")


def size_of(files: Sequence[str]) -> int | None:
    """Return the number of bytes of text to read; None if only reading tells, as for tables and what is compressed."""
    from fastcompress.data.compression import uncompressed_name
    from fastcompress.data.inputs import is_table

    if not all(os.path.isfile(name) and uncompressed_name(name) == name.lower() for name in files):
        return None
    if any(is_table(Path(name)) for name in files):
        return None
    return sum(os.path.getsize(name) for name in files)
