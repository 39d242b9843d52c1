"""Finetuning on chats: tables that grow, chats that do not see each other, and answers learned by heart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from torch import Tensor

from fastcompress.bpe import BPE
from fastcompress.cli import main
from fastcompress.codec import BPECodec, ByteCodec, ChatCodec, Codec, GreedyDictionaryCodec, ProxyCodec
from fastcompress.data import TokenDataset
from fastcompress.data.canonical_rows import LEGAL
from fastcompress.data.chat import Chat, Message, chat_to_json
from fastcompress.data.chat_rows import ChatRows, PackedChats
from fastcompress.errors import ConfigError, DataError, MismatchError, OutputError
from fastcompress.evaluation import Conversation, Sampler, evaluate
from fastcompress.greedy_dictionary import GreedyDictionary
from fastcompress.models import GPT, GPTConfig, NextTokenModel
from fastcompress.training import (
    ChatData,
    Run,
    TrainConfig,
    chat_codec_of,
    chat_settings,
    finetune,
    load_run,
    train,
)
from fastcompress.training.sft import check_chats_apart, with_marks, with_masks
from tests.byte_bigram import ByteBigramConfig

BYTES = ByteCodec()
CODEC = ChatCodec(BYTES)
ROWS = ChatRows(CODEC, 64)
TEXT = [b"a few words about ducks and ponds, again and again. "] * 3
SHAPE: dict[str, Any] = {"num_layers": 2, "num_heads": 2, "width": 32, "context_length": 64}
ANSWERS = {"duck?": "quack", "cat?": "miaow", "naïve?": "日本"}


def chat(question: str, answer: str) -> Chat:
    return Message("user", question), Message("assistant", answer)


CHATS = [chat(question, answer) for question, answer in ANSWERS.items()]


def make_gpt(preset: str, **fields: Any) -> GPT:
    torch.manual_seed(2)
    model = GPT(getattr(GPTConfig, preset)(vocab_size=257, **{**SHAPE, "dropout": 0.0, **fields}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model.eval()


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained") / "run"
    config = TrainConfig(steps=3, batch_size=4, learning_rate=0.01, eval_every=3, device="cpu", num_threads=1)
    model = GPTConfig.modern(vocab_size=257, **SHAPE)
    train(model, BYTES, TokenDataset.from_documents(TEXT * 9, BYTES), TEXT, config, folder, progress=False)
    return folder


def settings_for(run: Run, **settings: Any) -> TrainConfig:
    return chat_settings(run.config, 2, **{"learning_rate": 0.02, "steps": 120, "eval_every": 60, **settings})


@pytest.fixture(scope="module")
def finetuned(pretrained: Path) -> Path:
    """Three chats learned by heart."""
    run = load_run(pretrained)
    folder = pretrained.parent / "chat"
    finetune(run, ChatData.of(CODEC, 64, CHATS, CHATS), settings_for(run), folder, progress=False)
    return folder


# --- The model --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["workshop", "modern"])
@pytest.mark.parametrize("tied_head", [True, False])
def test_tables_grow_without_touching_old_rows(preset: str, tied_head: bool) -> None:
    """The end of the document is the last id before and after; its row moves with it."""
    model = make_gpt(preset, tied_head=tied_head)
    grown = with_marks(model, CODEC)
    assert isinstance(grown, GPT)
    assert grown.config.vocab_size == 257 + 4
    for old, new in ((model.embedding, grown.embedding), (model.head, grown.head)):
        assert torch.equal(new.weight[:256], old.weight[:256])
        assert torch.equal(new.weight[-1], old.weight[256])
        assert len(new.weight[256:-1].unique(dim=0)) == 4
    ids = torch.randint(256, (2, 20))
    with torch.inference_mode():
        before, after = (
            model(torch.cat((torch.full((2, 1), 256), ids), 1)),
            grown(torch.cat((torch.full((2, 1), 260), ids), 1)),
        )
    torch.testing.assert_close(after[..., :256], before[..., :256])
    torch.testing.assert_close(after[..., -1], before[..., -1])
    assert torch.equal(model.embedding.weight, make_gpt(preset, tied_head=tied_head).embedding.weight)


class Forgetful(NextTokenModel):
    """Reads ids only, so all of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = with_marks(make_gpt("modern"), CODEC)
        self.config, self.vocab_size, self.context_length = self.inner.config, 261, 64

    def forward(self, tokens: Tensor) -> Tensor:
        return self.inner(tokens)


