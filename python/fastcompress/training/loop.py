"""The training loop. ``train.py`` sets a run up and takes it down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fastcompress._deprecated import renamed_names
from fastcompress.codec import Codec
from fastcompress.evaluation.bits_per_byte import Evaluation, bits_per_byte, evaluate
from fastcompress.models.protocol import LanguageModel
from fastcompress.training.batches import BatchFeed, first_documents
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import (
    Stopwatch,
    autocast_for,
    capability_of,
    choose_precision,
    scaler_for,
)
from fastcompress.training.finite import FiniteGuard, stop_diverged
from fastcompress.training.graph import GraphedStep, can_record
from fastcompress.training.interrupt import InterruptGuard
from fastcompress.training.loss import LossFunction, LossModule
from fastcompress.training.metrics import MetricsLog, ProgressBar
from fastcompress.training.optimizer import OptimizerStep, make_optimizer
from fastcompress.training.pacing import agreed, ending, evaluation_is_due, fit_sample, has_reached_ending
from fastcompress.training.progress import Progress
from fastcompress.training.run_directory import RunDirectory, documents_fingerprint
from fastcompress.training.schedule import Horizon, learning_rate_at
from fastcompress.training.snapshots import save_best, save_last
from fastcompress.training.spread import Spread
from fastcompress.training.utilization import forget_peak_memory, peak_memory_bytes, peak_of, speed_figures

SIGNAL_REPEATS = 10.0  # seconds within which several processes take a second signal for the first one again


class TrainingRun:
    """The parts of one run and the order in which they act."""

    def __init__(
        self,
        model: LanguageModel,
        codec: Codec,
        validation: Sequence[bytes],
        config: TrainConfig,
        directory: RunDirectory,
        feed: BatchFeed,
        on_metrics: Callable[[dict[str, Any]], None] | None,
        spread: Spread,
    ) -> None:
        self.spread, self.ranks = spread, spread.ranks
        self.codec, self.config, self.directory, self.feed = codec, config, directory, feed
        self.validation = first_documents(validation, config.evaluation.eval_bytes)
        self.on_metrics = on_metrics
        self.device = feed.device
        self.model = model.to(self.device)
        precision = choose_precision(config.machine.precision, self.device.type, capability_of(self.device))
        self.autocast = autocast_for(precision, self.device.type)
        self.scaler = scaler_for(precision, self.device.type)
        one = config.machine.peak_flops or peak_of(self.device, precision)
        self.peak_flops = one and one * self.ranks.size  # of all cards together
        loss = self.spread.wrap(LossModule(self.model))  # before the optimizer: parameters may change
        self.optimizer = make_optimizer(self.model, config)
        self.make_step(loss)
        self.tokens_per_step = config.batch_size * feed.loader.rows.context_length
        self.flops_per_step = model.flops().training * config.batch_size
        self.horizon = Horizon.from_config(config, self.flops_per_step, self.tokens_per_step)
        self.sample = documents_fingerprint(self.validation)
        self.at = Progress(validation_sample=self.sample)
        self.loss_sum = torch.zeros((), device=self.device)  # float32[]: over at.loss_steps steps
        self.gradient_norm = torch.zeros((), device=self.device)  # float32[]
        self.learning_rate = 0.0
        self.watch = Stopwatch(self.device)  # training alone
        self.wall = Stopwatch(self.device)  # never paused
        self.logged = (0, 0.0)  # tokens and seconds at the last training line
        self.resumed_at: int | None = None
        self.in_step = False
        is_alone = self.ranks.size == 1
        self.may_save = is_alone  # after an interruption: whether all ranks know of it
        self.guard = InterruptGuard(0.0 if is_alone else SIGNAL_REPEATS, announce=self.ranks.is_first)
        self.finite = FiniteGuard(self.device, self.ranks, only_losses=self.scaler.is_enabled())
        self.identity: dict[str, str] = {}  # what RunDirectory.prepare returned

    def make_step(self, loss: LossFunction, *, may_record: bool = False) -> None:
        """Make the step from a loss; one that is compiled may be recorded as a CUDA graph."""
        scales = self.scaler.is_enabled()
        is_recorded = may_record and can_record(self.config.machine, self.device, self.ranks.size, scales_losses=scales)
        self.step = (GraphedStep if is_recorded else OptimizerStep)(
            loss,
            self.optimizer,
            micro_batch_size=self.config.micro_batch,
            clip_norm=self.config.optimizer.clip_norm,
            autocast=self.autocast,
            scaler=self.scaler,
            spread=self.spread,
        )

    # --- before the first step ---------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Return whether the run was resumed at its horizon, with no step and no evaluation left."""
        reached = has_reached_ending(self, self.wall.read())
        return self.resumed_at is not None and reached and self.at.evaluated_step == self.at.step

    def cut_sample(self, num_bytes: int | None) -> None:
        """Keep the first ``num_bytes`` bytes of the validation sample; None for all."""
        self.validation = first_documents(self.validation, num_bytes)
        self.sample = documents_fingerprint(self.validation)
        self.at.validation_bytes = num_bytes

    # --- the loop ----------------------------------------------------------------------------------------

    def run(self, *, show_progress: bool) -> None:
        """Step, log and evaluate until the horizon; on an interruption, save and raise it again."""
        self.model.train()
        self.ranks.on_first(self._open_metrics)
        forget_peak_memory(self.device)
        self.bar = ProgressBar(self.horizon, visible=show_progress and self.ranks.is_first)
        try:
            with self.guard:
                self.watch.start()
                self.wall.start()
                while not self.advance():
                    self.check_signals()
        except (KeyboardInterrupt, SystemExit):
            # Otherwise the last checkpoint is the better one.
            if self.may_save and not self.in_step and self.finite.first_step() is None:
                save_last(self)
            raise
        finally:
            self.watch.stop()
            self.wall.stop()
            self.bar.close()
            self.step.close()

    def _open_metrics(self) -> None:
        self.metrics = MetricsLog(self.directory.metrics, resume_step=self.resumed_at)

    def advance(self) -> bool:
        """Evaluate if one is due, then make one step. Return True once the horizon is reached and evaluated."""
        seconds = self.wall.read()
        done = has_reached_ending(self, seconds)
        if self.at.evaluated_step != self.at.step and (evaluation_is_due(self, seconds) or done):
            self.log()
            self.evaluate()
        if done:
            return True
        self.in_step = True
        self.make_one_step()
        self.in_step = False
        if self.at.step % self.config.log_every == 0:
            self.log()
        return False

    def check_signals(self) -> None:
        """Stop all ranks, between steps or evaluation batches, if one of them received a signal."""
        if self.ranks.size > 1:
            received = int(self.ranks.maximum(self.guard.received or 0))
            if received:  # otherwise the guard is left alone: a signal may have come just now
                self.guard.received, self.may_save = received, True
        self.guard.check()

    def make_one_step(self) -> None:
        batch = self.feed.batch(self.at.step)  # columns, [B, S] each
        seconds_per_step = self.watch.read() / max(1, self.at.step)
        fraction = learning_rate_at(
            self.config.schedule, ending(self), self.at.step, self.wall.read(), seconds_per_step
        )
        self.learning_rate = self.config.optimizer.learning_rate * agreed(self, fraction)
        loss, self.gradient_norm = self.step(batch, self.learning_rate)  # [] each
        self.finite.watch(self.at.step, loss, self.gradient_norm)
        self.loss_sum += loss
        self.at.loss_steps += 1
        self.at.step += 1
        self.at.tokens += self.tokens_per_step
        self.at.flops += self.flops_per_step

    # --- what it tells and keeps -------------------------------------------------------------------------

    def log(self) -> None:
        """Fetch the mean loss since the last log line, check it and report it."""
        if self.at.loss_steps == 0:
            return
        bad_step = self.finite.first_step()
        if bad_step is not None:
            stop_diverged(self, bad_step)
        loss = float(self.ranks.mean(self.loss_sum)) / self.at.loss_steps
        now = self.watch.read()
        tokens_per_second = (self.at.tokens - self.logged[0]) / max(now - self.logged[1], 1e-9)
        loader = self.feed.loader
        num_events, num_bytes = loader.text_per_epoch
        self.at.train_bits_per_byte = bits_per_byte(loss * num_events, num_bytes)
        self.loss_sum.zero_()
        self.at.loss_steps, self.logged = 0, (self.at.tokens, now)
        self.report(
            "train",
            epoch=loader.epoch(self.at.step),
            epochs=loader.epochs(self.at.step),
            loss=loss,
            train_bits_per_byte=self.at.train_bits_per_byte,
            learning_rate=self.learning_rate,
            learning_rates=dict(self.step.learning_rates),
            gradient_norm=float(self.gradient_norm) if self.gradient_norm.isfinite() else None,
            peak_memory_bytes=peak_memory_bytes(self.device),
            **speed_figures(
                tokens_per_second,
                bytes_per_token=num_bytes / num_events,
                flops_per_token=self.flops_per_step / self.tokens_per_step,
                peak=self.peak_flops,
            ),
        )

    def evaluate(self) -> None:
        """Score the validation documents and save the weights as last, and as best if the score is the best so far."""
        since = self.wall.read()
        with self.watch.paused():
            at = self.at
            if at.evaluated_step < 0 and at.validation_bytes is None:
                fit_sample(self)
            score = self.score(self.validation)
            at.evaluated_step, at.evaluated_seconds = at.step, since
            at.validation_bits_per_byte = self.ranks.maximum(score.bits_per_byte)  # equal up to rounding
            is_best = at.best_bits_per_byte is None or at.validation_bits_per_byte < at.best_bits_per_byte
            if is_best:
                at.best_step, at.best_bits_per_byte = at.step, at.validation_bits_per_byte
                save_best(self)
            save_last(self)
            self.report(
                "eval",
                train_bits_per_byte=at.train_bits_per_byte,
                validation_bits_per_byte=at.validation_bits_per_byte,
                validation_bytes=score.num_bytes,
                is_best=is_best,
            )
        at.evaluation_seconds = agreed(self, self.wall.read() - since)

    def score(self, documents: Sequence[bytes]) -> Evaluation:
        """Score all documents on every rank, so that the score does not depend on the number of ranks."""
        return evaluate(
            self.model,
            self.codec,
            documents,
            stride=self.feed.loader.rows.context_length,
            batch_size=self.config.evaluation.eval_batch_size,
            autocast=self.autocast,
            progress=lambda done, total: self.check_signals(),
            rows=self.feed.loader.rows,
        )

    def report(self, event: str, **figures: Any) -> None:
        """Tell what happened: to the log, the progress bar and the caller. The first rank alone does.

        All stop with the error if it cannot, for want of space, say, or as the caller raises one.
        """
        at = self.at
        place = {"step": at.step, "tokens": at.tokens, "flops": at.flops, "seconds": self.watch.read()}
        record = {"event": event, **place, **figures}
        self.ranks.on_first(lambda: self._tell(record))

    def _tell(self, record: dict[str, Any]) -> None:
        at, figures = self.at, record
        self.metrics.append(record)
        self.bar.show(
            at.step,
            self.wall.read(),
            loss=figures.get("loss"),
            bits_per_byte=at.train_bits_per_byte,
            validation=at.validation_bits_per_byte,
            mfu=figures.get("mfu"),
            tokens_per_second=figures.get("tokens_per_second"),
        )
        if self.on_metrics is not None:
            self.on_metrics(record)


__getattr__ = renamed_names(
    __name__, {name: f"fastcompress.training.train.{name}" for name in ("CURVE_FIELDS", "TrainResult", "train")}
)
