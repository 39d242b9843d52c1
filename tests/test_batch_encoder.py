"""The function for engines that map over data sets: the ids of shards, in every process, by a small pickle."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastcompress import BPE
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, Codec, LZ77Codec, ProxyCodec, save_codec
from fastcompress.data import BatchEncoder, TokenDataset, write_shards
from fastcompress.errors import DataError, FormatError, MismatchError

TEXTS = ["to be or not to be", "", "naïve café \U0001f600", "that is the question. " * 50]


@pytest.fixture
def codec() -> BPECodec:
    return BPECodec(BPE.train(TEXTS * 3, vocab_size=290))


@pytest.fixture
def path(codec: BPECodec, tmp_path: Path) -> Path:
    codec.tokenizer.save(tmp_path / "tokenizer.bpe")
    return tmp_path / "tokenizer.bpe"


@pytest.mark.parametrize("kind", ["bpe", "lz77", "proxy"])
def test_ids_are_those_of_shards(kind: str, codec: BPECodec, tmp_path: Path) -> None:
    chosen: Codec = {"bpe": codec, "lz77": LZ77Codec(), "proxy": ProxyCodec(codec)}[kind]
    write_shards(tmp_path / "shards", "train", [text.encode() for text in TEXTS], chosen)
    written = [ids.tolist() for ids in TokenDataset.open(tmp_path / "shards", "train").documents()]
    encoder = BatchEncoder(chosen)
    assert [ids.tolist() for ids in encoder.encode_texts(TEXTS)] == written
    assert list(encoder.encode_rows(text.encode() for text in TEXTS)) == written
    batch = encoder({"id": [1, 2, 3, 4], "text": TEXTS})
    assert list(batch) == ["input_ids"]
    assert [ids.tolist() for ids in batch["input_ids"]] == written
    assert all(ids.dtype == np.uint32 for ids in batch["input_ids"])


def test_a_batch_does_not_decide_the_ids(path: Path) -> None:
    encoder = BatchEncoder(path, end_of_document=True)
    whole = encoder.encode_texts(TEXTS)
    assert [ids.tolist() for text in TEXTS for ids in encoder.encode_texts([text])] == [ids.tolist() for ids in whole]
    assert all(ids[-1] == 290 for ids in whole)
    assert [ids.tolist()[:-1] for ids in whole] == list(BatchEncoder(path).encode_rows(TEXTS))


def test_a_pickle_is_small_and_works_in_another_process(path: Path, codec: BPECodec, tmp_path: Path) -> None:
    encoder = BatchEncoder(path, text_key="content")
    blob = pickle.dumps(encoder)
    assert len(blob) < 1000 < len(pickle.dumps(codec))
    (tmp_path / "encoder.pickle").write_bytes(pickle.dumps(partial(encoder)))
    script = (
        "import pickle, sys; encode = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print([ids.tolist() for ids in encode({'content': ['to be', 'or not']})['input_ids']])\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "encoder.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == str([codec.encode(text).tolist() for text in ("to be", "or not")])


def test_a_relative_path_is_found_from_another_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    blob = pickle.dumps(BatchEncoder(path.name))
    monkeypatch.chdir("/")
    assert (
        pickle.loads(blob).encode_texts(["to be"])[0].tolist() == BatchEncoder(path).encode_texts(["to be"])[0].tolist()
    )


def test_the_codec_is_read_once_in_a_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastcompress.data import batch_encoder

    batch_encoder._load.cache_clear()
    blob = pickle.dumps(BatchEncoder(path))
    codecs = {id(pickle.loads(blob).codec) for _ in range(3)}
    assert len(codecs) == 1
    path.unlink()  # no later batch reads it
    assert pickle.loads(blob).encode_texts(["to be"])


def test_another_codec_under_the_path_is_refused(path: Path) -> None:
    blob = pickle.dumps(BatchEncoder(path))
    BPE.train("another text", vocab_size=260).save(path)
    from fastcompress.data import batch_encoder

    batch_encoder._load.cache_clear()
    with pytest.raises(MismatchError, match="give every worker the same file"):
        pickle.loads(blob).encode_texts(["to be"])


def test_a_codec_that_is_no_file_travels_whole() -> None:
    encoder = pickle.loads(pickle.dumps(BatchEncoder(ByteCodec())))
    assert list(encoder.encode_rows(["ab"])) == [[97, 98]]
    assert BatchEncoder("byte").fingerprint == encoder.fingerprint
    assert "byte" in repr(encoder)


def partition(rows: list[Any]) -> Iterator[Any]:
    """Rows as Spark hands them to the function of `mapPartitions`: an iterator that can be read once."""
    yield from rows


def test_rows_are_read_as_they_are_needed(path: Path) -> None:
    class Row(tuple[str, ...]):
        """As Spark's: values by position and by name, ValueError for an unknown name."""

        def __getitem__(self, key: Any) -> Any:
            if key == "text":
                return tuple.__getitem__(self, 1)
            raise ValueError(key)

    encoder = BatchEncoder(path)
    expected = [ids.tolist() for ids in encoder.encode_texts(TEXTS)]
    assert list(encoder.encode_rows(partition([Row(("id", text)) for text in TEXTS]))) == expected
    assert list(encoder.encode_rows(partition([{"text": text} for text in TEXTS]))) == expected
    rows = partition(TEXTS)
    encoded = encoder.encode_rows(rows)
    assert next(encoded) == expected[0]
    assert next(rows) == TEXTS[1]
    with pytest.raises(DataError, match=r"row 0: holds None \(NoneType\) instead of a text"):
        list(BatchEncoder(path, text_key="body").encode_rows([Row(("id", "text"))]))


def test_errors_are_typed_and_name_the_row(path: Path, tmp_path: Path) -> None:
    encoder = BatchEncoder(path)
    with pytest.raises(DataError, match="no column 'text' but content; name the column as text_key"):
        encoder({"content": ["a"]})
    with pytest.raises(DataError, match="row 1: holds None"):
        encoder({"text": ["a", None]})
    with pytest.raises(DataError, match=r"text 1: .*surrogate"):
        encoder.encode_texts(["a", "\ud800"])
    with pytest.raises(DataError, match=r"row 1: .*'z'"):
        list(BatchEncoder(CharCodec("ab")).encode_rows(["ab", "az"]))
    with pytest.raises(TypeError, match="must be an iterable of str or bytes"):
        encoder.encode_texts("one text")
    with pytest.raises(DataError, match="no such codec or file"):
        BatchEncoder(tmp_path / "nothing.bpe")
    with pytest.raises(TypeError, match="codec is 5"):
        BatchEncoder(5)  # type: ignore[arg-type]
    (tmp_path / "damaged.json").write_text('{"format": "other"}')
    with pytest.raises(FormatError):
        BatchEncoder(tmp_path / "damaged.json")


def test_a_codec_file_of_any_kind_is_read(tmp_path: Path) -> None:
    save_codec(CharCodec("ab"), tmp_path / "codec.json")
    encoder = pickle.loads(pickle.dumps(BatchEncoder(tmp_path / "codec.json")))
    assert list(encoder.encode_rows(["ba"])) == [[1, 0]]
