"""The vocabulary of a tokenizer: making, reading and writing one, and its properties."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_file_bytes, as_path, shown
from fastcompress._core import bpe as _core
from fastcompress._files import write_atomically
from fastcompress.bpe.arguments import TEXT_TYPES
from fastcompress.bpe.counts import PretokenCounts
from fastcompress.bpe.custom_pattern import CustomPattern
from fastcompress.bpe.huggingface import check_metadata, document_of, vocabulary_of
from fastcompress.bpe.rank_files import vocabulary_of_rank_file, vocabulary_of_ranks
from fastcompress.bpe.special_tokens import SpecialTokens
from fastcompress.bpe.training import TieBreak, train_vocabulary
from fastcompress.bpe.training_texts import Source
from fastcompress.errors import FormatError, SurrogateTokenError
from fastcompress.formats.tokenizer_json import AddedToken, read_tokenizer_json

if TYPE_CHECKING:
    from typing import Self


class Vocabulary:
    """The part of `BPE` that neither encodes nor decodes; not used by itself."""

    def __init__(self, core: _core.Tokenizer) -> None:
        """Wrap a native vocabulary. Use `train`, `from_tiktoken`, `from_huggingface` or `load` instead."""
        if not isinstance(core, _core.Tokenizer):
            raise TypeError(
                f"core is {shown(core)}; make a BPE with BPE.train, from_tiktoken, from_huggingface, load or from_bytes"
            )
        self._core = core
        self._special = SpecialTokens(core)
        self._custom = CustomPattern.from_json(core.pattern) if core.pattern.startswith("[") else None

    # ------------------------------------------------------------------ making one

    @classmethod
    def train(
        cls,
        source: Source | PretokenCounts,
        *,
        vocab_size: int,
        pattern: str | None = None,
        special_tokens: Iterable[str] | Mapping[str, int] = (),
        tie_break: TieBreak = "lowest_id",
        min_frequency: int = 1,
        max_token_length: int | None = None,
        initial_alphabet: bytes | None = None,
        continue_from: Vocabulary | None = None,
        num_threads: int | None = None,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Learn a vocabulary of ``vocab_size`` tokens: bytes, merges and special tokens.

        Each step merges the pair that occurs most often. The result depends on the multiset of texts only. Merging
        takes memory in proportion to the distinct pretokens: 8 to 12 bytes per byte of them. Source: Sennrich, Haddow
        and Birch, 2016.

        Args:
            source: A text, a file (`pathlib.Path`, one text), an iterable of them, which is streamed, or
                `PretokenCounts`. Each text is cut at special tokens, as encoding does.
            vocab_size: The number of tokens, special ones included.
            pattern: A name from `fastcompress.pretokenizer.PATTERNS`, or any regex as for `from_tiktoken`, which cuts
                on one thread and reads each file as a whole. Merges never cross its pretokens. None: that of the counts
                or of ``continue_from``, else ``cl100k``.
            special_tokens: Texts, whose ids are assigned as ``tie_break`` says; or a mapping of texts to ids, each
                above those of the other tokens (with ``huggingface``: the ids that would be assigned, in any order).
                Ids between may stay unused.
            tie_break: The choice among equally frequent pairs. ``lowest_id``: the smaller (left id, right id), where
                ids are 256 bytes, then merges, then special tokens. ``huggingface``: the merges and ids of the library
                ``tokenizers``: special tokens, bytes in the order of its byte-level alphabet, merges; also a merge that
                makes the bytes of an older token becomes that token.
            min_frequency: Pairs that occur less often are not merged. The vocabulary may come out smaller.
            max_token_length: No merge makes more bytes (``huggingface``: it makes fewer, or two, as there). The
                vocabulary may come out smaller.
            initial_alphabet: With ``huggingface``, the bytes that get ids even if no text holds them; None: all. Bytes
                that no text holds and that are not in it get ids from ``vocab_size`` on, since every text can be
                encoded.
            continue_from: A tokenizer whose ids and merges stay; ``vocab_size`` counts them. New merges come after its
                last id, new special tokens after them. Ranks are taken for the merges that make their tokens in this
                order; ConfigError names a token that none makes (Llama 3 has some: tokens that were not learned).
            num_threads: Threads for counting pretokens. None: one per core. Does not change the result.
            max_memory_bytes: A limit for counting, see `PretokenCounts`. Does not change the result.
            temporary_folder: The place for counts beyond it, see `PretokenCounts`.
            on_progress: Called with (tokens made, tokens wanted) now and then.

        Raises:
            ConfigError: A setting is out of range, or settings contradict each other.
            DataError: The texts hold fewer distinct pairs than asked for, or a file cannot be read.
            TypeError: An argument is of a wrong type.
        """
        if continue_from is not None and not isinstance(continue_from, Vocabulary):
            raise TypeError(f"continue_from is {shown(continue_from)}; it must be a BPE, or None")
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
        special_tokens: Iterable[str] = (),
        num_threads: int | None = None,
        max_memory_bytes: int | None = None,
        temporary_folder: str | os.PathLike[str] | None = None,
    ) -> PretokenCounts:
        """Count how often each pretoken occurs, which is all that `train` learns from.

        The counts of parts of a corpus can be added.

        Args:
            source: As for `PretokenCounts.add`.
            pattern: As for `PretokenCounts`.
            special_tokens: As for `PretokenCounts`.
            num_threads: None for one per core. Does not change the result.
            max_memory_bytes: As for `PretokenCounts`.
            temporary_folder: As for `PretokenCounts`.

        Raises:
            ConfigError: An argument is out of range.
            DataError: A file cannot be read.
            TypeError: An argument is of a wrong type.
        """
        counts = PretokenCounts(
            pattern,
            special_tokens=special_tokens,
            max_memory_bytes=max_memory_bytes,
            temporary_folder=temporary_folder,
        )
        counts.add(source, num_threads=num_threads)
        return counts

    @classmethod
    def from_tiktoken(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Read a rank file of tiktoken. Ids equal tiktoken's with the same pattern and special tokens.

        A published file is taken from tiktoken's own cache folder, or else downloaded into it;
        `fastcompress.formats.rank_cache` says where that is and how to work offline.

        Args:
            name_or_path: The name of a published encoding (``gpt2``, ``r50k_base``, ``p50k_base``, ``p50k_edit``,
                ``cl100k_base``, ``o200k_base``, ``o200k_harmony``), which brings its pattern and special tokens with
                it; or the path of a rank file, for which ``pattern`` must be given. (``Path(name)`` is always a path.)
            pattern: A name from `fastcompress.pretokenizer.PATTERNS`, or any regex (tiktoken's ``pat_str``), which
                needs the `regex` package unless it is that of a named pattern.
            special_tokens: Text to id. Several texts may have one id, which then decodes to the first of them; the id
                may be a rank, which then decodes to that rank's bytes.

        Raises:
            FormatError: The file is not a rank file.
            MissingFileError: A published file is neither cached nor can be downloaded.
            ConfigError: The ranks make no vocabulary, or an argument is out of range.
        """
        return cls(vocabulary_of_rank_file(name_or_path, pattern, special_tokens))

    @classmethod
    def from_ranks(
        cls, ranks: Mapping[bytes, int], *, pattern: str, special_tokens: Mapping[str, int] | None = None
    ) -> Self:
        """Make a tokenizer from ranks: token to id.

        Args:
            ranks: The rank of the bytes of each token.
            pattern: As for `from_tiktoken`.
            special_tokens: As for `from_tiktoken`.

        Raises:
            ConfigError: The ranks make no vocabulary, or an argument is out of range.
        """
        return cls(vocabulary_of_ranks(ranks, pattern, special_tokens))

    def to_tiktoken(self, path: str | os.PathLike[str]) -> None:
        """Write the ordinary tokens as a rank file of tiktoken, replacing an existing file in one step.

        With the same pattern and special tokens (which such a file does not hold) it gives the same ids. Raises
        ConfigError for a vocabulary that ranks cannot express, naming a token and the reason: every merge must make a
        token of its own, in the order of ids, from tokens made earlier, and each token's bytes must encode to it.
        """
        write_atomically(as_path(path, "path"), self._core.to_rank_file())

    @classmethod
    def from_huggingface(cls, source: str | os.PathLike[str] | bytes | Mapping[str, Any]) -> Self:
        """Read a ``tokenizer.json`` of Hugging Face's `tokenizers` (a path, its bytes, or its parsed contents).

        Byte-level BPE models only: GPT-2, Llama 3, Qwen, DeepSeek, gpt-oss and their like; normalizer NFC or none. The
        ids are those of ``Tokenizer.encode(text, add_special_tokens=False)`` without truncation, where ``encode`` here
        gets ``allowed_special="all"``; with ``disallowed_special=()``, those of a Tokenizer with
        ``encode_special_tokens = True``. Added tokens that are not special are always tokens. The post-processor and
        the decoder decide no id: they are kept for `to_huggingface`.

        Raises FormatError for a malformed file and, by name, for what is not supported. Source: `tokenizers` 0.23.
        """
        if isinstance(source, bytearray | memoryview):
            source = bytes(source)
        if not isinstance(source, bytes | Mapping):
            source = as_path(source, "source")
        return cls(vocabulary_of(read_tokenizer_json(source)))

    def to_huggingface(self, path: str | os.PathLike[str]) -> None:
        """Write a ``tokenizer.json`` that `tokenizers` reads, with equal ids, replacing an existing file in one step.

        A rank file's vocabulary becomes a list of all its merges with ``ignore_merges``. Raises ConfigError for a
        vocabulary that the file cannot express: where two tokens have the same bytes, or a special token has the text
        of another token.
        """
        path = as_path(path, "path")
        write_atomically(path, json.dumps(document_of(self._core), ensure_ascii=False, indent=1).encode("utf-8"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`. Raises FormatError for a foreign, truncated or damaged one."""
        path = as_path(path, "path")
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary, versioned and with a checksum, replacing an existing file in one step.

        Raises OutputError if the file cannot be written.
        """
        write_atomically(as_path(path, "path"), self.to_bytes())

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Parse what `to_bytes` returned (format: cpp/fastcompress/bpe/FORMAT.md). Raises FormatError otherwise."""
        core = _core.Tokenizer.parse(as_file_bytes(blob, "blob"))
        if core.metadata:
            check_metadata(core.metadata)
        return cls(core)

    def to_bytes(self) -> bytes:
        """Return the contents of the file that `save` writes: everything that determines the ids."""
        return self._core.serialize()

    # ------------------------------------------------------------------ properties

    @property
    def vocab_size(self) -> int:
        """The largest id, special tokens included, plus one. Some ids may be unused."""
        return self._core.size

    @property
    def pattern(self) -> str:
        """The name of the pretokenizer pattern, or the regex or the JSON of the steps that take its place."""
        if self._custom is None:
            return self._core.pattern
        [*others, step] = self._custom.steps
        return str(step["pattern"]) if step["type"] == "Regex" and not others else self._custom.to_json()

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of each special token."""
        return dict(self._special.ids)

    @property
    def added_tokens(self) -> list[AddedToken]:
        """The tokens that are searched for in a text before it is split into pretokens, special or not, by id."""
        return list(self._special.added)

    @property
    def lossless(self) -> bool:
        """True if ``decode_bytes(encode_ordinary(x)) == x`` for all bytes x.

        False with a normalizer, a space added before the text, a pattern that drops text, added tokens that include
        white space or share an id, and for vocabularies without all 256 single bytes.
        """
        core = self._core
        changes_text = core.nfc or core.prefix_space or not core.has_all_bytes
        drops_text = self._custom is not None and not self._custom.lossless
        return not (changes_text or drops_text or self._special.any_loses_text)

    @functools.cached_property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """The number of bytes of each id, int64[vocab_size]; 0 for an unused id. Read-only."""
        lengths = self._core.token_lengths()
        lengths.setflags(write=False)
        return lengths

    @property
    def merges(self) -> npt.NDArray[np.uint32]:
        """The merges in rank order, uint32[n, 3]: left, right, result. Empty for a vocabulary from a rank file."""
        return self._core.merges()

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the vocabulary, as 64 hexadecimal digits. Equal fingerprints mean equal ids for every text."""
        return self.to_bytes()[-32:].hex()

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """Return the bytes of an id. Raises UnknownTokenError (a DataError and KeyError) for one not in use."""
        return self._core.token_bytes(token_id)

    def token_id(self, token: str | bytes) -> int:
        """Return the id of the token with exactly this text: the ordinary one, if a special token has the same text.

        Raises UnknownTokenError if there is no such token. O(len(token) + number of special tokens).
        """
        if not isinstance(token, TEXT_TYPES):
            raise TypeError(f"token is {shown(token)}; it must be str or bytes")
        if not isinstance(token, str):
            return self._core.token_id(bytes(token))
        try:
            token.encode()
        except UnicodeEncodeError as error:
            raise SurrogateTokenError(*error.args) from None
        return self._core.token_id(token)

    def ordinary_tokens(self) -> dict[bytes, int]:
        """Return the id of each token that is not special, in the order of ids; for a rank file these are its ranks.

        If merges made the same string twice, it has the larger of its two ids. Each call makes another dictionary.
        """
        return self._core.ordinary_tokens()