@pytest.mark.parametrize("preset", ["workshop", "modern"])
@pytest.mark.parametrize("attention", ["sdpa", "plain"])
def test_another_chat_in_the_row_changes_nothing(preset: str, attention: str) -> None:
    model = with_marks(make_gpt(preset), CODEC)
    for block in model.trunk.blocks:  # type: ignore[union-attr]
        block.attention.kind = attention
    check_chats_apart(model, ROWS)
    packed = PackedChats(CHATS, ROWS)
    row = ROWS.training_row(packed, 0)  # type: ignore[arg-type]
    assert len(set(row["document"].tolist())) == 4  # three chats and padding
    with torch.inference_mode():
        nats = model.nats({name: torch.from_numpy(column)[None] for name, column in row.items()})[0]  # [S]
        together = nats[torch.from_numpy(row["weight"]) > 0].sum()
        alone = torch.zeros(())
        for one in CHATS:
            columns = next(ROWS.scoring_rows(chat_to_json(one), 64))
            costs = model.nats({name: torch.from_numpy(column)[None] for name, column in columns.items()})[0]
            alone = alone + (costs * torch.from_numpy(columns["weight"])).sum()
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)


def test_a_model_that_ignores_documents_is_refused() -> None:
    with pytest.raises(ConfigError, match="kind gpt lets chats in one row see each other"):
        check_chats_apart(Forgetful(), ROWS)
    with pytest.raises(DataError, match="a context of 8 tokens is too short"):
        check_chats_apart(with_marks(make_gpt("modern", context_length=8), CODEC), ChatRows(CODEC, 8))


def test_only_models_of_ids_take_chats(pretrained: Path) -> None:
    run = load_run(pretrained)
    assert chat_codec_of(run) == CODEC
    bigram = Run(ByteBigramConfig(context_length=8, width=4).build(), BYTES, run.config, 0, 0, 0.0, None)
    with pytest.raises(ConfigError, match="byte-bigram cannot be finetuned on chats"):
        chat_codec_of(bigram)


# --- The run ----------------------------------------------------------------------------------------------


def test_settings_are_those_of_pretraining_but_gentler(pretrained: Path) -> None:
    run = load_run(pretrained)
    config = chat_settings(run.config, 2)
    assert (config.steps, config.batch_size) == (3, 2)
    assert config.optimizer.learning_rate == pytest.approx(0.001)
    assert config.evaluation.eval_bytes is None
    assert chat_settings(run.config, 100, batch_size=8, warmup=0.3).schedule.warmup == 0.3
    with pytest.raises(ConfigError, match="seconds cannot be the horizon, since all held-out chats are scored"):
        chat_settings(run.config, 2, seconds=3.0)


def test_answers_are_learned_by_heart(finetuned: Path) -> None:
    run = load_run(finetuned)
    assert run.codec == CODEC
    assert run.validation_bits_per_byte is not None
    assert run.validation_bits_per_byte < 0.1
    for question, answer in ANSWERS.items():
        talk = Conversation(run.model, run.codec, max_tokens=20, sampler=Sampler(temperature=0.0))
        pieces = list(talk.ask(question))
        assert "".join(pieces) == answer
        assert talk.messages == list(chat(question, answer))
    again = evaluate(run.model, CODEC, list(map(chat_to_json, CHATS)), stride=64, rows=ROWS)
    assert again.bits_per_byte == pytest.approx(run.validation_bits_per_byte, rel=1e-3)
    assert again.num_bytes == sum(len(answer.encode()) for answer in ANSWERS.values())


def test_questions_are_not_learned(finetuned: Path) -> None:
    """What the user says has no weight, so it stays as unlikely as it was."""
    model = load_run(finetuned).model
    columns = next(ROWS.scoring_rows(chat_to_json(CHATS[0]), 64))
    nats = model.nats({name: torch.from_numpy(column)[None] for name, column in columns.items()})[0].detach()
    counted = torch.from_numpy(columns["weight"]) > 0
    assert nats[counted].mean() < 0.1 < 2.0 < nats[~counted].mean()


