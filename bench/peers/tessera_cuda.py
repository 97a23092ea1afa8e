"""Tessera on PyTorch's CUDA tensors [batch, seq, head, dim], for a timing harness.

forward(q, k, v, causal) gives a callable; decode(q, k, v, lengths) computes at once. Both write
lse. TESSERA_LIBRARY names libtessera.so. Calls go to PyTorch's current stream, allocate nothing
once planned, and can be captured in a CUDA graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import tessera
import torch

_library = tessera.Library(os.environ["TESSERA_LIBRARY"])
_DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}
_planned: dict[tuple, Call] = {}


def _view(x: torch.Tensor) -> tessera.Tensor:
    order = (0, 2, 1, 3)
    extent, stride = zip(*((x.shape[i], x.stride(i)) for i in order), strict=True)
    return tessera.tensor(x.data_ptr(), _DTYPES[x.dtype], extent, stride)


class Call:
    """One planned operation on these tensors."""

    def __init__(self, operation: int, causal: bool, q, k, v, **vectors: torch.Tensor) -> None:
        batch, seq, heads, _ = q.shape
        self.out = torch.empty(batch, seq, heads, v.shape[3], device=q.device, dtype=q.dtype)
        self.lse = torch.empty(batch, heads, seq, 1, device=q.device, dtype=torch.float32)
        self._keep = (q, k, v, vectors)
        lse = tessera.tensor(
            self.lse.data_ptr(), "fp32", tuple(self.lse.shape), tuple(self.lse.stride())
        )
        parts = {"query": _view(q), "key": _view(k), "value": _view(v), "out": _view(self.out)}
        lengths = {n: tessera.vector(x.data_ptr(), x.numel()) for n, x in vectors.items()}
        self.plan = tessera.Plan(
            _library, operation, causal, parts | {"lse": lse} | lengths, self._workspace
        )

    def _workspace(self, size: int) -> int:
        self._memory = torch.empty(max(size, 1), device=self.out.device, dtype=torch.uint8)
        return self._memory.data_ptr()

    def __call__(self) -> torch.Tensor:
        self.plan.execute(torch.cuda.current_stream().cuda_stream)
        return self.out


def forward(q, k, v, causal: bool) -> Callable[[], torch.Tensor]:
    return Call(tessera.FORWARD, causal, q, k, v)


def decode(q, k, v, lengths: torch.Tensor) -> torch.Tensor:
    key = tuple((x.data_ptr(), tuple(x.shape)) for x in (q, k, v, lengths))
    if key not in _planned:
        _planned[key] = Call(tessera.DECODE, False, q, k, v, key_end=lengths)
    return _planned[key]()
