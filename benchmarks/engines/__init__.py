"""Tokenizer libraries behind one small interface, so that all are timed by the same code.

`ENGINES` says what each can do without importing it; the module of the same name holds its code, as a class

    class Encoder:
        def __init__(self, vocabulary: Vocabulary, threads: int) -> None    # loads; reads nothing but `vocabulary`
        def text_to_numpy(self, text: str)              one string    -> uint32 array
        def text_to_list(self, text: str)               one string    -> list[int]
        def texts_to_numpy(self, texts: list[str])      documents     -> one flat uint32 array, or an array each
        def texts_to_lists(self, texts: list[str])      documents     -> list[list[int]]
        def decode(self, ids)                           one document  -> str or bytes; see `decodes_arrays`

Each method is the library's fastest documented way to that result, special tokens being ordinary text. A method that
the library has no way of its own for is left out, and its cells stay empty. With `threads` 1 no other thread may run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FORMS = ("documents", "whole")
OUTPUTS = ("numpy", "list")
METHODS = {
    ("whole", "numpy"): "text_to_numpy",
    ("whole", "list"): "text_to_list",
    ("documents", "numpy"): "texts_to_numpy",
    ("documents", "list"): "texts_to_lists",
}
OPENAI = ("gpt2", "cl100k", "o200k")


@dataclass(frozen=True)
class Engine:
    """What an engine can do.

    Attributes:
        package: the distribution that holds it.
        vocabularies, outputs: what it reads and returns.
        parallel: the forms for which it uses several threads; the others run on one however many there are.
        is_slow: under about 30 MB/s without a cache that warms up: timed on a short piece of each text.
        decodes_arrays: whether `decode` takes arrays as well as lists.
    """

    package: str
    vocabularies: tuple[str, ...] = OPENAI
    outputs: tuple[str, ...] = OUTPUTS
    parallel: tuple[str, ...] = ("documents",)
    is_slow: bool = False
    decodes_arrays: bool = False

    def can(self, vocabulary: str, form: str, output: str, threads: int) -> bool:
        """Whether it has a cell of its own there."""
        return vocabulary in self.vocabularies and output in self.outputs and (threads == 1 or form in self.parallel)


BUNDLED = ("cl100k", "o200k")  # of engines that read no rank files; their ids show that the vocabularies are the same
ENGINES = {
    "fastcompress": Engine("fastcompress", parallel=FORMS, decodes_arrays=True),
    "gigatoken": Engine("gigatoken", parallel=FORMS, decodes_arrays=True),
    "fastokens": Engine("fastokens", parallel=FORMS),
    "toktok": Engine("toktok-rs", BUNDLED),
    "quicktok": Engine("quicktok-v1", BUNDLED),
    "tokie": Engine("tokie", outputs=("list",), parallel=FORMS),
    "rs_bpe": Engine("rs-bpe", BUNDLED, outputs=("list",), parallel=(), is_slow=True),
    "tiktoken": Engine("tiktoken", is_slow=True),
    "tokenizers": Engine("tokenizers", outputs=("list",), is_slow=True),
}


@dataclass(frozen=True)
class Trainer:
    """A library that trains, through

        def train(texts: list[str], vocab_size: int, pattern: str, threads: int) -> list[bytes]

    in the module named: the tokens of ids 256 and up, in that order, no special ones; `pattern` is a regex.

    Attributes:
        package: the distribution that holds it.
        module: the engine module with `train`; `options` are passed to it besides.
        like: the trainer whose merges it must find, since their rule for ties is the same.
    """

    package: str
    module: str
    options: dict[str, str] = field(default_factory=dict)
    like: str | None = None


TRAINERS = {
    "fastcompress": Trainer("fastcompress", "fastcompress", like="rustbpe"),
    "fastcompress-huggingface": Trainer(
        "fastcompress", "fastcompress", {"tie_break": "huggingface"}, like="tokenizers"
    ),
    "rustbpe": Trainer("rustbpe", "rustbpe"),
    "flashbpe": Trainer("flashbpe", "flashbpe"),
    "ffbpe": Trainer("ffbpe", "ffbpe", like="rustbpe"),
    "bpeasy": Trainer("bpeasy", "bpeasy", like="rustbpe"),
    "tokenizers": Trainer("tokenizers", "tokenizers"),
}
