"""The findings of a study in sentences and facts: headline, caveats, protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastcompress.study import charts
from fastcompress.study.wording import NBSP, duration, escape, finite, part_of, power

EQUAL_FLOPS = 1.05  # arms whose training FLOPs differ by at most this factor count as equally expensive
# A relative gap that another seed could well turn round (one seed is all a study has): how far an arm's figure moved
# over seeds 0 to 4 of the quick study, from best to worst, in percent; benchmarks/README.md has the figures.
SPREAD = "4 to 10"
CHANCE = 0.10
EARLY = 0.6  # a best checkpoint before this part of the budget: the rest of the run only overfitted

Arm = Mapping[str, Any]


def name_of(arm: Arm) -> str:
    """Return an arm's label, short enough for a sentence; not escaped."""
    return charts.shorten(arm["label"], 48)


def names_of(arms: Sequence[Arm]) -> str:
    names = [name_of(arm) for arm in arms]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bits(arm: Arm) -> float:
    """Bits per byte, the mean over seeds; infinity for a run that diverged, so that it sorts last."""
    value = finite(arm["seeds"]["mean"] if "seeds" in arm else arm["evaluation"]["bits_per_byte"])
    return math.inf if value is None or value < 0 else value


def spread(arm: Arm) -> float | None:
    """The standard deviation of bits per byte over seeds; None: there is one seed, or some run diverged."""
    return finite(arm["seeds"]["standard_deviation"]) if "seeds" in arm else None


def num_seeds(arm: Arm) -> int:
    return len(arm["seeds"]["values"]) if "seeds" in arm else 1


def _lead_is_chance(best: Arm, second: Arm) -> bool:
    """Whether the lead is within what seeds do: two standard errors, or ``CHANCE`` where an arm has one seed only."""
    lead, spreads = bits(second) - bits(best), (spread(best), spread(second))
    if None in spreads:
        return 0 < lead < CHANCE * bits(second)
    variance = sum((value or 0.0) ** 2 / num_seeds(arm) for value, arm in zip(spreads, (best, second), strict=True))
    return 0 < lead < 2 * math.sqrt(variance)


def kind(arm: Arm) -> str:
    return "exact" if arm["evaluation"]["is_exact"] else "upper bound"


def _flops_range(arms: Sequence[Arm]) -> tuple[float, float]:
    flops = [finite(arm["training_flops"]) or 0.0 for arm in arms]
    return min(flops), max(flops)


def _flops_are_equal(arms: Sequence[Arm]) -> bool:
    low, high = _flops_range(arms)
    return high <= EQUAL_FLOPS * low


def budget_part(arm: Arm) -> float:
    """Return the fraction of an arm's steps that its best checkpoint had made; 1 for a run without steps."""
    return float(arm["best_step"] / arm["steps"]) if arm["steps"] else 1.0


def _is_early(arm: Arm) -> bool:
    return bits(arm) < math.inf and budget_part(arm) < EARLY


def headline(arms: Sequence[Arm]) -> str:
    """Return the result in one sentence, not escaped. ``arms`` are sorted by ``bits``, lowest first."""
    best = arms[0]
    if bits(best) == math.inf:
        return "Every arm diverged: there are no bits per byte to compare."
    value = f"{bits(best):.3f} ({kind(best)})"
    if len(arms) == 1:
        return f"{name_of(best)}: {value} bits per byte."
    at = "within" if any(_is_early(arm) for arm in arms) else "at"  # the best weights took part of the budget only
    terms = f"{at} equal training FLOPs" if _flops_are_equal(arms) else "at unequal training FLOPs"
    tied = [arm for arm in arms if bits(arm) == bits(best)]
    if len(tied) > 1:
        return f"{names_of(tied)} tie {terms}: {bits(best):.3f} bits per byte."
    start = f"Fewest bits per byte {terms}: {name_of(best)}, {value}"
    second = arms[1]
    if bits(second) == math.inf:
        return f"{start}; no other arm has a finite figure."
    percent = 100 * (1 - bits(best) / bits(second))
    margin = f"{percent:.1f}{NBSP}%" if percent >= 0.05 else f"less than 0.1{NBSP}%"
    return f"{start}, {margin} fewer than {name_of(second)} at {bits(second):.3f} ({kind(second)})."


