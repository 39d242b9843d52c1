"""Which text a run trains on, kept beside it as data.json: resuming and evaluating need not be told."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from fastcompress.cli.inputs import all_documents, document_named, make_codec, read_corpus
from fastcompress.cli.output import progress_bar

if TYPE_CHECKING:
    from fastcompress.codec import Codec
    from fastcompress.data.corpora import Corpus
    from fastcompress.data.mixture import Mixture
    from fastcompress.data.shards import TokenDataset

FILE = "data.json"


@dataclass(frozen=True)
class RunData:
    """A corpus with its options, or a directory of shards; exactly one of `corpus` and `shards` is set.

    `shards` may also be a list of directories, each with a weight after a colon, whose text is mixed in training.

    `fingerprint`: of the corpus when the run began; None for shards. The trainer has fingerprints of its own of
    what it reads, and refuses to resume on something else.
    """

    corpus: str | None = None
    text_key: str = "text"
    max_bytes: int | None = None
    shards: str | list[str] | None = None
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        """Raise TypeError if `shards`, perhaps read from a file, are not of their type."""
        parts = self.shards if isinstance(self.shards, list) else [self.shards or ""]
        if not parts or not all(isinstance(part, str) for part in parts):
            raise TypeError(f"shards is {self.shards!r}; it must be a directory or a list of them")

    @classmethod
    def given(
        cls, corpus: str | None, text_key: str, max_bytes: int | None, shards: str | Sequence[str] | None = None
    ) -> RunData:
        """From the options of a command; paths are made absolute, names of corpora win over paths."""
        from fastcompress.data.corpora import NAMED_CORPORA

        if corpus is not None and corpus not in NAMED_CORPORA and Path(corpus).exists():
            corpus = str(Path(corpus).resolve())
        if not shards:
            return cls(corpus, text_key, max_bytes)
        parts = [_weighted(part) for part in ([shards] if isinstance(shards, str) else shards)]
        if len(parts) == 1:
            return cls(corpus, text_key, max_bytes, str(parts[0][0].resolve()))
        return cls(corpus, text_key, max_bytes, [f"{path.resolve()}:{weight!r}" for path, weight in parts])

    @classmethod
    def load(cls, run_directory: Path) -> RunData:
        """Read what `save` wrote. Raises DataError if it is missing (runs from Python), FormatError if damaged."""
        from fastcompress.errors import DataError, FormatError

        path = run_directory / FILE
        try:
            return cls(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise DataError(f"{path}: is missing, so the run's text is not known; give --corpus") from None
        except (OSError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: cannot be read ({error}); remove it and give --corpus") from error

    def of_run(self, run_directory: Path) -> RunData:
        """The same, bound to be the text that the run in `run_directory` began with, where that is known."""
        if not (run_directory / FILE).exists():
            return self
        return dataclasses.replace(self, fingerprint=RunData.load(run_directory).fingerprint)

    def save(self, run_directory: Path) -> None:
        from fastcompress._files import write_atomically
        from fastcompress.errors import OutputError

        try:
            run_directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{run_directory}: cannot be written ({error.strerror}); choose another") from error
        fields = dataclasses.asdict(self)
        if self.shards is None:
            fields["fingerprint"] = self.loaded.fingerprint
        write_atomically(run_directory / FILE, json.dumps(fields, indent=1).encode() + b"\n")

    @property
    def name(self) -> str:
        if self.shards is None:
            return self.loaded.name
        return self.shards if isinstance(self.shards, str) else " + ".join(self.shards)

    @property
    def names(self) -> list[str]:
        """The name of each dataset that is trained on."""
        return [str(path) for path, _ in self.directories] or [self.name]

    @property
    def directories(self) -> list[tuple[Path, float]]:
        """The directories of shards and their weights; none for a corpus."""
        if self.shards is None or isinstance(self.shards, str):
            return [(Path(self.shards), 1.0)] if self.shards is not None else []
        return [_weighted(part) for part in self.shards]

    @cached_property
    def loaded(self) -> Corpus:
        """The corpus. MismatchError when its text is no longer what it was when the run began."""
        from fastcompress.errors import MismatchError

        corpus = read_corpus(self.corpus or "", self.text_key, self.max_bytes)
        if self.fingerprint not in (None, corpus.fingerprint):
            raise MismatchError(f"{corpus.name}: its text is not what the run began with; restore it")
        return corpus

    def codec(self, spec: str) -> Codec:
        """The codec `spec` names, or the one the shards were encoded with."""
        from fastcompress.codec import load_codec

        if self.shards is not None:
            return load_codec(self.directories[0][0] / "codec.json")
        return make_codec(spec, self.loaded.split("train"), lambda: all_documents(self.loaded))

    def train_tokens(self, codec: Codec) -> TokenDataset | Mixture:
        """The train split as tokens of `codec`."""
        from fastcompress.data.mixture import Mixture
        from fastcompress.data.shards import TokenDataset

        parts = [(TokenDataset.open(path, "train", codec=codec), weight) for path, weight in self.directories]
        if parts:
            return Mixture(parts) if len(parts) > 1 else parts[0][0]

        documents = self.loaded.split("train")

        def counted() -> Iterator[bytes]:
            with progress_bar("encoding", self.loaded.num_bytes("train")) as advance:
                for document in documents:
                    yield document.data
                    advance(len(document.data))

        with document_named(documents, codec.encode):
            return TokenDataset.from_documents(counted(), codec)

    def documents(self, split: str, codec: Codec) -> list[bytes]:
        """The raw documents of a split; DataError names one that `codec` cannot spell."""
        from fastcompress.data.shards import TokenDataset

        if self.shards is None:
            documents = self.loaded.split(split)
            with document_named(documents, codec.encode):
                for document in documents if not codec.lossless else ():
                    codec.encode(document.data)
            return [document.data for document in documents]
        datasets = [TokenDataset.open(path, split, codec=codec) for path, _ in self.directories]
        # In turns, so that the first documents, which a run is scored on, are of every dataset.
        turns = zip_longest(*(dataset.documents() for dataset in datasets))
        return [codec.decode(tokens) for turn in turns for tokens in turn if tokens is not None]

    def num_trained_on(self, documents: Sequence[bytes], codec: Codec) -> int:
        """Count the `documents` that are in the train split. Shards are read only where lengths agree."""
        from fastcompress.data.encode import training_encoder
        from fastcompress.data.shards import TokenDataset

        if self.shards is None:
            trained = set(self.loaded.contents("train"))
            return sum(document in trained for document in documents)
        datasets = [TokenDataset.open(path, "train", codec=codec, verify=False) for path, _ in self.directories]
        spelled = [training_encoder(codec)(document) for document in documents if document]
        lengths = {len(tokens) for tokens in spelled}
        seen = {
            dataset.read(begin, end).tobytes()
            for dataset in datasets
            for begin, end in dataset.document_ranges()
            if end - begin in lengths
        }
        return sum(tokens.tobytes() in seen for tokens in spelled)


def _weighted(part: str) -> tuple[Path, float]:
    """Split "DIRECTORY:WEIGHT"; without a weight it is 1. A directory that has the whole name is that directory."""
    path, colon, weight = part.rpartition(":")
    if not (colon and path) or Path(part).exists():
        return Path(part), 1.0
    try:
        return Path(path), float(weight)
    except ValueError:
        return Path(part), 1.0
