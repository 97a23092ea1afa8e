"""The command: see --help."""

from __future__ import annotations

import argparse
import math
import pathlib
import sys

from compare import chart, document, judge, load, render

FAILED, MALFORMED = 1, 2


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    try:
        runs = load.load_all([options.first, *options.others])
    except load.Malformed as error:
        print(f"compare: {error}", file=sys.stderr)
        return MALFORMED
    unmatched = [
        run for run in runs if not run.measurements or not judge.compare_runs(runs[0], run)
    ]
    if unmatched:
        print(
            f"compare: {unmatched[0].path}: nothing to compare: no benchmark measured here is "
            f"also in {runs[0].path}",
            file=sys.stderr,
        )
        return MALFORMED
    try:
        _write(pathlib.Path(options.out_dir), runs)
    except OSError as error:
        print(
            f"compare: {error.filename or options.out_dir}: cannot be written: {error.strerror}",
            file=sys.stderr,
        )
        return MALFORMED
    for text in document.warnings(runs):
        print(f"compare: warning: {text}", file=sys.stderr)
    return _verdict(runs, options)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare",
        description="Compares result files in Google Benchmark's JSON format with the first of "
        "them: writes report.md, report.html and chart.svg.",
        epilog=judge.RULE
        + " Exit status: 0; 1 if --fail-below found something; 2 if a file is malformed.",
    )
    parser.add_argument("out_dir", metavar="OUT_DIR")
    parser.add_argument("first", metavar="A.json", help="what the others are compared with")
    parser.add_argument("others", metavar="B.json", nargs="*")
    parser.add_argument(
        "--fail-below",
        metavar="RATIO",
        type=_bound,
        help="fail if a benchmark is slower beyond noise and its ratio is below this, or if one "
        "that the first file measured is missing in another",
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="let --fail-below ignore missing benchmarks"
    )
    options = parser.parse_intermixed_args(arguments)
    if options.fail_below is not None and not options.others:
        parser.error("--fail-below needs at least two files")
    return options


def _bound(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and 0 < value <= 1):
        raise argparse.ArgumentTypeError(f"is {text}; must be above 0 and at most 1")
    return value


def _write(folder: pathlib.Path, runs: list[load.Run]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chart.draw(runs, str(folder / "chart.svg"))
    blocks = document.build(runs, "chart.svg")
    for name, text in (
        ("report.md", render.markdown(blocks)),
        ("report.html", render.page(blocks)),
    ):
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)


def _verdict(runs: list[load.Run], options: argparse.Namespace) -> int:
    status = 0
    for run in runs[1:]:
        compared = judge.compare_runs(runs[0], run)
        for key, (mean, count) in judge.geometric_means(compared).items():
            print(
                f"{run.label}: {key}: geometric mean of {count} ratios to {runs[0].label}: "
                f"{mean:.3f}"
            )
        if options.fail_below is None:
            continue
        for c in judge.failing(compared, options.fail_below):
            print(
                f"compare: {run.label}: {c.name}: ratio {c.ratio:.3f} is below "
                f"{options.fail_below} (noise {c.noise:.3f})",
                file=sys.stderr,
            )
            status = FAILED
        if not options.allow_missing:
            for name in judge.missing(runs[0], run):
                print(f"compare: {run.label}: {name}: missing", file=sys.stderr)
                status = FAILED
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
