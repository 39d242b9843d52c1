"""The drop-in for ``tiktoken.load``: reading and writing rank files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path

from fastcompress._files import write_atomically
from fastcompress.errors import FormatError, OutputError
from fastcompress.formats.byte_level import ALPHABET, from_alphabet
from fastcompress.formats.download import download
from fastcompress.formats.rank_cache import address_path, cache_folder, store


def read_file(blobpath: str) -> bytes:
    """Return the content of a file, or of what a web address leads to.

    Raises MissingFileError, a FileNotFoundError, if a download fails; OSError if a file cannot be read; ImportError for
    an address that needs the package `blobfile`, if it is not installed.
    """
    if "://" not in blobpath:
        return Path(blobpath).read_bytes()
    if blobpath.startswith(("http://", "https://")):
        return download(blobpath)
    try:
        import blobfile  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(f"{blobpath}: this kind of address needs the package blobfile; install it") from error
    content: bytes = blobfile.read_bytes(blobpath)
    return content


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Return whether data has this SHA-256, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest() == expected_hash


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """Return the content of a file as `read_file` does, with tiktoken's cache folder for web addresses.

    Local files are not cached.

    Args:
        blobpath: A path or an address.
        expected_hash: The SHA-256 of the content, as hexadecimal digits; a cached file with another one is downloaded
            again. None for no check.

    Raises:
        FormatError: The content has another hash. A ValueError.
        OutputError: The cache folder that a variable names cannot be written to.
        MissingFileError: As for `read_file`, which may also raise OSError and ImportError.
    """
    folder, chosen_by_user = cache_folder()
    path = None if folder is None or "://" not in blobpath else address_path(folder, blobpath)
    if path is not None and path.is_file():
        content = path.read_bytes()
        if expected_hash is None or check_hash(content, expected_hash):
            return content
    content = read_file(blobpath)
    if expected_hash and not check_hash(content, expected_hash):
        raise FormatError(f"{blobpath}: the SHA-256 is not {expected_hash}; the file is damaged, or another one")
    if path is not None:
        try:
            store(path, content)
        except OSError as error:
            if chosen_by_user:
                raise OutputError(
                    f"{path}: cannot be written ({error.strerror or error}); set TIKTOKEN_CACHE_DIR to a folder that "
                    "is writable, or to '' for no cache"
                ) from error
    return content


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Return the ranks of a rank file, in the file's order. Raises FormatError, a ValueError, for another file."""
    ranks: dict[bytes, int] = {}
    for line in read_file_cached(tiktoken_bpe_file, expected_hash).splitlines():
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        except ValueError as error:
            raise FormatError(f"{tiktoken_bpe_file}: the line {line!r} is not 'base64 rank'") from error
    return ranks


def dump_tiktoken_bpe(bpe_ranks: dict[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write ranks as a local rank file, all or nothing. Raises OutputError, an OSError, if it cannot be written."""
    lines = sorted(bpe_ranks.items(), key=lambda item: item[1])
    content = b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for token, rank in lines)
    write_atomically(os.fspath(tiktoken_bpe_file), content)


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
) -> dict[bytes, int]:
    """Return the ranks of GPT-2's two files.

    Args:
        vocab_bpe_file: The list of merges, ``vocab.bpe``.
        encoder_json_file: The vocabulary, ``encoder.json``.
        vocab_bpe_hash: The SHA-256 of the first, if it is to be checked.
        encoder_json_hash: The SHA-256 of the second, likewise.
        clobber_one_byte_tokens: Take the ids of single bytes from the vocabulary.

    Raises:
        RankMismatchError: The two files disagree. An AssertionError.
    """
    # GPT-2 numbers the bytes in the order of their characters in its alphabet.
    tokens = sorted(ALPHABET)
    merges = read_file_cached(vocab_bpe_file, vocab_bpe_hash).decode().split("\n")[1:-1]
    tokens += ["".join(merge.split()) for merge in merges]
    ranks = {_bytes_of(token): rank for rank, token in enumerate(tokens)}
    vocabulary = json.loads(read_file_cached(encoder_json_file, encoder_json_hash))
    expected = {
        _bytes_of(token): rank
        for token, rank in vocabulary.items()
        if token not in ("<|endoftext|>", "<|startoftext|>")
    }
    if clobber_one_byte_tokens:
        ranks |= {token: rank for token, rank in expected.items() if len(token) == 1}
    if ranks != expected:
        raise RankMismatchError(f"{vocab_bpe_file} and {encoder_json_file} do not give the same ids")
    return ranks


class RankMismatchError(FormatError, AssertionError):
    """A list of merges and a vocabulary do not give the same ids."""


def _bytes_of(token: str) -> bytes:
    decoded = from_alphabet(token)
    if decoded is None:
        raise FormatError(f"the token {token!r} is not in GPT-2's alphabet of bytes")
    return decoded
