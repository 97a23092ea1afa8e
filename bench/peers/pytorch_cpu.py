"""Tessera beside PyTorch's scaled_dot_product_attention on this machine's processors.

    pytorch_cpu.py OUT.json [--build build/release] [--rounds 15] [--filter REGEX]

ci/peers makes the environment, builds and runs this. Every round measures, for every cell, the FMA
peak, ours and PyTorch's, one right after another and with all threads, so that all see the same
clock and neighbours; the order of the two changes every round. A cell's ratio is PyTorch's median
over ours: above 1 we are faster. Both work on the same tensors, [1, 8, 2048, head_dim], and before
anything is timed their results are compared.

PyTorch's backward alone is torch.autograd.grad on a retained graph; ours is a plan's execute with
out and lse kept from forward.

OUT.json is a result file that bench/compare reads (`forward/…` are ours, `pytorch.forward/…` are
PyTorch's), with the cells beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import sys
import time

# Bound threads would share a processor with those that measure the peak.
os.environ["OMP_PROC_BIND"] = "false"
import torch  # noqa: E402

import tessera  # noqa: E402

HEADS, SEQ = 8, 2048
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
TOLERANCE = {"fp32": 1e-4, "bf16": 3e-2, "fp16": 4e-3}  # of the largest value; a mistake is 1
CELLS = [
    (kind, dtype, head_dim, causal)
    for kind, dtype in (
        ("forward", "fp32"),
        ("backward", "fp32"),
        ("forward", "bf16"),
        ("forward", "fp16"),
    )
    for head_dim in (64, 128)
    for causal in (False, True)
]
LEAST = 0.1  # seconds that a measurement takes at least
attention = torch.nn.functional.scaled_dot_product_attention


def name_of(kind: str, dtype: str, head_dim: int, causal: bool) -> str:
    """As bench/ names its cases."""
    return f"{kind}/{dtype}/d{head_dim}/{'causal' if causal else 'full'}/s{SEQ}"


class Cell:
    """One comparison, ready to run."""

    def __init__(
        self, library: tessera.Library, kind: str, dtype: str, head_dim: int, causal: bool
    ) -> None:
        self.name = name_of(kind, dtype, head_dim, causal)
        mean_keys = (SEQ + 1) / 2 if causal else SEQ
        self.flops = 2 * HEADS * SEQ * mean_keys * 2 * head_dim
        self.flops *= 2.5 if kind == "backward" else 1
        self.rounds: list[dict[str, float]] = []

        torch.manual_seed(1)
        shape = (1, HEADS, SEQ, head_dim)
        q, k, v, dout = (torch.randn(shape).to(TORCH[dtype]) for _ in range(4))
        self._keep = dict(query=q, key=k, value=v, out=torch.empty_like(q))
        self._keep["lse"] = torch.empty((1, HEADS, SEQ, 1))
        scores = dict(is_causal=causal)

        def view(x: torch.Tensor) -> tessera.Tensor:
            of = next(name for name, dtype in TORCH.items() if dtype == x.dtype)
            return tessera.tensor(x.data_ptr(), of, x.shape, x.stride())

        def plan(operation: int) -> tessera.Plan:
            tensors = {name: view(x) for name, x in self._keep.items()}
            return tessera.Plan(library, operation, causal, tensors)

        forward = plan(tessera.FORWARD)
        if kind == "forward":
            del self._keep["lse"]  # PyTorch's caller does not get it either
            self.plan = plan(tessera.FORWARD)
            self.peer = lambda: attention(q, k, v, **scores)
            results = [self._keep["out"]]
        else:
            forward.execute()
            self._keep["dout"] = dout
            results = [torch.empty_like(x) for x in (q, k, v)]
            self._keep.update(zip(("dq", "dk", "dv"), results, strict=True))
            self.plan = plan(tessera.BACKWARD)
            inputs = [x.clone().requires_grad_() for x in (q, k, v)]
            out = attention(*inputs, **scores)
            self.peer = lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True)
        self.ours = self.plan.execute
        self._check(dtype, results)

    def _check(self, dtype: str, results: list[torch.Tensor]) -> None:
        for x in results:
            x.fill_(math.nan)
        self.ours()
        theirs = self.peer()
        theirs = [theirs] if isinstance(theirs, torch.Tensor) else theirs
        for mine, other in zip(results, theirs, strict=True):
            mine, other = mine.float(), other.float()
            error = ((mine - other).abs().max() / other.abs().max()).item()
            if not error <= TOLERANCE[dtype]:
                sys.exit(f"{self.name}: the results differ by {error:.2g} of the largest value")

    def measure(self, peak: float, ours_first: bool) -> None:
        both = [("ours", self.ours), ("peer", self.peer)]
        seconds = {name: time_of(call) for name, call in (both if ours_first else both[::-1])}
        self.rounds.append({"peak": peak, **seconds})

    def median(self, name: str) -> float:
        return statistics.median(one[name] for one in self.rounds)

    @property
    def ratio(self) -> float:
        return self.median("peer") / self.median("ours")

    def share(self, name: str) -> float:
        return statistics.median(self.flops / one[name] / one["peak"] for one in self.rounds)

    def summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "kernel": self.plan.kernel,
            "flops": self.flops,
            "milliseconds": 1e3 * self.median("ours"),
            "peer_milliseconds": 1e3 * self.median("peer"),
            "ratio": self.ratio,
            "peak_fraction": self.share("ours"),
            "peer_peak_fraction": self.share("peer"),
            "rounds": self.rounds,
        }

    def rows(self) -> list[dict[str, object]]:
        """In Google Benchmark's format."""
        result = []
        for prefix, key in (("", "ours"), ("pytorch.", "peer")):
            for index, one in enumerate(self.rounds):
                result.append(
                    {
                        "name": prefix + self.name,
                        "run_type": "iteration",
                        "repetitions": len(self.rounds),
                        "repetition_index": index,
                        "real_time": 1e3 * one[key],
                        "time_unit": "ms",
                        "flops": self.flops,
                        "flops_per_second": self.flops / one[key],
                        "peak_fraction": self.flops / one[key] / one["peak"],
                    }
                )
        return result


