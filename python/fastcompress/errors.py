"""The errors this package raises on bad input; each message names the thing and says what to do.

All of them are also built-in exceptions (``ValueError``, ``OSError`` ...), so code that never heard of this
module still catches them. Programming errors (a wrong type) raise ``TypeError`` as everywhere else.
"""


class FastcompressError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(FastcompressError, ValueError):
    """A setting is out of range, or two settings contradict each other."""


class BusyError(ConfigError):
    """An object that a call may change is in use: by another thread's call, or by the call that made this one."""


class DataError(FastcompressError, ValueError):
    """The data cannot serve: empty, smaller than the context, an unknown character, a token id out of range."""


class UnknownTokenError(DataError, KeyError):
    """A token id, or a token's bytes, that the vocabulary does not have."""

    __str__ = Exception.__str__  # KeyError's would put the message in quotes


class TokenRangeError(UnknownTokenError, OverflowError):
    """A token id that is negative or does not fit 32 bits, which no vocabulary has."""


class SurrogateError(DataError, UnicodeEncodeError):
    """A text that must be kept exactly has a surrogate, which UTF-8 cannot encode.

    One rule for a ``str`` with surrogates (code points U+D800 to U+DFFF) holds in the whole package:

    - What gives its input back (compression, LZ77, codebooks, codecs) refuses it with this error, as ``str.encode``
      does with its own. The attributes are those of UnicodeEncodeError; ``start`` is the position.
    - What encodes as tiktoken does (`BPE`, training for it, `pretokenizer.split`) replaces: a surrogate pair by its
      character, a lone surrogate by U+FFFD. A single token that is looked up is not replaced: it is unknown
      (SurrogateTokenError).
    - What is stored in a vocabulary (special tokens, patterns) is refused with ConfigError, never replaced.
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
    """A file is not where it was looked for and could not be fetched."""


class FormatError(FastcompressError, ValueError):
    """A file or stream is malformed, truncated, corrupted, foreign, or of a version this build does not read."""


class ColumnError(FormatError, TypeError):
    """Ids, or the columns of tokens, that are not rows of integers, or columns of different lengths.

    Both a FormatError, since such data may come from a file, and a TypeError.
    """


class MismatchError(FastcompressError, ValueError):
    """Two artefacts do not belong together, such as a checkpoint and another codec."""


class OutputError(FastcompressError, OSError):
    """An output cannot be written, or would overwrite something."""


class DivergenceError(FastcompressError, ArithmeticError):
    """A training run's loss became infinite or NaN; its last good checkpoint is kept."""


class SelfCheckError(FastcompressError, AssertionError):
    """A model or training step fails a check that training relies on, such as seeing no future token."""


class TextNotFileWarning(UserWarning):
    """A text to train on is the name of an existing file; a file is given as `pathlib.Path`."""
