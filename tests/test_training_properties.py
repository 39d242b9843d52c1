"""Properties of what training computes from plain numbers and bytes: its validation sample, schedule and horizon."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fastcompress.training.batches import first_documents
from fastcompress.training.config import TrainConfig
from fastcompress.training.schedule import Horizon, learning_rate_multiplier

fractions = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=6).map(str.encode)), max_size=6),
    st.integers(1, 40),
)
def test_first_documents_are_a_prefix_within_the_limit(documents: list[bytes], limit: int) -> None:
    kept = first_documents(documents, limit)
    assert b"".join(documents).startswith(b"".join(kept))
    assert kept[:-1] == documents[: max(0, len(kept) - 1)]
    size = sum(map(len, kept))
    assert size <= max(limit, 4)
    assert size >= min(limit, sum(map(len, documents))) - 3
    assert any(kept) == any(documents)


@settings(deadline=None)
@given(st.lists(st.text(max_size=6), max_size=6), st.integers(1, 40))
def test_first_documents_never_cut_a_character(texts: list[str], limit: int) -> None:
    for document in first_documents([text.encode() for text in texts], limit):
        document.decode("utf-8")


def test_first_documents_without_a_limit_are_all() -> None:
    assert first_documents([b"a", b"", b"bc"], None) == [b"a", b"", b"bc"]
    assert first_documents(["日本".encode()], 1) == ["日".encode()]
    assert first_documents([b"abc", b"def"], 3) == [b"abc"]
    assert first_documents([b"\x80" * 9], 5) == [b"\x80" * 5]


@settings(deadline=None)
@given(fractions, fractions, fractions, st.sampled_from(["warmup_stable_decay", "cosine"]), fractions)
def test_learning_rate_rises_then_never_rises_again(
    warmup: float, cooldown: float, final: float, kind: str, progress: float
) -> None:
    cooldown = min(cooldown, 1.0 - warmup)

    def rate(at: float) -> float:
        return learning_rate_multiplier(at, kind, warmup=warmup, cooldown=cooldown, final=final)  # type: ignore[arg-type]

    later = min(1.0, progress + 0.01)
    assert 0.0 <= rate(progress) <= 1.0 + 1e-12
    if later < warmup:
        assert rate(progress) <= rate(later)
    elif progress >= warmup:
        assert rate(progress) >= rate(later) - 1e-12


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**12))
def test_a_flop_budget_is_used_but_never_exceeded(steps: int, flops_per_step: int) -> None:
    budget = float(steps * flops_per_step)
    if int(budget) != steps * flops_per_step:  # not a float64: nothing to say about the last step
        return
    horizon = Horizon.from_config(TrainConfig(flops=budget), flops_per_step)
    assert horizon.steps == steps
    assert horizon.progress(steps, seconds=0.0) == 1.0
    assert horizon.progress(steps - 1, seconds=0.0) < 1.0
