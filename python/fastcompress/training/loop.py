"""The loop: a run's parts and the order in which they act. ``train.py`` sets a run up and takes it down."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fastcompress._deprecated import renamed_names
from fastcompress.codec import Codec
from fastcompress.data.rows import WEIGHT
from fastcompress.errors import ConfigError, DivergenceError, FormatError
from fastcompress.evaluation.bits_per_byte import Evaluation, bits_per_byte, evaluate
from fastcompress.models.protocol import LanguageModel
from fastcompress.training import checkpoint as checkpoints
from fastcompress.training.batches import BatchFeed, first_documents
from fastcompress.training.config import TrainConfig
from fastcompress.training.device import (
    Stopwatch,
    autocast_for,
    capability_of,
    cards_of,
    choose_precision,
    compiled_or_eager,
    loss_of,
    scaler_for,
)
from fastcompress.training.interrupt import InterruptGuard
from fastcompress.training.metrics import MetricsLog, ProgressBar, check_records, fingerprint_of
from fastcompress.training.optimizer import LossFunction, OptimizerStep, make_optimizer
from fastcompress.training.progress import Progress
from fastcompress.training.run_directory import RunDirectory, documents_fingerprint
from fastcompress.training.schedule import Horizon, learning_rate_multiplier

# Under a horizon in seconds, evaluations between the first and the last one are left out beyond this part of it.
EVALUATION_SHARE = 0.25
# There, one evaluation takes about this part of it at most: the sample is cut to what was measured to fit.
ONE_EVALUATION_SHARE = 0.1
PROBE_BYTES = 1024  # the smallest sample, by which the time is measured


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
    ) -> None:
        self.codec, self.config, self.directory, self.feed = codec, config, directory, feed
        self.validation = first_documents(validation, config.evaluation.eval_bytes)
        self.on_metrics = on_metrics
        self.device = feed.device
        self.model = model.to(self.device)
        precision = choose_precision(config.machine.precision, self.device.type, capability_of(self.device))
        self.autocast = autocast_for(precision, self.device.type)
        self.scaler = scaler_for(precision, self.device.type)
        self.optimizer = make_optimizer(self.model, config)
        self.make_step(loss_of(self.model))
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
        self.guard = InterruptGuard()
        self.identity: dict[str, str] = {}  # what RunDirectory.prepare returned

    def make_step(self, loss: LossFunction) -> None:
        self.step = OptimizerStep(
            loss,
            self.optimizer,
            micro_batch_size=self.config.micro_batch,
            clip_norm=self.config.optimizer.clip_norm,
            autocast=self.autocast,
            scaler=self.scaler,
        )

    # --- before the first step ---------------------------------------------------------------------------

    def restore(self) -> None:
        """Take over weights, optimizer, generators and progress from the last checkpoint."""
        path = self.directory.last
        saved = checkpoints.read_checkpoint(path)
        self.directory.check_belongs(saved.state, path)
        if self.directory.best.exists():  # read when the run ends, which would be late to learn of its damage
            best = checkpoints.read_checkpoint(self.directory.best)
            self.directory.check_belongs(best.state, self.directory.best)
        check_records(self.directory.metrics, saved.state.get("metrics"))
        try:
            checkpoints.check_codec(saved, self.codec, path)
            self.at = Progress(**saved.state["progress"])
            self.loss_sum.fill_(saved.state["loss_sum"])
            if self.scaler.is_enabled() and saved.state["scaler"]:  # empty: so far trained without loss scaling
                self.scaler.load_state_dict(saved.state["scaler"])
        except (KeyError, TypeError) as error:
            raise FormatError(f"{path}: its progress is damaged ({error}); restore it, or train again") from error
        checkpoints.load_model_tensors(self.model, saved, path)
        checkpoints.load_optimizer_tensors(self.model, self.optimizer, saved, path)
        checkpoints.load_random_tensors(self.device, saved)
        self.watch = Stopwatch(self.device, self.at.seconds)
        self.wall = Stopwatch(self.device, max(self.at.wall_seconds, self.at.seconds))
        self.logged = (self.at.tokens, self.at.seconds)
        self.resumed_at = self.at.step
        if self.horizon.seconds is not None and self.same_eval_bytes(saved.state):
            self.cut_sample(self.at.validation_bytes)
        else:
            self.at.validation_bytes = None
        if self.at.validation_sample not in (None, self.sample) or not self.directory.best.exists():
            # Scores on another sample say nothing about this one: evaluate now, and let the best start there.
            self.at.best_bits_per_byte, self.at.evaluated_step = None, -1
        self.at.validation_sample = self.sample
        if not self.is_done() and self.horizon.steps is not None and self.at.step > self.horizon.steps:
            raise ConfigError(
                f"{self.directory.path}: has made {self.at.step} steps, more than the {self.horizon.steps} asked "
                "for; resume with more, or leave the number out"
            )

    def same_eval_bytes(self, state: dict[str, Any]) -> bool:
        """Return whether a checkpoint was written under the same limit of validation bytes."""
        return TrainConfig.from_json(state["train"]).evaluation.eval_bytes == self.config.evaluation.eval_bytes

    def is_done(self) -> bool:
        """Return whether the run was resumed at its horizon, with nothing left to do, not even an evaluation."""
        reached = self.has_reached_ending(self.wall.read())
        return self.resumed_at is not None and reached and self.at.evaluated_step == self.at.step

    def cut_sample(self, num_bytes: int | None) -> None:
        """Keep the first ``num_bytes`` bytes of the validation sample; None for all."""
        self.validation = first_documents(self.validation, num_bytes)
        self.sample = documents_fingerprint(self.validation)
        self.at.validation_bytes = num_bytes

    def fit_sample(self) -> None:
        """Cut the validation sample so that under a horizon in seconds an evaluation takes its share at most."""
        if self.horizon.seconds is None or sum(map(len, self.validation)) <= PROBE_BYTES:
            return
        since = self.wall.read()
        self.score(first_documents(self.validation, PROBE_BYTES))
        seconds_per_byte = (self.wall.read() - since) / PROBE_BYTES
        affordable = int(ONE_EVALUATION_SHARE * self.horizon.seconds / max(seconds_per_byte, 1e-12))
        if affordable < sum(map(len, self.validation)):
            self.cut_sample(max(affordable, PROBE_BYTES))
            self.at.validation_sample = self.sample

    def compile_if_wanted(self) -> None:
        """Compile the loss and try it, before the clock starts; weights, gradients and generators stay as they are."""
        wanted = {"on": True, "off": False, "auto": self.device.type == "cuda"}[self.config.machine.compile]
        if not wanted:
            return
        batch = self.feed.batch(self.at.step)  # columns, [B, S] each
        rows = {name: column[: self.config.micro_batch] for name, column in batch.items()}
        whole_weight = batch[WEIGHT].sum()  # []

        def try_out(loss: LossFunction) -> None:
            with torch.random.fork_rng(cards_of(self.device)), self.autocast:
                value = loss(rows, whole_weight)  # []
            value.backward()  # type: ignore[no-untyped-call]
            finite = [
                value.isfinite(),
                *(p.grad.isfinite().all() for p in self.step.parameters if p.grad is not None),
            ]
            if not all(finite):
                raise FloatingPointError("the compiled model's loss or gradients are not finite")

        self.make_step(compiled_or_eager(self.step.loss, try_out))

    # --- the loop ----------------------------------------------------------------------------------------

    def ending(self) -> Horizon:
        """The horizon of the steps: in seconds, it leaves time for the last evaluation."""
        if self.horizon.seconds is None:
            return self.horizon
        return Horizon(None, max(self.horizon.seconds - self.at.evaluation_seconds, 1e-9))

    def has_reached_ending(self, seconds: float) -> bool:
        """Return whether no step is left: in seconds, whether more than half of the next one would come too late."""
        if self.horizon.seconds is not None and self.at.step > 0:
            seconds += self.watch.read() / self.at.step / 2
        elif self.horizon.seconds is not None and self.resumed_at is None:
            return False  # a new run makes one step, however long its first evaluation took
        return self.ending().progress(self.at.step, seconds) >= 1.0

    def run(self, *, show_progress: bool) -> None:
        """Step, log and evaluate until the horizon; on an interruption save and let it go on up."""
        self.model.train()
        self.metrics = MetricsLog(self.directory.metrics, resume_step=self.resumed_at)
        self.bar = ProgressBar(self.horizon, visible=show_progress)
        try:
            with self.guard:
                self.watch.start()
                self.wall.start()
                while not self.advance():
                    self.guard.check()
        except (KeyboardInterrupt, SystemExit):
            if not self.in_step and self.is_finite():  # otherwise the last checkpoint is the better one
                self.save_last()
            raise
        finally:
            self.watch.stop()
            self.wall.stop()
            self.bar.close()

    def advance(self) -> bool:
        """Evaluate if it is time, then make one step; True when the horizon is reached and evaluated."""
        seconds = self.wall.read()
        done = self.has_reached_ending(seconds)
        if self.at.evaluated_step != self.at.step and (done or self.evaluation_is_due(seconds)):
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

    def make_one_step(self) -> None:
        batch = self.feed.batch(self.at.step)  # columns, [B, S] each
        seconds_per_step = self.watch.read() / max(1, self.at.step)
        progress = self.ending().progress_within(self.at.step, self.wall.read(), seconds_per_step)
        schedule = self.config.schedule
        self.learning_rate = self.config.optimizer.learning_rate * learning_rate_multiplier(
            progress,
            schedule.kind,
            warmup=schedule.warmup,
            cooldown=schedule.cooldown,
            final=schedule.final_learning_rate,
        )
        loss, self.gradient_norm = self.step(batch, self.learning_rate)  # [] each
        self.loss_sum += loss
        self.at.loss_steps += 1
        self.at.step += 1
        self.at.tokens += self.tokens_per_step
        self.at.flops += self.flops_per_step

    def evaluation_is_due(self, seconds: float) -> bool:
        """Return whether a time to evaluate has come since the last evaluation; always before the first."""

        def times_passed(step: int, seconds: float) -> int:
            if self.config.evaluation.eval_every is not None:
                return step // self.config.evaluation.eval_every
            return int(self.horizon.progress(step, seconds) * self.config.evaluation.num_evals)

        at = self.at
        if at.evaluated_step < 0:
            return True
        if self.config.evaluation.eval_every is None and self.horizon.seconds is not None:
            spent = seconds - self.watch.read()
            if spent + 2 * at.evaluation_seconds > EVALUATION_SHARE * self.horizon.seconds:  # this one, the last one
                return False
        return times_passed(at.step, seconds) > times_passed(at.evaluated_step, at.evaluated_seconds)

    # --- what it tells and keeps -------------------------------------------------------------------------

    def log(self) -> None:
        """Fetch the mean loss since the last line, check and report it."""
        if self.at.loss_steps == 0:
            return
        if not self.is_finite():
            raise DivergenceError(
                f"the loss is no longer finite by step {self.at.step}: lower learning_rate "
                f"({self.config.optimizer.learning_rate:g}) or raise warmup; {self.directory.last} still holds step "
                f"{self.at.evaluated_step}"
            )
        loss = float(self.loss_sum) / self.at.loss_steps
        now = self.watch.read()
        tokens_per_second = (self.at.tokens - self.logged[0]) / max(now - self.logged[1], 1e-9)
        data, rows = self.feed.loader.dataset, self.feed.loader.rows
        num_events = rows.num_events(data)  # of the whole corpus
        self.at.train_bits_per_byte = bits_per_byte(loss * num_events, data.num_bytes)
        self.loss_sum.zero_()
        self.at.loss_steps, self.logged = 0, (self.at.tokens, now)
        self.report(
            "train",
            epoch=self.feed.loader.epoch(self.at.step),
            loss=loss,
            train_bits_per_byte=self.at.train_bits_per_byte,
            learning_rate=self.learning_rate,
            gradient_norm=float(self.gradient_norm) if self.gradient_norm.isfinite() else None,
            tokens_per_second=tokens_per_second,
        )

    def is_finite(self) -> bool:
        """Losses so far and the last gradients, so the weights too. Waits for the device."""
        # With loss scaling, overflowing gradients are expected now and then, and changed no weight.
        gradients = self.scaler.is_enabled() or math.isfinite(float(self.gradient_norm))
        return math.isfinite(float(self.loss_sum)) and gradients

    def evaluate(self) -> None:
        """Score the validation documents, then keep the weights: always as last, and as best if they are."""
        since = self.wall.read()
        with self.watch.paused():
            at = self.at
            if at.evaluated_step < 0 and at.validation_bytes is None:
                self.fit_sample()
            score = self.score(self.validation)
            at.evaluated_step, at.evaluated_seconds = at.step, since
            at.validation_bits_per_byte = score.bits_per_byte
            is_best = at.best_bits_per_byte is None or score.bits_per_byte < at.best_bits_per_byte
            if is_best:
                at.best_step, at.best_bits_per_byte = at.step, score.bits_per_byte
                checkpoints.write_checkpoint(self.directory.best, checkpoints.model_tensors(self.model), self.state())
            self.save_last()
            self.report(
                "eval",
                train_bits_per_byte=at.train_bits_per_byte,
                validation_bits_per_byte=score.bits_per_byte,
                validation_bytes=score.num_bytes,
                is_best=is_best,
            )
        at.evaluation_seconds = self.wall.read() - since

    def score(self, documents: Sequence[bytes]) -> Evaluation:
        return evaluate(
            self.model,
            self.codec,
            documents,
            stride=self.feed.loader.rows.context_length,
            batch_size=self.config.evaluation.eval_batch_size,
            autocast=self.autocast,
            progress=lambda done, total: self.guard.check(),
            rows=self.feed.loader.rows,
        )

    def save_last(self) -> None:
        tensors = {
            **checkpoints.model_tensors(self.model),
            **checkpoints.optimizer_tensors(self.model, self.optimizer),
            **checkpoints.random_tensors(self.device),
        }
        checkpoints.write_checkpoint(self.directory.last, tensors, self.state())

    def state(self) -> dict[str, Any]:
        """Everything but tensors that a checkpoint holds."""
        self.at.seconds, self.at.wall_seconds = self.watch.read(), self.wall.read()
        return {
            "model": self.model.config.to_json(),
            "train": self.config.to_json(),
            "codec": {"name": self.codec.name, "fingerprint": self.codec.fingerprint},
            "rows": {"fingerprint": self.feed.loader.rows.fingerprint},
            "progress": dataclasses.asdict(self.at),
            "loss_sum": float(self.loss_sum),
            "scaler": self.scaler.state_dict(),
            "run": self.identity,
            "metrics": fingerprint_of(self.directory.metrics),
        }

    def report(self, event: str, **figures: Any) -> None:
        at = self.at
        place = {"step": at.step, "tokens": at.tokens, "flops": at.flops, "seconds": self.watch.read()}
        record = {"event": event, **place, **figures}
        self.metrics.append(record)
        self.bar.show(
            at.step,
            self.wall.read(),
            loss=figures.get("loss"),
            bits_per_byte=at.train_bits_per_byte,
            validation=at.validation_bits_per_byte,
            tokens_per_second=figures.get("tokens_per_second"),
        )
        if self.on_metrics is not None:
            self.on_metrics(record)


__getattr__ = renamed_names(
    __name__, {name: f"fastcompress.training.train.{name}" for name in ("CURVE_FIELDS", "TrainResult", "train")}
)
