#!/usr/bin/env python3
"""ci/hip_clocks.py --objdump LLVM_OBJDUMP --readelf LLVM_READELF LIST: what HIP kernels may reach.

LIST is the build's code_objects.txt: lines of "instance target file". Nothing is run and no time is
measured: instructions of each code object's steady loop (hip_loops.py says which, and which way
through it) are counted and turned into clocks by the rates of hip_rates.json.

A step is once through the loop; a round, one step of one wave on each SIMD. Of a round:

    matrix   the matrix instructions' passes
    vector   the other vector instructions', transcendental ones with them (RDNA: these have a pipe
             of their own, while matrix instructions take this one)
    LDS      bytes read, written and loaded straight into it, over its bytes a clock, of all SIMDs
    issue    each fourth clock (RDNA: each) a SIMD issues at most one instruction of each kind
             (vector and matrix, LDS, memory, scalar, branch), and at most one of a wave. So: the
             most of a kind; or all of a wave, with what s_nop idles, over the waves that are
             resident, if that is more
    cap      4·M·N·d over the target's rate, over the clocks of the busiest pipe: what no schedule
             exceeds of the matrix units' rate. M·N·d is counted: FLOP of the matrix instructions

Printed: registers, LDS, resident waves a SIMD, clocks, and caps: the one that gates have, with exp
at the rate that documents give for the instruction; with exp twice as fast; with each matrix
instruction taking the vector pipe for as long as it is issued; the dearest way's, which masks and
rescales. And vector instructions for a pair of scores besides its two exponentials.

--gate DIM,...: exit status 1 if a plain fp16 or bf16 forward kernel of these head dimensions misses
GATES, beyond what EXCEPTIONS allows, or is not there. --json FILE: all of it, and the mix.
--markdown: the rows of docs/hip.md's table instead.

Not counted: latencies, waits and barriers, bank conflicts, caches, memory. A cap is no speed.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import hip_budgets  # noqa: E402
import hip_costs  # noqa: E402
from hip_loops import Loops, NotUnderstood, Unknown, parse  # noqa: E402

RATES = Path(__file__).parent / "hip_rates.json"
GATED = re.compile(r"forward_(fp16|bf16)_(\d+)")
# Least caps. gfx950's at head_dim 128 is that of an LDS of 256 bytes a clock; of one of 128, 85 %.
GATES = {("gfx942", 128): 0.95, ("gfx942", 64): 0.85, ("gfx950", 128): 0.90, ("gfx950", 64): 0.50}
SLOW_LDS_GATES = {("gfx950", 128): 0.85}
MOST_A_PAIR = 7  # vector instructions for two scores besides their two exponentials
# What is known and to be mended, as it is with clang 22; it may only get better:
# (instance, target): (least cap, most instructions a pair of scores, most waits for all loads).
EXCEPTIONS = {}


# --- One kernel -----------------------------------------------------------------------------------


def head_dims(instance):
    """(of queries and keys, of values) as the instance's name has them; None if it has not."""
    found = re.match(r"forward_(?:fp16|bf16|fp32)_(\d+)(?:x(\d+))?(?:_|$)", instance)
    return found and (int(found.group(1)), int(found.group(2) or found.group(1)))


def resources(notes):
    """Of the one kernel in what readelf prints."""
    kernels = hip_budgets.kernels_in(notes)
    if len(kernels) != 1:
        raise NotUnderstood(f"it has {len(kernels)} kernels, not one")
    kernel = {"agpr_count": "0", **kernels[0]}  # RDNA has none, and says nothing of them
    fields = {**hip_budgets.FIELDS, "threads": "max_flat_workgroup_size"}
    if missing := [name for name in fields.values() if name not in kernel]:
        raise NotUnderstood(f"readelf does not tell {', '.join(missing)}")
    return {head: int(kernel[name]) for head, name in fields.items()}


def way_figures(way, kernel, rates, dims):
    counts = way.counts
    resident = hip_costs.resident_waves(kernel, rates)
    ideal = counts["ideal_clocks"]
    clocks = hip_costs.clocks(counts, resident, rates)
    figures = {
        "clocks": {pipe: round(value, 1) for pipe, value in clocks.items()},
        "busiest": max(clocks, key=clocks.get),
        "cap": ideal / max(clocks.values()),
        "counts": {key: value for key, value in sorted(counts.items()) if value},
    }
    if dims:  # S = Q·Kᵀ and O = P·V take 2·M·N·d each
        scores = counts["flop"] / (2 * sum(dims)) / rates["lanes"]
        figures["scores_a_lane"] = scores
        figures["a_pair"] = (counts["vector"] + counts["trans"] - scores) / (scores / 2)
    return figures