def cautions(arms: Sequence[Arm]) -> list[str]:
    """Return sentences that qualify the headline, not escaped; ``arms`` as for ``headline``."""
    found = []
    scored = [arm for arm in arms if bits(arm) < math.inf]
    if len(scored) < len(arms):
        found.append(f"Diverged, so without a figure: {names_of(arms[len(scored) :])}.")
    if not _flops_are_equal(arms):
        low, high = (power(flops) for flops in _flops_range(arms))
        found.append(f"The arms spent from {low} to {high} training FLOPs: not like with like.")
    if len({(arm["evaluation"]["num_bytes"], arm["evaluation"]["num_documents"]) for arm in arms}) > 1:
        found.append("The arms did not score the same bytes, so their figures must not be compared.")
    if len(scored) > 1 and _lead_is_chance(scored[0], scored[1]):
        measured = spread(scored[0]) is not None and spread(scored[1]) is not None
        lead = "within two standard errors of the seeds" if measured else f"under {100 * CHANCE:.0f}{NBSP}%"
        found.append(f"The lead is {lead}: another seed could turn it round.")
    early = [f"{name_of(arm)} at {100 * budget_part(arm):.0f}{NBSP}%" for arm in arms if _is_early(arm)]
    if early:
        found.append(
            f"Best before {100 * EARLY:.0f}{NBSP}% of the budget, then overfitted: {', '.join(early)}. The weights "
            "scored did not spend the whole budget and their learning-rate schedules were cut short, so the comparison "
            "favours no arm in particular."
        )
    if len(_machines(arms)) > 1:
        found.append("The arms ran on different machines: their times and tokens per second do not compare.")
    bounds = [arm for arm in scored[1:] if not arm["evaluation"]["is_exact"]]
    if bounds:
        found.append(f"An upper bound can lie above the true value: {names_of(bounds)} may be better than shown.")
    return found


def _machines(arms: Sequence[Arm]) -> list[Mapping[str, Any]]:
    """Return the distinct machines of the arms; older reports name one for all, outside the arms."""
    found: list[Mapping[str, Any]] = []
    for arm in arms:
        if "machine" in arm and arm["machine"] not in found:
            found.append(arm["machine"])
    return found


def _describe_machine(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['device_name']} ({machine['device']}), {machine['num_threads']} threads, "
        f"Python {machine['python']}, PyTorch {machine['torch']}"
    )


def lede(study: Mapping[str, Any]) -> str:
    arms = study["arms"]
    who = f"Each of {len(arms)} models, one for each tokenization," if len(arms) > 1 else "One model"
    budget = power(study["budget"]["training_flops"])
    return (
        f"{who} learnt from {study['corpus']['name']} within {budget} FLOPs, then predicted text it had not "
        "seen. Bits per byte say how much each byte of that text surprised it: fewer is better, and 8 is no "
        "knowledge at all."
    )


