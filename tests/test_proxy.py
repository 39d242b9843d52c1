"""Proxy training: both forms in one run, and scores and text of bytes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.bpe import BPE
from fastcompress.cli.inputs import make_codec
from fastcompress.codec import BPECodec, ByteCodec, ChatCodec, LZ77Codec, ProxyCodec, load_codec
from fastcompress.data import TokenDataset, write_shards
from fastcompress.data.corpora import Document
from fastcompress.data.proxy_rows import ProxyRows
from fastcompress.errors import ConfigError
from fastcompress.evaluation import evaluate, generate, make_receipt, read_receipt
from fastcompress.models import LanguageModel, make_model_config
from fastcompress.models.tokens import TokenStepper
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import redraw_weights

TEXT = b"She sells sea shells by the sea shore; the shells she sells are sea-shore shells. " * 6
BPE_CODEC = BPECodec(BPE.train([TEXT], vocab_size=290, pattern="none"))
CODEC = ProxyCodec(BPE_CODEC, raw_share=0.25, piece_bytes=20)
SHAPE = {"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 24}


def model_of(codec: ProxyCodec = CODEC) -> LanguageModel:
    torch.manual_seed(0)
    model = make_model_config(SHAPE, codec).build()
    redraw_weights(model)
    return model.eval()


@given(st.binary(max_size=90), st.integers(1, 30), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_pieces_of_both_forms(document: bytes, piece_bytes: int, raw_share: float) -> None:
    codec = ProxyCodec(BPE_CODEC, raw_share, piece_bytes)
    ids = codec.encode_for_training(document)
    assert codec.decode(ids) == document
    assert codec.byte_lengths(ids).sum() == len(document)
    assert ids.tolist() == codec.encode_for_training(document).tolist()
    marks = np.flatnonzero(ids >= codec.compressed_mark)
    assert len(marks) == max(1, -(-len(document) // piece_bytes))
    for begin, end in zip(marks, [*marks[1:], len(ids)], strict=True):
        number = int(np.searchsorted(marks, begin))
        piece = document[number * piece_bytes : (number + 1) * piece_bytes]
        is_raw = ids[begin] == codec.bytes_mark
        expected = [290 + byte for byte in piece] if is_raw else BPE_CODEC.encode(piece).tolist()
        assert ids[begin + 1 : end].tolist() == expected
    num_raw = int((ids[marks] == codec.bytes_mark).sum())
    assert abs(num_raw - raw_share * len(marks)) <= 1


def test_shares_over_many_documents() -> None:
    """Also of documents of one piece each, one in ten stays bytes."""
    codec = ProxyCodec(BPE_CODEC)
    documents = [f"document {number}".encode() for number in range(4000)]
    num_raw = sum(int(codec.encode_for_training(document)[0]) == codec.bytes_mark for document in documents)
    assert 340 < num_raw < 460


def test_datasets_hold_both_forms_and_rows_bytes(tmp_path: Path) -> None:
    data = TokenDataset.from_documents([TEXT, TEXT[7:]], CODEC)
    assert data.num_bytes == 2 * len(TEXT) - 7
    held = data.read(0, data.num_tokens)
    assert {CODEC.compressed_mark, CODEC.bytes_mark} <= set(held.tolist())
    assert [CODEC.decode(ids) for ids in data.documents()] == [TEXT, TEXT[7:]]
    write_shards(tmp_path, "train", [TEXT, TEXT[7:]], CODEC)
    stored = TokenDataset.open(tmp_path, "train", codec=CODEC)
    assert stored.read(0, stored.num_tokens).tolist() == held.tolist()
    rows = ProxyRows(CODEC, 24)
    row = rows.training_row(data, 5)
    assert row["input"].tolist() == held[5:29].tolist()
    assert set(row) == set(rows.columns) == {"input", "target", "weight"}
    scored = list(rows.scoring_rows(TEXT[:60], 12))
    assert sum(float(row["weight"].sum()) for row in scored) == 61  # bytes and the end; the mark is given
    targets = np.concatenate([row["target"][row["weight"] > 0] for row in scored])
    assert targets.tolist() == [*(290 + byte for byte in TEXT[:60]), CODEC.vocab_size]


def test_probabilities_of_texts_sum_to_one() -> None:
    """Over the next byte and the end, each from the cost of a whole text: nothing is lost to compressed ids."""
    model = model_of()
    rows = model.rows(CODEC)
    assert rows.is_exact
    for context in (b"", b"She sells", TEXT[:21]):
        documents = [context + bytes([byte]) for byte in range(256)] + [context]  # the last ends there
        batch = rows.stack([next(iter(rows.scoring_rows(document, 24))) for document in documents])
        with torch.no_grad():
            nats = model.nats({name: torch.from_numpy(column) for name, column in batch.items()})
        total = float((-nats[:, len(context) + 1].double()).exp().sum())
        assert total == pytest.approx(1.0, abs=1e-5)


def test_only_bytes_are_written() -> None:
    model = model_of()
    stepper = model.stepper(CODEC, 2)
    stepper.begin([b"She", b""])
    for _ in range(30):  # beyond the context
        weights = stepper.weights()
        legal = torch.isfinite(weights)
        assert legal.sum(1).tolist() == [257, 257]
        assert legal[:, [*range(290, 546), CODEC.vocab_size]].all()
        pieces = stepper.push([290 + 115, 290 + 104])
        assert pieces == [b"s", b"h"]
    assert stepper.symbols(b"ab") == [290 + 97, 290 + 98, CODEC.vocab_size]


def test_only_bytes_and_marks_are_written_in_chats() -> None:
    chat = ChatCodec(CODEC)
    model = make_model_config(SHAPE, chat).build()
    stepper = model.stepper(chat)
    assert isinstance(stepper, TokenStepper)
    stepper.begin_tokens(
        [[chat.vocab_size, chat.role_ids["user"], *chat.encode("Hi").tolist(), chat.role_ids["assistant"]]]
    )
    marks = [*chat.role_ids.values(), chat.end_of_message, chat.vocab_size]
    for legal in ([CODEC.bytes_mark], range(290, 546), range(290, 546)):
        assert torch.isfinite(stepper.weights())[0].nonzero().flatten().tolist() == [*legal, *marks]
        stepper.push([legal[0]])
    assert not model.rows(chat).is_exact


@pytest.mark.parametrize("compressed", [BPE_CODEC, LZ77Codec(alphabet="buckets")], ids=["bpe", "lz77"])
def test_the_whole_way_of_a_run(compressed: BPECodec | LZ77Codec, tmp_path: Path) -> None:
    codec = ProxyCodec(compressed, raw_share=0.3, piece_bytes=30)
    data = TokenDataset.from_documents([TEXT] * 4, codec)
    config = make_model_config({**SHAPE, "width": 8}, codec)
    settings = TrainConfig(steps=8, batch_size=4, num_evals=1, learning_rate=0.01, device="cpu", self_check=False)
    result = train(config, codec, data, [TEXT[:50]], settings, tmp_path, progress=False)
    loaded = load_run(tmp_path)
    assert loaded.codec == codec == load_codec(tmp_path / "codec.json")
    score = evaluate(loaded.model, loaded.codec, [TEXT[:50], b""], stride=24)
    assert (score.num_bytes, score.num_tokens, score.is_exact) == (50, 50, True)
    assert score.uniform_bits_per_byte is None
    alone = evaluate(loaded.model, loaded.codec, [TEXT[:50]], stride=24).bits_per_byte
    assert alone == pytest.approx(result.best_bits_per_byte, rel=1e-3)
    "".join(generate(loaded.model, loaded.codec, b"She", max_tokens=8, temperature=1.0, seed=1))


def test_receipts_agree_with_scores() -> None:
    """The mark is given to encoder and decoder alike, so that it costs nothing in either figure."""
    model = model_of()
    documents = [TEXT[:70], b"", b"\xff\0", TEXT[:9]]
    made = make_receipt(model, CODEC, documents, name="a", lanes=2, stride=9)
    claimed = made.claimed_bits_per_byte * made.num_bytes / 8
    assert 0.999 * claimed <= made.code_bytes <= 1.001 * claimed + 2
    assert read_receipt(model, CODEC, made.blob, name="a") == documents


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="has bytes and marks already"):
        ProxyCodec(CODEC)
    with pytest.raises(ConfigError, match=r"raw_share is 1\.5; it must be 0 to 1"):
        ProxyCodec(ByteCodec(), 1.5)
    wrong: Any = None
    share: Any = "x"
    with pytest.raises(TypeError, match=r"compressed is None .*; it must be a codec"):
        ProxyCodec(wrong)
    with pytest.raises(TypeError, match=r"raw_share is 'x'.*; it must be a number"):
        ProxyCodec(ByteCodec(), share)
    with pytest.raises(ConfigError, match="piece_bytes is 0"):
        ProxyCodec(ByteCodec(), piece_bytes=0)
    with pytest.raises(ConfigError, match="no exact mask"):
        make_model_config({**SHAPE, "canonical": True}, CODEC).rows(CODEC)
    made = make_codec("proxy-bpe-270", [Document("a", TEXT)], list)
    assert isinstance(made, ProxyCodec)
    assert made.compressed.name == "bpe-270"
    assert (made.raw_share, made.piece_bytes) == (0.1, 4096)
