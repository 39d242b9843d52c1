"""The errors that this package raises on bad input; each message names the cause and says what to do.

Each of them is also a built-in exception (``ValueError``, ``OSError`` ...), so that code which does not know this
module can catch them too. Programming errors (an argument of a wrong type) raise ``TypeError``, as in Python itself.

>>> from fastcompress import BPE
>>> try:
...     BPE.train("to be or not to be", vocab_size=100)
... except ConfigError as error:
...     print(error)
vocab_size=100 is too small; 256 bytes and 0 special tokens take 256
"""

from __future__ import annotations

from typing import cast


class FastcompressError(Exception):
    """The base of every error that this package raises on purpose."""


class ConfigError(FastcompressError, ValueError):
    """A setting is out of range, or two settings contradict each other."""


class BusyError(ConfigError):
    """An object that a call may change is in use, by a call of another thread or by a call that led to this one."""


class DataError(FastcompressError, ValueError):
    """The data cannot be used: it is empty or too short, or has an unknown character or a token id out of range."""


class UnknownTokenError(DataError, KeyError):
    """A token id, or a token's bytes, that the vocabulary does not have."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


class TokenRangeError(UnknownTokenError, OverflowError):
    """A token id that is negative or does not fit 32 bits, which no vocabulary has."""


class SurrogateError(DataError, UnicodeEncodeError):
    """A text that must be preserved exactly has a surrogate, which UTF-8 cannot encode.

    One rule for a ``str`` with surrogates (code points U+D800 to U+DFFF) holds in the whole package:

    - Functions whose output decodes to their input (compression, LZ77, codebooks, codecs) refuse it with this error,
      as ``str.encode`` does with its own. The attributes are those of UnicodeEncodeError; ``start`` is the position.
    - Functions that encode as tiktoken does (`BPE`, its training, `pretokenizer.split`) replace a surrogate pair by its
      character and a lone surrogate by U+FFFD. A lookup of a single token replaces nothing: the token is unknown
      (SurrogateTokenError).
    - Texts stored in a vocabulary (special tokens, patterns) are refused with ConfigError, never replaced.
    """

    def __str__(self) -> str:
        return (
            f"the text has a surrogate, {self.object[self.start : self.start + 1]!a}, at position {self.start}, which "
            "UTF-8 cannot encode; remove it, or pass bytes"
        )


class SurrogateTokenError(UnknownTokenError, SurrogateError):
    """A text that was looked up as a token has a surrogate, which no token has."""

    __str__ = SurrogateError.__str__


class MissingFileError(FastcompressError, FileNotFoundError):
    """A file does not exist, or could not be downloaded."""


class FormatError(FastcompressError, ValueError):
    """A file or stream is malformed, truncated or damaged, or of another format or version."""


class ColumnError(FormatError, TypeError):
    """Ids or columns of tokens are not one-dimensional integers, or the columns have different lengths.

    Both a FormatError, since such data may come from a file, and a TypeError.
    """


class MismatchError(FastcompressError, ValueError):
    """Two files or objects do not belong together, such as a checkpoint and another codec than its own."""


class OutputError(FastcompressError, OSError):
    """An output cannot be written, or would replace an existing file."""


class WorkerError(FastcompressError, RuntimeError):
    """A worker of a cluster died with its part of the work, and so did those that tried again."""


class DivergenceError(FastcompressError, ArithmeticError):
    """A training run's loss became infinite or NaN; its last good checkpoint is kept."""


class SelfCheckError(FastcompressError, AssertionError):
    """A model or a training step fails a check that training relies on, such as that it sees no future token."""


class TextNotFileWarning(UserWarning):
    """A text to train on is the name of an existing file; to train on a file's contents, pass a `pathlib.Path`."""


def with_place(error: FastcompressError, place: object) -> FastcompressError:
    """Return an error of the same kind whose message starts with a place, such as the name of a file.

    Surrogate errors, whose arguments are those of UnicodeEncodeError and not a message, become the errors of this
    package that they are a kind of.

    >>> with_place(FormatError("it is cut off"), "a.bpe")
    FormatError('a.bpe: it is cut off')
    """
    kind = next(kind for kind in type(error).__mro__ if not issubclass(kind, UnicodeError))
    return cast(type[FastcompressError], kind)(f"{place}: {error}")
