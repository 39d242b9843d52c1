"""The BPE tokenizer: everything a vocabulary can do, each method a thin call of the core."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from fastcompress._core import bpe as _core
from fastcompress._files import write_atomically
from fastcompress.bpe.arguments import Text, Tokens, check_dropout, check_threads, checked_special_ids, readable_ids
from fastcompress.bpe.counts import PretokenCounts, Source
from fastcompress.bpe.custom_pattern import CustomPattern, resolve_pattern
from fastcompress.bpe.huggingface import document_of, vocabulary_of
from fastcompress.bpe.offsets import TokenOffsets
from fastcompress.bpe.special_tokens import Specials, SpecialTokens
from fastcompress.bpe.stream_decoder import StreamDecoder
from fastcompress.bpe.training import TieBreak, train_vocabulary
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.formats.published_ranks import PUBLISHED_ENCODINGS
from fastcompress.formats.rank_file import naming_file, read_published_ranks
from fastcompress.formats.tokenizer_json import AddedToken, read_tokenizer_json
from fastcompress.pretokenizer import split_ends, utf8


class BPE:
    """A BPE tokenizer. Make one with `train`, `from_tiktoken`, `load` or `from_bytes`."""

    def __init__(self, core: _core.Tokenizer) -> None:
        self._core = core
        self._special = SpecialTokens(core)
        self._custom = CustomPattern.from_spelling(core.pattern) if core.pattern.startswith("[") else None

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
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> BPE:
        """Reads a rank file of tiktoken; ids then equal tiktoken's with the same pattern and special tokens.

        name_or_path: the name of a published encoding (``gpt2``, ``r50k_base``, ``p50k_base``, ``p50k_edit``,
        ``cl100k_base``, ``o200k_base``, ``o200k_harmony``), which brings its pattern and special tokens with it; or the
        path of a rank file, for which ``pattern`` must be given. (``Path(name)`` is always a path.) A published file is
        taken from tiktoken's own cache folder, else downloaded into it; `fastcompress.formats.rank_cache` says where
        that is and how to work offline.
        pattern: a name of `fastcompress.pretokenizer.PATTERNS`, or any regex (tiktoken's ``pat_str``), which needs the
        `regex` package unless it is that of a named pattern.
        special_tokens: text to id. Several texts may have one id, which then decodes to the first of them.

        Raises FormatError for a file that is not a rank file, MissingFileError for a published one that is neither
        cached nor to be downloaded, ConfigError for ranks that make no vocabulary.
        """
        published = PUBLISHED_ENCODINGS.get(name_or_path) if isinstance(name_or_path, str) else None
        if published is not None:
            content = read_published_ranks(published)
            pattern = published.pattern if pattern is None else pattern
            special_tokens = published.special_tokens if special_tokens is None else special_tokens
        elif pattern is None:
            raise ConfigError(
                f"a rank file does not say its pattern: give pattern= with {str(name_or_path)!r}, or the name of a "
                f"published encoding ({', '.join(PUBLISHED_ENCODINGS)})"
            )
        else:
            content = Path(name_or_path).read_bytes()
        specials = checked_special_ids(special_tokens or {})
        with naming_file(name_or_path):
            return cls(_core.Tokenizer.from_rank_file(content, resolve_pattern(pattern), specials))

    @classmethod
    def from_ranks(
        cls, ranks: dict[bytes, int], *, pattern: str, special_tokens: Mapping[str, int] | None = None
    ) -> BPE:
        """The tokenizer that a rank file of these ranks would give. Errors as of `from_tiktoken`."""
        specials = checked_special_ids(special_tokens or {})
        return cls(_core.Tokenizer.from_ranks(ranks, resolve_pattern(pattern), specials))

    def to_tiktoken(self, path: str | os.PathLike[str]) -> None:
        """Writes the ordinary tokens as a rank file of tiktoken, replacing an existing file in one step.

        With the same pattern and special tokens (which such a file does not hold) it gives the same ids. Raises
        ConfigError for a vocabulary that ranks cannot express, naming a token and the reason: every merge must make a
        token of its own, in the order of ids, from tokens made earlier, and each token's bytes must encode to it.
        """
        write_atomically(path, self._core.to_rank_file())

    @classmethod
    def from_huggingface(cls, source: str | os.PathLike[str] | bytes | Mapping[str, Any]) -> BPE:
        """Reads a ``tokenizer.json`` of Hugging Face's `tokenizers` (a path, its bytes, or its parsed contents).

        Byte-level BPE models only: GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss and their like; normalizer NFC or none. The
        ids are those of ``Tokenizer.encode(text, add_special_tokens=False)`` without truncation, where ``encode`` here
        is told ``allowed_special="all"``; with ``disallowed_special=()``, those of a Tokenizer with
        ``encode_special_tokens = True``. Added tokens that are not special are always tokens. The post-processor and
        the decoder decide no id: they are kept for `to_huggingface`.

        Raises FormatError for a malformed file and, by name, for what is not supported. Source: `tokenizers` 0.23.
        """
        return cls(vocabulary_of(read_tokenizer_json(source)))

    def to_huggingface(self, path: str | os.PathLike[str]) -> None:
        """Writes a ``tokenizer.json`` that `tokenizers` reads, with equal ids, replacing an existing file in one step.

        A rank file's vocabulary becomes a list of all its merges with ``ignore_merges``. Raises ConfigError for a
        vocabulary that the file cannot express: where two tokens have the same bytes, or a special token has the text
        of another token.
        """
        write_atomically(path, json.dumps(document_of(self._core), ensure_ascii=False, indent=1).encode("utf-8"))

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
        """The name of the pretokenizer pattern, or the regex or the JSON of the steps that stand in its place."""
        if self._custom is None:
            return self._core.pattern
        [*others, step] = self._custom.steps
        return str(step["pattern"]) if step["type"] == "Regex" and not others else self._custom.spelling

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of each special token."""
        return dict(self._special.ids)

    @property
    def added_tokens(self) -> list[AddedToken]:
        """The special tokens and the other tokens that are sought in the text before it is cut, by id."""
        return list(self._special.added)

    @property
    def lossless(self) -> bool:
        """``decode_bytes(encode_ordinary(x)) == x`` for all bytes.

        Not so with a normalizer, a space put before the text, a pattern that drops text, added tokens that take white
        space or share an id, and vocabularies without the bytes that UTF-8 never holds.
        """
        core = self._core
        changes_text = core.nfc or core.prefix_space or not core.has_all_bytes
        drops_text = self._custom is not None and not self._custom.keeps_text
        return not (changes_text or drops_text or self._special.any_loses_text)

    @functools.cached_property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """int64[vocab_size]: the number of bytes each id spells; 0 for an unused id. Read-only."""
        lengths = self._core.token_lengths()
        lengths.setflags(write=False)
        return lengths

    @property
    def merges(self) -> npt.NDArray[np.uint32]:
        """uint32[n, 3]: (left, right, result) in rank order; empty for a vocabulary read from a rank file."""
        return self._core.merges()

    @functools.cached_property
    def fingerprint(self) -> str:
        """64 hex digits: the SHA-256 that ends the serialized form. Equal fingerprints mean equal ids on every text."""
        return self.to_bytes()[-32:].hex()

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """The bytes an id spells. Raises UnknownTokenError (a DataError and KeyError) for an id that is none."""
        return self._core.token_bytes(token_id)

    def token_id(self, token: str | bytes) -> int:
        """The id that spells exactly this text; of an ordinary and a special token the ordinary one.

        Raises UnknownTokenError if there is none. O(len(token)), plus the number of special tokens.
        """
        return self._core.token_id(token)

    def ordinary_tokens(self) -> dict[bytes, int]:
        """Every token that is not special, to its id, in the order of ids: for a rank file, its ranks.

        (Where merges learned a string twice, the greater id.) Made anew on each call.
        """
        return self._core.ordinary_tokens()

    # ------------------------------------------------------------------ encoding

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
        num_threads: int | None = None,
    ) -> list[int]:
        """The ids of a text.

        Where the text of a special token occurs, ``allowed_special`` tokens get their id, ``disallowed_special`` ones
        ("all": those not allowed) raise DataError, and the rest are ordinary text: tiktoken's semantics. Of several
        allowed tokens that begin at one place the longest is taken. Added tokens that are not special (a
        ``tokenizer.json`` may have some) always get their id; beside them, no token is sought within the text of a
        special one that is not allowed.

        num_threads: for one long text with a named pattern; it changes nothing else. None: all cores, from 1 MiB on.
        """
        return self._encode_to_list(text, self._special.check(text, allowed_special, disallowed_special), num_threads)

    def encode_ordinary(self, text: Text, *, num_threads: int | None = None) -> list[int]:
        """The ids of a text in which special tokens are ordinary text."""
        return self._encode_to_list(text, b"", num_threads)

    def pretoken_ends(self, text: bytes) -> npt.NDArray[np.uint64]:
        """uint64[n]: where each pretoken of a text ends, in bytes (without those that the pattern drops)."""
        if self._custom is not None:
            return self._custom.pretokens(text)[1]
        return split_ends(text, self.pattern)

    def encode_by_merges(self, pretoken: bytes) -> list[int]:
        """The ids of bytes that are one pretoken, whatever the pattern says, by merges alone."""
        ids: list[int] = self._core.encode_by_merges(pretoken).tolist()
        return ids

    def encode_to_numpy(
        self,
        text: Text,
        dtype: npt.DTypeLike = np.uint32,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
        num_threads: int | None = None,
    ) -> npt.NDArray[Any]:
        """`encode`, as dtype[n]. Raises ConfigError when the dtype cannot hold every id."""
        if dtype is not np.uint32:
            self._check_dtype(dtype)
        allowed = self._special.check(text, allowed_special, disallowed_special)
        tokens = self._encode(text, allowed, num_threads)
        return tokens if dtype is np.uint32 else tokens.astype(dtype, copy=False)

    def count(self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all") -> int:
        """``len(encode(text))``, without making the list: four bytes of memory a token."""
        return len(self.encode_to_numpy(text, allowed_special=allowed_special, disallowed_special=disallowed_special))

    def count_batch(
        self,
        texts: Sequence[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> npt.NDArray[np.int64]:
        """int64[len(texts)]: `count` of each text, on ``num_threads`` threads (None: all cores)."""
        _, offsets = self.encode_batch_to_numpy(
            texts, num_threads, allowed_special=allowed_special, disallowed_special=disallowed_special
        )
        borders = offsets.astype(np.int64)
        return borders[1:] - borders[:-1]

    def encode_batch(
        self,
        texts: Sequence[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[list[int]]:
        """`encode` for many texts on ``num_threads`` threads (None: all cores); their number changes nothing."""
        allowed = self._check_batch(texts, num_threads, allowed_special, disallowed_special)
        if self._custom is None:
            return self._core.encode_batch_to_lists(texts, num_threads, allowed)
        return [self._encode_to_list(text, allowed, num_threads) for text in texts]

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
        allowed = self._check_batch(texts, num_threads, allowed_special, disallowed_special)
        if self._custom is None:
            return self._core.encode_batch(texts, num_threads, allowed)
        encoded = [self._encode(text, allowed, num_threads) for text in texts]
        offsets = np.zeros(len(encoded) + 1, np.uint64)
        np.cumsum([len(ids) for ids in encoded], out=offsets[1:])
        return np.concatenate([np.empty(0, np.uint32), *encoded]), offsets

    def _check_batch(
        self, texts: Sequence[Text], num_threads: int | None, allowed: Specials, disallowed: Specials
    ) -> bytes:
        """The special tokens allowed in the texts, after refusing a text that holds one that is disallowed."""
        if isinstance(texts, str | bytes):
            raise TypeError("expected a sequence of texts; for one text call encode")
        check_threads(num_threads)
        masks = {self._special.check(text, allowed, disallowed) for text in texts}
        [mask] = masks or {b""}
        return mask

    def _encode_to_list(self, text: Text, allowed: bytes, num_threads: int | None) -> list[int]:
        if num_threads is not None:
            check_threads(num_threads)
        if self._custom is None:
            return self._core.encode_to_list(text, allowed, num_threads)
        ids: list[int] = self._encode(text, allowed, num_threads).tolist()
        return ids

    def _encode(self, text: Text, allowed: bytes, num_threads: int | None = 1) -> npt.NDArray[np.uint32]:
        """The ids of a text in which some special tokens are allowed, as SpecialTokens.check says it."""
        if num_threads is not None:
            check_threads(num_threads)
        if self._custom is None:
            return self._core.encode(text, allowed, num_threads)
        parts = [
            np.array([part], np.uint32)
            if isinstance(part, int)
            else self._core.encode_pretokens(*self._custom.pretokens(part))
            for part in self._core.segments(text, allowed)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.uint32), *parts])

    def encode_with_dropout(
        self,
        text: Text,
        dropout: float = 0.1,
        *,
        seed: int,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[int]:
        """`encode` with merges left out at random, so that a model in training sees a word cut in many ways.

        Within each pretoken: go through the pairs that merge, by rank and from left to right within a rank; skip each
        with probability ``dropout`` and merge the first that is not skipped; repeat, with all skipped pairs candidates
        again, until every one is skipped. So 0 gives `encode`'s ids, 1 single bytes, and decoding gives the text back
        whatever was left out. (Above 0 a pretoken is not looked up as a whole, as with a rank file `encode` does.)

        The ids depend on the vocabulary, the text, ``dropout`` and ``seed`` (in [0, 2**64)) only, on every machine.
        Takes time in proportion to 1 / (1 - dropout). Raises ConfigError for a dropout or a seed out of range.
        Source: Provilkov, Emelianenko and Voita, 2020.
        """
        [ids] = self.encode_batch_with_dropout(
            [text],
            dropout,
            seed=seed,
            num_threads=1,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
        )
        return ids

    def encode_batch_with_dropout(
        self,
        texts: Sequence[Text],
        dropout: float = 0.1,
        *,
        seed: int,
        num_threads: int | None = None,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[list[int]]:
        """`encode_with_dropout` for many texts: text i with ``(seed + i) % 2**64``, on ``num_threads`` threads."""
        check_dropout(dropout, seed)
        if dropout == 0:
            return self.encode_batch(
                texts, num_threads, allowed_special=allowed_special, disallowed_special=disallowed_special
            )
        if isinstance(texts, str | bytes):
            raise TypeError("expected a sequence of texts; for one text call encode_with_dropout")
        check_threads(num_threads)
        cut = [
            self._core.segments(text, self._special.check(text, allowed_special, disallowed_special)) for text in texts
        ]
        stretches, seeds, begins, ends = [], [], [], []
        for number, segments in enumerate(cut):
            begin = 0
            for segment in segments:
                if isinstance(segment, int):
                    begin += int(self.token_lengths[segment])
                    continue
                seeds.append((seed + number) % (1 << 64))
                begins.append(begin)
                begin += len(segment)
                if self._custom is not None:
                    segment, ends_of_segment = self._custom.pretokens(segment)
                    ends.append(ends_of_segment)
                stretches.append(segment)
        tokens, borders = self._core.encode_batch_with_dropout(stretches, seeds, begins, ends, dropout, num_threads)
        ids = tokens.tolist()
        encoded = iter([ids[begin:end] for begin, end in itertools.pairwise(borders.tolist())])
        return [
            [i for segment in segments for i in ([segment] if isinstance(segment, int) else next(encoded))]
            for segments in cut
        ]

    def encode_with_offsets(
        self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all"
    ) -> TokenOffsets:
        """`encode` together with where in the text each token lies, in bytes and in characters.

        O(len(text)). See `TokenOffsets` for tokens that hold part of a character. Raises DataError for a text that its
        tokens do not spell, as a normalizer may make it.
        """
        allowed = self._special.check(text, allowed_special, disallowed_special)
        data = utf8(text)
        tokens = self._encode(data, allowed)
        if int(self.token_lengths[tokens].sum()) != len(data) or (
            not self.lossless and self.decode_bytes(tokens) != data
        ):
            raise DataError(
                "the tokens do not spell this text (the vocabulary normalizes it, or drops or adds some of it), so "
                "they have no offsets in it: normalize the text first"
            )
        return TokenOffsets.of(tokens, self.token_lengths[tokens], data)

    # ------------------------------------------------------------------ decoding

    def decode(self, tokens: Tokens, errors: str = "replace") -> str:
        """The text of ids. Bytes that are not UTF-8 (half a character, say) are handled as by ``bytes.decode``."""
        return self._core.decode_to_str(tokens if type(tokens) is list else readable_ids(tokens), errors)

    def decode_bytes(self, tokens: Tokens) -> bytes:
        """The bytes of ids; the inverse of every encode.

        Raises UnknownTokenError (a DataError and KeyError), with the position, for an id that is none.
        """
        return self._core.decode(tokens if type(tokens) is list else readable_ids(tokens))

    def decode_batch(
        self, batch: Iterable[Tokens], errors: str = "replace", num_threads: int | None = None
    ) -> list[str]:
        """`decode` for many sequences on ``num_threads`` threads (None: all cores); their number changes nothing."""
        check_threads(num_threads)
        return self._core.decode_batch_to_str([readable_ids(tokens) for tokens in batch], errors, num_threads)

    def decode_bytes_batch(self, batch: Iterable[Tokens], num_threads: int | None = None) -> list[bytes]:
        """`decode_bytes` for many sequences, as `decode_batch`."""
        check_threads(num_threads)
        return self._core.decode_batch([readable_ids(tokens) for tokens in batch], num_threads)

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
