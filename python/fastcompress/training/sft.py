"""Supervised finetuning: a pretrained model learns the answers of chats, in a run of its own.

Finetuning uses the trainer of pretraining, with other rows (``data/chat_rows.py``) and the pretrained weights to begin
with. The marks of chats are new ids: embedding tables gain rows for them, and existing rows are kept. The score is bits
per byte of the answers of held-out chats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fastcompress.codec import ChatCodec
from fastcompress.codec.chat import MARKS
from fastcompress.data.canonical_rows import CanonicalRows
from fastcompress.data.chat import Chat, Message, chat_to_json
from fastcompress.data.chat_rows import ChatRows, PackedChats
from fastcompress.data.rows import num_symbols
from fastcompress.errors import ConfigError, DataError
from fastcompress.models.protocol import LanguageModel
from fastcompress.models.tokens import NextTokenModel
from fastcompress.training.config import TrainConfig
from fastcompress.training.selfcheck import check_apart
from fastcompress.training.train import TrainResult, train

if TYPE_CHECKING:
    from fastcompress.data.shards import TokenDataset
    from fastcompress.training.checkpoint import Run

RATE_SHARE = 0.1  # of pretraining's peak learning rate
WARMUP = 0.05
EPOCHS = 3


@dataclasses.dataclass(frozen=True)
class ChatData:
    """The chats of a finetuning run, encoded.

    Attributes:
        rows: The form in which the model reads chats.
        train: The chats to train on.
        validation: The held-out chats, as documents of ``rows``.
        num_too_long: The number of chats, in both, that are left out because they exceed the context.
    """

    rows: ChatRows
    train: PackedChats
    validation: list[bytes]
    num_too_long: int

    @classmethod
    def of(cls, codec: ChatCodec, context_length: int, train: Sequence[Chat], validation: Sequence[Chat]) -> ChatData:
        """Encode and pack chats.

        Raises DataError if no training chat or no held-out chat fits into the context, or the codec cannot encode one.
        """
        rows = ChatRows(codec, context_length)
        packed, held_out = PackedChats(train, rows), PackedChats(validation, rows)
        fitting = [chat for chat in validation if len(rows.spell(chat).weight) <= context_length]
        return cls(rows, packed, list(map(chat_to_json, fitting)), packed.num_too_long + held_out.num_too_long)


def chat_codec_of(run: Run) -> ChatCodec:
    """Return a run's codec, extended by the marks of chats unless it has them. Raises ConfigError for other models."""
    if not isinstance(run.model, NextTokenModel) or "vocab_size" not in run.model.config.to_json():
        raise ConfigError(
            f"a model of kind {run.model.config.kind} cannot be finetuned on chats; use one of token ids, such as gpt"
        )
    return run.codec if isinstance(run.codec, ChatCodec) else ChatCodec(run.codec)


