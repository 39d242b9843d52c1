"""The drop-in for ``tiktoken.core``: the class Encoding."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from fastcompress._deprecated import RenamedAttribute
from fastcompress.bpe import BPE
from fastcompress.bpe.custom_pattern import as_regex
from fastcompress.compat.tiktoken.unstable import completions, num_unstable_tokens
from fastcompress.errors import ConfigError, DataError, UnknownTokenError
from fastcompress.pretokenizer import without_surrogates

_NONE: frozenset[str] = frozenset()
END_OF_TEXT = "<|endoftext|>"


class VocabularySizeError(ConfigError, AssertionError):
    """The vocabulary has a size other than ``explicit_n_vocab``."""


class TokenTypeError(TypeError, AssertionError):
    """An argument is not an int where tiktoken asserts that it is."""


class Encoding:
    r"""A named tokenizer: ranks, a pattern and special tokens. Immutable; safe to share between threads.

    Every method does what tiktoken's method of that name does, and raises the same types of errors.

    >>> ranks = {bytes([i]): i for i in range(256)}
    >>> enc = Encoding("bytes", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={})
    >>> enc.encode("hi")
    [104, 105]
    """

    name: str
    max_token_value: int
    """The largest id."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """Make an encoding.

        Args:
            name: Any name.
            pat_str: The regular expression that cuts a text into pretokens.
            mergeable_ranks: The id of each token that merges make; lower ones merge first.
            special_tokens: The id of each special token. It may be a rank, which then decodes to that rank's bytes.
            explicit_n_vocab: The number of ids, all of which must be used; None to skip that check.

        Raises:
            ConfigError: The settings make no encoding. A ValueError.
            VocabularySizeError: ``explicit_n_vocab`` is another number. An AssertionError.
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
    def from_tokenizer(
        cls,
        name: str,
        tokenizer: BPE,
        *,
        pat_str: str,
        special_tokens: dict[str, int],
        get_by_name: Callable[[str], Encoding] | None = None,
    ) -> Encoding:
        """Make the encoding of a tokenizer, without a dictionary of its ranks.

        Args:
            name: Any name.
            tokenizer: The tokenizer.
            pat_str: Its pattern as a regular expression.
            special_tokens: The id of each special token.
            get_by_name: The function that gives this encoding for its name, which then is all that is pickled.
        """
        encoding = cls.__new__(cls)
        encoding._set(name, tokenizer, pat_str, special_tokens)
        encoding._get_by_name = get_by_name
        return encoding

    of_tokenizer = RenamedAttribute("from_tokenizer")

    def _set(self, name: str, tokenizer: BPE, pat_str: str, special_tokens: dict[str, int]) -> None:
        self.name = name
        self._get_by_name: Callable[[str], Encoding] | None = None
        self.max_token_value = tokenizer.vocab_size - 1
        self._tokenizer = tokenizer
        self._pat_str = pat_str
        self._special_tokens = special_tokens
        self._special_ids = frozenset(special_tokens.values())
        alternatives = [re.escape(text) for text in special_tokens] or [r"(?!)"]
        if any("\ufffd" in text for text in special_tokens):
            alternatives.append("[\ud800-\udfff]")  # these become U+FFFD and may so become part of a special token
        self._find_special = re.compile("|".join(alternatives)).search

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # ------------------------------------------------------------------ encoding

    def encode_ordinary(self, text: str) -> list[int]:
        """Encode a text in which special tokens are ordinary text."""
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
        """Encode a text.

        Args:
            text: The text.
            allowed_special: "all", or the special tokens that become their ids.
            disallowed_special: "all" (every one that is not allowed), or texts: a text that holds one is refused. What
                is neither allowed nor disallowed is ordinary text.

        Raises:
            DataError: The text holds a disallowed special token. A ValueError.
        """
        if self._is_ordinary(text, allowed_special, disallowed_special):
            return self._tokenizer.encode_ordinary(text)
        return self._tokenizer.encode(_checked_text(text), **_specials(allowed_special, disallowed_special))

    def _is_ordinary(self, text: str, allowed: object, disallowed: object) -> bool:
        """Return whether special tokens do not matter, which is the usual case, in less time than encoding takes."""
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
        """Encode a text as `encode` does, but to an array, uint32[n]."""
        if self._is_ordinary(text, allowed_special, disallowed_special):
            return self._tokenizer.encode_to_numpy(text, disallowed_special=())
        return self._tokenizer.encode_to_numpy(_checked_text(text), **_specials(allowed_special, disallowed_special))

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int | None = 8) -> list[list[int]]:
        """Encode several texts as `encode_ordinary` does, on at most one thread per core."""
        return self._tokenizer.encode_batch(_checked_texts(text), _at_most_cores(num_threads), disallowed_special=())

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = _NONE,
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """Encode several texts as `encode` does.

        Args:
            text: The texts, an iterable that is read once.
            num_threads: The largest number of threads; more than one per core are not used.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Raises:
            DataError: A text holds a disallowed special token. A ValueError.
        """
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
        """Return the ids of a text that appended text cannot change, and the completions that may follow them.

        The stable ids decode to a prefix of the text; with any of the completions after them, they decode to the text
        and perhaps more (see `unstable`).

        Args:
            text: The text.
            allowed_special: As for `encode`.
            disallowed_special: As for `encode`.

        Returns:
            (stable ids, completions), where each completion is a list of ids; they are in no particular order.

        Raises:
            DataError: The text holds a disallowed special token. A ValueError.
        """
        tokens = self.encode_to_numpy(text, allowed_special=allowed_special, disallowed_special=disallowed_special)
        allowed = self.special_tokens_set if allowed_special == "all" else self.special_tokens_set & allowed_special
        segment = self._tokenizer.encode_to_numpy(_after_last(allowed, without_surrogates(text)), disallowed_special=())
        num_stable = len(tokens) - num_unstable_tokens(self._tokenizer, segment)
        stable, unstable = tokens[:num_stable], self._tokenizer.decode_bytes(tokens[num_stable:])
        if not unstable:
            return stable.tolist(), []
        return stable.tolist(), completions(self._tokenizer, unstable, self._mergeable_ranks, self._sorted_tokens)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of exactly this token, special or not. Raises UnknownTokenError, a KeyError, for others."""
        if not isinstance(text_or_bytes, str | bytes):
            raise TypeError(f"text_or_bytes is of type {type(text_or_bytes).__name__}; it must be str or bytes")
        return self._tokenizer.token_id(text_or_bytes)

    # ------------------------------------------------------------------ decoding

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Decode ids to bytes. Raises UnknownTokenError, a KeyError, for an id not in use."""
        try:
            return self._tokenizer.decode_bytes(tokens)
        except TypeError:
            return self._tokenizer.decode_bytes(_without_bools(tokens))

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Decode ids to text; ``errors`` is as for ``bytes.decode``."""
        try:
            return self._tokenizer.decode(tokens, errors)
        except TypeError:
            return self._tokenizer.decode(_without_bools(tokens), errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one id, special or not. Raises UnknownTokenError, a KeyError, for one not in use."""
        return self._tokenizer.token_bytes(int(token) if isinstance(token, bool) else token)

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Return the bytes of each id."""
        return list(map(self.decode_single_token_bytes, tokens))

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Decode ids, and return the text and the position in it, in characters, where each token begins.

        A token that begins inside a character begins where that character does. Raises UnicodeDecodeError if the bytes
        are not UTF-8.
        """
        tokens = _without_bools(tokens)
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
        """Decode several sequences of ids as `decode` does.

        Args:
            batch: The sequences, an iterable that is read once.
            errors: As for ``bytes.decode``.
            num_threads: The largest number of threads; more than one per core are not used.

        Raises:
            UnknownTokenError: An id is not in use. A KeyError.
        """
        return self._tokenizer.decode_batch(map(_without_bools, batch), errors, _at_most_cores(num_threads))

    def decode_bytes_batch(self, batch: Iterable[Sequence[int]], *, num_threads: int | None = 8) -> list[bytes]:
        """Decode several sequences of ids as `decode_bytes` does."""
        return self._tokenizer.decode_bytes_batch(map(_without_bools, batch), _at_most_cores(num_threads))

    # ------------------------------------------------------------------ properties

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of every token that is not special, in the order of the bytes."""
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
        """Return whether an id is a special token's. Raises TokenTypeError, an AssertionError, for another type."""
        if not isinstance(token, int):
            raise TokenTypeError(f"token is of type {type(token).__name__}; it must be an int")
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
        clone._get_by_name = None
        return clone

    def __deepcopy__(self, memo: object) -> Encoding:
        return self.__copy__()  # an Encoding is immutable

    def __reduce__(self) -> tuple[Callable[..., Encoding], tuple[Any, ...]]:
        """Pickle an encoding that `get_encoding` gave by its name, any other one by its content."""
        if self._get_by_name is not None:
            return self._get_by_name, (self.name,)
        return _unpickle, (type(self), self.name, self._tokenizer, self._pat_str, self._special_tokens)


