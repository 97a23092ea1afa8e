"""Reads one result file in Google Benchmark's JSON format, strictly."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import statistics
from typing import Any

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
COUNTERS = ("flops", "bytes", "flops_per_second", "peak_fraction", "workspace_bytes")
CONTEXT = ("backend", "device", "isa", "threads", "tessera_version", "commit")
MAD_TO_SIGMA = 1.4826  # of a normal distribution


class Malformed(Exception):
    """A file that is not what it should be; the text is one line that names the file."""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One benchmark of one file."""

    name: str
    seconds: float  # a call: median of the repetitions
    spread: float | None  # relative standard deviation of a repetition; None: unknown
    repetitions: int
    counters: dict[str, float]  # those of COUNTERS that the file has, medians too


@dataclasses.dataclass(frozen=True)
class Load:
    """How busy the machine was before anything was measured."""

    average: float  # processes that ran or waited to, over the last minute
    cores: int

    @property
    def high(self) -> bool:
        """Others used more than a quarter of the machine; ci/bench warns by the same rule."""
        return self.average > 0.25 * self.cores


@dataclasses.dataclass(frozen=True)
class Run:
    """One file."""

    path: str
    label: str  # short and unique among the files of a report
    context: dict[str, str]
    measurements: dict[str, Measurement]  # in the file's order
    failures: dict[str, str]  # benchmarks that reported an error, with its text
    load: Load | None = None


def load_all(paths: list[str]) -> list[Run]:
    """Reads every file. Labels are file names, followed by a number where two files share one."""
    runs: list[Run] = []
    taken: set[str] = set()
    for path in paths:
        stem = pathlib.Path(path).stem
        label, count = stem, 1
        while label in taken:
            count += 1
            label = f"{stem} ({count})"
        taken.add(label)
        runs.append(load(path, label))
    return runs


def load(path: str, label: str | None = None) -> Run:
    """Reads one file; Malformed with one line about the first thing that is wrong."""
    try:
        return _run(path, label or pathlib.Path(path).stem, _parse(path))
    except _Problem as problem:
        raise Malformed(f"{path}: {' '.join(str(problem).split())}") from None


class _Problem(Exception):
    """What is wrong, without the file's name."""


