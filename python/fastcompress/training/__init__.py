"""Training runs: settings, functions that train and finetune, and the files of a run. Needs the extra `train`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from fastcompress._fronts import show as _show

if _TYPE_CHECKING:
    from fastcompress.training.checkpoint import Run, load_run
    from fastcompress.training.config import (
        AdamWConfig,
        EvaluationConfig,
        MachineConfig,
        MuonConfig,
        ScheduleConfig,
        TrainConfig,
    )
    from fastcompress.training.forecast import Forecast
    from fastcompress.training.imported import write_run
    from fastcompress.training.sft import ChatData, chat_codec_of, chat_settings, finetune
    from fastcompress.training.train import TrainResult, train

__all__ = [
    "AdamWConfig",
    "ChatData",
    "EvaluationConfig",
    "Forecast",
    "MachineConfig",
    "MuonConfig",
    "Run",
    "ScheduleConfig",
    "TrainConfig",
    "TrainResult",
    "chat_codec_of",
    "chat_settings",
    "finetune",
    "load_run",
    "train",
    "write_run",
]

_show(
    __name__,
    {
        "AdamWConfig": "config",
        "ChatData": "sft",
        "EvaluationConfig": "config",
        "Forecast": "forecast",
        "MachineConfig": "config",
        "MuonConfig": "config",
        "Run": "checkpoint",
        "ScheduleConfig": "config",
        "TrainConfig": "config",
        "TrainResult": "train",
        "chat_codec_of": "sft",
        "chat_settings": "sft",
        "finetune": "sft",
        "load_run": "checkpoint",
        "train": "train",
        "write_run": "imported",
    },
)
