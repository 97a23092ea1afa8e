"""The ctypes view of the C interface against loops: test_tessera.py LIBTESSERA.so. Needs no package."""

from __future__ import annotations

import ctypes
import math
import random
import sys
import unittest

import tessera

ROWS, DIM = 5, 8


class Interface(unittest.TestCase):
    path = ""

    def setUp(self) -> None:
        self.library = tessera.Library(self.path)
        numbers = random.Random(1)
        self.rows = [
            [[numbers.gauss(0, 1) for _ in range(DIM)] for _ in range(ROWS)] for _ in "qkv"
        ]
        self.memory = [(ctypes.c_float * (ROWS * DIM))(*sum(rows, [])) for rows in self.rows]
        self.out = (ctypes.c_float * (ROWS * DIM))()

    def view(self, memory: object, dim: int = DIM) -> tessera.Tensor:
        address = ctypes.addressof(memory)
        return tessera.tensor(address, "fp32", (1, 1, ROWS, dim), (0, 0, dim, 1))

    def tensors(self) -> dict[str, tessera.Tensor]:
        views = map(self.view, (*self.memory, self.out))
        return dict(zip(("query", "key", "value", "out"), views, strict=True))

    def test_causal_forward(self) -> None:
        plan = tessera.Plan(self.library, tessera.FORWARD, True, self.tensors())
        self.assertTrue(plan.kernel.startswith("forward."))
        plan.execute()
        q, k, v = self.rows
        for i in range(ROWS):
            scores = [
                math.fsum(map(float.__mul__, q[i], k[j])) / math.sqrt(DIM) for j in range(i + 1)
            ]
            weights = [math.exp(score) for score in scores]
            for d in range(DIM):
                expected = math.fsum(w * v[j][d] for j, w in enumerate(weights)) / math.fsum(
                    weights
                )
                self.assertAlmostEqual(self.out[i * DIM + d], expected, places=5)

    def test_an_error_has_the_librarys_text(self) -> None:
        tensors = self.tensors() | {"key": self.view(self.memory[1], 4)}
        with self.assertRaisesRegex(tessera.Error, r"^key.extent.dim is 4; must equal"):
            tessera.Plan(self.library, tessera.FORWARD, False, tensors)

    def test_build_and_device(self) -> None:
        self.assertRegex(self.library.build().version.decode(), r"^\d+\.\d+\.\d+$")
        self.assertGreaterEqual(self.library.device().threads, 1)


if __name__ == "__main__":
    Interface.path = sys.argv.pop(1)
    unittest.main()
