"""Language models over equal-info windows: M1 as a function, its windows compiled, M2 trained, and what it costs."""

from __future__ import annotations

import functools
import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.arithmetic import quantize
from fastcompress.cli import main
from fastcompress.codec import (
    AuxiliaryModel,
    ByteCodec,
    Codec,
    CompiledPaperCodec,
    EqualInfoCodec,
    GzipCodec,
    codec_from_spec,
    load_codec,
    save_codec,
)
from fastcompress.codec.learned import is_learned, learn_codec
from fastcompress.data import TokenDataset, load_corpus
from fastcompress.equal_info import Codebook, CountModel
from fastcompress.equal_info.compiled_paper import CompiledWindows
from fastcompress.equal_info.paper import PaperWindows, frequencies
from fastcompress.errors import ConfigError, DataError
from fastcompress.evaluation import evaluate
from fastcompress.evaluation.flops import charge_training, forward_per_byte
from fastcompress.models import make_model_config
from fastcompress.models.next_byte import NextByteWeights
from fastcompress.models.protocol import LanguageModel
from fastcompress.study.arms import codec_arm
from fastcompress.training import TrainConfig, load_run, train
from fastcompress.training.selfcheck import redraw_weights

TEXT = b"It was the best of times, it was the worst of times, it was the age of wisdom. " * 4
TINY = {"num_layers": 1, "num_heads": 2, "width": 16, "context_length": 16}
texts = st.one_of(
    st.lists(st.sampled_from([b"it was ", b"to be or not ", b"best", b"w", b"\xff"]), max_size=12).map(b"".join),
    st.binary(max_size=20),
)


def byte_model(seed: int = 0) -> LanguageModel:
    """An M1 whose predictions differ from context to context."""
    torch.manual_seed(seed)
    model = make_model_config(TINY, ByteCodec()).build()
    redraw_weights(model)
    return model.eval()


def test_weights_are_those_of_the_model() -> None:
    model = byte_model()
    weights = NextByteWeights(model, batch_size=3)
    for context in (b"a", b"of times", TEXT[:40]):
        logits = model(torch.tensor([list(context[-16:])]))[0, -1, :256]
        expected = torch.softmax(logits.double(), 0).detach().numpy()
        np.testing.assert_allclose(weights([context])[0] / 2**24, expected, atol=1e-6)
    assert weights([]).shape == (0, 256)


def test_weights_do_not_depend_on_other_contexts() -> None:
    weights = NextByteWeights(byte_model(), batch_size=4)
    contexts = [TEXT[:size] for size in (0, 1, 3, 3, 16, 17, 40, 2, 3, 3, 3, 3)] + [b"\xff\0", b""]
    together = weights(contexts)
    for context, row in zip(contexts, together, strict=True):
        assert weights([context])[0].tolist() == row.tolist()
    assert weights(contexts[::-1]).tolist() == together[::-1].tolist()


def test_first_bytes_have_their_shares_in_the_long_run() -> None:
    """So that a byte more of context, which is not known, changes nothing: shares = shares @ weights of a byte."""
    weights = NextByteWeights(byte_model(), batch_size=100)
    shares = weights([b""])[0] / weights([b""]).sum()
    follows = weights([bytes([byte]) for byte in range(256)]).astype(np.float64)
    np.testing.assert_allclose(shares @ (follows / follows.sum(1, keepdims=True)), shares, atol=1e-6)
    assert shares.max() > 2 / 256


def test_what_is_no_model_of_bytes_is_refused() -> None:
    codec = EqualInfoCodec(Codebook.train(TEXT, bits=9))
    with pytest.raises(ConfigError, match="does not predict the next byte"):
        NextByteWeights(make_model_config(TINY, codec).build())
    with pytest.raises(ConfigError, match="batch_size is 0"):
        NextByteWeights(byte_model(), batch_size=0)


MODELS = {
    "counts": CountModel(TEXT, 2),
    "to be": CountModel(b"to be or not to be " * 20, 3),
    "more counts": CountModel(TEXT + bytes(range(256)), 3),
    "neural": NextByteWeights(byte_model(), batch_size=64),
}


@functools.cache
def compiled(name: str, bits: int, precision: int, max_symbols: int) -> CompiledWindows:
    return CompiledWindows.of_model(MODELS[name], bits, precision=precision, max_symbols=max_symbols)


@pytest.mark.parametrize(
    ("name", "bits", "precision", "max_symbols"),
    [("counts", 14, 14, 30), ("more counts", 12, 10, 5), ("neural", 11, 9, 30), ("to be", 12, 12, 255)],
)
@settings(max_examples=25, deadline=None)
@given(text=texts)
def test_compiled_windows_are_the_published_ones(
    name: str, bits: int, precision: int, max_symbols: int, text: bytes
) -> None:
    table = compiled(name, bits, precision, max_symbols)
    live = PaperWindows(frequencies(MODELS[name], precision), bits, precision=precision, max_symbols=max_symbols)
    assert table.encode(text) == live.encode(text)
    assert table.report(text) == live.report(text)
    for code, _ in table.encode(text):
        assert table.decode_window(code) == live.decode_window(code)


