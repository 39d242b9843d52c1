"""Entropy patches: exact entropies, cuts by definition, calibrated sizes, and models that see no byte of the future."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastcompress.codec import ByteCodec, EntropyByteCodec, load_codec, save_codec
from fastcompress.codec.files import codec_from_json, codec_to_json, to_text
from fastcompress.data import TokenDataset
from fastcompress.data.calibration import calibrate
from fastcompress.data.patches import (
    ENTROPY_PATCHERS,
    PATCH_END,
    EntropyPatcher,
    make_patcher,
    patch_ends,
    patch_rows,
)
from fastcompress.equal_info import CountModel
from fastcompress.equal_info.models import byte_entropies
from fastcompress.errors import ConfigError, DataError, FormatError
from fastcompress.evaluation import evaluate, generate
from fastcompress.models import make_model_config
from fastcompress.models.byte_latent import ByteLatent, ByteLatentConfig
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import redraw_weights, self_check
from tests.reference import patches as reference
from tests.test_byte_latent import SMALL, texts

TEXT = b"to be or not to be, that is the question: whether 'tis nobler in the mind to suffer. \xc3\xa9\xc3\xa9 " * 3
CODEC = EntropyByteCodec.train([TEXT], order=3, max_contexts=150)
THRESHOLDS = {"entropy": 3.0, "entropy-monotone": 0.5}
both = pytest.mark.parametrize("patcher", ENTROPY_PATCHERS)


def make(patcher: str, kind: type[ByteLatent] = ByteLatent, **changes: object) -> ByteLatent:
    """A model in which every path is active."""
    torch.manual_seed(0)
    settings = {**SMALL, "patcher": patcher, "threshold": THRESHOLDS[patcher], **changes}
    model = kind(ByteLatentConfig.from_json(settings))
    model.read_codec(CODEC)
    redraw_weights(model)
    with torch.no_grad():
        model.start.normal_()
    return model.eval()


def entropy_after(text: bytes) -> int:
    """By definition: of the longest last context in the table."""
    return next(CODEC.table[text[i:]] for i in range(len(text) + 1) if text[i:] in CODEC.table)


def cut_after(patcher: str, text: bytes) -> int:
    """The last place at which the text so far is cut."""

    def is_cut(n: int) -> bool:
        before = entropy_after(text[: n - 1]) if patcher == "entropy-monotone" else 0
        return entropy_after(text[:n]) - before > THRESHOLDS[patcher] * 4096

    return max(filter(is_cut, range(1, len(text) + 1)), default=0)


def test_entropies_are_those_of_counts() -> None:
    contexts = list(CODEC.table)
    weights = np.ones((len(contexts), 256))
    for row, context in zip(weights, contexts, strict=True):
        for start in range(len(context) + 1):
            suffix = context[start:]
            for i in range(len(suffix), len(TEXT)):
                row[TEXT[i]] += 64.0 ** len(suffix) * (TEXT[i - len(suffix) : i] == suffix)
    shares = weights / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(list(CODEC.table.values()), -(shares * np.log2(shares)).sum(1) * 4096, atol=1.5)
    assert byte_entropies(CountModel(b"", 0), [b"", b"a"]).tolist() == [8 * 4096] * 2


def test_the_most_frequent_contexts_are_kept() -> None:
    """Of each document by itself: no context crosses from one into the next."""
    documents = [b"abcab", b"cccab", b""]
    every = EntropyByteCodec.train(documents, order=2)
    found: dict[bytes, int] = {}
    for document, size in itertools.product(documents, range(3)):
        for i in range(len(document) - size):
            found[document[i : i + size]] = found.get(document[i : i + size], 0) + 1
    assert set(every.table) == set(found)
    order = sorted(found, key=lambda context: (-found[context], len(context), context))
    for number in range(1, len(order)):
        assert set(EntropyByteCodec.train(documents, order=2, max_contexts=number).table) == set(order[:number])


@given(texts)
def test_entropies_of_texts(text: bytes) -> None:
    found = CODEC.entropies(text)
    assert found.tolist() == [entropy_after(text[:n]) for n in range(len(text) + 1)]
    assert CODEC.entropies(text[: len(text) // 2]).tolist() == found[: len(text) // 2 + 1].tolist()


@given(st.lists(texts, min_size=1, max_size=3), st.sampled_from(ENTROPY_PATCHERS), st.integers(1, 4), st.integers(0, 6))
def test_patches_are_the_defined_ones(documents: list[bytes], patcher: str, min_bytes: int, extra: int) -> None:
    """Also of every prefix; patches fill the row, and none is dropped."""
    ids = [reference.END]
    for document in documents:
        ids += [*document, reference.END]
    cutter = make_patcher(patcher, CODEC, THRESHOLDS[patcher])
    found = patch_ends(np.array(ids), cutter, min_bytes, min_bytes + extra)
    expected = reference.ends(ids, lambda text: cut_after(patcher, text), min_bytes, min_bytes + extra)
    assert found.tolist() == expected
    part = patch_ends(np.array(ids[: len(ids) // 2], np.int64), cutter, min_bytes, min_bytes + extra)
    assert part.tolist() == found[: len(part)].tolist()
    sizes = np.diff(found[found > 0], prepend=0)
    assert ((sizes >= min_bytes) & (sizes <= min_bytes + extra)).all()
    assert len(ids) - sizes.sum() < min_bytes + extra


@pytest.mark.slow
@both
def test_a_changed_byte_changes_nothing_before_it(patcher: str) -> None:
    model = make(patcher, cross_attention=True)
    ids = torch.tensor([[reference.END, *TEXT[:47]]])
    before = model(ids)
    assert 3 < len(np.unique(model.columns_of(ids[0].numpy())[PATCH_END])) - 1 < 15
    for position in (1, 7, 20, 33, 47):
        changed = ids.clone()
        changed[0, position:] = torch.tensor(list(b"x !"))[torch.arange(48 - position) % 3]
        after = model(changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], rtol=1e-5, atol=1e-6)
        assert not torch.allclose(after[:, position:], before[:, position:], atol=1e-3)


class Uncached(ByteLatent):
    def new_cache(self, lanes: int) -> None:  # type: ignore[override]
        return None


@both
def test_cached_logits_are_the_uncached_ones(patcher: str) -> None:
    """Lanes of unequal lengths, one of which outgrows the row."""
    cached, uncached = make(patcher), make(patcher, Uncached)
    uncached.load_state_dict(cached.state_dict())
    steppers = [model.stepper(CODEC, 3) for model in (cached, uncached)]
    for stepper in steppers:
        stepper.begin([b"a be", TEXT[:40], b""])
    for step in range(16):
        found, expected = (stepper.weights() for stepper in steppers)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        for stepper in steppers:
            stepper.push([TEXT[step], TEXT[step + 40], TEXT[step // 2]])


@pytest.mark.slow
@both
def test_probabilities_of_the_next_byte_sum_to_one(patcher: str) -> None:
    model = make(patcher)
    self_check(model, TrainConfig(steps=1))
    rows = model.rows(CODEC)
    for context in (b"", TEXT[:13], b"tototototototo"):
        documents = [context + bytes([byte]) for byte in range(256)] + [context]  # the last ends there
        batch = rows.stack([next(iter(rows.scoring_rows(document, 48))) for document in documents])
        with torch.no_grad():
            nats = model.nats({name: torch.from_numpy(column) for name, column in batch.items()})[:, len(context)]
        assert float((-nats.double()).exp().sum()) == pytest.approx(1.0, abs=1e-5)


@both
def test_calibrated_patches_have_the_wanted_size(patcher: str) -> None:
    sample = [TEXT, TEXT[5:50], b""]
    ids = [reference.END, *TEXT, reference.END, *TEXT[5:50], reference.END, reference.END]

    def size(threshold: float, min_bytes: int, max_bytes: int) -> float:
        cutter = make_patcher(patcher, CODEC, threshold)
        return len(ids) / int((patch_ends(np.array(ids), cutter, min_bytes, max_bytes) > 0).sum())

    for wanted in (2.0, 2.5, 4.0, 6.0):
        found = calibrate(CODEC, sample, wanted, patcher=patcher, min_bytes=1, max_bytes=12)
        everywhere = [*(np.arange(-8 * 64, 8 * 64) / 64).tolist(), found]
        nearest = min(abs(size(threshold, 1, 12) - wanted) for threshold in everywhere)
        assert abs(size(found, 1, 12) - wanted) == nearest < 0.7
    for unreachable in (0.5, 40.0):
        with pytest.raises(ConfigError, match=rf"bytes_per_patch is {unreachable}; with patches of 1 to 12 bytes it"):
            calibrate(CODEC, sample, unreachable, patcher=patcher, min_bytes=1, max_bytes=12)
    with pytest.raises(DataError, match="more than a patch"):
        calibrate(CODEC, [b"a"], 4.0, patcher=patcher, min_bytes=4)


def test_rows_know_the_entropies() -> None:
    other = EntropyByteCodec.train([TEXT], order=2)
    prints = {
        patch_rows(codec, 16, patcher, 2, 8, threshold).fingerprint
        for codec, patcher, threshold in (
            (CODEC, "entropy", 2.0), (other, "entropy", 2.0), (CODEC, "entropy", 2.5), (CODEC, "entropy-monotone", 2.0),
            (CODEC, "space", None),
        )
    }  # fmt: skip
    assert len(prints) == 5


def test_the_whole_way_of_a_run(tmp_path: Path) -> None:
    """The entropies travel in the run's codec."""
    document = b"She sells sea shells by the sea shore."
    threshold = calibrate(CODEC, [document], 4.0, min_bytes=3, max_bytes=9)
    settings = {"kind": "byte-latent", **SMALL, "patcher": "entropy", "threshold": threshold}
    config = make_model_config(settings, CODEC)
    data = TokenDataset.from_documents([document] * 4, CODEC)
    training = TrainConfig(steps=4, batch_size=2, num_evals=1, device="cpu")
    result = train(config, CODEC, data, [document], training, tmp_path, progress=False)
    loaded = load_run(tmp_path)
    assert isinstance(loaded.model, ByteLatent)
    assert isinstance(loaded.model.patcher, EntropyPatcher)
    assert loaded.codec == CODEC
    score = evaluate(loaded.model, loaded.codec, [document], stride=48)
    assert score.is_exact
    assert score.bits_per_byte == pytest.approx(result.best_bits_per_byte, rel=1e-3)
    assert "".join(generate(loaded.model, loaded.codec, b"She", max_tokens=6, temperature=0.0))


