"""Reading: medians and spreads of good files, one clear line about bad ones."""

from __future__ import annotations

import json
import math
import pathlib

from compare import load
from compare.tests.files import CONTEXT, FileCase, aggregate, rows


class Good(FileCase):
    def test_median_and_spread_of_repetitions(self) -> None:
        path = self.write("a.json", rows("forward/x", [10, 11, 12, 13, 90], flops_per_second=2e9))
        m = load.load(path).measurements["forward/x"]
        self.assertAlmostEqual(m.seconds, 12e-3)
        self.assertAlmostEqual(m.spread, 1.4826 * 1 / 12)
        self.assertEqual(m.repetitions, 5)
        self.assertEqual(m.counters, {"flops_per_second": 2e9})

    def test_aggregates_beside_repetitions_are_ignored(self) -> None:
        path = self.write(
            "a.json",
            rows("x", [10, 10, 10]) + [aggregate("x", "median", 99), aggregate("x", "cv", 0)],
        )
        self.assertAlmostEqual(load.load(path).measurements["x"].seconds, 10e-3)

    def test_aggregates_alone(self) -> None:
        kinds = [
            aggregate("x", "mean", 12),
            aggregate("x", "median", 10),
            aggregate("x", "stddev", 2),
        ]
        m = load.load(self.write("a.json", kinds)).measurements["x"]
        self.assertAlmostEqual(m.seconds, 10e-3)
        self.assertAlmostEqual(m.spread, 0.2)

    def test_two_repetitions_have_no_spread(self) -> None:
        self.assertIsNone(
            load.load(self.write("a.json", rows("x", [1, 2]))).measurements["x"].spread
        )

    def test_nan_in_aggregates_that_nobody_needs(self) -> None:
        # Google Benchmark's coefficient of variation of a counter that is zero.
        cv = aggregate("x", "cv", 0) | {"workspace_bytes": math.nan}
        self.assertAlmostEqual(
            load.load(self.write("a.json", rows("x", [1]) + [cv])).measurements["x"].seconds, 1e-3
        )

    def test_units(self) -> None:
        for unit, seconds in (("ns", 3e-9), ("us", 3e-6), ("ms", 3e-3), ("s", 3.0)):
            path = self.write("a.json", rows("x", [3], time_unit=unit))
            self.assertAlmostEqual(load.load(path).measurements["x"].seconds, seconds)

    def test_failed_benchmark_is_no_measurement(self) -> None:
        failed = {
            "name": "y",
            "run_type": "iteration",
            "error_occurred": True,
            "error_message": "no such kernel",
        }
        run = load.load(self.write("a.json", rows("x", [1]) + [failed]))
        self.assertEqual(list(run.measurements), ["x"])
        self.assertEqual(run.failures, {"y": "no such kernel"})

    def test_context_without_our_keys(self) -> None:
        path = self.write_text(
            "a.json", json.dumps({"context": {"num_cpus": 2}, "benchmarks": rows("x", [1])})
        )
        self.assertEqual(load.load(path).context, {})

    def test_load(self) -> None:
        def found(**context: object) -> load.Load | None:
            return load.load(self.write("a.json", rows("x", [1]), **context)).load

        program = {"num_cpus": 2, "load_avg": [1.5, 1, 1]}
        self.assertEqual(found(**program), load.Load(1.5, 2))
        # What ci/bench noted comes first: its build is in the other.
        self.assertEqual(found(**program, load_at_start="0.25"), load.Load(0.25, 2))
        for context in (
            {},
            {"num_cpus": 2},
            {"num_cpus": 2, "load_avg": []},
            {"num_cpus": 2, "load_avg": 1},
            {"num_cpus": 2, "load_avg": ["much"]},
            {"num_cpus": 2, "load_avg": [10**400]},
            {"num_cpus": 2, "load_avg": [-1]},
            {"num_cpus": 2, "load_at_start": "nan"},
            {"num_cpus": 0, "load_avg": [1]},
            {"num_cpus": "2", "load_avg": [1]},
            {"load_avg": [1]},
        ):
            self.assertIsNone(found(**context), context)

    def test_high_load(self) -> None:
        self.assertFalse(load.Load(0.5, 2).high)
        self.assertTrue(load.Load(0.51, 2).high)
        self.assertFalse(load.Load(0.51, 4).high)

    def test_labels_are_unique(self) -> None:
        (self.folder / "b").mkdir()
        paths = [self.write("r.json", rows("x", [1])), self.write("b/r.json", rows("x", [1]))]
        self.assertEqual([run.label for run in load.load_all(paths)], ["r", "r (2)"])


