"""The command from end to end: files, reports, exit status."""

from __future__ import annotations

import contextlib
import html.parser
import io
import unittest.mock
import xml.etree.ElementTree

from compare import __main__ as command
from compare.tests.files import FileCase, rows


class CommandCase(FileCase):
    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "out"

    def call(self, *arguments: str) -> tuple[int, str]:
        """Exit status and what went to stderr."""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            try:
                status = command.main([str(self.out), *arguments])
            except SystemExit as stop:
                status = stop.code
        return status, errors.getvalue()

    def report(self, name: str) -> str:
        return (self.out / name).read_text(encoding="utf-8")


class Reports(CommandCase):
    def test_three_files(self) -> None:
        a = self.write(
            "old.json",
            rows("forward/x", [10, 10, 10], flops_per_second=187e9, peak_fraction=0.8)
            + rows("forward/y", [5, 5, 5]),
        )
        b = self.write("new.json", rows("forward/x", [20, 20, 20]) + rows("forward/y", [2, 2, 2]))
        c = self.write("same.json", rows("forward/x", [10, 10, 10]) + rows("forward/z", [1, 1, 1]))
        status, errors = self.call(a, b, c)
        self.assertEqual((status, errors), (0, ""))
        text = self.report("report.md")
        self.assertIn("| forward/x | 0.500 ± 0.020 ▼ slower | 1.000 ± 0.020 |", text)
        self.assertIn("| forward/y | 2.500 ± 0.020 ▲ faster | – |", text)
        self.assertIn("- Regression in new: forward/x 0.500 ± 0.020", text)
        self.assertIn("| new | forward | 1.118 | 2 | 1 | 1 |", text)  # √(0.5·2.5)
        self.assertIn("| forward/x | 10 ms | 187 | 80.0% |", text)
        self.assertIn("- same: forward/y is missing", text)
        self.assertIn("- old: forward/z is missing", text)
        self.assertIn("| old | kokkos | Some CPU | avx2 | 2 | 0.1.0 | abc123 |", text)
        self.assertIn("at least 2%", text)  # the rule
        page = self.report("report.html")
        self.assertIn('<td class="slower">0.500 ± 0.020 ▼ slower</td>', page)
        html.parser.HTMLParser().feed(page)

    def test_chart_names_every_benchmark(self) -> None:
        a = self.write("a.json", rows("forward/x", [10, 10, 10]) + rows("forward/$y_1$", [5, 5, 5]))
        b = self.write("b.json", rows("forward/x", [9, 9, 9]) + rows("forward/$y_1$", [6, 6, 6]))
        for files in ((a, b), (a,)):
            self.assertEqual(self.call(*files)[0], 0)
            tree = xml.etree.ElementTree.parse(self.out / "chart.svg")
            texts = {element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")}
            self.assertLessEqual({"forward/x", "forward/$y_1$"}, texts)

    def test_one_file(self) -> None:
        status, _ = self.call(self.write("a.json", rows("x", [10, 10, 10])))
        self.assertEqual(status, 0)
        self.assertIn("| x | 10 ms | – | – |", self.report("report.md"))
        self.assertNotIn("## Ratios", self.report("report.md"))

    def test_the_same_twice_is_the_same(self) -> None:
        a = self.write("a.json", rows("x", [10, 11, 12]))
        self.assertEqual(self.call(a, a, "--fail-below", "1")[0], 0)
        self.assertIn("No regression beyond noise.", self.report("report.md"))

    def test_names_are_not_markup(self) -> None:
        name = "forward/<script>|*x*"
        path = self.write("a.json", rows(name, [1, 1, 1]), device="<b>|`")
        self.call(path)
        self.assertNotIn("<script>", self.report("report.html"))
        self.assertNotIn("<b>", self.report("report.html"))
        self.assertIn("forward/\\<script\\>\\|\\*x\\*", self.report("report.md"))

    def test_devices_differ(self) -> None:
        a, b = self.write("a.json", rows("x", [1, 1, 1])), self.write(
            "b.json", rows("x", [1, 1, 1]), device="Other"
        )
        status, errors = self.call(a, b)
        self.assertEqual(status, 0)
        self.assertIn("warning: The files differ in device: Some CPU | Other.", errors)
        self.assertIn(
            "> **Warning:** The files differ in device: Some CPU \\| Other.",
            self.report("report.md"),
        )
        self.assertIn(
            '<p class="warning">Warning: The files differ in device', self.report("report.html")
        )

    def test_load(self) -> None:
        a = self.write("a.json", rows("x", [1, 1, 1]), num_cpus=2, load_avg=[0.1, 2, 2])
        b = self.write("b.json", rows("x", [1, 1, 1]), num_cpus=2, load_avg=[1.9, 0, 0])
        self.assertEqual(self.call(a, a), (0, ""))
        status, errors = self.call(a, b)
        self.assertEqual(status, 0)
        self.assertEqual(errors.count("\n"), 1)
        self.assertIn("warning: b: the load average at the start was 1.90 of 2. Others", errors)
        text = self.report("report.md")
        self.assertIn("> **Warning:** b: the load average at the start was 1.90 of 2.", text)
        self.assertIn("| 2026-01-02T03:04:05+00:00 | 0.10 of 2 |", text)
        self.assertIn("| 2026-01-02T03:04:05+00:00 | 1.90 of 2 |", text)

    def test_few_repetitions(self) -> None:
        a = self.write("a.json", rows("x", [1]))
        self.assertIn("1 of 1 benchmarks have fewer than three repetitions", self.call(a, a)[1])

    def test_failure_is_told(self) -> None:
        failed = {
            "name": "y",
            "run_type": "iteration",
            "error_occurred": True,
            "error_message": "no such kernel",
        }
        a = self.write("a.json", rows("x", [1, 1, 1]) + rows("y", [1, 1, 1]))
        b = self.write("b.json", rows("x", [1, 1, 1]) + [failed])
        self.call(a, b)
        self.assertIn("- b: y failed: no such kernel", self.report("report.md"))


class Status(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.old = self.write("old.json", rows("x", [10, 10, 10]) + rows("y", [10, 10, 10]))
        self.slow = self.write("slow.json", rows("x", [11, 11, 11]) + rows("y", [10, 10, 10]))

    def test_slow_passes_unless_asked(self) -> None:
        self.assertEqual(self.call(self.old, self.slow)[0], 0)

    def test_slow_fails_when_asked(self) -> None:
        for arguments in (
            (self.old, self.slow, "--fail-below", "0.95"),
            ("--fail-below=0.95", self.old, self.slow),
        ):
            status, errors = self.call(*arguments)
            self.assertEqual(status, 1)
            self.assertIn("slow: x: ratio 0.909 is below 0.95", errors)
            self.assertNotIn("y:", errors)
            self.assertTrue((self.out / "report.md").exists())

    def test_slow_within_the_bound(self) -> None:
        self.assertEqual(self.call(self.old, self.slow, "--fail-below", "0.9")[0], 0)

    def test_noisy_is_not_slow(self) -> None:
        noisy = self.write("noisy.json", rows("x", [10, 11, 12]) + rows("y", [10, 10, 10]))
        self.assertEqual(self.call(self.old, noisy, "--fail-below", "0.95")[0], 0)

    def test_missing_fails_when_asked(self) -> None:
        part = self.write("part.json", rows("x", [10, 10, 10]))
        self.assertEqual(self.call(self.old, part)[0], 0)
        status, errors = self.call(self.old, part, "--fail-below", "0.95")
        self.assertEqual(status, 1)
        self.assertIn("part: y: missing", errors)
        self.assertEqual(self.call(self.old, part, "--fail-below", "0.95", "--allow-missing")[0], 0)
        self.assertEqual(self.call(part, self.old, "--fail-below", "0.95")[0], 0)

    def test_malformed(self) -> None:
        bad = self.write_text("bad.json", "{")
        for files in ((bad,), (self.old, bad), (bad, self.old)):
            status, errors = self.call(*files)
            self.assertEqual(status, 2)
            self.assertEqual(errors.count("\n"), 1)
            self.assertIn("bad.json: is not JSON", errors)
        self.assertFalse(self.out.exists())

    def test_nothing_in_common(self) -> None:
        status, errors = self.call(self.old, self.write("z.json", rows("z", [1, 1, 1])))
        self.assertEqual(status, 2)
        self.assertIn("z.json: nothing to compare", errors)
        self.assertEqual(errors.count("\n"), 1)

    def test_nothing_measured(self) -> None:
        failed = {"name": "y", "error_occurred": True, "error_message": "no"}
        self.assertEqual(self.call(self.write("z.json", [failed]))[0], 2)

    def test_wrong_use(self) -> None:
        for arguments in (
            (),
            (self.old, "--fail-below", "0.95"),
            (self.old, self.slow, "--fail-below", "nan"),
            (self.old, self.slow, "--fail-below", "0"),
            (self.old, self.slow, "--fail-below", "2"),
            (self.old, self.slow, "--what"),
        ):
            self.assertEqual(self.call(*arguments)[0], 2, arguments)

    def test_out_dir_is_a_file(self) -> None:
        self.out.write_text("", encoding="utf-8")
        status, errors = self.call(self.old, self.slow)
        self.assertEqual(status, 2)
        self.assertEqual(errors.count("\n"), 1)
        self.assertIn("cannot be written", errors)
