"""Packings: every event once, documents apart, best fit as its definition, and figures that are true."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.bpe import BPE
from fastcompress.codec import BPECodec, ByteCodec
from fastcompress.data import PackedDocuments, RowLoader, TokenDataset, TokenRows
from fastcompress.data.best_fit import best_fit
from fastcompress.data.canonical_rows import CanonicalRows
from fastcompress.data.packing import PACKINGS, DocumentRows, PackedRows, Packing, pack
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.models.gpt import GPT, GPTConfig
from fastcompress.models.protocol import Batch
from fastcompress.training.config import TrainConfig
from fastcompress.training.forecast import Forecast
from fastcompress.training.selfcheck import check_documents_apart
from fastcompress.training.train import train
from tests.reference import packing as reference

CODEC = ByteCodec()
END = CODEC.vocab_size
documents = st.lists(st.binary(max_size=40), min_size=1, max_size=30)


def loader_of(texts: list[bytes], context_length: int, packing: Packing, **settings: int) -> RowLoader:
    dataset, rows = pack(TokenDataset.from_documents(texts, CODEC), TokenRows(CODEC, context_length), packing)
    return RowLoader(dataset, rows, **{"batch_size": 1, "seed": 1, "order": 2, **settings})


def parts_of(row: dict[str, Any]) -> list[tuple[list[int], list[int]]]:
    """The inputs and targets of each part of a row."""
    parts = []
    for number in range(int(row["document"].max()) + 1):
        own = row["document"] == number
        assert row["position"][own].tolist() == list(range(own.sum()))
        assert (row["weight"][own] == 1).all()
        parts.append((row["input"][own].tolist(), row["target"][own].tolist()))
    rest = row["document"] == -1
    assert not row["weight"][rest].any()
    return parts


def epoch_of(loader: RowLoader) -> list[dict[str, Any]]:
    return [{name: column[0] for name, column in loader.batch(step).items()} for step in range(loader.num_windows)]


def events_of(texts: list[bytes]) -> list[tuple[int, int]]:
    sequences = [[END, *text, END] for text in texts]
    return [pair for sequence in sequences for pair in itertools.pairwise(sequence)]


@given(st.lists(st.integers(1, 30), max_size=80), st.integers(30, 40))
def test_best_fit_is_its_definition(lengths: list[int], capacity: int) -> None:
    order, counts = best_fit(np.array(lengths, np.int64), capacity)
    found = [part.tolist() for part in np.split(order, np.cumsum(counts)[:-1])] if lengths else []
    assert found == reference.best_fit(lengths, capacity)


def test_best_fit_of_many_lengths_is_its_definition() -> None:
    lengths = np.random.default_rng(3).integers(1, 200, 2000)
    order, counts = best_fit(lengths, 256)
    found = [part.tolist() for part in np.split(order, np.cumsum(counts)[:-1])]
    assert found == reference.best_fit(lengths.tolist(), 256)


@given(documents, st.integers(1, 24))
def test_best_fit_has_every_event_once_and_cuts_long_documents_only(texts: list[bytes], context_length: int) -> None:
    loader = loader_of(texts, context_length, "best_fit")
    rows = epoch_of(loader)
    if sum(len(text) + 1 for text in texts) <= context_length:
        assert _same(*rows)
        rows = rows[:1]  # a single row, stored twice
    parts = [part for row in rows for part in parts_of(row)]
    events = [pair for inputs, targets in parts for pair in zip(inputs, targets, strict=True)]
    assert sorted(events) == sorted(events_of(texts))
    whole = [[END, *text, END] for text in texts if len(text) < context_length]
    found = [[inputs[0], *targets] for inputs, targets in parts]
    for sequence in whole:
        found.remove(sequence)  # each whole
    num_cut = sum(len(text) + 1 > context_length for text in texts)
    places = sum(len(row["weight"]) for row in rows)
    (figures,) = loader.figures
    assert (figures.num_cut, figures.num_dropped) == (num_cut, 0)
    assert figures.num_padding == places - len(events) == sum(int((row["document"] == -1).sum()) for row in rows)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all((one[name] == other[name]).all() for name in one)


@given(documents, st.integers(1, 24))
def test_split_has_the_windows_of_the_stream_with_documents_apart(texts: list[bytes], context_length: int) -> None:
    num_tokens = sum(map(len, texts)) + len(texts)
    if num_tokens <= context_length:
        return
    plain, split = (loader_of(texts, context_length, packing) for packing in ("none", "split"))
    for one, other in zip(epoch_of(plain), epoch_of(split), strict=True):
        assert _same(one, {name: other[name] for name in one})
        parts = parts_of(other)
        assert sum(len(targets) for _, targets in parts) == context_length
        for number, (inputs, targets) in enumerate(parts):
            assert END not in inputs[1:]
            assert targets[:-1] == inputs[1:]
            assert inputs[0] == END or number == 0  # only the first goes on with a document
    (figures,) = split.figures
    assert (figures.num_dropped, figures.num_padding) == (num_tokens % context_length, 0)


@given(documents, st.integers(1, 24), st.sampled_from(PACKINGS), st.integers(0, 5))
def test_documents_of_a_batch_are_those_whose_tokens_it_predicts(
    texts: list[bytes], context_length: int, packing: Packing, step: int
) -> None:
    """Oracle: bytes that no other document has, in the inputs of a stream's rows and the targets of packed ones."""
    texts = [bytes([number]) * len(text) for number, text in enumerate(texts)]
    if sum(map(len, texts)) + len(texts) <= context_length:
        return
    loader = loader_of(texts, context_length, packing, batch_size=3)
    batch = loader.batch(step)
    column = batch["target"] if packing == "best_fit" else batch["input"]
    counted = batch["weight"] > 0
    named = {int(token) for token in column[counted] if token != END}
    found = set(loader.documents(step))
    assert named <= found
    assert len(found - named) <= (column[counted] == END).sum()  # of which only the end is there


