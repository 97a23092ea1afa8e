"""The report's chart, as SVG: ratios to the first file, or speed where there is one file only."""

from __future__ import annotations

from compare import judge
from compare.judge import Verdict
from compare.load import Run

COLOURS = ("#0b6e99", "#c1571c", "#3d7a35", "#7a4ea3", "#a8323e", "#6b6b6b")
MARKERS = {Verdict.SLOWER: "v", Verdict.SAME: "o", Verdict.FASTER: "^"}
ROW = 0.24  # inches a benchmark


def draw(runs: list[Run], path: str) -> None:
    """Writes the chart to `path`. Needs matplotlib; ImportError without."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "tessera", "svg.fonttype": "none", "font.size": 9})
    # Names come from files: a dollar sign in one must not start a formula.
    matplotlib.rcParams["text.parse_math"] = False
    from matplotlib import pyplot

    names = list(runs[0].measurements)
    with_speed = [
        name for name in names if "flops_per_second" in runs[0].measurements[name].counters
    ]
    if len(runs) == 1 and with_speed:  # latencies have no FLOPs
        names = with_speed
    figure, axes = pyplot.subplots(figsize=(9, 1.4 + ROW * len(names)), layout="constrained")
    if len(runs) > 1:
        _draw_ratios(axes, runs, names)
    else:
        _draw_speed(axes, runs[0], names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_ratios(axes, runs: list[Run], names: list[str]) -> None:
    from matplotlib import ticker

    others = runs[1:]
    every = []
    for index, run in enumerate(others):
        compared = judge.compare_runs(runs[0], run)
        every += [c.ratio for c in compared.values()]
        shift = 0.5 * ((index + 0.5) / len(others) - 0.5)
        colour = COLOURS[index % len(COLOURS)]
        label = run.label
        for row, name in enumerate(names):
            if name not in compared:
                continue
            c = compared[name]
            noise = [[c.ratio - c.ratio / (1 + c.noise)], [c.ratio * c.noise]]
            axes.errorbar(
                c.ratio,
                row + shift,
                xerr=noise,
                fmt=MARKERS[c.verdict],
                markersize=5,
                elinewidth=1,
                color=colour,
                label=label,
            )
            label = None  # once in the legend
    axes.axvline(1, color="#888", linewidth=1, zorder=0)
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xscale("log")
    if max(every) < 10 * min(every):  # within a decade, powers of ten say nothing
        axes.xaxis.set_major_locator(ticker.MaxNLocator(8))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(
        f"time of {runs[0].label} / time. Right is faster; ▼ slower, ▲ faster beyond noise (bars)"
    )
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, frameon=False)


def _draw_speed(axes, run: Run, names: list[str]) -> None:
    measurements = [run.measurements[name] for name in names]
    if all("flops_per_second" in m.counters for m in measurements):
        values = [m.counters["flops_per_second"] / 1e9 for m in measurements]
        axes.set_xlabel(f"GFLOP/s of {run.label}")
    else:
        values = [m.seconds * 1e6 for m in measurements]
        axes.set_xlabel(f"µs of {run.label}")
    axes.barh(range(len(names)), values, color=COLOURS[0], height=0.7)
    axes.set_yticks(range(len(names)), names)