def _parse(path: str) -> Any:
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        # NaN is let through: Google Benchmark writes it into aggregates (0/0).
        # The numbers that are used are checked.
        return json.loads(text, object_pairs_hook=_object)
    except OSError as error:
        raise _Problem(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _Problem(f"is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _Problem(f"is not JSON: {error.msg} at line {error.lineno}") from None
    except RecursionError:
        raise _Problem("is not a result file: nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _Problem(f"is not JSON: {str(error).splitlines()[0]}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Problem(f"has the key {twice!r} twice in one object")
    return result


def _run(path: str, label: str, data: Any) -> Run:
    if not isinstance(data, dict):
        raise _Problem("is not a result file: its outermost value is not an object")
    context, rows = data.get("context"), data.get("benchmarks")
    if not isinstance(context, dict):
        raise _Problem("is not a result file: it has no object `context`")
    if not isinstance(rows, list):
        raise _Problem("is not a result file: it has no array `benchmarks`")
    if not rows:
        raise _Problem("holds no benchmark")

    repetitions: dict[str, list[dict[str, Any]]] = {}
    aggregates: dict[str, dict[str, dict[str, Any]]] = {}
    failures: dict[str, str] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise _Problem(f"benchmarks[{index}] is not an object")
        name = _name(row, index)
        if row.get("error_occurred") or row.get("skipped"):
            text = row.get("error_message") or row.get("skip_message") or "no text"
            failures.setdefault(name, str(text))
        elif row.get("run_type", "iteration") == "iteration":
            repetitions.setdefault(name, []).append(row)
        elif row["run_type"] == "aggregate":
            kind = row.get("aggregate_name")
            if not isinstance(kind, str):
                raise _Problem(f"{name}: an aggregate without `aggregate_name`")
            if kind in aggregates.setdefault(name, {}):
                raise _Problem(f"{name}: the aggregate {kind} occurs twice")
            aggregates[name][kind] = row
        else:
            raise _Problem(
                f"{name}: run_type is {row['run_type']!r}; must be iteration or aggregate"
            )

    measurements: dict[str, Measurement] = {}
    for name in dict.fromkeys([*repetitions, *aggregates]):
        if name in failures:
            continue
        if name in repetitions:  # aggregates of them say nothing new
            measurements[name] = _from_repetitions(name, repetitions[name])
        else:
            measurements[name] = _from_aggregates(name, aggregates[name])
    known = {key: _context_text(context[key]) for key in (*CONTEXT, "date") if key in context}
    return Run(path, label, known, measurements, failures, _load(context))


def _load(context: dict[str, Any]) -> Load | None:
    """What ci/bench noted before its build, else what the program found; None if that is no load."""
    average, cores = context.get("load_at_start"), context.get("num_cpus")
    if average is None:
        averages = context.get("load_avg")
        average = averages[0] if isinstance(averages, list) and averages else None
    try:
        average = float(average)
    except (TypeError, ValueError, OverflowError):
        return None
    if type(cores) is not int or cores < 1 or not 0 <= average < math.inf:
        return None
    return Load(average, cores)


def _printable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Problem(f"{where} holds half a character: {ascii(text)}") from None
    return text


def _name(row: dict[str, Any], index: int) -> str:
    aggregate = row.get("run_type") == "aggregate"
    name = row.get("run_name") if aggregate else row.get("name")
    if not isinstance(name, str) or not name.strip():
        key = "run_name" if aggregate else "name"
        raise _Problem(f"benchmarks[{index}] has no `{key}`")
    return _printable(name, f"benchmarks[{index}]")


def _context_text(value: Any) -> str:
    return _printable(value, "context") if isinstance(value, str) else json.dumps(value)


def _from_repetitions(name: str, rows: list[dict[str, Any]]) -> Measurement:
    if len(rows) > 1:
        indices = [row.get("repetition_index") for row in rows]
        if any(type(index) is not int for index in indices) or len(set(indices)) != len(indices):
            raise _Problem(f"{name}: the name occurs twice")
    promised = rows[0].get("repetitions", len(rows))
    if type(promised) is not int or promised != len(rows):
        raise _Problem(f"{name}: has {len(rows)} of {promised!r} repetitions")
    times = [_seconds(name, row) for row in rows]
    middle = statistics.median(times)
    deviation = statistics.median(abs(time - middle) for time in times)
    spread = MAD_TO_SIGMA * deviation / middle if len(times) >= 3 else None
    counters = {}
    for key in COUNTERS:
        values = [_number(name, row, key) for row in rows if key in row]
        if values:
            counters[key] = statistics.median(values)
    return Measurement(name, middle, spread, len(times), counters)


def _from_aggregates(name: str, rows: dict[str, dict[str, Any]]) -> Measurement:
    if "median" not in rows:
        raise _Problem(f"{name}: has neither repetitions nor the aggregate `median`")
    median = rows["median"]
    seconds = _seconds(name, median)
    count = median.get("repetitions", 0)
    count = count if type(count) is int else 0
    spread = None
    if "stddev" in rows and count >= 3:
        spread = _seconds(name, rows["stddev"], zero=True) / seconds
    counters = {key: _number(name, median, key) for key in COUNTERS if key in median}
    return Measurement(name, seconds, spread, count, counters)


def _seconds(name: str, row: dict[str, Any], zero: bool = False) -> float:
    unit = row.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in SECONDS:
        raise _Problem(f"{name}: time_unit is {unit!r}; must be one of {', '.join(SECONDS)}")
    if "real_time" not in row:
        raise _Problem(f"{name}: has no `real_time`")
    seconds = _number(name, row, "real_time") * SECONDS[unit]
    if seconds == 0 and not zero:
        raise _Problem(f"{name}: real_time is 0; must be positive")
    return seconds


def _number(name: str, row: dict[str, Any], key: str) -> float:
    value = row[key]
    if type(value) not in (int, float):
        raise _Problem(f"{name}: {key} is {value!r}; must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise _Problem(f"{name}: {key} is {number}; must be finite and not negative")
    return number
