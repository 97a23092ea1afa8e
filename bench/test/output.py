"""What tessera_bench writes: names without suffixes, the promised counters and context.

output.py PATH/TO/tessera_bench
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
    r"^(forward|plan|execute|workspace|naive)/(fp32|fp16|bf16)/d\d+/(full|causal|window)/s\d+"
    r"(/[a-z0-9]+)?$"
)


class Output(unittest.TestCase):
    program = ""

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

    def test_filter_that_matches_nothing_is_an_error(self) -> None:
        self.assertNotEqual(self.run_bench("--benchmark_filter=nothing").returncode, 0)

    def test_unknown_flag_is_an_error(self) -> None:
        self.assertNotEqual(self.run_bench("--what").returncode, 0)


if __name__ == "__main__":
    Output.program = sys.argv.pop(1)
    unittest.main()
