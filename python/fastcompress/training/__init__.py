"""Training runs: settings, the entry `train`, and what a run leaves behind. Needs the extra `train`."""

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
    from fastcompress.training.train import TrainResult, train

__all__ = [
    "AdamWConfig",
    "EvaluationConfig",
    "Forecast",
    "MachineConfig",
    "MuonConfig",
    "Run",
    "ScheduleConfig",
    "TrainConfig",
    "TrainResult",
    "load_run",
    "train",
]

_show(
    __name__,
    {
        "AdamWConfig": "config",
        "EvaluationConfig": "config",
        "Forecast": "forecast",
        "MachineConfig": "config",
        "MuonConfig": "config",
        "Run": "checkpoint",
        "ScheduleConfig": "config",
        "TrainConfig": "config",
        "TrainResult": "train",
        "load_run": "checkpoint",
        "train": "train",
    },
)
