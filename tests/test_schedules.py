"""Learning rates over a run in closed form, and the rules that carry them to other batch sizes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fastcompress.errors import ConfigError
from fastcompress.training import AdamWConfig, MuonConfig, ScheduleConfig, TrainConfig
from fastcompress.training.scaling import scale_rates, scale_to_batch, step_law
from fastcompress.training.schedule import Horizon, learning_rate_at, learning_rate_multiplier


def rates(num_steps: int, **settings: Any) -> list[float]:
    config = TrainConfig(steps=num_steps, schedule=ScheduleConfig(**settings))
    horizon = Horizon.from_config(config, 1)
    return [learning_rate_at(config.schedule, horizon, step, 0.0, 0.0) for step in range(num_steps)]


def test_constant() -> None:
    assert rates(10, kind="constant", warmup=0.0) == [1.0] * 10
    assert rates(10, kind="constant", warmup=0.2) == pytest.approx([0.25, 0.75] + [1.0] * 8)


def test_trapezoid() -> None:
    found = rates(10, kind="trapezoid", warmup=0.2, cooldown=0.4, final_learning_rate=0.2)
    assert found == pytest.approx([0.25, 0.75, 1, 1, 1, 1, 0.9, 0.7, 0.5, 0.3])
    assert rates(10, kind="warmup_stable_decay", warmup=0.2, cooldown=0.4, final_learning_rate=0.2) == found


def test_cosine() -> None:
    found = rates(8, kind="cosine", warmup=0.25, final_learning_rate=0.1)
    wave = [0.1 + 0.9 * (1 + math.cos(math.pi * (step + 0.5) / 6)) / 2 for step in range(6)]
    assert found == pytest.approx([0.25, 0.75, *wave])


@pytest.mark.parametrize("kind", ["constant", "trapezoid", "cosine"])
def test_a_warm_up_in_steps_is_that_share_of_the_run(kind: str) -> None:
    assert rates(20, kind=kind, warmup_steps=5) == pytest.approx(rates(20, kind=kind, warmup=0.25))


@pytest.mark.parametrize("kind", ["constant", "trapezoid", "cosine"])
def test_a_warm_up_in_steps_under_a_horizon_in_seconds(kind: str) -> None:
    """At half a second a step, 40 steps fit, and 10 of them are a quarter."""
    schedule = ScheduleConfig(kind=kind, warmup_steps=10, cooldown=0.4)  # type: ignore[arg-type]
    horizon = Horizon(None, 20.0)
    for step in range(40):
        expected = learning_rate_multiplier((step + 0.5) / 40, kind, warmup=0.25, cooldown=0.4, final=0.05)  # type: ignore[arg-type]
        assert learning_rate_at(schedule, horizon, step, step * 0.5, 0.5) == pytest.approx(expected)


def test_a_warm_up_that_leaves_no_room_for_the_cool_down_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"warmup_steps is 7; with a cooldown of 0\.4 it must be at most 6 in"):
        rates(10, warmup_steps=7)
    assert rates(10, warmup_steps=6)[5] == pytest.approx(5.5 / 6)
    assert rates(10, kind="cosine", warmup_steps=10)[-1] == pytest.approx(0.95)
    with pytest.raises(ConfigError, match="must be at most 10"):
        rates(10, kind="constant", warmup_steps=11)


def test_four_times_the_batch_doubles_rates_and_decay() -> None:
    optimizer = MuonConfig(weight_decay=0.1, memory_rate=0.3, spelled_rate=0.2)
    config = TrainConfig(tokens=1000, batch_size=8, micro_batch_size=8, optimizer=optimizer)
    other = scale_to_batch(config, 32)
    assert (other.batch_size, other.machine.micro_batch_size, other.tokens) == (32, 8, 1000)
    was, now = config.optimizer, other.optimizer
    groups = ("embedding_rate", "memory_rate", "spelled_rate", "head_rate", "vector_rate")
    for name in ("learning_rate", *groups, "weight_decay"):
        assert getattr(now, name) == pytest.approx(2 * getattr(was, name)), name
    # Per token: a quarter of the steps, each of which takes four times as much of a weight.
    assert now.learning_rate * now.weight_decay == pytest.approx(4 * was.learning_rate * was.weight_decay)
    assert scale_to_batch(config, 12).machine.micro_batch_size is None
    assert scale_to_batch(config, 8) == config


def test_the_decay_of_memories_follows_the_batch() -> None:
    config = TrainConfig(tokens=1000, batch_size=8, optimizer=AdamWConfig(memory_decay=0.01))
    assert scale_to_batch(config, 32).optimizer.memory_decay == pytest.approx(0.02)  # type: ignore[union-attr]
    assert scale_to_batch(TrainConfig(tokens=1000), 32).optimizer.memory_decay is None  # type: ignore[union-attr]


def test_groups_without_a_rate_follow_the_matrices() -> None:
    assert scale_rates(AdamWConfig(learning_rate=0.1, head_rate=0.5), 2) == AdamWConfig(
        learning_rate=0.2, head_rate=1.0
    )


def test_the_step_law_gives_the_published_values() -> None:
    """Batches that the notes of its authors' fit give for 50M and 512M tokens, and a rate for 25M on 50M."""
    assert step_law(25_000_000, 50_000_000)[1] == pytest.approx(14_000, rel=0.05)
    assert step_law(25_000_000, 512_000_000)[1] == pytest.approx(55_000, rel=0.05)
    assert step_law(25_000_000, 50_000_000)[0] == pytest.approx(2.2e-3, rel=0.05)
