"""Result files for tests."""

from __future__ import annotations

import json
import pathlib
import tempfile
import unittest
from typing import Any

CONTEXT = {
    "date": "2026-01-02T03:04:05+00:00",
    "backend": "kokkos",
    "device": "Some CPU",
    "isa": "avx2",
    "threads": "2",
    "tessera_version": "0.1.0",
    "commit": "abc123",
}


def rows(name: str, times: list[float], **extra: Any) -> list[dict[str, Any]]:
    """The repetitions of one benchmark, in milliseconds."""
    return [
        {
            "name": name,
            "run_name": name,
            "run_type": "iteration",
            "repetitions": len(times),
            "repetition_index": index,
            "iterations": 1,
            "real_time": time,
            "cpu_time": time,
            "time_unit": "ms",
            **extra,
        }
        for index, time in enumerate(times)
    ]


def aggregate(name: str, kind: str, time: float, repetitions: int = 5) -> dict[str, Any]:
    return {
        "name": f"{name}_{kind}",
        "run_name": name,
        "run_type": "aggregate",
        "repetitions": repetitions,
        "aggregate_name": kind,
        "real_time": time,
        "cpu_time": time,
        "time_unit": "ms",
    }


class FileCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, benchmarks: Any, **context: Any) -> str:
        return self.write_text(
            name, json.dumps({"context": CONTEXT | context, "benchmarks": benchmarks})
        )

    def write_text(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)
