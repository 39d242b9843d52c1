"""A model of another kind goes through trainer, evaluation, generation and command line: none of them knows GPT."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from fastcompress.cli import main
from fastcompress.codec import ByteCodec, CharCodec, LZ77Codec
from fastcompress.data import TokenDataset
from fastcompress.errors import ConfigError, MismatchError
from fastcompress.evaluation import evaluate, generate
from fastcompress.models import GPTConfig, make_model_config, model_config_from_json
from fastcompress.models.kinds import KINDS
from fastcompress.training import TrainConfig, TrainResult, load_run, train
from fastcompress.training.selfcheck import self_check
from tests.byte_bigram import END, ByteBigram, ByteBigramConfig

PACKAGE = Path(__file__).parent.parent / "python" / "fastcompress"
CODEC = ByteCodec()
TEXT = [f"{i} ducks swam over {i * 7} ponds; {i} came back. ".encode() * 3 for i in range(40)]
HELD_OUT = [b"7 ducks swam over 49 ponds.", b"", b"1 duck"]
CONFIG = TrainConfig(steps=60, batch_size=8, learning_rate=0.05, eval_every=20, log_every=1, device="cpu")


@pytest.fixture(autouse=True)
def _kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "byte-bigram", ByteBigramConfig)


def run(directory: Path, **passed: Any) -> TrainResult:
    config = make_model_config({"kind": "byte-bigram", "width": 16}, CODEC)
    data = TokenDataset.from_documents(TEXT, CODEC)
    return train(config, CODEC, data, HELD_OUT, CONFIG, directory, progress=False, **passed)


@torch.no_grad()
def by_hand(model: ByteBigram, document: bytes) -> float:
    """The nats of a document, one byte after the other."""
    total = 0.0
    for previous, byte in zip([END, *document], [*document, END], strict=True):
        before = torch.tensor(previous)
        high, low = divmod(byte, 16)
        total -= float(model.high_logits(before).log_softmax(-1)[high])
        if byte != END:
            total -= float(model.low_logits(before, torch.tensor(high)).log_softmax(-1)[low])
    return total


def test_it_is_trained_scored_and_kept(tmp_path: Path) -> None:
    result = run(tmp_path)
    scores = [point["validation_bits_per_byte"] for point in result.curve]
    assert scores[0] > 7.0
    assert scores[-1] < 4.5
    assert result.flops == 60 * 8 * result.model.flops().training == 60 * 8 * 16 * 3 * 2 * 16 * (17 + 16)
    loaded = load_run(tmp_path)
    assert isinstance(loaded.model, ByteBigram)
    assert loaded.model.config == ByteBigramConfig(width=16)
    assert re.match(r"<Run at step \d+: ByteBigram of 4,945 parameters, codec byte, ", repr(loaded))
    score = evaluate(loaded.model, CODEC, HELD_OUT, stride=5, batch_size=2)
    nats = sum(by_hand(loaded.model, document) for document in HELD_OUT)
    assert score.nats == pytest.approx(nats, rel=1e-6)
    assert score.bits_per_byte == pytest.approx(nats / math.log(2) / sum(map(len, HELD_OUT)), rel=1e-6)
    assert (score.num_tokens, score.num_documents, score.context_length) == (sum(map(len, HELD_OUT)), 3, 16)


def test_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    def stop(record: dict[str, Any]) -> None:
        if record["step"] == 31:
            raise KeyboardInterrupt

    def losses(directory: Path) -> list[float]:
        records = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
        return [record["loss"] for record in records if record["event"] == "train"]

    run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", on_metrics=stop)
    assert run(tmp_path / "parts", resume=True).new_steps == 60 - 31
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    with pytest.raises(MismatchError, match="model setting kind is 'byte-bigram', not 'gpt'"):
        train(
            GPTConfig.modern(vocab_size=257), CODEC, TokenDataset.from_documents(TEXT, CODEC), HELD_OUT, CONFIG,
            tmp_path / "parts", resume=True, progress=False,
        )  # fmt: skip


def test_it_generates(tmp_path: Path) -> None:
    model = run(tmp_path).model
    text = "".join(generate(model, CODEC, b"3 duck", max_tokens=80, seed=1))
    assert 5 < len(text) <= 40  # two fields a byte
    assert set(text) <= set(b"".join(TEXT).decode())
    assert text == "".join(generate(model, CODEC, b"3 duck", max_tokens=80, seed=1))


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"".join(TEXT))
    (tmp_path / "run.toml").write_text(
        'steps = 30\nbatch_size = 4\n[model]\nkind = "byte-bigram"\nwidth = 12\n'
        '[optimizer]\nlearning_rate = 0.01\n[data]\ncorpus = "text.txt"\n'
    )

    def fastcompress(*words: str) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        fastcompress("train", "--config", "run.toml", "--set", "model.width=10", "--set", "learning_rate=0.02",
                     "--learning-rate", "0.03", "--device", "cpu", "--run-dir", "a")  # fmt: skip
        stored = json.loads(Path("a/config.json").read_text())
        assert stored["model"] == {"kind": "byte-bigram", "context_length": 16, "width": 10}
        assert stored["train"]["optimizer"]["learning_rate"] == 0.03
        assert stored["train"]["optimizer"]["kind"] == "adamw"
        fastcompress("train", "--config", "run.toml", "--set", "model.width=10", "--steps", "31", "--resume",
                     "--attention", "plain", "--device", "cpu", "--run-dir", "a")  # fmt: skip
        stored = json.loads(Path("a/config.json").read_text())["train"]
        assert (stored["steps"], stored["machine"]["attention"], stored["batch_size"]) == (31, "plain", 4)
        assert json.loads(fastcompress("eval", "a", "--device", "cpu", "--json"))["bits_per_byte"] < 8.0
        assert fastcompress("generate", "a", "--prompt", "5 du", "--max-tokens", "9").startswith("5 du")


@pytest.mark.parametrize("kind", ["gpt", "byte-latent", "heat", "lz-blt"])
def test_flags_are_true_or_false(kind: str) -> None:
    """Not a word for either, which Python would take for true."""
    config: Any = KINDS[kind]
    flags = [field.name for field in dataclasses.fields(config) if field.type == "bool"]
    assert flags
    codec: Any = LZ77Codec(alphabet="fields") if kind == "lz-blt" else CODEC
    for flag in flags:
        for value in ("False", 1, None, [True], math.nan):
            with pytest.raises(ConfigError, match=f"{flag} must be true or false, not "):
                make_model_config({"kind": kind, flag: value}, codec)


@pytest.mark.parametrize("context_length", [3, 8, 16, 64])
@pytest.mark.parametrize(
    "settings", [{"kind": "byte-latent"}, {"kind": "heat"}, {"kind": "heat", "patch_bytes": 100}, {"kind": "lz-blt"}]
)
def test_self_checks_pass_whatever_they_draw(settings: dict[str, Any], context_length: int) -> None:
    """Rows that a check puts together of two have more patches than there are places, or are the same row twice."""
    shape = {"width": 16, "num_heads": 2, "num_layers": 1, "local_width": 8, "local_heads": 2, "encoder_layers": 1}
    codec: Any = LZ77Codec(alphabet="fields") if settings["kind"] == "lz-blt" else CODEC
    if settings["kind"] == "lz-blt":
        settings = {**settings, "grouping": "match"}
    elif context_length < 4:
        return
    config = make_model_config({**shape, "decoder_layers": 1, "context_length": context_length, **settings}, codec)
    for seed in range(6):
        torch.manual_seed(seed)
        self_check(config.build(), CONFIG)


def test_another_codec_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"there is no kind of model 'rnn'; the kinds are gpt, byte-latent, heat, lz-blt, byte-bigram"
    ):
        make_model_config({"kind": "rnn"}, CODEC)
    with pytest.raises(ConfigError, match=r"no kind of model \['gpt'\]"):
        make_model_config({"kind": ["gpt"]}, CODEC)
    with pytest.raises(ConfigError, match="no kind of model"):
        model_config_from_json({"kind": 3})
    chars = CharCodec(["a", "b"])
    with pytest.raises(MismatchError, match="codec is char-2; it must be byte; use the codec that the model"):
        evaluate(ByteBigramConfig().build(), chars, [b"ab"])


@pytest.mark.parametrize("package", ["training", "evaluation", "study", "cli", "data"])
def test_no_other_package_knows_gpt(package: str) -> None:
    """They reach models through the roles and the table of kinds; help texts may say that GPT-2 was a model."""
    for path in sorted((PACKAGE / package).glob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"models\.gpt|GPTConfig|\bGPT\(|import GPT", line), f"{path.name}: {line}"
