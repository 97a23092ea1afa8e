"""Tessera's C interface through ctypes: as much of <tessera/tessera.h> as a benchmark needs."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Sequence

FORWARD, BACKWARD, DECODE = 0, 1, 2
DTYPES = {"fp32": 0, "fp16": 1, "bf16": 2}
INT32 = 3
CAUSAL, BOTTOM_RIGHT = 1, 2


class Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int32),
        ("reserved", c.c_int32),
        ("extent", c.c_int64 * 4),
        ("stride", c.c_int64 * 4),
    ]


class Vector(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int32),
        ("reserved", c.c_int32),
        ("count", c.c_int64),
    ]


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("mask", c.c_int32),
        ("alignment", c.c_int32),
        ("window_left", c.c_int64),
        ("window_right", c.c_int64),
        ("dropout", c.c_double),
        ("accumulate", c.c_int32),
        ("deterministic", c.c_int32),
        ("batch_invariant", c.c_int32),
        ("reserved", c.c_int32),
        ("max_seq_q", c.c_int64),
        ("max_seq_k", c.c_int64),
    ]


class Args(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        *((name, Tensor) for name in ("query", "key", "value", "out", "lse")),
        *((name, Tensor) for name in ("dout", "dlse", "dq", "dk", "dv", "dbias", "dsink")),
        ("has_scale", c.c_int32),
        ("scale", c.c_float),
        ("softcap", c.c_float),
        ("reserved", c.c_int32),
        *((name, Tensor) for name in ("alibi_slopes", "bias", "boolean_mask", "sinks")),
        *((name, Vector) for name in ("key_begin", "key_end", "query_end")),
        *((name, Vector) for name in ("cu_seqlens_q", "cu_seqlens_k")),
        ("seed", c.c_uint64),
        ("offset", c.c_uint64),
        ("seed_device", c.c_void_p),
        ("offset_device", c.c_void_p),
        ("workspace", c.c_void_p),
        ("workspace_size", c.c_size_t),
    ]


class Build(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [
        (name, c.c_char_p)
        for name in (
            "version",
            "backend",
            "toolkit",
            "compiler",
            "build_type",
            "head_dims",
            "commit",
        )
    ]


class Device(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char * 128),
        ("isa", c.c_char * 32),
        ("space", c.c_char * 32),
        ("threads", c.c_int32),
        ("reserved", c.c_int32),
        ("memory", c.c_uint64),
    ]


class Stream(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("native", c.c_void_p),
        ("device", c.c_int32),
        ("reserved", c.c_int32),
    ]


class Error(Exception):
    """A call failed; the text is the library's."""


def tensor(address: int, dtype: str, extent: Sequence[int], stride: Sequence[int]) -> Tensor:
    """A view; extents and strides are batch, head, seq, dim."""
    numbers = c.c_int64 * 4
    return Tensor(address, DTYPES[dtype], 0, numbers(*extent), numbers(*stride))


class Library:
    """libtessera."""

    def __init__(self, path: str) -> None:
        self._library = c.CDLL(path)
        for name in ("last_error", "plan_kernel"):
            self._function(name).restype = c.c_char_p
        self._function("plan_workspace_size").restype = c.c_size_t
        for name in ("plan_kernel", "plan_workspace_size", "plan_destroy"):
            self._function(name).argtypes = [c.c_void_p]

    def _function(self, name: str):
        return getattr(self._library, f"tessera_{name}")

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function that returns a status."""
        if self._function(name)(*arguments) != 0:
            raise Error(self._function("last_error")().decode())

    def build(self) -> Build:
        info = Build(size=c.sizeof(Build))
        self.call("build_info", c.byref(info))
        return info

    def device(self) -> Device:
        info = Device(size=c.sizeof(Device))
        self.call("device_info", 0, c.byref(info))
        return info


def vector(address: int, count: int, dtype: int = INT32) -> Vector:
    """Numbers for each batch entry, on the device."""
    return Vector(address, dtype, 0, count)


class Plan:
    """A planned call that can be made again and again. The tensors must outlive it.

    `parts` are tensors and vectors by the names of tessera_args. `workspace` gives the address of
    so many bytes, aligned to 64; without it they are the host's.
    """

    def __init__(
        self,
        library: Library,
        operation: int,
        causal: bool,
        parts: dict[str, Tensor | Vector],
        workspace: Callable[[int], int] | None = None,
    ) -> None:
        self._library = library
        self._plan = c.c_void_p()
        options = Options(size=c.sizeof(Options))
        if causal:
            options.mask, options.alignment = CAUSAL, BOTTOM_RIGHT
        self._args = Args(size=c.sizeof(Args), **parts)
        library.call(
            "plan_create", c.byref(self._plan), operation, c.byref(self._args), c.byref(options)
        )
        size = library._function("plan_workspace_size")(self._plan)
        self._args.workspace = (workspace or self._on_the_host)(size)
        self._args.workspace_size = size
        self.kernel = library._function("plan_kernel")(self._plan).decode()

    def _on_the_host(self, size: int) -> int:
        self._workspace = c.create_string_buffer(size + 64)
        address = c.addressof(self._workspace)
        return address + -address % 64

    def execute(self, stream: int | None = None) -> None:
        """On a native stream, None: the default stream."""
        on = Stream(size=c.sizeof(Stream), native=stream)
        self._library.call("plan_execute", self._plan, c.byref(self._args), c.byref(on))

    def __del__(self) -> None:
        self._library._function("plan_destroy")(self._plan)
