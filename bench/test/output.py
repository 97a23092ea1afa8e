"""What tessera_bench writes: names without suffixes, the promised counters and context.

output.py PATH/TO/tessera_bench [PATH/TO/an_adapter.so]
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from compare import load

NAME = (
    r"^(forward|backward|decode|plan|execute|workspace|naive|stack)/(fp32|fp16|bf16)/d\d+"
    r"/(full|causal|window)/s\d+(/[a-z0-9]+|/[a-z]+/b\d+/k\d+/(bhsd|bshd))?$"
)


class Output(unittest.TestCase):
    program = ""
    adapter: str | None = None

    def run_bench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, check=False
        )

    def test_names(self) -> None:
        names = self.run_bench("--benchmark_list_tests=true").stdout.split()
        self.assertGreater(len(names), 40)
        self.assertEqual(len(set(names)), len(names))
        for name in names:
            self.assertRegex(name, NAME)
        for name in (
            "forward/bf16/d128/causal/s4096",
            "forward/fp32/d64/full/s2048",
            "execute/fp32/d64/full/s16",
        ):
            self.assertIn(name, names)

    def test_file(self) -> None:
        wanted = (
            "forward/fp32/d64/causal/s512",
            "plan/fp32/d64/full/s16",
            "execute/fp32/d64/full/s16",
            "workspace/fp32/d64/full/s2048",
        )
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "out.json")
            done = self.run_bench(
                f"--benchmark_filter=^({'|'.join(wanted)})$",
                f"--benchmark_out={path}",
                "--benchmark_repetitions=3",
                "--benchmark_min_time=0.001",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            run = load.load(path)
            raw = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.assertEqual(run.failures, {})
        self.assertEqual(set(run.measurements), set(wanted))
        for key in load.CONTEXT:
            self.assertTrue(run.context.get(key), key)
        counters = run.measurements["forward/fp32/d64/causal/s512"].counters
        self.assertEqual(counters["flops"], 2 * 8 * 512 * (512 + 1) / 2 * (64 + 64))
        self.assertEqual(counters["bytes"], 4 * 8 * 512 * 64 * 4)
        self.assertGreater(counters["flops_per_second"], 0)
        # Factors of two: whoever else uses the processors must not fail this, a wrong unit must.
        for row in raw["benchmarks"]:
            if row["run_type"] == "iteration" and row["name"].startswith("forward/"):
                rate = row["flops"] / (row["real_time"] * load.SECONDS[row["time_unit"]])
                self.assertLess(0.5 * rate, row["flops_per_second"])
                self.assertGreater(2 * rate, row["flops_per_second"])
        if run.context["isa"] in ("avx512", "avx2", "portable"):
            self.assertGreater(counters["peak_fraction"], 0)
            self.assertLess(counters["peak_fraction"], 5)
        self.assertIn("workspace_bytes", run.measurements["workspace/fp32/d64/full/s2048"].counters)

    def test_decode_and_stack(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "out.json")
            done = self.run_bench(
                "--benchmark_filter=^(decode/fp32/d128/causal/s2048|stack/fp32/d64/causal/s2048/both)$",
                f"--benchmark_out={path}",
                "--benchmark_repetitions=1",
                "--benchmark_min_time=0.001",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            raw = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        rows = {row["name"]: row for row in raw["benchmarks"]}
        decode = rows["decode/fp32/d128/causal/s2048"]
        self.assertEqual(decode["bytes"], 8 * 2048 * (128 + 128) * 4)
        self.assertGreater(decode["kv_bytes_per_second"], 0)
        out, lse = 12 * 8 * 2048 * 64 * 4, 12 * 8 * 2048 * 4
        self.assertEqual(rows["stack/fp32/d64/causal/s2048/both"]["kept_bytes"], out + lse)

    def test_adapter(self) -> None:
        if self.adapter is None:
            self.skipTest("no BLAS was found")
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "out.json")
            done = self.run_bench(
                "--adapter",
                self.adapter,
                "--benchmark_filter=^forward/(fp32|bf16)/d64/causal/s512$",
                f"--benchmark_out={path}",
                "--benchmark_repetitions=3",
                "--benchmark_min_time=0.001",
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            run = load.load(path)
            raw = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.assertEqual(raw["context"]["adapter"], "blas")
        self.assertIn("forward/fp32/d64/causal/s512", run.measurements)
        self.assertIn("blas: ", run.failures["forward/bf16/d64/causal/s512"])  # which it declines
        names = self.run_bench(f"--adapter={self.adapter}", "--benchmark_list_tests=true").stdout
        self.assertNotIn("plan/", names)

    def test_no_adapter_is_an_error(self) -> None:
        done = self.run_bench("--adapter=/nowhere/at/all.so", "--benchmark_list_tests=true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nowhere/at/all.so", done.stderr)

    def test_adapter_without_a_value_is_an_error(self) -> None:
        for arguments in (["--adapter"], ["--adapter="]):
            done = self.run_bench("--benchmark_list_tests=true", *arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--adapter has no value; must be --adapter=PATH.so", done.stderr)

    def test_help_says_adapter(self) -> None:
        self.assertIn("--adapter PATH.so", self.run_bench("--help").stdout)

    def test_filter_that_matches_nothing_is_an_error(self) -> None:
        self.assertNotEqual(self.run_bench("--benchmark_filter=no/such/name").returncode, 0)

    def test_unknown_flag_is_an_error(self) -> None:
        self.assertNotEqual(self.run_bench("--what").returncode, 0)


if __name__ == "__main__":
    Output.program = sys.argv.pop(1)
    if len(sys.argv) > 1 and sys.argv[1].endswith(".so"):
        Output.adapter = sys.argv.pop(1)
    unittest.main()
