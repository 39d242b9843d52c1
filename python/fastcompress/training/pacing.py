"""The times and sizes of evaluations and the end of a run, by steps or by a clock that all ranks agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastcompress.training.batches import first_documents
from fastcompress.training.schedule import Horizon

if TYPE_CHECKING:
    from fastcompress.training.loop import TrainingRun

# Under a horizon in seconds, evaluations between the first and the last one are left out beyond this part of it.
EVALUATION_SHARE = 0.25
# There, one evaluation takes about this part of it at most: the sample is cut to what was measured to fit.
ONE_EVALUATION_SHARE = 0.1
PROBE_BYTES = 1024  # the smallest sample, by which the time is measured


def agreed(run: TrainingRun, value: float) -> float:
    """Return the maximum over ranks if the horizon is in seconds, since each rank has a clock of its own."""
    return value if run.horizon.seconds is None else run.ranks.maximum(value)


def ending(run: TrainingRun) -> Horizon:
    """Return the horizon of the steps; one in seconds leaves time for the last evaluation."""
    if run.horizon.seconds is None:
        return run.horizon
    return Horizon(None, max(run.horizon.seconds - run.at.evaluation_seconds, 1e-9))


def has_reached_ending(run: TrainingRun, seconds: float) -> bool:
    """Return whether no step is left; in seconds, whether more than half of the next step would be late."""
    if run.horizon.seconds is not None and run.at.step > 0:
        seconds += run.watch.read() / run.at.step / 2
    elif run.horizon.seconds is not None and run.resumed_at is None:
        return False  # a new run makes one step, however long its first evaluation took
    return agreed(run, ending(run).progress(run.at.step, seconds)) >= 1.0


def evaluation_is_due(run: TrainingRun, seconds: float) -> bool:
    """Return whether an evaluation is due since the last one; the first always is."""

    def times_passed(step: int, seconds: float) -> int:
        if run.config.evaluation.eval_every is not None:
            return step // run.config.evaluation.eval_every
        return int(run.horizon.progress(step, seconds) * run.config.evaluation.num_evals)

    at = run.at
    if at.evaluated_step < 0:
        return True
    if run.config.evaluation.eval_every is None and run.horizon.seconds is not None:
        spent = agreed(run, seconds - run.watch.read())
        if spent + 2 * at.evaluation_seconds > EVALUATION_SHARE * run.horizon.seconds:  # this one, the last one
            return False
    since = times_passed(at.step, seconds) - times_passed(at.evaluated_step, at.evaluated_seconds)
    return agreed(run, since) > 0


def fit_sample(run: TrainingRun) -> None:
    """Cut the validation sample so that, under a horizon in seconds, an evaluation takes at most its share."""
    if run.horizon.seconds is None or sum(map(len, run.validation)) <= PROBE_BYTES:
        return
    since = run.wall.read()
    run.score(first_documents(run.validation, PROBE_BYTES))
    seconds_per_byte = (run.wall.read() - since) / PROBE_BYTES
    affordable = int(agreed(run, ONE_EVALUATION_SHARE * run.horizon.seconds / max(seconds_per_byte, 1e-12)))
    if affordable < sum(map(len, run.validation)):
        run.cut_sample(max(affordable, PROBE_BYTES))
        run.at.validation_sample = run.sample
