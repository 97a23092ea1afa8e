"""The noise rule, geometric means and the bound."""

from __future__ import annotations

import unittest

from compare import judge
from compare.judge import Verdict
from compare.load import Measurement, Run


def measured(name: str, seconds: float, spread: float | None = 0.0) -> Measurement:
    return Measurement(name, seconds, spread, 5, {})


def run(label: str, *measurements: Measurement) -> Run:
    return Run(label + ".json", label, {}, {m.name: m for m in measurements}, {})


class Rule(unittest.TestCase):
    def verdict(self, first: float, other: float, *spreads: float | None) -> Verdict:
        return judge.compare(
            measured("x", first, spreads[0]), measured("x", other, spreads[1])
        ).verdict

    def test_ratio_above_one_is_faster(self) -> None:
        c = judge.compare(measured("x", 2.0), measured("x", 1.0))
        self.assertEqual(c.ratio, 2.0)
        self.assertIs(c.verdict, Verdict.FASTER)

    def test_floor(self) -> None:
        self.assertIs(self.verdict(1.0, 1.019, 0.0, 0.0), Verdict.SAME)
        self.assertIs(self.verdict(1.0, 1.021, 0.0, 0.0), Verdict.SLOWER)
        self.assertIs(self.verdict(1.019, 1.0, 0.0, 0.0), Verdict.SAME)
        self.assertIs(self.verdict(1.021, 1.0, 0.0, 0.0), Verdict.FASTER)

    def test_spreads_add_in_squares(self) -> None:
        # 3·√(0.03² + 0.04²) = 0.15
        self.assertIs(self.verdict(1.0, 1.149, 0.03, 0.04), Verdict.SAME)
        self.assertIs(self.verdict(1.0, 1.151, 0.03, 0.04), Verdict.SLOWER)

    def test_unknown_spread_is_assumed(self) -> None:
        self.assertIs(self.verdict(1.0, 1.14, None, 0.0), Verdict.SAME)
        self.assertIs(self.verdict(1.0, 1.16, None, 0.0), Verdict.SLOWER)

    def test_symmetric(self) -> None:
        for other in (0.5, 0.9, 0.97, 0.99, 1.0):
            forth = self.verdict(1.0, other, 0.01, 0.01)
            back = self.verdict(other, 1.0, 0.01, 0.01)
            expected = {Verdict.FASTER: Verdict.SLOWER, Verdict.SAME: Verdict.SAME}[forth]
            self.assertIs(back, expected)


class Means(unittest.TestCase):
    def test_geometric_mean(self) -> None:
        self.assertAlmostEqual(judge.geometric_mean([0.5, 2.0, 8.0]), 2.0)

    def test_groups(self) -> None:
        names = ("forward/a", "forward/b", "plan/a")
        first = run("a", *(measured(name, 4.0) for name in names))
        other = run(
            "b", measured("forward/a", 2.0), measured("forward/b", 0.5), measured("plan/a", 4.0)
        )
        means = judge.geometric_means(judge.compare_runs(first, other))
        self.assertEqual(
            {key: (round(m, 9), n) for key, (m, n) in means.items()},
            {"forward": (4.0, 2), "plan": (1.0, 1), "all": (round(16 ** (1 / 3), 9), 3)},
        )

    def test_missing_on_either_side(self) -> None:
        first, other = run("a", measured("x", 1), measured("y", 1)), run(
            "b", measured("y", 1), measured("z", 1)
        )
        self.assertEqual(list(judge.compare_runs(first, other)), ["y"])
        self.assertEqual(judge.missing(first, other), ["x"])


class Bound(unittest.TestCase):
    def names(self, bound: float, *others: Measurement) -> list[str]:
        first = run("a", *(measured(m.name, 1.0) for m in others))
        return [c.name for c in judge.failing(judge.compare_runs(first, run("b", *others)), bound)]

    def test_below_and_beyond_noise(self) -> None:
        self.assertEqual(self.names(0.95, measured("x", 1.1)), ["x"])

    def test_below_but_noise(self) -> None:
        self.assertEqual(self.names(0.95, measured("x", 1.1, 0.05)), [])

    def test_regression_within_the_bound(self) -> None:
        self.assertEqual(self.names(0.95, measured("x", 1.04)), [])