def facts(study: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the conditions of the experiment as (name, escaped HTML)."""
    corpus, split = study["corpus"], study["evaluated_split"]
    train, held_out = corpus["splits"]["train"], corpus["splits"][split]
    scored = study["arms"][0]["evaluation"]
    created = study["created"].replace("T", " ").replace("Z", " UTC")
    return [
        (
            "Corpus, training split",
            f"{escape(corpus['name'])}: {train['documents']:,} documents, {train['bytes']:,} bytes",
        ),
        (
            "Scored on",
            f"{escape(split)} split: {part_of(scored['num_documents'], held_out['documents'])} documents, "
            f"{part_of(scored['num_bytes'], held_out['bytes'])} bytes",
        ),
        ("Budget", f"{power(study['budget']['training_flops'])} training FLOPs for each arm"),
        ("Date", f"{escape(created)}, {duration(study['wall_seconds'])} in all"),
        (
            "Machine",
            escape("; ".join(_describe_machine(m) for m in _machines(study["arms"]) or [study["machine"]])),
        ),
        (
            "Run it again",
            f"<code>{escape(study['command'])}</code> (fastcompress {escape(study['package_version'])})",
        ),
    ]


def limits(study: Mapping[str, Any]) -> str:
    tuning = study.get("tuning", "How they were chosen is not recorded.")
    text = (
        f"{_chance(study)} Another "
        f"processor, or another number of threads, rounds otherwise: that moved a figure by up to 2.7{NBSP}%. "
        "Small models, "
        "one corpus, little compute: which tokenization wins can change with scale. All arms share one set of "
        f"hyperparameters, which may suit one better than another. {tuning}"
    )
    if study["evaluated_split"] == "validation":
        text += " The validation split also chose each arm's best checkpoint, which flatters it a little."
    return text


def _chance(study: Mapping[str, Any]) -> str:
    """Say what the choice of seeds does to the figures."""
    most = max(map(num_seeds, study.get("arms", [])), default=1)
    if most > 1:
        return (
            f"{most} seeds ({study['seed']} to {study['seed'] + most - 1}): bits per byte are means over them, with "
            "the standard deviation after ±; curves, samples and all other figures are those of the first seed. Arms "
            "share texts and settings, and the seeds of their weights and batches."
        )
    return (
        f"One seed ({study['seed']}): a rerun with another moves every figure. Over five seeds of the quick study an "
        f"arm's figure moved by {SPREAD}{NBSP}%, so a gap under {100 * CHANCE:.0f}{NBSP}% may be chance."
    )


# -- how it was measured -------------------------------------------------------------------------------------


def _by_arm(values: Sequence[str]) -> str:
    """Return the value that all arms share, or each arm's."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else f"{' or '.join(distinct)}, by arm"


def _windows(context: int, stride: int) -> str:
    overlap = "without overlap " if stride == context else ""
    return f"in windows of {context:,} tokens {overlap}(stride {stride:,})"


def curve_protocol(study: Mapping[str, Any]) -> str:
    """Describe sample, windows and precision of the curves, which select the checkpoints; not escaped."""
    arms, split = study["arms"], study["evaluated_split"]
    if not all("curve_evaluation" in arm for arm in arms):
        return "On which sample, with which stride and in which precision the curves were measured is not recorded."
    whole, how = study["corpus"]["splits"][split]["bytes"], [(arm, arm["curve_evaluation"]) for arm in arms]
    first = "" if all(one["num_bytes"] == whole for _, one in how) else "the first "
    sample = first + _by_arm([f"{part_of(one['num_bytes'], whole)} bytes" for _, one in how])
    windows = _by_arm([_windows(arm["context_tokens"], one["stride"]) for arm, one in how])
    precision = _by_arm([one["precision"] for _, one in how])
    return (
        f"Measured on {sample} of the {split} split, {windows}, in {precision}. These figures chose each arm's best "
        "checkpoint; the table measures that one anew and otherwise, so its figures differ from the curves'."
    )


def table_protocol(study: Mapping[str, Any]) -> str:
    """Describe sample, windows and precision of the table's bits per byte; not escaped."""
    arms, split = study["arms"], study["evaluated_split"]
    whole, scores = study["corpus"]["splits"][split]["bytes"], [arm["evaluation"] for arm in arms]
    sample = _by_arm([f"{part_of(one['num_bytes'], whole)} bytes" for one in scores])
    windows = _by_arm([_windows(one["context_length"], one["stride"]) for one in scores])
    precision = _by_arm([one.get("precision", "a precision not recorded") for one in scores])
    return f"Each arm's best checkpoint is scored on {sample} of the {split} split, {windows}, in {precision}."


def flops_per_byte_rule(study: Mapping[str, Any]) -> str:
    """Describe the divisor of FLOPs per byte; reports without the curves' protocol left document ends out."""
    included = all("curve_evaluation" in arm for arm in study["arms"])
    ends = "included, as they are trained on and scored" if included else "left out in this report"
    return f"end-of-document symbols {ends}"