def chat_settings(pretraining: TrainConfig, num_rows: int, **settings: Any) -> TrainConfig:
    """Derive settings for finetuning from those of pretraining: a tenth of the learning rates, a short warm-up.

    Args:
        pretraining: The settings of the run that is finetuned.
        num_rows: The number of rows in an epoch. Unless ``settings`` has a horizon, the run takes three epochs.
        settings: Settings that override the derived ones, by their names in ``TrainConfig``.

    Raises:
        ConfigError: A setting is out of range, or the horizon is in seconds.
    """
    if settings.get("seconds") is not None:
        raise ConfigError("seconds cannot be the horizon, since all held-out chats are scored; set steps or tokens")
    optimizer = dataclasses.asdict(pretraining.optimizer)
    rates = {name: value * RATE_SHARE for name, value in optimizer.items()
             if name.endswith("_rate") and value is not None}  # fmt: skip
    batch_size = settings.get("batch_size") or min(pretraining.batch_size, num_rows)
    micro = pretraining.machine.micro_batch_size
    fitted = {
        "steps": None, "tokens": None, "flops": None, "seconds": None, "eval_every": None, "eval_bytes": None,
        "warmup": min(WARMUP, 1.0 - pretraining.schedule.cooldown), "batch_size": batch_size, "self_check": False,
        "order": None, "packing": "none",
        "micro_batch_size": micro if micro is not None and batch_size % micro == 0 else None, **rates,
    }  # fmt: skip
    if not any(settings.get(name) is not None for name in ("steps", "tokens", "flops")):
        fitted["steps"] = max(1, -(-EPOCHS * num_rows // batch_size))
    given = {name: value for name, value in settings.items() if value is not None}
    return pretraining.override({**fitted, **given})


def finetune(
    run: Run,
    data: ChatData,
    config: TrainConfig,
    run_directory: Path,
    *,
    resume: bool = False,
    on_ready: Callable[[], None] | None = None,
    on_metrics: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
) -> TrainResult:
    """Finetune the model of a run on chats, into a new run that ``load_run`` reads and ``resume`` continues.

    Args:
        run: The pretrained run, or one that was finetuned before. It is not changed.
        data: The chats, encoded with ``chat_codec_of(run)``.
        config: The settings, such as ``chat_settings`` returns.
        run_directory, resume, on_ready, on_metrics, progress: As for ``train``, which raises the same.

    Raises:
        ConfigError: The model lets a chat see another one in its row.
    """
    codec = data.rows.codec
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = with_marks(run.model, codec)
    rows = with_masks(data.rows, model)
    check_chats_apart(model, rows)
    if config.evaluation.eval_bytes is not None:
        raise ConfigError("eval_bytes would cut chats; leave it out, and all held-out chats are scored")
    return train(
        model.config,
        codec,
        cast("TokenDataset", data.train),  # of which the trainer passes on what it does not know
        data.validation,
        config,
        run_directory,
        resume=resume,
        on_ready=on_ready,
        on_metrics=on_metrics,
        progress=progress,
        rows=rows,
        initial=model.state_dict(),
    )


def with_masks(rows: ChatRows, model: LanguageModel) -> ChatRows:
    """Return rows with the masks of the model's own rows, if it has some.

    A chat's ids are then legal as in generated text: in training, too, nothing is spent on ids that are never drawn.
    """
    own = model.rows(rows.codec)
    return dataclasses.replace(rows, canonical=own.canonical) if isinstance(own, CanonicalRows) else rows


@torch.no_grad()
def with_marks(model: LanguageModel, codec: ChatCodec) -> LanguageModel:
    """Return a copy of a model on the CPU whose tables have rows for the marks, drawn around the mean row.

    Ids of texts keep their rows. The end of a document is always the last id; its row moves there.

    Raises:
        ConfigError: A table does not grow with the vocabulary.
    """
    fields = model.config.to_json()
    old_size, size = int(fields["vocab_size"]), num_symbols(codec)
    grown = type(model.config).from_json({**fields, "vocab_size": size}).build()
    old = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    for name, tensor in grown.state_dict().items():
        if name in old and old[name].shape == tensor.shape:
            tensor.copy_(old[name])
        elif name in old and old[name].shape == (old_size, *tensor.shape[1:]) and tensor.size(0) == size:
            _grow(tensor, old[name])
        else:
            raise ConfigError(
                f"{name} of the model does not grow with the vocabulary, so there is no room for the "
                f"{len(MARKS)} marks of chats; finetune a model without it"
            )
    grown.read_codec(codec)
    return grown.eval()


def _grow(table: Tensor, old: Tensor) -> None:
    """Copy the rows of a smaller table into a freshly drawn one."""
    end = len(old) - 1
    table[:end] = old[:end]
    table[end:-1] += old[:end].mean(dim=0)
    table[-1] = old[end]


def check_chats_apart(model: LanguageModel, rows: ChatRows) -> None:
    """Raise ConfigError if the content of one chat changes the loss of another chat in the same row."""

    def chat(word: str) -> Chat:
        return Message("user", word), Message("assistant", word)

    words = _two_words(rows)
    one, other = (rows.spell(chat(word)) for word in words)
    num_first = len(one.weight)
    if 2 * num_first > rows.context_length:
        raise DataError(
            f"a context of {rows.context_length} tokens is too short for chats; use a model with a longer one"
        )
    batch = rows.stack([rows.joined([first, one]) for first in (one, other)])
    check_apart(model, batch, num_first, "chats")


def _two_words(rows: ChatRows) -> tuple[str, str]:
    """Return two texts of one token each, or else of the same number of tokens."""
    candidates = [chr(code) for code in (*range(97, 123), *range(32, 97), *range(123, 0x400))]
    spelled: dict[int, str] = {}
    for word in candidates:
        try:
            length = len(rows.codec.encode(word))
        except DataError:
            continue
        if length in spelled:
            return spelled[length], word
        spelled[length] = word
    raise DataError(f"{rows.codec.name} spells no two letters; use another codec for chats")
