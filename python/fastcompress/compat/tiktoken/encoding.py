"""The drop-in for ``tiktoken.Encoding``."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastcompress.bpe import BPE
from fastcompress.bpe.custom_pattern import as_regex
from fastcompress.compat.tiktoken.unstable import completions, num_unstable_tokens
from fastcompress.errors import ConfigError, UnknownTokenError

_NONE: frozenset[str] = frozenset()
END_OF_TEXT = "<|endoftext|>"


class VocabularySizeError(ConfigError, AssertionError):
    """The vocabulary has another size than ``explicit_n_vocab`` says."""


class TokenTypeError(TypeError, AssertionError):
    """Something that is not an int where tiktoken asserts one."""


class Encoding:
    """What text becomes for a model: ranks, a pattern, special tokens, and a name. Immutable; threads may share it.

    Every method does what tiktoken's method of that name does, and raises the same types of errors.
    """

    name: str
    max_token_value: int
    """The greatest id."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """An encoding of one's own.

        pat_str: the regular expression that cuts a text into pretokens.
        mergeable_ranks: the id of each token that merges make; lower ones merge first.
        special_tokens: the id of each special token.
        explicit_n_vocab: if given, the number of ids, all of which must be used.

        Raises ConfigError, a ValueError, for settings that make no encoding, and for a wrong explicit_n_vocab
        VocabularySizeError, an AssertionError.
        """
        tokenizer = BPE.from_ranks(mergeable_ranks, pattern=as_regex(pat_str), special_tokens=special_tokens)
        self._set(name, tokenizer, pat_str, special_tokens)
        self._mergeable_ranks = mergeable_ranks
        num_tokens = len(mergeable_ranks) + len(special_tokens)
        if explicit_n_vocab and not num_tokens == self.n_vocab == explicit_n_vocab:
            raise VocabularySizeError(
                f"explicit_n_vocab={explicit_n_vocab}, but there are {num_tokens} tokens and the ids go to "
                f"{self.max_token_value}"
            )

    @classmethod
    def of_tokenizer(cls, name: str, tokenizer: BPE, *, pat_str: str, special_tokens: dict[str, int]) -> Encoding:
        """The encoding that a tokenizer is, without its ranks at hand."""
        encoding = cls.__new__(cls)
        encoding._set(name, tokenizer, pat_str, special_tokens)
        return encoding

    def _set(self, name: str, tokenizer: BPE, pat_str: str, special_tokens: dict[str, int]) -> None:
        self.name = name
        self.max_token_value = tokenizer.vocab_size - 1
        self._tokenizer = tokenizer
        self._pat_str = pat_str
        self._special_tokens = special_tokens
        self._special_ids = frozenset(special_tokens.values())
        alternatives = [re.escape(text) for text in special_tokens] or [r"(?!)"]
        if any("\ufffd" in text for text in special_tokens):
            alternatives.append("[\ud800-\udfff]")  # which become U+FFFD, and so may become part of a special token
        self._find_special = re.compile("|".join(alternatives)).search

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # ------------------------------------------------------------------ encoding

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which special tokens are ordinary text."""
        if not isinstance(text, str):
            raise _not_a_text(text)
        return self._tokenizer.encode_ordinary(text)

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = _NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """The ids of a text.

        Special tokens of ``allowed_special`` get their ids where the text holds them; those of ``disallowed_special``
        ("all": every one that is not allowed) raise DataError, a ValueError; others are ordinary text.
        """
        if self._is_ordinary(text, allowed_special, disallowed_special):
            return self._tokenizer.encode_ordinary(text)
        return self._tokenizer.encode(_checked_text(text), **_specials(allowed_special, disallowed_special))

    def _is_ordinary(self, text: str, allowed: object, disallowed: object) -> bool:
        """Whether special tokens play no part: the usual case, found out in less time than a short text takes."""
        return (
            (disallowed == "all" or not disallowed)
            and (allowed is _NONE or allowed == "all" or isinstance(allowed, AbstractSet))
            and isinstance(text, str)
            and self._find_special(text) is None
        )

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = _NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> npt.NDArray[np.uint32]:
        """`encode`, as uint32[n]."""
        if self._is_ordinary(text, allowed_special, disallowed_special):
            return self._tokenizer.encode_to_numpy(text, disallowed_special=())
        return self._tokenizer.encode_to_numpy(_checked_text(text), **_specials(allowed_special, disallowed_special))

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int | None = 8) -> list[list[int]]:
        """`encode_ordinary` for many texts; no more threads than cores are used."""
        return self._tokenizer.encode_batch(_checked_texts(text), _at_most_cores(num_threads), disallowed_special=())

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = _NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """`encode` for many texts; no more threads than cores are used."""
        return self._tokenizer.encode_batch(
            _checked_texts(text), _at_most_cores(num_threads), **_specials(allowed_special, disallowed_special)
        )

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = _NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """The ids of a text that more text cannot change, and what may follow them (see `unstable`).

        The stable ids spell a prefix of the text. With each completion behind them they spell the text and maybe more.
        """
        tokens = self.encode_to_numpy(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
        num_stable = len(tokens) - num_unstable_tokens(self._tokenizer, tokens)
        stable, unstable = tokens[:num_stable], self._tokenizer.decode_bytes(tokens[num_stable:])
        if not unstable:
            return stable.tolist(), []
        return stable.tolist(), completions(self._tokenizer, unstable, self._mergeable_ranks, self._sorted_tokens)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of exactly this token, special ones included. Raises UnknownTokenError, a KeyError, if it is none."""
        return self._tokenizer.token_id(text_or_bytes)

    # ------------------------------------------------------------------ decoding

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes that ids spell. Raises UnknownTokenError, a KeyError, for an id that is none."""
        return self._tokenizer.decode_bytes(tokens)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """The text of ids; what is not UTF-8 in it is handled as by ``bytes.decode``."""
        return self._tokenizer.decode(tokens, errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id, special ones included. Raises UnknownTokenError, a KeyError, for one that is none."""
        return self._tokenizer.token_bytes(token)

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each id."""
        return list(map(self._tokenizer.token_bytes, tokens))

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """The text of ids, and where in it, in characters, each token begins.

        A token that begins inside a character begins where that character does. Raises UnicodeDecodeError if the bytes
        are not UTF-8.
        """
        data = self._tokenizer.decode_bytes(tokens)
        text = data.decode("utf-8")
        lengths = self._tokenizer.token_lengths[np.asarray(tokens, np.int64)]
        begins = np.cumsum(lengths) - lengths
        is_first = (np.frombuffer(bytearray(data), np.uint8) & 0xC0) != 0x80  # of a character's bytes
        characters = np.cumsum(is_first)  # that begin up to and including this byte
        offsets: list[int] = (characters[begins] - 1).tolist()
        return text, offsets

    def decode_batch(
        self, batch: Iterable[Sequence[int]], *, errors: str = "replace", num_threads: int | None = 8
    ) -> list[str]:
        """`decode` for many sequences."""
        return self._tokenizer.decode_batch(batch, errors, _at_most_cores(num_threads))

    def decode_bytes_batch(self, batch: Iterable[Sequence[int]], *, num_threads: int | None = 8) -> list[bytes]:
        """`decode_bytes` for many sequences."""
        return self._tokenizer.decode_bytes_batch(batch, _at_most_cores(num_threads))

    # ------------------------------------------------------------------ what it is

    def token_byte_values(self) -> list[bytes]:
        """The bytes of every token that is not special, in the order of the bytes."""
        return self._sorted_tokens.copy()

    @property
    def eot_token(self) -> int:
        """The id of ``<|endoftext|>``. Raises UnknownTokenError, a KeyError, if there is none."""
        if END_OF_TEXT not in self._special_tokens:
            raise UnknownTokenError(f"the encoding {self.name!r} has no special token {END_OF_TEXT}")
        return self._special_tokens[END_OF_TEXT]

    @functools.cached_property
    def special_tokens_set(self) -> set[str]:
        """The texts of the special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is a special token's. Raises TokenTypeError, an AssertionError, for what is not an int."""
        if not isinstance(token, int):
            raise TokenTypeError(f"a token is an int, not {type(token).__name__}")
        return token in self._special_ids

    @property
    def n_vocab(self) -> int:
        """``max_token_value + 1``."""
        return self.max_token_value + 1

    # What tiktoken's README takes from an encoding to extend it: these two, and `_pat_str` and `_special_tokens`.
    @functools.cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self._tokenizer.ordinary_tokens()

    @functools.cached_property
    def _sorted_tokens(self) -> list[bytes]:
        return sorted(self._mergeable_ranks)

    # ------------------------------------------------------------------ copies

    def __copy__(self) -> Encoding:
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        return clone

    def __deepcopy__(self, memo: object) -> Encoding:
        return self.__copy__()  # nothing in it changes

    def __reduce__(self) -> tuple[Callable[..., Encoding], tuple[Any, ...]]:
        """One that `get_encoding` gave is pickled by its name, any other one by its content."""
        from fastcompress.compat.tiktoken.registry import get_encoding, is_registered

        if is_registered(self):
            return get_encoding, (self.name,)
        return _unpickle, (type(self), self.name, self._tokenizer, self._pat_str, self._special_tokens)


def _unpickle(cls: type[Encoding], name: str, tokenizer: BPE, pat_str: str, special_tokens: dict[str, int]) -> Encoding:
    return cls.of_tokenizer(name, tokenizer, pat_str=pat_str, special_tokens=special_tokens)


def _not_a_text(text: object) -> TypeError:
    return TypeError(f"expected a str, not {type(text).__name__}; BPE takes bytes too")


def _checked_text(text: str) -> str:
    if not isinstance(text, str):
        raise _not_a_text(text)
    return text


def _checked_texts(texts: Iterable[str]) -> list[str]:
    return [_checked_text(text) for text in texts]


def _specials(allowed: Literal["all"] | AbstractSet[str], disallowed: Literal["all"] | Collection[str]) -> Any:
    """Arguments for the tokenizer, which takes more types than tiktoken does."""
    if allowed != "all" and not isinstance(allowed, AbstractSet):
        raise TypeError(f"allowed_special is 'all' or a set, not {type(allowed).__name__}")
    return {
        "allowed_special": allowed,
        "disallowed_special": disallowed if disallowed == "all" else frozenset(disallowed or ()),
    }


def _at_most_cores(num_threads: int | None) -> int | None:
    """More threads than cores would only take memory."""
    cores = os.cpu_count() or 1
    return cores if num_threads is None else min(num_threads, cores)
