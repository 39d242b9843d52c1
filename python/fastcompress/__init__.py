"""Exact and fast text tokenization: byte pair encoding, LZ77, arithmetic coding, equal-info codebooks and archives.

>>> import fastcompress as fc
>>> tok = fc.BPE.train("to be or not to be, that is the question. " * 50, vocab_size=280)
>>> tok.decode(tok.encode("to be or not"))
'to be or not'

Modules are imported when they are first used:

- `BPE`, `PretokenCounts` (module `bpe`): tokenizers of vocabularies trained here, by tiktoken or by tokenizers.
- `pretokenizer`: the patterns that split text before BPE.
- `lz77`: parses of text into literals and matches, one-shot and incremental.
- `arithmetic`: quantized distributions, arithmetic coders and an integer model of bytes.
- `equal_info`: codebooks whose tokens carry about the same information each.
- `greedy_dictionary`: any set of strings as tokens, by longest match, and which token may come next.
- `archive`, with `compress` and `decompress`: files in the .fcz format.
- `codec`: one interface for all of these tokenizations.
- `compat`: drop-in replacements for other packages (`compat.tiktoken`).
- `errors`: the exceptions that this package raises.
- `data`, `models`, `training`, `evaluation`, `study`: corpora, shards and experiments; some need the extra `train`.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress import bpe, errors, pretokenizer
from fastcompress._core import __version__
from fastcompress.bpe import BPE, PretokenCounts

if _TYPE_CHECKING:
    from fastcompress import (
        archive,
        arithmetic,
        codec,
        compat,
        data,
        equal_info,
        evaluation,
        greedy_dictionary,
        lz77,
        models,
        study,
        training,
    )
    from fastcompress.archive import compress, decompress

__all__ = [
    "BPE",
    "PretokenCounts",
    "__version__",
    "archive",
    "arithmetic",
    "bpe",
    "codec",
    "compat",
    "compress",
    "data",
    "decompress",
    "equal_info",
    "errors",
    "evaluation",
    "greedy_dictionary",
    "lz77",
    "models",
    "pretokenizer",
    "study",
    "training",
]


def __getattr__(name: str) -> object:
    """Import modules, and functions of them, when they are first used, so that `import fastcompress` stays fast."""
    if name in ("compress", "decompress"):
        return getattr(_importlib.import_module("fastcompress.archive"), name)
    if name in __all__:
        return _importlib.import_module(f"fastcompress.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, those of modules that are not imported yet included."""
    return sorted({*__all__, "__doc__", "__file__", "__name__", "__path__"})
