"""Byte pair encoding: train a vocabulary, encode text to token ids, decode ids to text, exactly.

>>> tok = BPE.train(["to be or not to be"] * 8, vocab_size=260, pattern="whitespace")
>>> tok.encode("to be"), tok.decode(tok.encode("to be"))
([257, 258], 'to be')

Text is ``str`` or bytes everywhere. A ``str`` is encoded as its UTF-8 (a lone surrogate becomes U+FFFD, a surrogate
pair its character, as in tiktoken); bytes are encoded as they are, UTF-8 or not, and ``decode_bytes`` gives them back.
A BPE object is immutable, can be shared by threads (encoding releases the GIL), pickled, and used after a fork.
"""

from __future__ import annotations

import codecs
import functools
import itertools
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress._files import write_atomically
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.formats.rank_file import MAX_IDS, read_rank_file
from fastcompress.pretokenizer import without_surrogates

__all__ = ["BPE", "StreamDecoder"]

Text: TypeAlias = "str | bytes | bytearray | memoryview"
Specials: TypeAlias = "Collection[str] | Literal['all']"

_BATCH_BYTES = 1 << 24  # texts are handed to the trainer in groups of about 16 MiB


class BPE:
    """A BPE tokenizer. Make one with `train`, `from_tiktoken`, `load` or `from_bytes`."""

    def __init__(self, core: _core.Tokenizer) -> None:
        self._core = core
        self._special_tokens = core.special_tokens
        self._special_texts = frozenset(self._special_tokens)
        self._token_lengths = core.token_lengths()
        self._token_lengths.setflags(write=False)

    # ------------------------------------------------------------------ making one

    @classmethod
    def train(
        cls,
        source: Text | Iterable[Text],
        *,
        vocab_size: int,
        pattern: str = "cl100k",
        special_tokens: Sequence[str] = (),
        num_threads: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> BPE:
        """Learns a vocabulary of exactly ``vocab_size`` ids: 256 bytes, then merges, then the special tokens.

        source: one text or an iterable of texts, streamed; memory is bounded by the distinct pretokens (and one batch).
        pattern: a name of `fastcompress.pretokenizer.PATTERNS`; merges never cross its pretokens.
        num_threads: for counting pretokens, a text a thread at a time; None: all cores. It never changes the result.
        on_progress: called with (merges done, merges wanted) now and then.

        Each step merges the pair that occurs most often; of equally frequent pairs the one with the smaller (left id,
        right id). The result depends on the multiset of texts only. Raises ConfigError for a bad setting and DataError
        when the texts hold fewer distinct pairs than asked for. Source: Sennrich, Haddow and Birch, 2016.
        """
        _check_texts(special_tokens, "special_tokens")
        _check_threads(num_threads)
        num_merges = operator.index(vocab_size) - 256 - len(special_tokens)
        if num_merges < 0:
            raise ConfigError(
                f"vocab_size={vocab_size} is too small: 256 bytes and {len(special_tokens)} special tokens take "
                f"{256 + len(special_tokens)}"
            )
        if vocab_size > MAX_IDS:
            raise ConfigError(f"vocab_size={vocab_size} is too large: a vocabulary has at most {MAX_IDS} ids")
        if len(set(special_tokens)) != len(special_tokens) or "" in special_tokens:
            raise ConfigError("special_tokens must be distinct and not empty")
        trainer = _core.Trainer(pattern)
        for batch in _batches([source] if isinstance(source, str | bytes | bytearray | memoryview) else source):
            trainer.add_texts(batch, num_threads)

        def progress(num_done: int) -> None:  # entering Python now and then is also what lets Ctrl-C through
            if on_progress is not None:
                on_progress(num_done, num_merges)

        vocabulary = trainer.train(num_merges, list(special_tokens), progress)
        if vocabulary.size < vocab_size:
            raise DataError(
                f"the {trainer.num_distinct} distinct pretokens given support only {vocabulary.size} tokens, not "
                f"{vocab_size}: lower vocab_size to at most {vocabulary.size} or train on more text"
            )
        return cls(vocabulary)

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], *, pattern: str, special_tokens: dict[str, int] | None = None
    ) -> BPE:
        """Reads a rank file of tiktoken; ids then equal tiktoken's with the same pattern and special tokens.

        Raises FormatError for a file that is not a rank file, ConfigError for ranks that make no vocabulary.
        """
        specials = special_tokens or {}
        _check_texts(specials, "special_tokens")
        for text, token_id in specials.items():
            if not 0 <= token_id < MAX_IDS:
                raise ConfigError(f"the id {token_id} of special token {text!r} is not in [0, {MAX_IDS})")
        ranks = list(read_rank_file(path).items())
        return cls(_core.Tokenizer.from_ranks(ranks, pattern, list(specials.items())))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BPE:
        """Reads a file written by `save`. Raises FormatError for a foreign, truncated or damaged one."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary, versioned and with a checksum, replacing an existing file in one step."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> BPE:
        """The tokenizer that `to_bytes` serialized (format: cpp/fastcompress/bpe/FORMAT.md)."""
        return cls(_core.Tokenizer.parse(bytes(blob)))

    def to_bytes(self) -> bytes:
        """Everything that decides the ids, as in the file that `save` writes."""
        return self._core.serialize()

    # ------------------------------------------------------------------ what it is

    @property
    def vocab_size(self) -> int:
        """One more than the greatest id, special tokens included (a rank file may leave ids unused)."""
        return self._core.size

    @property
    def pattern(self) -> str:
        """The name of the pretokenizer pattern."""
        return self._core.pattern

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of each special token."""
        return dict(self._special_tokens)

    @property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """int64[vocab_size]: the number of bytes each id spells; 0 for an unused id. Read-only."""
        return self._token_lengths

    @property
    def merges(self) -> npt.NDArray[np.uint32]:
        """uint32[n, 3]: (left, right, result) in rank order; empty for a vocabulary read from a rank file."""
        return self._core.merges()

    @functools.cached_property
    def fingerprint(self) -> str:
        """64 hex digits: the SHA-256 that ends the serialized form. Equal fingerprints mean equal ids on every text."""
        return self.to_bytes()[-32:].hex()

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes an id spells. Raises DataError for an id out of range or unused."""
        return self._core.token_bytes(_checked_id(token_id))

    # ------------------------------------------------------------------ encoding

    def encode(self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all") -> list[int]:
        """The ids of a text.

        Where the text of a special token occurs, ``allowed_special`` tokens get their id, ``disallowed_special`` ones
        ("all": those not allowed) raise DataError, and the rest are ordinary text: tiktoken's semantics.
        """
        ids: list[int] = self.encode_to_numpy(
            text, allowed_special=allowed_special, disallowed_special=disallowed_special
        ).tolist()
        return ids

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which special tokens are ordinary text."""
        ids: list[int] = self._core.encode(text).tolist()
        return ids

    def encode_to_numpy(
        self,
        text: Text,
        dtype: npt.DTypeLike = np.uint32,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> npt.NDArray[Any]:
        """`encode`, as dtype[n]. Raises ConfigError when the dtype cannot hold every id."""
        self._check_dtype(dtype)
        allowed = self._check_special(text, allowed_special, disallowed_special)
        parts = [
            np.array([part], np.uint32) if isinstance(part, int) else self._core.encode(part)
            for part in self._cut_special(text, allowed)
        ]
        tokens = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return tokens.astype(dtype, copy=False)

    def count(self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all") -> int:
        """``len(encode(text))``."""
        return len(self.encode_to_numpy(text, allowed_special=allowed_special, disallowed_special=disallowed_special))

    def encode_batch(
        self,
        texts: Sequence[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[list[int]]:
        """`encode` for many texts on ``num_threads`` threads (None: all cores); their number changes nothing."""
        tokens, offsets = self.encode_batch_to_numpy(
            texts, num_threads, allowed_special=allowed_special, disallowed_special=disallowed_special
        )
        ids, borders = tokens.tolist(), offsets.tolist()
        return [ids[begin:end] for begin, end in itertools.pairwise(borders)]

    def encode_batch_to_numpy(
        self,
        texts: Sequence[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """`encode_batch` as (tokens uint32[n], offsets uint64[len(texts) + 1]).

        Text i is ``tokens[offsets[i]:offsets[i + 1]]``.
        """
        if isinstance(texts, str | bytes):
            raise TypeError("expected a sequence of texts; for one text call encode")
        _check_threads(num_threads)
        nothing_allowed = not allowed_special or not self._special_tokens
        nothing_refused = not disallowed_special or (disallowed_special == "all" and not self._special_tokens)
        if nothing_allowed and nothing_refused:
            return self._core.encode_batch(texts, num_threads)
        cut = [
            list(self._cut_special(text, self._check_special(text, allowed_special, disallowed_special)))
            for text in texts
        ]
        ordinary = [part for parts in cut for part in parts if not isinstance(part, int)]
        tokens, borders = self._core.encode_batch(ordinary, num_threads)
        if len(ordinary) == sum(map(len, cut)) == len(texts):
            return tokens, borders
        encoded = iter(np.split(tokens, borders[1:-1].astype(np.int64)))
        pieces = [
            [np.array([part], np.uint32) if isinstance(part, int) else next(encoded) for part in parts] for parts in cut
        ]
        offsets = np.zeros(len(texts) + 1, np.uint64)
        np.cumsum([sum(map(len, parts)) for parts in pieces], out=offsets[1:])
        return np.concatenate([np.empty(0, np.uint32), *(p for parts in pieces for p in parts)]), offsets

    # ------------------------------------------------------------------ decoding

    def decode(self, tokens: npt.ArrayLike, errors: str = "replace") -> str:
        """The text of ids. Bytes that are not UTF-8 (half a character, say) are handled as by ``bytes.decode``."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_bytes(self, tokens: npt.ArrayLike) -> bytes:
        """The bytes of ids; the inverse of every encode. Raises DataError, with its position, for an unknown id."""
        return self._core.decode(_token_array(tokens))

    def decode_stream(self, errors: str = "replace") -> StreamDecoder:
        """A decoder that takes ids one at a time and never gives half a character."""
        return StreamDecoder(self, errors)

    # ------------------------------------------------------------------ special tokens

    def _check_special(self, text: Text, allowed: Specials, disallowed: Specials) -> frozenset[str]:
        """The allowed special tokens, after refusing a text that holds a disallowed one."""
        if not isinstance(text, str | bytes | bytearray | memoryview):
            raise TypeError(f"expected str or bytes, not {type(text).__name__}")
        known = self._special_texts
        if not known and disallowed in ("all", ()):
            return known
        if allowed != "all":
            _check_texts(allowed, "allowed_special")
        if disallowed != "all":
            _check_texts(disallowed, "disallowed_special")
        allowed_set = known if allowed == "all" else frozenset(allowed) & known
        disallowed_set = known - allowed_set if disallowed == "all" else frozenset(disallowed)
        if disallowed_set and (match := _special_pattern(disallowed_set, isinstance(text, str)).search(text)):
            raise DataError(
                f"the text holds the special token {match.group()!r} at offset {match.start()}: pass it in "
                "allowed_special to encode it as that token, or disallowed_special=() for ordinary text"
            )
        return allowed_set

    def _cut_special(self, text: Text, allowed: frozenset[str]) -> Iterator[Text | int]:
        """Ordinary stretches of the text, and the ids of allowed special tokens between them.

        Where several allowed tokens begin at one place, the longest is taken.
        """
        if not allowed:
            yield text
            return
        if isinstance(text, str):
            text = without_surrogates(text)  # first, since a special token may spell what a surrogate becomes
        begin = 0
        for match in _special_pattern(allowed, isinstance(text, str)).finditer(text):
            if match.start() > begin:
                yield text[begin : match.start()]
            name = match.group()
            yield self._special_tokens[name if isinstance(name, str) else name.decode("utf-8")]
            begin = match.end()
        if begin < len(text) or begin == 0:  # an empty text is one empty stretch
            yield text[begin:]

    def _check_dtype(self, dtype: npt.DTypeLike) -> None:
        resolved = np.dtype(dtype)
        if resolved.kind not in "iu" or np.iinfo(resolved).max < self.vocab_size - 1:
            raise ConfigError(f"dtype {resolved} cannot hold ids up to {self.vocab_size - 1}; use uint32")

    def __reduce__(self) -> tuple[Callable[[bytes], BPE], tuple[bytes]]:
        return BPE.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BPE) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<BPE vocab_size={self.vocab_size} pattern={self.pattern!r} fingerprint={self.fingerprint[:12]}>"


class StreamDecoder:
    """Decodes ids as they come. ``"".join(push(id) for id in ids) + finish()`` equals ``decode(ids)``.

    Bytes that may still become a character are held back (at most three), so no output ends in half a character.
    """

    def __init__(self, tokenizer: BPE, errors: str = "replace") -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)

    def push(self, token_id: int) -> str:
        """The text that the next id completes: often one token's, empty while a character is incomplete."""
        return self._utf8.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was held back, treated as invalid; afterwards the decoder can be used anew."""
        try:
            return self._utf8.decode(b"", final=True)
        finally:
            self._utf8.reset()


def _check_texts(texts: Collection[str], name: str) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name} must be a collection of str, not {texts!r}")


def _check_threads(num_threads: int | None) -> None:
    if num_threads is not None and not 1 <= operator.index(num_threads) < 1 << 16:
        raise ConfigError(f"num_threads={num_threads} is out of range: give at least 1, or None for all cores")


def _checked_id(token_id: int) -> int:
    """An int that fits the core's; the core knows which ids there are."""
    index = operator.index(token_id)
    if not -(1 << 63) <= index < 1 << 63:
        raise DataError(f"token id {index} is out of range")
    return index


def _batches(texts: Iterable[Text]) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@functools.lru_cache(maxsize=64)
def _special_pattern(tokens: frozenset[str], is_str: bool) -> re.Pattern[Any]:
    """Matches any of the tokens, the longest first where several begin at one place."""
    alternatives = "|".join(re.escape(token) for token in sorted(tokens, key=lambda token: (-len(token), token)))
    return re.compile(alternatives if is_str else alternatives.encode("utf-8"))


def _token_array(tokens: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Ids as contiguous uint32[n], or DataError for a negative or a huge one."""
    array = np.asarray(tokens)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype == object and array.ndim == 1:  # integers past 64 bits come as objects
        array = np.array([_checked_id(token) for token in array])
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"expected a sequence of token ids, not an array of {array.dtype} with shape {array.shape}")
    if array.dtype != np.uint32:
        wrong = np.flatnonzero((array < 0) | (array > 0xFFFFFFFF))
        if wrong.size:
            raise DataError(f"token id {array[wrong[0]]} at position {wrong[0]} is out of range")
    return np.ascontiguousarray(array, np.uint32)