def test_bad_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="codec is byte; patcher entropy needs one with entropies"):
        make_patcher("entropy", ByteCodec(), 1.0)
    with pytest.raises(ConfigError, match="threshold is None; it must be -8 to 8 bits"):
        make_patcher("entropy", CODEC)
    with pytest.raises(ConfigError, match=r"threshold is 1\.0, but patcher space has none"):
        make_patcher("space", CODEC, 1.0)
    with pytest.raises(ConfigError, match="call read_codec first"):
        ByteLatentConfig(patcher="entropy", threshold=1.0).build().patcher  # noqa: B018
    with pytest.raises(ConfigError, match="patcher is 'space'; it must be entropy"):
        calibrate(CODEC, [TEXT], 4.0, patcher="space")
    sizes: list[dict[str, Any]] = [{"max_bytes": 0}, {"min_bytes": -1}, {"min_bytes": 2.5}]
    for one in [*sizes, {"min_bytes": 8, "max_bytes": 4}]:
        with pytest.raises(ConfigError, match=r"model\.m(in|ax)_bytes (is|must be) "):
            calibrate(CODEC, [TEXT], 4.0, **one)
    wrong: Any = "4"
    with pytest.raises(TypeError, match=r"bytes_per_patch is '4'.*; it must be a number"):
        calibrate(CODEC, [TEXT], wrong)
    samples: list[Any] = [TEXT, ["abc"]]
    for sample in samples:
        with pytest.raises(TypeError, match="sample must be a collection of documents"):
            calibrate(CODEC, sample, 4.0)
    assert calibrate(CODEC, iter([TEXT]), 4.5) == calibrate(CODEC, [TEXT], 4.5)
    with pytest.raises(ConfigError, match="lacks the empty context"):
        EntropyByteCodec({b"a": 1})
    with pytest.raises(ConfigError, match="highest entropy"):
        EntropyByteCodec({b"": 1, b"a": 40000})
    with pytest.raises(ConfigError, match="longest context"):
        EntropyByteCodec({b"": 1, b"12345678": 1})
    with pytest.raises(DataError, match="no text"):
        EntropyByteCodec.train([b""])
    save_codec(CODEC, tmp_path / "codec.json")
    assert load_codec(tmp_path / "codec.json") == CODEC
    for blob in (b"\1" + bytes(20), b"\1" + bytes(7) + b"\1" * 10):
        with pytest.raises(FormatError, match="damaged"):
            codec_from_json({**codec_to_json(CODEC), "state": {"table": to_text(blob)}}, "codec.json")
