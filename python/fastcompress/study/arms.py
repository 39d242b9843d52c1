"""Studies: the arms that are compared, the text and the budget.

An arm is one tokenization and the model trained on it. Everything else is the same for all arms of a study: documents,
training FLOPs, model size (apart from the vocabulary), context in tokens, optimizer settings, evaluated bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, Codec, codec_from_spec
from fastcompress.codec.learned import is_learned, learn_codec
from fastcompress.data.corpora import Corpus
from fastcompress.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One tokenization.

    Attributes:
        name: The name of the arm and of its folder.
        label: The name that the report shows.
        make_codec: Makes the codec from a corpus, of which it may read the training split only (`character_codec` is
            the exception). If it is a function of a module, or a `functools.partial` of one, the study runs the arm
            in a process of its own.
        note: What a reader of its figures should know.
    """

    name: str
    label: str
    make_codec: Callable[[Corpus], Codec]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison for `runner.run_study`.

    Attributes:
        name: The name of the study.
        corpus: The corpus, as `load_corpus` takes it.
        arms: The tokenizations to compare.
        preset: The preset of the model (``models/presets.py``).
        training_flops: The budget of each arm (``models/flops.py`` says how FLOPs are counted).
        model: Settings that override the preset, the same for every arm; ``vocab_size`` comes from the codec.
        training: Fields of ``TrainConfig`` apart from horizon, seed and device.
        evaluated_split: The split that the final figures are measured on.
        prompt: The beginning of each arm's sample.
        sample_bytes: The length of a sample, about.
        tuning: A sentence for the report that says how ``model`` and ``training`` were chosen.

    Raises:
        ConfigError: There is no arm, two arms share a name, or a name cannot be that of a folder.
    """

    name: str
    corpus: str
    arms: Sequence[Arm]
    preset: str
    training_flops: float
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    evaluated_split: str = "validation"
    prompt: str
    sample_bytes: int = 400
    tuning: str = "How they were chosen is not recorded."

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if not names:
            raise ConfigError(f"study {self.name}: has no arms; give at least one")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"study {self.name}: two arms are named {name!r}; give each a name of its own")
            if name in ("", ".", "..") or Path(name).name != name:
                raise ConfigError(
                    f"study {self.name}: the arm name {name!r} cannot be a folder's; use letters and digits"
                )


def character_codec(corpus: Corpus) -> Codec:
    """Make a codec for the alphabet of the whole corpus, including held-out text.

    A character that the alphabet lacks could not be scored at all. All that leaks is the set of characters, as in the
    usual ``sorted(set(text))``.
    """
    documents = (*corpus.train, *corpus.validation, *corpus.test)
    return CharCodec.train(document.data for document in documents)


def bpe_arm(vocab_size: int, pattern: str = "cl100k") -> Arm:
    """Make an arm whose BPE vocabulary is trained on the training split."""
    return Arm(
        name=f"bpe-{vocab_size}",
        label=f"BPE {vocab_size:,}",
        make_codec=functools.partial(_bpe_codec, vocab_size=vocab_size, pattern=pattern),
    )


def codec_arm(spec: str, name: str | None = None) -> Arm:
    """Make an arm of any other tokenization.

    Args:
        spec: A name of `codec.learned`, such as "equal-info-32-by-16", which is learned from the training split; or
            what `codec_from_spec` takes, such as "gzip" or the file that ``fastcompress codebook`` wrote.
        name: The name of the arm; default: the spec, or the stem of a file's name.
    """
    name = name or Path(spec).stem
    return Arm(name=name, label=name, make_codec=functools.partial(_codec_of_spec, spec=spec))


def _codec_of_spec(corpus: Corpus, *, spec: str) -> Codec:
    return learn_codec(spec, corpus.contents("train")) if is_learned(spec) else codec_from_spec(spec)


def _bpe_codec(corpus: Corpus, *, vocab_size: int, pattern: str) -> Codec:
    return BPECodec(BPE.train(corpus.contents("train"), vocab_size=vocab_size, pattern=pattern))


def _byte_codec(corpus: Corpus) -> Codec:
    return ByteCodec()


BYTES = Arm(name="byte", label="Bytes", make_codec=_byte_codec)
CHARACTERS = Arm(
    name="char",
    label="Characters",
    make_codec=character_codec,
    note="The alphabet is the whole corpus's: this arm knows beforehand which characters the held-out text holds, "
    "those that the training text lacks included. The other arms know nothing of the held-out text.",
)

STUDIES = {
    study.name: study
    for study in (
        # Small enough for three minutes on two CPU cores: it shows what a result looks like.
        Study(
            name="quick",
            corpus="python-docs",
            arms=(BYTES, CHARACTERS, bpe_arm(1024)),
            preset="modern",
            training_flops=2e12,
            model={"num_layers": 4, "num_heads": 4, "width": 128, "context_length": 128, "dropout": 0.0},
            training={
                "batch_size": 8,
                "learning_rate": 4e-3,
                "warmup": 0.2,
                "cooldown": 0.5,
                "num_evals": 8,
                "eval_bytes": 1 << 14,
            },
            prompt="The ",
            tuning="Batch size, learning rate and warm-up were tuned on this same text, for all arms together, in a "
            "few runs (benchmarks/LOG.md).",
        ),
        # The sizes of nanoGPT's character model: 6 layers x 384, context 256, 64 sequences per step. The budget is its
        # 5,000 steps with 65 characters: 80 passes over one megabyte, which dropout and the best checkpoint make
        # harmless.
        Study(
            name="shakespeare",
            corpus="tiny-shakespeare",
            arms=(CHARACTERS, BYTES, bpe_arm(512), bpe_arm(2048)),
            preset="workshop",
            training_flops=5.8e15,
            model={"dropout": 0.2, "bias": False},
            training={
                "batch_size": 64,
                "learning_rate": 1e-3,
                "schedule": "cosine",
                "final_learning_rate": 0.1,
                "beta2": 0.99,
                "num_evals": 20,
                "eval_bytes": None,
            },
            prompt="ROMEO:\n",
            tuning="Every arm has the sizes of the workshop's character model; no tuning is on record.",
        ),
    )
}


def find_study(name: str) -> Study:
    """Return the study of that name. Raises ConfigError, with the known names, if there is none."""
    if name not in STUDIES:
        raise ConfigError(f"there is no study {name!r}; the studies are {', '.join(STUDIES)}")
    return STUDIES[name]