def _unpickle(cls: type[Encoding], name: str, tokenizer: BPE, pat_str: str, special_tokens: dict[str, int]) -> Encoding:
    return cls.from_tokenizer(name, tokenizer, pat_str=pat_str, special_tokens=special_tokens)


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raise the error for a text that holds a disallowed special token. A ValueError."""
    raise DataError(
        f"the text holds the disallowed special token {token!r}; pass it in allowed_special to encode it as that "
        "token, or disallowed_special=() for ordinary text"
    )


def _not_a_text(text: object) -> TypeError:
    return TypeError(f"text is of type {type(text).__name__}; it must be a str (fastcompress.BPE takes bytes, too)")


def _checked_text(text: str) -> str:
    if not isinstance(text, str):
        raise _not_a_text(text)
    return text


def _checked_texts(texts: Iterable[str]) -> list[str]:
    return [_checked_text(text) for text in texts]


def _specials(allowed: Literal["all"] | AbstractSet[str], disallowed: Literal["all"] | Collection[str]) -> Any:
    """Return the arguments for the tokenizer, which accepts more types than tiktoken does."""
    if allowed != "all" and not isinstance(allowed, AbstractSet):
        raise TypeError(f"allowed_special is of type {type(allowed).__name__}; it must be 'all' or a set of str")
    return {
        "allowed_special": allowed,
        "disallowed_special": disallowed if disallowed == "all" else frozenset(disallowed or ()),
    }


def _after_last(specials: AbstractSet[str], text: str) -> str:
    """Return the part of a text after its last special token; at each position the longest token counts."""
    if not specials:
        return text
    end = 0
    for match in re.finditer("|".join(map(re.escape, sorted(specials, key=len, reverse=True))), text):
        end = match.end()
    return text[end:]


def _without_bools(tokens: Sequence[int]) -> Sequence[int]:
    """Return ids with ints in place of bools, which tiktoken takes for 0 and 1 and `BPE` refuses."""
    if isinstance(tokens, list | tuple) and any(isinstance(token, bool) for token in tokens):
        return [int(token) if isinstance(token, bool) else token for token in tokens]
    return tokens


def _at_most_cores(num_threads: int | None) -> int | None:
    """Return a number of threads that is at most the number of cores: more would only take memory."""
    cores = os.cpu_count() or 1
    return cores if num_threads is None else min(num_threads, cores)