@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_batches_are_a_pure_function_and_divide_among_ranks(packing: Packing) -> None:
    texts = [b"ab" * (number % 9 + 1) for number in range(50)]
    whole = loader_of(texts, 16, packing, batch_size=6)
    straight = [whole.batch(step) for step in range(10)]
    for step in (9, 0, 4):
        assert _same(loader_of(texts, 16, packing, batch_size=6).batch(step), straight[step])
        for rank in range(3):
            part = loader_of(texts, 16, packing, batch_size=6, rank=rank, world_size=3).batch(step)
            assert all((part[name] == column[rank::3]).all() for name, column in straight[step].items())


def test_packed_rows_say_what_they_hold() -> None:
    texts = [b"x" * 20, b"abc", b"", b"de"]
    loader = loader_of(texts, 8, "best_fit")
    assert isinstance(loader.rows, PackedRows)
    packed = cast("PackedDocuments", loader.dataset)
    assert (packed.num_tokens, packed.num_events, packed.num_padding, packed.num_cut) == (4, 29, 3, 1)
    assert packed.row_ranges(2) == [(16, 21), (26, 29)]  # the rest of the long one, and the last
    assert [ids.tolist() for ids in packed.pieces(2)] == [[120] * 5 + [END], [END, 100, 101, END]]
    assert loader.text_per_epoch == (29, 25)
    assert str(loader.figures[0]) == "4 rows per epoch, 0 tokens left out, 3 places padded, 1 document cut"
    assert str(loader_of(texts, 7, "split").figures[0]) == "4 rows per epoch, 1 token left out"
    assert "4 rows, 3 places padded" in repr(packed)
    row = loader.rows.training_row(cast("TokenDataset", packed), 3)
    assert {name: (column.dtype, column.shape) for name, column in row.items()} == loader.rows.columns
    scored = loader.rows.stack(list(loader.rows.scoring_rows(b"hello", 8)))
    assert _same(scored, TokenRows(CODEC, 8).stack(list(TokenRows(CODEC, 8).scoring_rows(b"hello", 8))))
    kinds = [TokenRows, DocumentRows, PackedRows]
    assert len({kind(CODEC, 8).fingerprint for kind in kinds} | {PackedRows(CODEC, 9).fingerprint}) == 4


