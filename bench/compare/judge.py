"""Ratios to the first file, and when a difference is more than noise."""

from __future__ import annotations

import dataclasses
import enum
import math

from compare.load import Measurement, Run

FACTOR = 3.0  # standard deviations that a difference must exceed
FLOOR = (
    0.02  # relative difference that is never called one: clocks and code placement move that much
)
UNKNOWN_SPREAD = 0.05  # relative standard deviation assumed below three repetitions

RULE = (
    "Time is the median of the repetitions, the ratio is the first file's time over the other's: "
    "above 1 is faster. A repetition's relative spread is 1.4826·MAD/median (MAD: median absolute "
    "deviation; files that hold aggregates only: stddev/median; fewer than three repetitions: "
    f"{UNKNOWN_SPREAD:.0%} is assumed). A difference counts if the slower time exceeds the faster by "
    f"more than the noise, which is {FACTOR:g}·√(spread₁² + spread₂²) and at least {FLOOR:.0%}; else "
    "the two are called the same."
)


class Verdict(enum.Enum):
    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One benchmark of one file against the same of the first file."""

    name: str
    ratio: float  # first file's time / this file's time
    noise: float  # relative difference that noise explains
    verdict: Verdict


def compare(first: Measurement, other: Measurement) -> Comparison:
    """Applies RULE."""
    ratio = first.seconds / other.seconds
    spreads = [UNKNOWN_SPREAD if m.spread is None else m.spread for m in (first, other)]
    noise = max(FLOOR, FACTOR * math.hypot(*spreads))
    if ratio > 1 + noise:
        verdict = Verdict.FASTER
    elif 1 / ratio > 1 + noise:
        verdict = Verdict.SLOWER
    else:
        verdict = Verdict.SAME
    return Comparison(first.name, ratio, noise, verdict)


def compare_runs(first: Run, other: Run) -> dict[str, Comparison]:
    """Every benchmark that both files measured, in the first one's order."""
    return {
        name: compare(measurement, other.measurements[name])
        for name, measurement in first.measurements.items()
        if name in other.measurements
    }


def missing(first: Run, other: Run) -> list[str]:
    """What the first file measured and the other did not, or could not."""
    return [name for name in first.measurements if name not in other.measurements]


def geometric_mean(ratios: list[float]) -> float:
    """Of at least one positive number."""
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def group(name: str) -> str:
    """The first part of a name: `forward` of `forward/bf16/d128/causal/s4096`."""
    return name.split("/", 1)[0]


def geometric_means(comparisons: dict[str, Comparison]) -> dict[str, tuple[float, int]]:
    """(mean ratio, number of benchmarks) of each group, and of `all` if there are several."""
    ratios: dict[str, list[float]] = {}
    for name, comparison in comparisons.items():
        ratios.setdefault(group(name), []).append(comparison.ratio)
    means = {key: (geometric_mean(values), len(values)) for key, values in ratios.items()}
    if len(ratios) > 1:
        everything = [value for values in ratios.values() for value in values]
        means["all"] = (geometric_mean(everything), len(everything))
    return means


def failing(comparisons: dict[str, Comparison], bound: float) -> list[Comparison]:
    """Those beyond noise slower than the first file, and by more than `bound` allows."""
    return [c for c in comparisons.values() if c.verdict is Verdict.SLOWER and c.ratio < bound]
