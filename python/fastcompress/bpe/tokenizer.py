"""The BPE tokenizer: text to ids and back, each method a thin call of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastcompress.bpe.arguments import Text, Tokens, check_dropout, check_dtype, check_threads, readable_ids
from fastcompress.bpe.encoding import (
    check_batch,
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


class BPE(Vocabulary):
    """A BPE tokenizer. Make one with `train`, `from_tiktoken`, `load` or `from_bytes`."""

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
        allowed = self._special.check(text, allowed_special, disallowed_special)
        return encode_to_list(self._core, self._custom, text, allowed, num_threads)

    def encode_ordinary(self, text: Text, *, num_threads: int | None = None) -> list[int]:
        """The ids of a text in which special tokens are ordinary text."""
        return encode_to_list(self._core, self._custom, text, b"", num_threads)

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
            check_dtype(dtype, self.vocab_size)
        allowed = self._special.check(text, allowed_special, disallowed_special)
        tokens = encode_to_array(self._core, self._custom, text, allowed, num_threads)
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
        allowed = check_batch(self._special, texts, num_threads, allowed_special, disallowed_special)
        return encode_batch_to_lists(self._core, self._custom, texts, allowed, num_threads)

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
        allowed = check_batch(self._special, texts, num_threads, allowed_special, disallowed_special)
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
        return encode_cut_with_dropout(self._core, self._custom, cut, self.token_lengths, dropout, seed, num_threads)

    def encode_with_offsets(
        self, text: Text, *, allowed_special: Specials = (), disallowed_special: Specials = "all"
    ) -> TokenOffsets:
        """`encode` together with where in the text each token lies, in bytes and in characters.

        O(len(text)). See `TokenOffsets` for tokens that hold part of a character. Raises DataError for a text that its
        tokens do not spell, as a normalizer may make it.
        """
        allowed = self._special.check(text, allowed_special, disallowed_special)
        data = utf8(text)
        tokens = encode_to_array(self._core, self._custom, data, allowed)
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

    # ------------------------------------------------------------------ copies

    def __reduce__(self) -> tuple[Callable[[bytes], BPE], tuple[bytes]]:
        return BPE.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BPE) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<BPE vocab_size={self.vocab_size} pattern={self.pattern!r} fingerprint={self.fingerprint[:12]}>"