def test_what_cannot_be_packed_is_refused() -> None:
    bpe = BPECodec(BPE.train(["to be or not to be"], vocab_size=260, pattern="none"))
    dataset = TokenDataset.from_documents([b"to be"], bpe)
    with pytest.raises(ConfigError, match="packing is split; it must be none for a model that reads CanonicalRows"):
        pack(dataset, CanonicalRows(bpe, 4), "split")
    with pytest.raises(ConfigError, match="packing is 'best'; it must be one of none, best_fit, split"):
        pack(dataset, TokenRows(bpe, 4), cast("Packing", "best"))
    with pytest.raises(ConfigError, match="packing"):
        TrainConfig(steps=1, packing="tight")


SHAPE: dict[str, Any] = {"num_layers": 2, "num_heads": 2, "width": 32, "context_length": 16}
SETTINGS: dict[str, Any] = {
    "steps": 6, "batch_size": 4, "device": "cpu", "precision": "float32", "num_threads": 1, "log_every": 1,
    "eval_every": 3, "learning_rate": 1e-2, "schedule": "constant", "warmup": 0.0, "cooldown": 0.0,
}  # fmt: skip
TEXTS = [f"to be or {number}".encode() * (number % 4 + 1) for number in range(30)]


@pytest.mark.parametrize("packing", ["best_fit", "split"])
def test_a_run_trains_on_packed_rows_and_resumes_to_the_same_losses(packing: Packing, tmp_path: Path) -> None:
    data = TokenDataset.from_documents(TEXTS, CODEC)
    model = GPTConfig.modern(vocab_size=END + 1, **SHAPE)
    forecasts: list[Forecast] = []

    def run(name: str, **changes: Any) -> list[float]:
        passed = {key: changes.pop(key) for key in ("resume", "on_forecast") if key in changes}
        config = TrainConfig(**{**SETTINGS, "packing": packing, **changes})
        train(model, CODEC, data, TEXTS[:2], config, tmp_path / name, progress=False, **passed)
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        return [line["loss"] for line in lines if line["event"] == "train"]

    straight = run("straight", on_forecast=forecasts.append)
    assert forecasts[0].reading == loader_of(TEXTS, 16, packing).figures
    assert len(straight) == 6
    assert run("stopped", steps=3) == straight[:3]
    assert run("stopped", resume=True) == straight
    stored = json.loads((tmp_path / "straight" / "config.json").read_text())["train"]
    assert (stored["packing"], stored["order"]) == (packing, 2)
    with pytest.raises(MismatchError, match=f"its training setting packing is '{packing}', not 'none'"):
        run("straight", resume=True, packing="none", steps=9)


def test_a_model_that_ignores_the_columns_is_refused() -> None:
    """Packing would let it see other documents."""
    model = GPTConfig.modern(vocab_size=END + 1, **SHAPE).build()
    rows = DocumentRows(CODEC, 16)
    check_documents_apart(model, rows)
    ignored: set[str] = set()

    class Forgetful(GPT):
        def nats(self, batch: Batch) -> torch.Tensor:
            return super().nats({name: column for name, column in batch.items() if name not in ignored})

    model.__class__ = Forgetful
    check_documents_apart(model, rows)
    ignored.add("document")
    with pytest.raises(ConfigError, match="lets documents in one row see each other"):
        check_documents_apart(model, rows)


def test_finetuning_does_not_inherit_a_packing() -> None:
    from fastcompress.training.sft import chat_settings

    config = chat_settings(TrainConfig(steps=5, packing="best_fit", order=1), 4)
    assert (config.packing, config.order) == ("none", None)
    assert dataclasses.asdict(config)["packing"] == "none"