class Bad(FileCase):
    def refused(self, path: str, text: str) -> None:
        with self.assertRaises(load.Malformed) as caught:
            load.load(path)
        message = str(caught.exception)
        self.assertIn(text, message)
        self.assertTrue(message.startswith(path + ": "), message)
        self.assertNotIn("\n", message)

    def test_no_such_file(self) -> None:
        self.refused(str(self.folder / "none.json"), "cannot be read: No such file")

    def test_folder(self) -> None:
        self.refused(str(self.folder), "cannot be read: Is a directory")

    def test_not_text(self) -> None:
        path = self.folder / "a.json"
        path.write_bytes(b'{"context"\xff')
        self.refused(str(path), "is not UTF-8: byte 10")

    def test_not_json(self) -> None:
        whole = pathlib.Path(self.write("whole.json", rows("x", [1]))).read_text(encoding="utf-8")
        for text in ("", "{", "[1,]", whole[: len(whole) // 2], whole + "}"):
            self.refused(self.write_text("a.json", text), "is not JSON")

    def test_deep_nesting(self) -> None:
        self.refused(self.write_text("a.json", "[" * 200000), "nested too deeply")

    def test_numbers_that_are_none(self) -> None:
        for number in (math.nan, math.inf, -math.inf):
            for key in ("real_time", "flops_per_second"):
                path = self.write("a.json", rows("x", [1], **{key: number}))
                self.refused(path, f"x: {key} is {number}; must be finite")

    def test_thousands_of_digits(self) -> None:
        self.refused(self.write_text("a.json", "1" * 10000), "is not JSON")

    def test_key_twice(self) -> None:
        self.refused(
            self.write_text("a.json", '{"context": {}, "context": {}}'),
            "has the key 'context' twice",
        )

    def test_wrong_shapes(self) -> None:
        for text, error in (
            ("[]", "outermost value is not an object"),
            ("{}", "no object `context`"),
            ('{"context": [], "benchmarks": []}', "no object `context`"),
            ('{"context": {}}', "no array `benchmarks`"),
            ('{"context": {}, "benchmarks": {}}', "no array `benchmarks`"),
            ('{"context": {}, "benchmarks": []}', "holds no benchmark"),
            ('{"context": {}, "benchmarks": [1]}', "benchmarks[0] is not an object"),
            ('{"context": {}, "benchmarks": [{"real_time": 1}]}', "benchmarks[0] has no `name`"),
            ('{"context": {}, "benchmarks": [{"name": "  "}]}', "benchmarks[0] has no `name`"),
            ('{"context": {}, "benchmarks": [{"name": "x"}]}', "x: has no `real_time`"),
            (
                '{"context": {}, "benchmarks": [{"name": "x\\ud800", "real_time": 1}]}',
                "benchmarks[0] holds half a character",
            ),
        ):
            self.refused(self.write_text("a.json", text), error)

    def test_wrong_values(self) -> None:
        for extra, error in (
            ({"real_time": 0}, "real_time is 0; must be positive"),
            ({"real_time": -1}, "real_time is -1.0; must be finite and not negative"),
            ({"real_time": "1"}, "real_time is '1'; must be a number"),
            ({"real_time": True}, "real_time is True; must be a number"),
            ({"real_time": None}, "real_time is None; must be a number"),
            ({"real_time": 10**400}, "real_time is inf"),
            ({"time_unit": "h"}, "time_unit is 'h'; must be one of ns, us, ms, s"),
            ({"time_unit": ["ms"]}, "time_unit is ['ms']"),
            ({"run_type": "other"}, "run_type is 'other'"),
            ({"repetitions": 3}, "has 1 of 3 repetitions"),
            ({"repetitions": "1"}, "has 1 of '1' repetitions"),
            ({"flops_per_second": "fast"}, "flops_per_second is 'fast'"),
        ):
            self.refused(self.write("a.json", rows("x", [1], **extra)), "x: " + error)

    def test_name_twice(self) -> None:
        self.refused(
            self.write("a.json", rows("x", [1]) + rows("y", [1]) + rows("x", [2])),
            "x: the name occurs twice",
        )

    def test_name_twice_without_indices(self) -> None:
        pair = [{"name": "x", "real_time": 1}, {"name": "x", "real_time": 2}]
        self.refused(self.write("a.json", pair), "x: the name occurs twice")

    def test_aggregates(self) -> None:
        median = aggregate("x", "median", 1)
        self.refused(self.write("a.json", [median, median]), "x: the aggregate median occurs twice")
        self.refused(
            self.write("a.json", [aggregate("x", "mean", 1)]),
            "neither repetitions nor the aggregate `median`",
        )
        self.refused(self.write("a.json", [aggregate("x", "median", 0)]), "x: real_time is 0")
        self.refused(
            self.write("a.json", [{**median, "aggregate_name": 1}]), "x: an aggregate without"
        )
        self.refused(
            self.write("a.json", [{**median, "run_name": None}]), "benchmarks[0] has no `run_name`"
        )

    def test_error_text_stays_one_line(self) -> None:
        path = self.write_text(
            "a.json", json.dumps({"context": CONTEXT, "benchmarks": rows("a\nb", [0])})
        )
        with self.assertRaises(load.Malformed) as caught:
            load.load(path)
        self.assertNotIn("\n", str(caught.exception))