def time_of(call) -> float:
    """Seconds a call, over LEAST seconds and two calls, after one that wakes threads and caches."""
    call()
    calls, begin = 0, time.perf_counter()
    while calls < 2 or time.perf_counter() < begin + LEAST:
        call()
        calls += 1
    return (time.perf_counter() - begin) / calls


def context(library: tessera.Library, load: float, rounds: int) -> dict[str, object]:
    build, device = library.build(), library.device()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "num_cpus": os.cpu_count(),
        "load_at_start": load,
        "load_at_end": os.getloadavg()[0],
        "backend": build.backend.decode(),
        "device": device.name.decode(),
        "isa": device.isa.decode(),
        "space": device.space.decode(),
        "threads": str(device.threads),
        "tessera_version": build.version.decode(),
        "commit": build.commit.decode(),
        "toolkit": build.toolkit.decode(),
        "compiler": build.compiler.decode(),
        "build_type": build.build_type.decode(),
        "peer": f"PyTorch {torch.__version__}",
        "peer_isa": torch.backends.cpu.get_cpu_capability(),
        "peer_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "rounds": rounds,
        "batch_heads": HEADS,
    }


def geometric_mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def table(cells: list[Cell]) -> str:
    head = f"{'':34} {'Tessera':>9} {'PyTorch':>9} {'ratio':>6} {'of peak':>8} {'PyTorch':>8}"
    lines = [head]
    for cell in cells:
        lines.append(
            f"{cell.name:34} {1e3 * cell.median('ours'):6.1f} ms {1e3 * cell.median('peer'):6.1f} ms "
            f"{cell.ratio:6.2f} {cell.share('ours'):8.1%} {cell.share('peer'):8.1%}"
        )
    kinds = dict.fromkeys("/".join(cell.name.split("/")[:2]) for cell in cells)
    for kind in (*kinds, ""):
        ratios = [cell.ratio for cell in cells if cell.name.startswith(kind)]
        lines.append(
            f"geometric mean of {len(ratios)}, {kind or 'all':14} {geometric_mean(ratios):21.2f}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path, metavar="OUT.json")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--filter", type=re.compile, default=re.compile(""), metavar="REGEX")
    parser.add_argument("--load", type=float, default=None, help="load average before the build")
    options = parser.parse_args()
    load = os.getloadavg()[0] if options.load is None else options.load
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; must be at least 1")

    library = tessera.Library(str(options.build / "core" / "libtessera.so"))
    peak = ctypes.CDLL(str(options.build / "bench" / "libtessera_bench_peak.so")).tessera_bench_peak
    peak.restype = ctypes.c_double
    device = library.device()
    torch.set_num_threads(device.threads)

    wanted = [cell for cell in CELLS if options.filter.search(name_of(*cell))]
    cells = [Cell(library, *cell) for cell in wanted]
    if not cells:
        parser.error("--filter matches nothing")
    for index in range(options.rounds):
        print(f"\rround {index + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
        for cell in cells:
            measured = peak(device.isa, device.threads)
            if measured <= 0:
                sys.exit(f"the peak of {device.isa.decode()} cannot be measured")
            cell.measure(measured, index % 2 == 0)
    print(file=sys.stderr)

    report = {
        "context": context(library, load, options.rounds),
        "geometric_mean": geometric_mean([cell.ratio for cell in cells]),
        "cells": [cell.summary() for cell in cells],
        "benchmarks": [row for cell in cells for row in cell.rows()],
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(cells))
    if load > 0.25 * (os.cpu_count() or 1):
        print(f"warning: the load average was {load:.2f} at the start", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
