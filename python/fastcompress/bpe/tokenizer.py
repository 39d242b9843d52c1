"""The BPE tokenizer. Each method checks its arguments and calls the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress._arguments import as_integer, shown
from fastcompress.bpe.arguments import (
    TEXT_TYPES,
    Text,
    Tokens,
    as_dropout,
    as_id_array,
    as_id_arrays,
    as_thread_limit,
    check_dtype,
    check_text_types,
    refuse_text,
)
from fastcompress.bpe.encoding import (
    checked_batch,
    encode_batch_to_arrays,
    encode_batch_to_lists,
    encode_cut_with_dropout,
    encode_to_array,
    encode_to_list,
)
from fastcompress.bpe.offsets import TokenOffsets
from fastcompress.bpe.special_tokens import Specials
from fastcompress.bpe.stream_decoder import StreamDecoder
from fastcompress.bpe.vocabulary import Vocabulary
from fastcompress.errors import DataError
from fastcompress.pretokenizer import split_ends, utf8

# The usual arguments, by which short texts take the shortest way.
NO_TEXTS, ALL, UINT32 = (), "all", np.uint32


class BPE(Vocabulary):
    """A byte pair encoding tokenizer. Immutable; safe to share between threads.

    Make one with `train`, `from_tiktoken`, `from_huggingface`, `load` or `from_bytes`.

    >>> tok = BPE.train(["to be or not to be"] * 8, vocab_size=261, special_tokens=["<|end|>"])
    >>> tok.decode(tok.encode("to be"))
    'to be'
    >>> tok.encode("<|end|>", allowed_special="all")
    [260]
    """

    # ------------------------------------------------------------------ encoding

    def encode(
        self,
        text: Text,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
        num_threads: int | None = None,
    ) -> list[int]:
        """Encode a text to ids, with tiktoken's treatment of special tokens.

        If several allowed special tokens begin at one position, the longest is taken. Added tokens that are not special
        (a ``tokenizer.json`` may have some) always become their ids. If there are any, no token is searched for within
        the text of a special token that is not allowed.

        Args:
            text: A str or bytes. Surrogates in a str are replaced (`errors.SurrogateError` states the rule).
            allowed_special: "all", or an iterable of special tokens: these become their ids.
            disallowed_special: "all" (every one that is not allowed), or an iterable of texts: a text that holds one
                is refused. What is neither allowed nor disallowed is ordinary text.
            num_threads: The number of threads for one long text under a named pattern; None for one per core from 1 MiB
                on. Does not change the result.

        Raises:
            DataError: The text holds a disallowed special token.
            TypeError: An argument is of a wrong type.
        """
        if allowed_special is NO_TEXTS and disallowed_special is ALL and self._custom is None:
            try:
                ids = self._core.encode_without_special_to_list(text, num_threads)
                if ids is not None:
                    return ids
            except TypeError:
                pass  # an argument of an unusual type
        rules = self._special.rules(allowed_special, disallowed_special)
        if rules.refused or rules.refused_others:
            self._refuse(text, rules)
        return encode_to_list(self._core, self._custom, text, rules.allowed, num_threads)

    def _refuse(self, text: Text, rules: Any) -> None:
        if not isinstance(text, TEXT_TYPES):
            refuse_text(text)
        self._special.refuse(text, rules)

    def encode_ordinary(self, text: Text, *, num_threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens are ordinary text."""
        if self._custom is None:
            try:
                return self._core.encode_ordinary_to_list(text, num_threads)
            except TypeError:
                pass  # an argument of an unusual type
        return encode_to_list(self._core, self._custom, text, b"", num_threads)

    def pretoken_ends(self, text: bytes) -> npt.NDArray[np.uint64]:
        """Return where each pretoken of a text ends: uint64[n], in bytes, without those that the pattern drops."""
        if self._custom is not None:
            return self._custom.pretokens(text)[1]
        return split_ends(text, self.pattern)

    def encode_by_merges(self, pretoken: bytes) -> list[int]:
        """Encode bytes as one pretoken, without the pattern, by merges alone."""
        if not isinstance(pretoken, bytes):
            raise TypeError(f"pretoken is {shown(pretoken)}; it must be bytes")
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
        """Encode a text to an array.

        Args:
            text: As for `encode`.
            dtype: An integer type that can hold every id.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.
            num_threads: As for `encode`.

        Returns:
            The ids, dtype[n].

        Raises:
            ConfigError: `dtype` cannot hold every id.
            DataError: The text holds a disallowed special token.
        """
        if dtype is not UINT32:
            check_dtype(dtype, self.vocab_size)
        elif allowed_special is NO_TEXTS and disallowed_special is ALL and self._custom is None:
            try:
                ids = self._core.encode_without_special(text, num_threads)
                if ids is not None:
                    return ids
            except TypeError:
                pass  # an argument of an unusual type
        rules = self._special.rules(allowed_special, disallowed_special)
        if rules.refused or rules.refused_others:
            self._refuse(text, rules)
        tokens = encode_to_array(self._core, self._custom, text, rules.allowed, num_threads)
        return tokens if dtype is UINT32 else tokens.astype(dtype, copy=False)

    def count(self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all") -> int:
        """Return the number of ids of a text, without making a list of them: four bytes of memory per token.

        Args:
            text: As for `encode`.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Raises:
            DataError: The text holds a disallowed special token.
        """
        return len(self.encode_to_numpy(text, allowed_special=allowed_special, disallowed_special=disallowed_special))

    def count_batch(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> npt.NDArray[np.int64]:
        """Return the number of ids of each text, int64[len(texts)].

        Args:
            texts: Any iterable of texts, read once.
            num_threads: None for one per core. Does not change the result.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Raises:
            DataError: A text holds a disallowed special token.
            TypeError: An argument is of a wrong type, for example if `texts` is a single text.
        """
        num_threads = as_thread_limit(num_threads)
        texts, allowed = checked_batch(self._special, texts, "count", allowed_special, disallowed_special, num_threads)
        _, offsets = encode_batch_to_arrays(self._core, self._custom, texts, allowed, num_threads)
        boundaries = offsets.astype(np.int64)
        return boundaries[1:] - boundaries[:-1]

    def encode_batch(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[list[int]]:
        """Encode several texts; each as `encode` does.

        Args:
            texts: Any iterable of texts, read once.
            num_threads: None for one per core. Does not change the result.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Raises:
            DataError: A text holds a disallowed special token.
            TypeError: An argument is of a wrong type, for example if `texts` is a single text.
        """
        num_threads = as_thread_limit(num_threads)
        texts, allowed = checked_batch(self._special, texts, "encode", allowed_special, disallowed_special, num_threads)
        return encode_batch_to_lists(self._core, self._custom, texts, allowed, num_threads)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        num_threads: int | None = None,
        *,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """Encode several texts to arrays.

        Args:
            texts: Any iterable of texts, read once.
            num_threads: None for one per core. Does not change the result.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Returns:
            (tokens uint32[n], offsets uint64[len(texts) + 1]); the ids of text i are
            ``tokens[offsets[i]:offsets[i + 1]]``.

        Raises:
            DataError: A text holds a disallowed special token.
            TypeError: An argument is of a wrong type, for example if `texts` is a single text.
        """
        num_threads = as_thread_limit(num_threads)
        texts, allowed = checked_batch(
            self._special, texts, "encode_to_numpy", allowed_special, disallowed_special, num_threads
        )
        return encode_batch_to_arrays(self._core, self._custom, texts, allowed, num_threads)

    def encode_with_dropout(
        self,
        text: Text,
        dropout: float = 0.1,
        *,
        seed: int,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[int]:
        """Encode a text with merges left out at random, so that a model in training sees a word cut in many ways.

        Within each pretoken: go through the pairs that merge, by rank and from left to right within a rank; skip each
        with probability ``dropout`` and merge the first that is not skipped; repeat, with all skipped pairs candidates
        again, until every one is skipped. So 0 gives `encode`'s ids, 1 single bytes, and decoding gives the text back
        whatever was left out. (Above 0 a pretoken is not looked up as a whole, as `encode` does with a rank file.)

        The ids depend on the vocabulary, the text, ``dropout`` and ``seed`` only, on every machine. Takes time in
        proportion to 1 / (1 - dropout). Source: Provilkov, Emelianenko and Voita, 2020.

        Args:
            text: As for `encode`.
            dropout: The probability of skipping a merge, 0 to 1.
            seed: An integer from 0 to 2**64 - 1.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Raises:
            ConfigError: ``dropout`` or ``seed`` is out of range.
            DataError: The text holds a disallowed special token.
        """
        if not isinstance(text, TEXT_TYPES):
            refuse_text(text)
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
        texts: Iterable[Text],
        dropout: float = 0.1,
        *,
        seed: int,
        num_threads: int | None = None,
        allowed_special: Specials = (),
        disallowed_special: Specials = "all",
    ) -> list[list[int]]:
        """Encode several texts as `encode_with_dropout` does, text i with the seed ``(seed + i) % 2**64``."""
        dropout = as_dropout(dropout)
        seed = as_integer(seed, "seed", 0, (1 << 64) - 1)
        num_threads = as_thread_limit(num_threads)
        one_text = "encode_with_dropout"
        texts, allowed = checked_batch(self._special, texts, one_text, allowed_special, disallowed_special, num_threads)
        if dropout == 0:
            return encode_batch_to_lists(self._core, self._custom, texts, allowed, num_threads)
        check_text_types(texts, "texts")
        cut = [self._core.segments(text, allowed) for text in texts]
        return encode_cut_with_dropout(self._core, self._custom, cut, self.token_lengths, dropout, seed, num_threads)

    def encode_with_offsets(
        self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all"
    ) -> TokenOffsets:
        """Encode a text, and say where in it each token lies, in bytes and in characters.

        O(len(text)). See `TokenOffsets` for tokens that hold part of a character. Raises DataError for a text that its
        tokens do not decode to, as a normalizer may make it.
        """
        rules = self._special.rules(allowed_special, disallowed_special)
        self._refuse(text, rules)
        data = utf8(text)
        tokens = encode_to_array(self._core, self._custom, data, rules.allowed)
        if int(self.token_lengths[tokens].sum()) != len(data) or (
            not self.lossless and self.decode_bytes(tokens) != data
        ):
            raise DataError(
                "the tokens do not decode to this text (the vocabulary normalizes it, or drops or adds some of it), so "
                "they have no offsets in it; normalize the text first"
            )
        return TokenOffsets.from_lengths(tokens, self.token_lengths[tokens], data)

    # ------------------------------------------------------------------ decoding

    def decode(self, tokens: Tokens, errors: str = "replace") -> str:
        """Decode ids to text.

        Args:
            tokens: Ids: a list, or integers[n].
            errors: The treatment of bytes that are not UTF-8 (half a character, say), as for ``bytes.decode``.

        Raises:
            UnknownTokenError: An id is not in the vocabulary; its position is named. A DataError and KeyError.
            TypeError: ``tokens`` is not a one-dimensional sequence of integers.
        """
        try:
            return self._core.decode_to_str(tokens if type(tokens) is list else as_id_array(tokens), errors)
        except TypeError:
            _check_errors(errors)
            raise

    def decode_bytes(self, tokens: Tokens) -> bytes:
        """Decode ids to bytes: the inverse of every encode method if the vocabulary is `lossless`.

        Raises UnknownTokenError (a DataError and KeyError), with the position, for an id not in the vocabulary.
        """
        return self._core.decode(tokens if type(tokens) is list else as_id_array(tokens))

    def decode_batch(
        self, batch: Iterable[Tokens], errors: str = "replace", num_threads: int | None = None
    ) -> list[str]:
        """Decode several sequences of ids, each as `decode` does.

        Args:
            batch: Any iterable of sequences of ids, read once.
            errors: As for `decode`.
            num_threads: None for one per core. Does not change the result.

        Raises:
            UnknownTokenError: An id is not in the vocabulary; its sequence and position are named.
            TypeError: An argument is of a wrong type.
        """
        num_threads = as_thread_limit(num_threads)
        _check_errors(errors)
        return self._core.decode_batch_to_str(as_id_arrays(batch), errors, num_threads)

    def decode_bytes_batch(self, batch: Iterable[Tokens], num_threads: int | None = None) -> list[bytes]:
        """Decode several sequences of ids to bytes; arguments and errors as for `decode_batch`."""
        num_threads = as_thread_limit(num_threads)
        return self._core.decode_batch(as_id_arrays(batch), num_threads)

    def decode_stream(self, errors: str = "replace") -> StreamDecoder:
        """Return a decoder that takes ids one at a time and never gives half a character."""
        _check_errors(errors)
        return StreamDecoder(self, errors)

    # ------------------------------------------------------------------ copies

    def __reduce__(self) -> tuple[Callable[[bytes], BPE], tuple[bytes]]:
        return BPE.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BPE) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return (
            f"<BPE vocab_size={self.vocab_size} pattern={self.pattern!r} special_tokens={len(self._special.ids)} "
            f"fingerprint={self.fingerprint[:12]}>"
        )


def _check_errors(errors: str) -> None:
    if not isinstance(errors, str):
        raise TypeError(f"errors is {shown(errors)}; it must be a str such as 'replace' or 'strict'")