def test_a_stopped_run_goes_on_with_the_same_losses(pretrained: Path, tmp_path: Path) -> None:
    run, data = load_run(pretrained), ChatData.of(CODEC, 64, CHATS, CHATS)
    config = settings_for(run, steps=8, eval_every=2, log_every=1)
    whole = finetune(run, data, config, tmp_path / "whole", progress=False)

    def stop(record: dict[str, Any]) -> None:
        if record["event"] == "train" and record["step"] == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(run, data, config, tmp_path / "parts", on_metrics=stop, progress=False)
    resumed = finetune(run, data, config, tmp_path / "parts", resume=True, progress=False)
    losses = [
        [line["loss"] for line in map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
         if line["event"] == "train"]
        for name in ("whole", "parts")
    ]  # fmt: skip
    assert losses[0] == losses[1]
    assert resumed.best_bits_per_byte == whole.best_bits_per_byte
    other = ChatData.of(CODEC, 64, CHATS[:2], CHATS)
    with pytest.raises(MismatchError, match="training text is not what the run began with"):
        finetune(run, other, config, tmp_path / "parts", resume=True, progress=False)
    with pytest.raises(OutputError, match="holds a run already"):
        finetune(run, data, config, tmp_path / "parts", progress=False)


# --- Conversations ----------------------------------------------------------------------------------------


def test_the_oldest_messages_are_forgotten_when_the_context_is_full(finetuned: Path) -> None:
    run = load_run(finetuned)
    seen: list[list[int]] = []
    talk = Conversation(run.model, run.codec, system="S", max_tokens=8, sampler=Sampler(temperature=0.0))
    begin = talk._stepper.begin_tokens

    def spy(prompts: Any) -> None:
        seen.append(list(prompts[0]))
        begin(prompts)

    talk._stepper.begin_tokens = spy  # type: ignore[method-assign]
    for _ in range(6):
        "".join(talk.ask("duck?"))
    assert talk.num_forgotten > 0
    assert talk.num_forgotten % 2 == 0
    assert len(talk.messages) == 1 + 12
    system = [260, CODEC.role_ids["system"], ord("S"), CODEC.end_of_message]
    assert all(prompt[:4] == system and len(prompt) <= 64 - 8 for prompt in seen)
    assert seen[0] == ROWS.prompt((Message("system", "S"), Message("user", "duck?")))
    asked = [*talk.messages[1 + talk.num_forgotten : -2], Message("user", "duck?")]
    assert seen[-1] == ROWS.prompt((Message("system", "S"), *asked))
    said = list(talk.messages)
    with pytest.raises(DataError, match="more than the 56 that the context of 64 leaves"):
        talk.ask("x" * 60)
    assert talk.messages == said


def test_a_model_without_marks_does_not_converse(pretrained: Path, finetuned: Path) -> None:
    run = load_run(pretrained)
    with pytest.raises(MismatchError, match="codec byte was not trained on chats"):
        Conversation(run.model, run.codec)
    with pytest.raises(ConfigError, match="max_tokens is 0"):
        Conversation(load_run(finetuned).model, CODEC, max_tokens=0)


# --- Commands ---------------------------------------------------------------------------------------------


