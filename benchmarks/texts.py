"""The texts of the comparison: corpora, cut into documents, as files that every process reads; worst cases."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DOCUMENT_BYTES = 5_000
PUBLISHED = {
    "english": "english/train-20m.jsonl.xz",
    "code": "code/code-train.jsonl.xz",
    "english-long": "english/train-00.jsonl.xz",  # longer than 20 MB, for training
    "multilingual": "multilingual/multi-train.jsonl.xz",
}


@dataclass(frozen=True)
class Text:
    """A corpus cut into documents, on disk.

    Attributes:
        name: how the tables call it.
        path: the UTF-8 text; beside it `<path>.ends`, a JSON list of the byte offsets at which documents end.
        num_bytes: its length.
        sha256: of its bytes and of the lengths of its documents.
    """

    name: str
    path: str
    num_bytes: int
    sha256: str

    def documents(self) -> list[str]:
        """The documents; their concatenation is the text."""
        data = Path(self.path).read_bytes()
        ends = json.loads(Path(f"{self.path}.ends").read_text())
        return [data[begin:end].decode() for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def data_folder() -> Path:
    """$FASTCOMPRESS_DATA. FileNotFoundError without it."""
    if "FASTCOMPRESS_DATA" not in os.environ:
        raise FileNotFoundError("the published corpora are in $FASTCOMPRESS_DATA: set it")
    return Path(os.environ["FASTCOMPRESS_DATA"])


def prepare(spec: str, num_bytes: int, num_slow_bytes: int, cache: Path) -> tuple[Text, Text]:
    """Cut a corpus into documents of about 5 kB and write the first bytes of it, for fast and slow engines.

    spec: "english", "code" or "multilingual" (in $FASTCOMPRESS_DATA), or what `load_corpus` takes: a name such as
        python-docs, a file, a folder.
    """
    from fastcompress.data.corpora import load_corpus  # Workers import this module without fastcompress.

    if spec in PUBLISHED and "FASTCOMPRESS_DATA" not in os.environ:
        raise FileNotFoundError(f"the corpus {spec} is in $FASTCOMPRESS_DATA: set it, or name another by --corpora")
    path = Path(os.environ["FASTCOMPRESS_DATA"], PUBLISHED[spec]) if spec in PUBLISHED else spec
    corpus = load_corpus(path, max_bytes=num_bytes + (1 << 20))
    contents = [document.data for split in (corpus.train, corpus.validation, corpus.test) for document in split]
    data = b"".join(text if text.endswith(b"\n") else text + b"\n" for text in contents)
    data = data.decode("utf-8", "replace").encode()
    name = Path(spec).name.partition(".")[0]
    fast, slow = (cut_at_lines(data, size) for size in (num_bytes, min(num_bytes, num_slow_bytes)))
    return write(name, fast, cache), write(name, slow, cache)


def cut_at_lines(data: bytes, max_bytes: int) -> list[bytes]:
    """Documents of at least 5 kB, each ending at the first line end from there, until they hold `max_bytes`."""
    documents, begin = [], 0
    while begin < min(len(data), max_bytes):
        end = data.find(b"\n", begin + DOCUMENT_BYTES - 1) + 1 or len(data)
        documents.append(data[begin:end])
        begin = end
    return documents


def write(name: str, documents: list[bytes], cache: Path) -> Text:
    """Put documents where workers read them; the file's name holds their hash, so equal ones are written once."""
    data = b"".join(documents)
    digest = hashlib.sha256(b"".join(len(text).to_bytes(8, "little") for text in documents) + data).hexdigest()
    path = cache / "texts" / f"{name}-{digest[:16]}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        ends, end = [], 0
        for document in documents:
            end += len(document)
            ends.append(end)
        Path(f"{path}.ends").write_text(json.dumps(ends))
        path.write_bytes(data)
    return Text(name, str(path), len(data), digest)


def _random_text(num_characters: int, code_points: range) -> str:
    return "".join(map(chr, random.Random(0).choices(code_points, k=num_characters)))


WORST_CASES: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "spaces": lambda size: " " * size,
    "newlines": lambda size: "\n" * size,
    "digits": lambda size: ("0123456789" * size)[:size],
    "^": lambda size: "^" * size,
    "random a-z": lambda size: _random_text(size, range(ord("a"), ord("z") + 1)),
    "random Latin-1": lambda size: _random_text(size // 2, range(0xA1, 0x100)),
    "random Chinese": lambda size: _random_text(size // 3, range(0x4E00, 0x5A00)),
}
"""Strings of about a given number of bytes that made tokenizers quadratic, or that no cache helps with."""
