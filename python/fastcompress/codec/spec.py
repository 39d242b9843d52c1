"""Codecs by name, as users of the command line write them."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fastcompress._arguments import as_path
from fastcompress.bpe import BPE
from fastcompress.codec.basic import BPECodec, ByteCodec
from fastcompress.codec.equal_info import EqualInfoCodec
from fastcompress.codec.files import codec_from_json, parse_json, read_blob
from fastcompress.codec.greedy_dictionary import GreedyDictionaryCodec
from fastcompress.codec.gzip import GzipCodec
from fastcompress.codec.lz77 import LZ77Codec, LZPCodec
from fastcompress.codec.protocol import Codec
from fastcompress.equal_info import Codebook
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS, PublishedEncoding
from fastcompress.greedy_dictionary import GreedyDictionary

CODECS_BY_NAME: dict[str, Callable[[], Codec]] = {
    "byte": ByteCodec,
    "lz77": LZ77Codec,
    "lz77-buckets": lambda: LZ77Codec(alphabet="buckets"),
    "lzp": LZPCodec,
    "gzip": GzipCodec,
    "gzip-16": lambda: GzipCodec(token_bits=16),
}
CODEC_FILES = "a saved vocabulary (.bpe), tokenizer.json, rank file (.tiktoken), codebook, dictionary or codec.json"
_VOCABULARY_MAGIC = b"\x89FCBPE\r\n"
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\s")


def codec_from_spec(
    spec: str | os.PathLike[str], *, default_pattern: str | None = None, other_names: Sequence[str] = ()
) -> Codec:
    """Return the codec that a user names.

    Args:
        spec: A key of CODECS_BY_NAME, for default settings; the name of a published encoding, such as "cl100k_base";
            or the path of a codec.json, saved vocabulary, codebook, greedy dictionary, tokenizer.json or rank file. A
            rank file stores no pattern: unless it is a published one, its path is followed by a colon and the pattern,
            as in "my.tiktoken:cl100k".
        default_pattern: The pattern of a rank file for which none is given; None to refuse such files. Decoding does
            not depend on it.
        other_names: Names that the caller handles itself, to be listed in the error for an unknown name.

    Raises:
        DataError: There is no such name or file, or the file cannot be read.
        FormatError: The file is none of these, or damaged.
        ConfigError: A rank file's pattern is not known.
    """
    spec = as_path(spec, "spec")
    if not spec:
        raise DataError(f"spec is empty; name {', '.join([*CODECS_BY_NAME, *other_names])}, or {CODEC_FILES}")
    if spec in CODECS_BY_NAME:
        return CODECS_BY_NAME[spec]()
    if spec in PUBLISHED_ENCODINGS:
        return BPECodec(BPE.from_tiktoken(spec))
    path, colon, pattern = spec.partition(".tiktoken:")
    if colon and not Path(spec).exists():
        return BPECodec(BPE.from_tiktoken(_existing(Path(path + ".tiktoken"), spec, other_names), pattern=pattern))
    path = str(_existing(Path(spec), spec, other_names))
    blob = read_blob(path)
    if blob.lstrip()[:1] == b"{":
        if isinstance(document := parse_json(blob), dict) and "model" in document and "format" not in document:
            return BPECodec(BPE.from_huggingface(Path(path)))
        return codec_from_json(document, path)
    try:
        if Codebook.is_file(blob):
            return EqualInfoCodec(Codebook.from_bytes(blob))
        if GreedyDictionary.is_file(blob):
            return GreedyDictionaryCodec(GreedyDictionary.from_bytes(blob))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    if path.endswith(".tiktoken") or _RANK_LINE.match(blob):
        return BPECodec(_from_rank_file(path, blob, default_pattern))
    try:
        return BPECodec(BPE.from_bytes(blob))
    except FormatError as error:
        raise FormatError(f"{path}: not {CODEC_FILES} ({error})") from error


def may_be_codec_file(path: Path, start: bytes) -> bool:
    """Return whether the first bytes of a file that is not JSON, or its name, are those of a codec."""
    if start.startswith(_VOCABULARY_MAGIC) or Codebook.is_file(start) or GreedyDictionary.is_file(start):
        return True
    lines = start.splitlines(keepends=True)[:-1]  # the last one may be cut
    return path.suffix in (".bpe", ".tiktoken") or (bool(lines) and all(map(_RANK_LINE.fullmatch, lines)))


def _existing(path: Path, spec: str, other_names: Sequence[str]) -> Path:
    """Return the path. Raises DataError, with the names that would work, if it does not exist."""
    if path.exists():
        return path
    names = [*CODECS_BY_NAME, *other_names, *PUBLISHED_ENCODINGS]
    close = difflib.get_close_matches(spec.lower(), names, n=2, cutoff=0.7)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    raise DataError(f"{spec}: no such codec or file{hint}; name {', '.join(names)}, or {CODEC_FILES}")


def _from_rank_file(path: str, blob: bytes, default_pattern: str | None) -> BPE:
    if published := _published(blob):
        return BPE.from_tiktoken(path, pattern=published.pattern, special_tokens=dict(published.special_tokens))
    if default_pattern is None:
        raise ConfigError(
            f"{path}: a rank file does not store its pattern; name it after a colon, as in {path}:cl100k, or convert "
            "the file to a vocabulary (.bpe)"
        )
    return BPE.from_tiktoken(path, pattern=default_pattern)


def _published(blob: bytes) -> PublishedEncoding | None:
    """Return the first published encoding with these ranks, or None."""
    digest = hashlib.sha256(blob).hexdigest()
    for encoding in PUBLISHED_ENCODINGS.values():
        if any(source.sha256 == digest and not source.is_merge_list for source in encoding.sources):
            return encoding
    return None