def command(*args: object, stdin: bytes | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(map(str, args)), input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_sft_and_chat_from_the_command_line(pretrained: Path, tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    lines = [chat_to_json(one).decode() for one in (*CHATS, chat("x" * 90, "long"))]
    file.write_text("\n".join([*lines, '{"messages": ["cut o']) + "\n")
    held_out = tmp_path / "held-out.jsonl"
    held_out.write_text(lines[0])
    directory = tmp_path / "talk"
    asked: list[Any] = [
        "sft",
        pretrained,
        "--data",
        file,
        "--validation",
        held_out,
        "--run-dir",
        directory,
        "--device",
        "cpu",
    ]
    refused = command(*asked, code=1)
    assert "1 of 5 lines are not chats to train on: line 5 is not JSON (perhaps cut off)" in refused.stderr
    assert "--skip-malformed" in refused.stderr
    assert not directory.exists()
    settings = ["--steps", 120, "--learning-rate", 0.02, "--set", "evaluation.eval_every=60"]
    done = command(*asked, "--skip-malformed", *settings, "--json")
    assert "left out: 1 line that is not JSON (perhaps cut off)\n" in done.stderr
    assert "left out: 1 chat longer than the context of 64 tokens\n" in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["chats"], summary["validation_chats"], summary["too_long"]) == (3, 1, 1)
    assert summary["skipped"] == {"is not JSON (perhaps cut off)": 1}
    assert "holds a run already" in command(*asked, "--skip-malformed", code=1).stderr
    more = command(*asked, "--skip-malformed", "--resume", "--steps", 121)
    assert f"next: fastcompress chat {directory}" in more.stdout

    talk = ["chat", directory, "--temperature", 0, "--device", "cpu"]
    answered = command(*talk, stdin="duck?\n\nnaïve?\n/new\ncat?".encode())
    assert answered.stdout.encode().startswith(b"quack\n")
    assert answered.stdout.endswith("\nmiaow\n")
    assert len(answered.stdout.splitlines()) == 3
    assert "not UTF-8" in command(*talk, stdin=b"\xff\n", code=1).stderr
    assert "the question has" in command(*talk, stdin=b"x" * 99, code=1).stderr
    assert "was not trained on chats" in command("chat", pretrained, stdin=b"Hi\n", code=1).stderr


def test_the_default_folder_and_split(pretrained: Path, tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_bytes(b"\n".join(chat_to_json(chat(f"{i}?", f"{i}!")) for i in range(30)))
    done = command("sft", pretrained, "--data", file, "--steps", 1, "--device", "cpu")
    assert "held out: " in done.stderr
    assert (pretrained.parent / "run-chat" / "best.safetensors").exists()


MASKED: list[tuple[Codec, bool]] = [
    (GreedyDictionaryCodec(GreedyDictionary.train(b"".join(TEXT), size=290)), True),
    (ProxyCodec(BPECodec(BPE.train(TEXT, vocab_size=270, pattern="none"))), False),
]


@pytest.mark.parametrize(("codec", "canonical"), MASKED, ids=["canonical", "proxy"])
def test_masks_outlive_finetuning(codec: Codec, canonical: bool, tmp_path: Path) -> None:
    """What the base run never draws, the finetuned one does not draw either, and every command reads it."""
    config = TrainConfig(steps=3, batch_size=4, learning_rate=0.01, eval_every=3, device="cpu", num_threads=1)
    model = GPTConfig.modern(vocab_size=codec.vocab_size + 1, **SHAPE, canonical=canonical)
    folder = tmp_path / "run"
    train(model, codec, TokenDataset.from_documents(TEXT * 9, codec), TEXT, config, folder, progress=False)
    file, text = tmp_path / "chats.jsonl", tmp_path / "text.txt"
    file.write_bytes(b"\n".join(map(chat_to_json, CHATS)))
    text.write_bytes(TEXT[0])
    command("sft", folder, "--data", file, "--validation", file, "--steps", 60, "--learning-rate", 0.02)
    run = load_run(tmp_path / "run-chat")
    assert run.validation_bits_per_byte is not None
    assert run.validation_bits_per_byte < 3

    chats = run.codec
    assert isinstance(chats, ChatCodec)
    rows = with_masks(ChatRows(chats, 64), run.model)
    packed: Any = PackedChats(CHATS, rows)
    row = rows.training_row(packed, 0)
    assert {name: (column.dtype, column.shape) for name, column in row.items()} == rows.columns
    legal = np.unpackbits(row[LEGAL], axis=1, count=chats.vocab_size, bitorder="little")
    counted = row["document"] >= 0
    assert legal[counted, row["target"][counted]].all()
    assert not legal[counted].all()
    assert legal[~counted].all()
    again = evaluate(run.model, chats, list(map(chat_to_json, CHATS)), stride=64, rows=rows)
    assert again.bits_per_byte == pytest.approx(run.validation_bits_per_byte, rel=1e-3)

    talk = ["chat", tmp_path / "run-chat", "--max-tokens", 8, "--device", "cpu"]
    command(*talk, stdin=b"duck?\n")
    command("generate", tmp_path / "run-chat", "--prompt", "a few", "--max-tokens", 8, "--device", "cpu")
    command("receipt", tmp_path / "run-chat", "--data", text, "--device", "cpu")
    assert not evaluate(run.model, chats, TEXT).is_exact  # a text with marks in it has the same bytes