def look_at(text, notes, instance, rates):
    """A kernel's figures; None if no loop of it multiplies matrices."""
    kernel = resources(notes)
    symbols = parse(text)
    name = f"tessera_{instance}"
    if name not in symbols:
        raise NotUnderstood(f"it has no {name}")
    loops = Loops(symbols[name], lambda each: hip_costs.count(each, rates))
    dims = head_dims(instance)
    waves = -(-kernel["threads"] // rates["lanes"])
    if dims:
        # A score is 2·(d + dv) FLOP, and an exponential. A wave holds as many rows as a matrix
        # instruction has columns, so that for 2·(d + dv) FLOP of each of them a number of K and V,
        # two bytes (four of fp32), is brought to LDS for all waves.
        a_score = 2 * sum(dims) * rates["lanes"]
        number = 4 if "fp32" in instance else 2
        rows = 2 / number * max(map(hip_costs.columns, symbols[name])) * waves
        found = loops.steady(
            lambda way: way["flop"] <= a_score * way["exp"], lambda flop: flop / max(rows, 1)
        )
    else:
        found = loops.steady()
    if found is None:
        return None
    head, way, dearest = found
    figures = {
        "resources": kernel,
        "waves_a_simd": hip_costs.resident_waves(kernel, rates),
        "loop": f"{head:#x}",
        "ideal_clocks": way.counts["ideal_clocks"],
        "flop_a_group": way.counts["flop"] * waves,
        **way_figures(way, kernel, rates, dims),
        "dearest": way_figures(dearest, kernel, rates, dims),
        "mix": dict(way.names.most_common()),
    }
    resident = figures["waves_a_simd"]
    double = hip_costs.clocks(way.counts, resident, rates, trans="trans_double")
    figures["cap_exp_twice"] = figures["ideal_clocks"] / max(double.values())
    shared = hip_costs.clocks(way.counts, resident, rates, first_pass=True)
    figures["cap_first_pass"] = figures["ideal_clocks"] / max(shared.values())
    if dims and GATED.match(instance):
        exps, scores = way.counts["exp"], figures["scores_a_lane"]
        if not scores <= exps <= scores + 4 + scores / 8:
            raise NotUnderstood(
                f"its steady step has {exps} exponentials for {scores:g} scores a lane"
            )
        figures["tile"] = f"M·N {scores * rates['lanes'] * waves:g}, d {dims[0]}"
    return figures


# --- Gates ----------------------------------------------------------------------------------------


def gate_of(instance, target, rates):
    """The least cap; None if the kernel has none."""
    found = GATED.fullmatch(instance)
    if not found:
        return None
    key = (target, int(found.group(2)))
    if key in SLOW_LDS_GATES and rates["lds_read"] <= 128:
        return SLOW_LDS_GATES[key]
    return GATES.get(key)


def misses(figures, least, exception):
    """Sentences; none if all is well."""
    least_cap, most, waits = exception or (least, MOST_A_PAIR, 0)
    counts, found = figures["counts"], []
    if figures["cap"] < least_cap - 0.0005:
        found.append(
            f"its cap is {figures['cap']:.1%}, not {least_cap:.1%}: {figures['busiest']} takes "
            f"{max(figures['clocks'].values()):g} clocks, ideal are {figures['ideal_clocks']:g}"
        )
    if figures["a_pair"] > most + 0.005:
        found.append(f"{figures['a_pair']:.2f} vector instructions a pair of scores, not {most:g}")
    if counts.get("waits_for_all", 0) > waits:
        found.append(
            f"{counts['waits_for_all']} waits for all loads (vmcnt(0)) in its loop, not {waits}"
        )
    if "scratch" in counts or figures["resources"]["spilled"] or figures["resources"]["scratch"]:
        found.append("it spills")
    if "indexed" in counts:
        found.append(f"{counts['indexed']} instructions that index registers in its loop")
    return found


def judge(kernels, rates, dims):
    """Prints which exceptions apply; the gates' failures."""
    failures = []
    targets = {target for _, target in kernels}
    for (target, dim), _ in GATES.items():
        for element in ("fp16", "bf16"):
            if (
                target in targets
                and dim in dims
                and (f"forward_{element}_{dim}", target) not in kernels
            ):
                failures.append(f"forward_{element}_{dim} for {target} is gated and not there")
    for (instance, target), figures in kernels.items():
        least = gate_of(instance, target, rates[target])
        if least is None or not isinstance(figures, dict):
            continue
        exception = EXCEPTIONS.get((instance, target))
        wrong = misses(figures, least, exception)
        failures += [f"{instance} for {target}: {text}" for text in wrong]
        if exception and not wrong:
            left = misses(figures, least, None)
            told = "; ".join(left) if left else "nothing is left of it: take it out"
            print(f"exception: {instance} for {target}: {told}")
    return failures


# --- What is printed and written ------------------------------------------------------------------

COLUMNS = ("vgpr", "agpr", "spilled", "scratch", "LDS")


def table_head():
    heads = [
        *COLUMNS,
        "waves",
        "matrix",
        "vector",
        "LDS clk",
        "issue",
        "cap",
        "exp/2",
        "1st",
        "a pair",
        "dearest",
    ]
    return f"{'instance':28} {'target':8}" + "".join(f"{head:>8}" for head in heads)


def table_row(instance, target, figures):
    clocks = figures["clocks"]
    cells = [figures["resources"][column] for column in COLUMNS]
    cells += [f"{figures['waves_a_simd']:g}"]
    vector = max(clocks["vector"], clocks.get("trans", 0))
    cells += [
        f"{value:.0f}" for value in (clocks["matrix"], vector, clocks["LDS"], clocks["issue"])
    ]
    cells += [f"{figures[cap]:.1%}" for cap in ("cap", "cap_exp_twice", "cap_first_pass")]
    cells += [f"{figures['a_pair']:.2f}" if "a_pair" in figures else "-"]
    cells += [f"{figures['dearest']['cap']:.1%}"]
    notes = [
        f"{figures['counts'][key]} {text}"
        for key, text in (
            ("waits_for_all", "vmcnt(0)"),
            ("indexed", "indexed"),
            ("scratch", "scratch"),
        )
        if key in figures["counts"]
    ]
    row = f"{instance:28} {target:8}" + "".join(f"{cell:>8}" for cell in cells)
    return row + ("  " + ", ".join(notes) if notes else "")


def markdown_row(instance, target, figures):
    clocks, resources = figures["clocks"], figures["resources"]
    element, dim = instance.split("_")[1:3]
    vector = max(clocks["vector"], clocks.get("trans", 0))
    cells = [f"{element}, {dim}", target, resources["vgpr"], resources["LDS"]]
    cells += [f"{figures['waves_a_simd']:g}"]
    cells += [f"{each:.0f}" for each in (clocks["matrix"], vector, clocks["LDS"], clocks["issue"])]
    cells += [f"{100 * figures[cap]:.0f} %" for cap in ("cap", "cap_exp_twice")]
    cells += [f"{figures['a_pair']:.2f}", figures["counts"].get("waits_for_all", 0)]
    return "| " + " | ".join(map(str, cells)) + " |"


def print_markdown(kernels):
    plain = [key for key in kernels if GATED.fullmatch(key[0])]
    # By head dimension; then as the build lists them.
    for key in sorted(plain, key=lambda key: int(GATED.fullmatch(key[0]).group(2))):
        print(markdown_row(*key, kernels[key]))


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit():
    found = subprocess.run(
        [
            "git",
            "-C",
            str(RATES.parent),
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ],
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() or "unknown"


def compiler(file):
    """What compiled a code object, as its .comment says."""
    return sorted(set(re.findall(r"(?:\w+ )*clang version [^\0\n]+", output_of(*file))))


def write(file, kernels, made_by):
    document = {
        "what": "Counted from shipped code objects by ci/hip_clocks.py; nothing was run",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "compiler": made_by,
        "rates": "ci/hip_rates.json",
        "kernels": [
            {"instance": instance, "target": target, **figures}
            for (instance, target), figures in kernels.items()
            if isinstance(figures, dict)
        ],
    }
    rounded = json.loads(json.dumps(document), parse_float=lambda text: round(float(text), 4))
    file.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objdump", required=True, help="llvm-objdump, of the compiler's version")
    parser.add_argument("--readelf", required=True, help="llvm-readelf, of the compiler's version")
    parser.add_argument("--only", default="", help="a regular expression of instances")
    parser.add_argument(
        "--gate", metavar="DIM,DIM", help="head dimensions that must be there and pass"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--rates", type=Path, default=RATES)
    parser.add_argument("list", type=Path, help="lines of: instance target file")
    arguments = parser.parse_args()
    objects = [line.split(" ", 2) for line in arguments.list.read_text().splitlines() if line]
    objects = [each for each in objects if re.search(arguments.only, each[0])]
    rates = hip_costs.load_rates(arguments.rates)
    kernels, failures, without = {}, [], 0
    if not arguments.markdown:
        print(table_head())
    for instance, target, file in objects:
        try:
            if target not in rates:
                raise Unknown(f"the table of rates has no {target}")
            figures = look_at(
                output_of(arguments.objdump, "-d", file),
                output_of(arguments.readelf, "--notes", file),
                instance,
                rates[target],
            )
        except NotUnderstood as reason:
            told = f"{instance} for {target}: {reason}"
            if isinstance(reason, Unknown) or gate_of(instance, target, rates.get(target)):
                failures.append(told)
            else:
                print(f"not understood: {told}")
            continue
        if figures is None:
            without += 1
            continue
        kernels[instance, target] = figures
        if not arguments.markdown:
            print(table_row(instance, target, figures))
    if arguments.markdown:
        print_markdown(kernels)
    else:
        print(f"{len(kernels)} kernels; {without} more multiply no matrices in a loop")
    if not kernels:
        failures.append("the build has no HIP kernel that multiplies matrices")
    if arguments.gate is not None:
        failures += judge(kernels, rates, [int(dim) for dim in arguments.gate.split(",") if dim])
    if arguments.json and kernels:
        made_by = compiler((arguments.readelf, "--string-dump=.comment", objects[0][2]))
        write(arguments.json, kernels, made_by)
    for failure in failures:
        print(f"error: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