def test_every_compiled_window_decodes_as_published() -> None:
    table = compiled("to be", 12, 12, 255)
    live = PaperWindows(frequencies(MODELS["to be"], 12), 12, precision=12, max_symbols=255)
    known = set(table.table.values())
    for code in range(0, 4096, 3):
        if code in known:
            assert table.decode_window(code) == live.decode_window(code)
        else:
            for windows in (table, live):
                with pytest.raises(DataError, match="no string has the window"):
                    windows.decode_window(code)
    assert len(known) < len(table.table)  # which is why text is lost


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ConfigError, match="prefix is not in the table"):
        CompiledWindows([b"ab"], [3])
    with pytest.raises(ConfigError, match="2 windows of 9 bits"):
        CompiledWindows([b"a", b"b"], [3, 512], bits=9)
    with pytest.raises(ConfigError, match="bits is 17"):
        CompiledWindows.of_model(MODELS["counts"], 17)
    with pytest.raises(DataError, match=r"takes more than a window of .* bits; compile windows of more bits"):
        CompiledWindows([b"a"], [0]).encode(b"ab")
    with pytest.raises(DataError, match="weights of shape"):
        CompiledWindows.of_model(lambda contexts: np.ones((1, 3)))


def test_bytes_that_take_more_than_a_window_are_known() -> None:
    """A confident model leaves most bytes no window of a few bits; as many bits as the precision hold any."""
    few, enough = compiled("to be", 9, 12, 255), compiled("to be", 12, 12, 255)
    assert enough.missing_symbols == b""
    assert len(few.missing_symbols) > 100
    for symbol in range(256):
        if symbol in few.missing_symbols:
            with pytest.raises(DataError, match=rf"symbol {symbol} .*; compile windows of more bits \(12 hold any"):
                few.encode(bytes([symbol]))
        else:
            assert len(few.encode(bytes([symbol]))) == 1


def test_a_compiled_codec_keeps_what_it_loses(tmp_path: Path) -> None:
    codec = CompiledPaperCodec(compiled("to be", 12, 12, 255), keeps_wrong=True, auxiliary=AuxiliaryModel(5.0, 2.0))
    text = b"to be or not to be, or to be"
    save_codec(codec, tmp_path / "codec.json")
    again = load_codec(tmp_path / "codec.json")
    assert isinstance(again, CompiledPaperCodec)
    assert (again, again.auxiliary, again.keeps_wrong) == (codec, AuxiliaryModel(5.0, 2.0), True)
    assert again.encode(text).tolist() == codec.encode(text).tolist() == [c for c, _ in codec.windows.encode(text)]
    assert codec.windows.report(text).num_wrong > 0
    with pytest.raises(DataError, match="decode to other text"):
        CompiledPaperCodec(codec.windows).encode(text)


LEARNED = ("equal-info-9", "equal-info-32-by-8", "equal-info-64-by-16", "equal-info-128-by-8", "arithmetic-8")


@functools.cache
def tokenization(name: str) -> Codec:
    if name == "paper":
        return CompiledPaperCodec(compiled("counts", 14, 14, 30), keeps_wrong=True, auxiliary=AuxiliaryModel(5e6, 7e3))
    if name == "m1":
        return EqualInfoCodec(Codebook.from_model(MODELS["neural"], bits=10), auxiliary=AuxiliaryModel(5e6, 7e3))
    return codec_from_spec("gzip-16") if name == "gzip-16" else learn_codec(name, [TEXT])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LEARNED, "gzip-16", "paper", "m1"])
def test_every_tokenization_is_trained_on(name: str, tmp_path: Path) -> None:
    """By the ordinary trainer, from the codec in the run's folder; its gain over knowing nothing is reported."""
    codec = tokenization(name)
    data = TokenDataset.from_documents([TEXT] * 3, codec)
    training = TrainConfig(steps=2, batch_size=2, num_evals=1, device="cpu", self_check=False)
    config = make_model_config({**TINY, "width": 8, "context_length": 4}, codec)
    result = train(config, codec, data, [TEXT[:90]], training, tmp_path, progress=False)
    run = load_run(tmp_path)
    assert run.codec == codec
    score = evaluate(run.model, run.codec, [TEXT[:90]], stride=4)
    assert score.bits_per_byte == pytest.approx(result.best_bits_per_byte, rel=1e-3)
    num_events = len(codec.encode(TEXT[:90])) + 1
    assert score.uniform_bits_per_byte == pytest.approx(num_events * math.log2(codec.vocab_size + 1) / 90)
    assert score.gain_over_uniform == score.uniform_bits_per_byte - score.bits_per_byte
    forward = run.model.flops().forward_per_token * num_events / 90
    costs, charges = forward_per_byte(run.model, run.codec, score), charge_training(1e9, 1000, run.codec)
    assert costs["forward_flops_per_byte"] == pytest.approx(forward)
    if name in ("paper", "m1"):
        assert costs["forward_flops_per_byte_with_auxiliary"] == pytest.approx(forward + 7e3)
        assert costs["auxiliary_making_flops"] == 5e6
        assert charges == {"making": 5e6, "amortized": 1e9 + 5e6, "every_byte": 1e9 + 5e6 + 7e6}
    else:
        assert len(costs) == 1
        assert charges == {}


