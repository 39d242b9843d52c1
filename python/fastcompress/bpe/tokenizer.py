"""The BPE tokenizer: everything a vocabulary can do, each method a thin call of the core."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress._files import write_atomically
from fastcompress.bpe.arguments import Text, check_texts, check_threads, checked_id, token_array
from fastcompress.bpe.counts import PretokenCounts, Source
from fastcompress.bpe.special_tokens import Specials, SpecialTokens
from fastcompress.bpe.stream_decoder import StreamDecoder
from fastcompress.bpe.training import TieBreak, train_vocabulary
from fastcompress.errors import ConfigError, FormatError
from fastcompress.formats.rank_file import MAX_IDS, read_rank_file


class BPE:
    """A BPE tokenizer. Make one with `train`, `from_tiktoken`, `load` or `from_bytes`."""

    def __init__(self, core: _core.Tokenizer) -> None:
        self._core = core
        self._special = SpecialTokens(core.special_tokens)
        self._token_lengths = core.token_lengths()
        self._token_lengths.setflags(write=False)

    # ------------------------------------------------------------------ making one

    @classmethod
    def train(
        cls,
        source: Source | PretokenCounts,
        *,
        vocab_size: int,
        pattern: str | None = None,
        special_tokens: Sequence[str] = (),
        tie_break: TieBreak = "lowest_id",
        min_frequency: int = 1,
        max_token_length: int | None = None,
        initial_alphabet: bytes | None = None,
        continue_from: BPE | None = None,
        num_threads: int | None = None,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> BPE:
        """Learns a vocabulary of exactly ``vocab_size`` ids: bytes, merges and special tokens.

        source: a text, a file (`pathlib.Path`, one text), an iterable of them, streamed, or `PretokenCounts`.
        pattern: a name of `fastcompress.pretokenizer.PATTERNS`; merges never cross its pretokens. None: that of the
        counts or of ``continue_from``, else ``cl100k``.
        tie_break: which of equally frequent pairs is merged first. ``lowest_id``: the smaller (left id, right id),
        where ids are 256 bytes, then merges, then special tokens. ``huggingface``: the merges and ids of the library
        ``tokenizers``: special tokens, bytes in the order of its byte-level alphabet, merges; also a merge that spells
        an older token becomes that token.
        min_frequency: pairs that occur less often are not merged. max_token_length: no merge makes more bytes
        (``huggingface``: it makes fewer, or two, as there). With either, the vocabulary may come out smaller.
        initial_alphabet: with ``huggingface``, the bytes that get ids even if no text holds them; None: all. Bytes
        that no text holds and that are not in it get ids from ``vocab_size`` on, since every text can be encoded.
        continue_from: a tokenizer with merges; its ids and merges stay, and ``vocab_size`` counts them. New merges
        come after its last id, new special tokens after them.
        num_threads: for counting pretokens; None: all cores. max_memory_bytes, temporary_folder: for counting, see
        `PretokenCounts`. They never change the result. Merging takes memory in proportion to the distinct pretokens:
        8 to 12 bytes a byte of them.
        on_progress: called with (tokens made, tokens wanted) now and then.

        Each step merges the pair that occurs most often. The result depends on the multiset of texts only. Raises
        ConfigError for a bad setting and DataError when the texts hold fewer distinct pairs than asked for. Source:
        Sennrich, Haddow and Birch, 2016.
        """
        if continue_from is not None and not isinstance(continue_from, BPE):
            raise TypeError(f"continue_from must be a BPE, not {type(continue_from).__name__}")
        return cls(
            train_vocabulary(
                source,
                vocab_size=vocab_size,
                pattern=pattern,
                special_tokens=special_tokens,
                tie_break=tie_break,
                min_frequency=min_frequency,
                max_token_length=max_token_length,
                initial_alphabet=initial_alphabet,
                continue_from=None if continue_from is None else continue_from._core,
                num_threads=num_threads,
                max_memory_bytes=max_memory_bytes,
                temporary_folder=temporary_folder,
                on_progress=on_progress,
            )
        )

    @staticmethod
    def count_pretokens(
        source: Source,
        *,
        pattern: str = "cl100k",
        num_threads: int | None = None,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
    ) -> PretokenCounts:
        """What `train` learns from: how often each pretoken occurs. Tables of parts of a corpus add up; see there."""
        counts = PretokenCounts(pattern, max_memory_bytes=max_memory_bytes, temporary_folder=temporary_folder)
        counts.add(source, num_threads=num_threads)
        return counts

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], *, pattern: str, special_tokens: dict[str, int] | None = None
    ) -> BPE:
        """Reads a rank file of tiktoken; ids then equal tiktoken's with the same pattern and special tokens.

        Raises FormatError for a file that is not a rank file, ConfigError for ranks that make no vocabulary.
        """
        specials = special_tokens or {}
        check_texts(specials, "special_tokens")
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
        return dict(self._special.ids)

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
        return self._core.token_bytes(checked_id(token_id))

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
        allowed = self._special.check(text, allowed_special, disallowed_special)
        parts = [
            np.array([part], np.uint32) if isinstance(part, int) else self._core.encode(part)
            for part in self._special.cut(text, allowed)
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
        check_threads(num_threads)
        nothing_allowed = not allowed_special or not self._special.ids
        nothing_refused = not disallowed_special or (disallowed_special == "all" and not self._special.ids)
        if nothing_allowed and nothing_refused:
            return self._core.encode_batch(texts, num_threads)
        cut = [
            list(self._special.cut(text, self._special.check(text, allowed_special, disallowed_special)))
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
        return self._core.decode(token_array(tokens))

    def decode_stream(self, errors: str = "replace") -> StreamDecoder:
        """A decoder that takes ids one at a time and never gives half a character."""
        return StreamDecoder(self, errors)

    # ------------------------------------------------------------------ special tokens

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
