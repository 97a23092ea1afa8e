"""Draws what `tessera bench --json` measured: demo_chart.py BENCH.json CHART.svg (or .png)."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402: the line above comes first


def draw(bench, path):
    results = bench["results"]
    labels = [f"{r['seq']}\n× {r['batch']}" for r in results]
    positions = range(len(results))
    figure, (rate, memory) = pyplot.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)

    def bars(axes, ours, naive, show):
        for offset, values, label in (
            (-0.2, ours, "tessera"),
            (0.2, naive, "naive (scores as a matrix)"),
        ):
            drawn = axes.bar([p + offset for p in positions], values, 0.38, label=label)
            axes.bar_label(drawn, [show(v) for v in values], padding=2, fontsize=8)
        axes.set_xticks(positions, labels)
        axes.set_xlabel("sequence length × batch")
        axes.spines[["top", "right"]].set_visible(False)

    speed = [r["gflops_per_second"] for r in results]
    bars(rate, speed, [s / r["speed_up"] for s, r in zip(speed, results)], lambda v: f"{v:.0f}")
    rate.set_ylabel("GFLOP/s (higher is better)")
    rate.set_title("Speed")
    rate.legend(frameon=False)

    mib = 1 << 20
    known = all(
        r[k] is not None
        for r in results
        for k in ("extra_memory_bytes", "naive_extra_memory_bytes")
    )
    if known:
        ours = [r["extra_memory_bytes"] / mib for r in results]
        naive = [r["naive_extra_memory_bytes"] / mib for r in results]
        bars(memory, ours, naive, lambda v: f"{v:.1f}" if v < 10 else f"{v:.0f}")
        memory.set_yscale("symlog", linthresh=1)
        memory.yaxis.set_major_formatter("{x:g}")
    memory.set_ylabel(
        "MiB beyond inputs and outputs (lower is better)" + "\nlog scale above 1" * known
    )
    memory.set_title("Memory" if known else "Memory (this system does not tell)")

    first = results[0]
    threads = "1 thread" if bench["threads"] == 1 else f"{bench['threads']} threads"
    figure.suptitle(
        f"Attention forward, {first['dtype']}, {first['heads']} heads, head_dim {first['head_dim']}, "
        f"mask {first['mask']}\n{bench['device']}, {bench['isa']}, {threads}",
        fontsize=11,
    )
    figure.savefig(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        document = json.load(file)
    draw(document, sys.argv[2])