def test_learned_codecs_have_the_names_that_they_are_asked_for_by() -> None:
    for name in LEARNED:
        assert is_learned(name)
        assert learn_codec(name, [TEXT]).name == name
    assert tokenization("gzip-16") == GzipCodec(token_bits=16)
    for name in ("equal-info", "equal-info-9-by-4", "arithmetic-9", "gzip", "bpe-300"):
        assert not is_learned(name)
    for name in ("equal-info-8", "equal-info-20", "equal-info-136", "equal-info-24-by-16"):
        with pytest.raises(ConfigError, match="bits"):
            learn_codec(name, [TEXT])


def test_arms_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    corpus = load_corpus(str(tmp_path / "text.txt"))
    save_codec(tokenization("m1"), tmp_path / "book.json")
    arms = [codec_arm("equal-info-9"), codec_arm("gzip-16"), codec_arm(str(tmp_path / "book.json"))]
    assert [arm.name for arm in arms] == ["equal-info-9", "gzip-16", "book"]
    made = [arm.make_codec(corpus) for arm in pickle.loads(pickle.dumps(arms))]  # as for a process of its own
    assert made[0] == learn_codec("equal-info-9", corpus.contents("train"))
    assert made[1:] == [tokenization("gzip-16"), tokenization("m1")]


def fastcompress(*words: object) -> str:
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_whole_way_by_commands(tmp_path: Path) -> None:
    """M1 on bytes, its codebook and the published windows, M2 on each, and their scores with all that they cost."""
    (tmp_path / "text.txt").write_bytes(TEXT * 4)
    sizes = ["--layers", 1, "--heads", 2, "--width", 8, "--context", 16, "--batch-size", 4, "--device", "cpu"]
    given = ["--corpus", tmp_path / "text.txt", *sizes]
    fastcompress("train", *given, "--codec", "byte", "--steps", 3, "--run-dir", tmp_path / "m1")
    m1 = load_run(tmp_path / "m1")
    for name, options in (("book", ["--bits", "9"]), ("paper", ["--paper", "--token-bits", "8"])):
        file = tmp_path / f"{name}.json"
        made = json.loads(fastcompress("codebook", tmp_path / "m1", "-o", file, "--device", "cpu", "--json", *options))
        assert made["flops_per_byte"] == m1.model.flops().forward_per_token
        assert made["making_flops"] > m1.flops + 255 * made["flops_per_byte"]
        fastcompress("train", *given, "--codec", file, "--steps", 2, "--run-dir", tmp_path / f"m2-{name}")
        output = fastcompress("eval", tmp_path / f"m2-{name}", "--device", "cpu")
        assert "gain over a model that has learned nothing: " in output
        assert f"making the codec took {made['making_flops']:.3g} FLOPs once" in output
        scored = json.loads(fastcompress("eval", tmp_path / f"m2-{name}", "--device", "cpu", "--json").splitlines()[-1])
        assert ("num_wrong_windows" in scored) == (name == "paper")
        if scored.get("num_wrong_windows"):
            assert f"{scored['num_wrong_windows']:,} of {scored['num_windows']} windows decode to other text" in output
            assert "(no bound: some windows decode to other text)" in output
    book = load_codec(tmp_path / "book.json")
    assert isinstance(book, EqualInfoCodec)
    assert book.codebook == Codebook.from_model(NextByteWeights(m1.model), bits=9)


def test_codebook_warns_of_bytes_without_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    sizes = ["--layers", 1, "--heads", 1, "--width", 8, "--context", 16, "--batch-size", 2, "--device", "cpu"]
    fastcompress("train", "--corpus", tmp_path / "text.txt", *sizes, "--codec", "byte", "--steps", 1,
                 "--run-dir", tmp_path / "m1")  # fmt: skip
    table, roomy = compiled("to be", 9, 12, 255), compiled("to be", 12, 12, 255)
    monkeypatch.setattr(CompiledWindows, "of_model", lambda model, bits: table)
    made = ["codebook", tmp_path / "m1", "-o", tmp_path / "paper.json", "--bits", 9, "--paper", "--device", "cpu"]
    output = fastcompress(*made)
    assert f"warning: {len(table.missing_symbols)} of 256 bytes, such as '!' " in output
    assert "texts with one of them cannot be encoded; use --bits 12, which has room for every byte" in output
    *_, last = fastcompress(*made, "--force", "--json").splitlines()
    assert json.loads(last)["num_missing_bytes"] == len(table.missing_symbols)
    table = roomy
    assert "warning" not in fastcompress(*made, "--force")


def test_neural_frequencies_are_those_of_a_table() -> None:
    """`PaperWindows` runs the model as it is, one context at a time."""
    row: Sequence[int] = frequencies(MODELS["neural"], 14)(b"it")
    assert row == np.diff(quantize(MODELS["neural"]([b"it"])[0], 14).astype(np.int64)).tolist()
