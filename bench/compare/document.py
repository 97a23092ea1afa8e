"""The report's contents, free of any markup."""

from __future__ import annotations

import dataclasses

from compare import judge
from compare.judge import Comparison, Verdict
from compare.load import CONTEXT, Measurement, Run

MARKS = {Verdict.SLOWER: "▼ slower", Verdict.FASTER: "▲ faster", Verdict.SAME: ""}
COMPARABLE = ("backend", "device", "isa", "threads")  # differ: then so do the machines


@dataclasses.dataclass(frozen=True)
class Heading:
    text: str


@dataclasses.dataclass(frozen=True)
class Paragraph:
    text: str


@dataclasses.dataclass(frozen=True)
class Warning:
    text: str


@dataclasses.dataclass(frozen=True)
class Items:
    texts: list[str]


@dataclasses.dataclass(frozen=True)
class Image:
    path: str
    text: str


@dataclasses.dataclass(frozen=True)
class Table:
    head: list[str]
    rows: list[list[str]]


Block = Heading | Paragraph | Warning | Items | Image | Table


def build(runs: list[Run], chart: str) -> list[Block]:
    """The whole report: `chart` is the name of the chart's file beside it."""
    comparisons = [judge.compare_runs(runs[0], run) for run in runs[1:]]
    blocks: list[Block] = [_context(runs)]
    blocks += [Warning(text) for text in warnings(runs)]
    if comparisons:
        blocks += [Heading("Summary"), _summary(runs, comparisons), _changes(runs, comparisons)]
    blocks.append(Image(chart, "Ratios to the first file" if comparisons else "Speed"))
    if comparisons:
        blocks += [Heading("Ratios"), _ratios(runs, comparisons), Paragraph(judge.RULE)]
    blocks += [Heading("Measurements"), _measurements(runs)]
    blocks += _gaps(runs)
    return blocks


def warnings(runs: list[Run]) -> list[str]:
    """What makes the files hard to compare."""
    texts = []
    for key in COMPARABLE:
        values = list(dict.fromkeys(run.context.get(key, "unknown") for run in runs))
        if len(values) > 1:
            texts.append(
                f"The files differ in {key}: {' | '.join(values)}. "
                "Ratios compare machines, not only code."
            )
    for run in runs:
        absent = [key for key in CONTEXT if key not in run.context]
        if absent:
            texts.append(f"{run.label} does not say its {', '.join(absent)}.")
        if run.load is not None and run.load.high:
            texts.append(
                f"{run.label}: the load average at the start was {format_load(run)}. Others used "
                "the processors; measure again when nothing else runs."
            )
        few = [m for m in run.measurements.values() if m.spread is None]
        if few:
            texts.append(
                f"{run.label}: {len(few)} of {len(run.measurements)} benchmarks have fewer than three "
                "repetitions; their spread is assumed."
            )
    return texts


def format_time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return (
                f"{seconds / scale:.3g} {unit}"
                if seconds < 1000 * scale
                else f"{seconds / scale:.0f} {unit}"
            )
    return f"{seconds / 1e-9:.3g} ns"


def format_load(run: Run) -> str:
    return "–" if run.load is None else f"{run.load.average:.2f} of {run.load.cores}"


def format_speed(m: Measurement) -> str:
    speed = m.counters.get("flops_per_second")
    return "–" if speed is None else f"{speed / 1e9:.4g}"


def format_peak(m: Measurement) -> str:
    fraction = m.counters.get("peak_fraction")
    return "–" if fraction is None else f"{fraction:.1%}"


def format_ratio(comparison: Comparison) -> str:
    return f"{comparison.ratio:.3f} ± {comparison.noise:.3f} {MARKS[comparison.verdict]}".rstrip()


def _context(runs: list[Run]) -> Table:
    keys = (*CONTEXT, "date")
    rows = [
        [run.label, *(run.context.get(key, "–") for key in keys), format_load(run)] for run in runs
    ]
    return Table(["file", *(key.replace("_", " ") for key in keys), "load at start"], rows)


def _summary(runs: list[Run], comparisons: list[dict[str, Comparison]]) -> Table:
    rows = []
    for run, compared in zip(runs[1:], comparisons, strict=True):
        for key, (mean, count) in judge.geometric_means(compared).items():
            of = [c for c in compared.values() if key in ("all", judge.group(c.name))]
            slower = sum(c.verdict is Verdict.SLOWER for c in of)
            faster = sum(c.verdict is Verdict.FASTER for c in of)
            rows.append([run.label, key, f"{mean:.3f}", str(count), str(faster), str(slower)])
    return Table(
        ["file", "group", "geometric mean of ratios", "benchmarks", "faster", "slower"], rows
    )


def _changes(runs: list[Run], comparisons: list[dict[str, Comparison]]) -> Items:
    texts = []
    for run, compared in zip(runs[1:], comparisons, strict=True):
        slower = sorted(
            (c for c in compared.values() if c.verdict is Verdict.SLOWER), key=lambda c: c.ratio
        )
        texts += [
            f"Regression in {run.label}: {c.name} {c.ratio:.3f} ± {c.noise:.3f}" for c in slower
        ]
    return Items(texts or ["No regression beyond noise."])


def _ratios(runs: list[Run], comparisons: list[dict[str, Comparison]]) -> Table:
    rows = []
    for name in runs[0].measurements:
        cells = [
            format_ratio(compared[name]) if name in compared else "–" for compared in comparisons
        ]
        if any(cell != "–" for cell in cells):
            rows.append([name, *cells])
    return Table([f"ratio to {runs[0].label}", *(run.label for run in runs[1:])], rows)


def _measurements(runs: list[Run]) -> Table:
    head = ["benchmark"]
    for run in runs:
        head += [f"{run.label}: time", "GFLOP/s", "of peak"]
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run.measurements):
        row = [name]
        for run in runs:
            m = run.measurements.get(name)
            row += (
                ["–", "–", "–"]
                if m is None
                else [format_time(m.seconds), format_speed(m), format_peak(m)]
            )
        rows.append(row)
    return Table(head, rows)


def _gaps(runs: list[Run]) -> list[Block]:
    texts = []
    names = dict.fromkeys(name for run in runs for name in (*run.measurements, *run.failures))
    for run in runs:
        for name in names:
            if name in run.failures:
                texts.append(f"{run.label}: {name} failed: {run.failures[name]}")
            elif name not in run.measurements:
                texts.append(f"{run.label}: {name} is missing")
    return [Heading("Not measured"), Items(texts)] if texts else []
