"""Calls that a CUDA graph captures: what is loaded before, and whose memory they take.

CuPy and the GPU are stand-ins.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime import stub_cupy
from tests.runtime.test_gpu_calls import package, refused, there, ts

__all__ = ["package", "ts"]

PASSING = "would be in memory that CuPy may hand on before a captured graph is replayed;"


@contextmanager
def capture() -> Iterator[None]:
    stub_cupy.here.captured = True
    try:
        yield
    finally:
        stub_cupy.here.captured = False


def test_a_call_is_captured(ts: ModuleType) -> None:
    x, out = there([1, 2]), there([0, 0])
    ts.square(x)
    with capture():
        assert ts.square(x, out=out) is out
        assert ts.square(x).host.tolist() == [1, 4]
    assert out.host.tolist() == [1, 4]


def test_what_would_not_outlive_a_captured_call(ts: ModuleType) -> None:
    x, small, weight = there(np.ones((30, 7, 8))), there([1, 2], "f"), there(np.ones((3, 8)))
    wide = there(np.ones((4, 3, 2)))
    contiguous = "pass cupy.ascontiguousarray(...) of it"
    cases = [
        (lambda: ts.greedy(there([1, 2])),
         f"greedy: its workspace of 1000 bytes {PASSING} pass workspace=cupy.empty(1000, 'uint8')"),
        (lambda: ts.square(there([1, 2], "i4")),
         f"square: argument x as float64 {PASSING} pass a cupy.ndarray of that dtype"),
        (lambda: ts.scaled(small, 3),
         f"scaled: argument by as int8 {PASSING} pass a cupy.ndarray of that dtype"),
        (lambda: ts.softmax(x[:, ::2]),
         f"softmax: a contiguous copy of argument x {PASSING} {contiguous}"),
        (lambda: ts.max(wide, axis=(0, 2)),
         f"max: a contiguous copy of argument x {PASSING} {contiguous}"),
        (lambda: ts.softmax(x[0], out=x[0, ::-1]),
         f"softmax: what is written over an argument {PASSING} pass an out= that "
         "overlaps no argument"),
        (lambda: ts.add_into(x[0, :1], x[0, :1]),
         f"add_into: a copy of argument b {PASSING} pass arrays that do not overlap"),
        (lambda: ts.clamp(x[0], there(0)),
         "clamp: a scalar on the GPU cannot be read while a CUDA graph is captured; pass a number"),
    ]  # fmt: skip
    ts.warmup()
    assert weight.ndim == 2
    for call, message in cases:
        with capture(), refused(RuntimeError, message):
            call()
    for call, _ in cases:
        call()


def test_workspace(ts: ModuleType) -> None:
    x = there([1, 2])
    memory = stub_cupy.ndarray.of(np.zeros(2000, np.uint8))
    seen = []
    stub_cupy_alloc = stub_cupy.cuda.alloc
    stub_cupy.cuda.alloc = seen.append
    try:
        with capture():
            out = there([0, 0])
            assert ts.greedy(x, out=out, workspace=memory).host.tolist() == [1, 2]
    finally:
        stub_cupy.cuda.alloc = stub_cupy_alloc
    start = -memory.data.ptr % 256
    assert seen == [] and memory.host[start : start + 16].view(float).tolist() == [1, 2]
    assert not memory.host[start + 16 :].any() and not memory.host[:start].any()
    assert ts.square(x, workspace=memory).host.tolist() == [1, 4]  # which needs none


def test_workspace_that_will_not_do(ts: ModuleType) -> None:
    x = there([1, 2])
    memory = stub_cupy.ndarray.of(np.zeros(2000, np.uint8))
    unaligned = memory[-memory.data.ptr % 256 + 1 :][:1254]
    place = "greedy: workspace must be a cupy.ndarray on GPU 0, got"
    with refused(ValueError, "greedy: workspace must have at least 1255 bytes, got 1254"):
        ts.greedy(x, workspace=unaligned)
    with refused(ValueError, "greedy: workspace must be contiguous"):
        ts.greedy(x, workspace=memory[::2])
    with refused(ValueError, "greedy: workspace overlaps x"):
        ts.greedy(x, workspace=x)
    with refused(ValueError, "greedy: workspace overlaps y"):
        out = there([0, 0])
        ts.greedy(x, out=out, workspace=out)
    with refused(TypeError, f"{place} a numpy.ndarray"):
        ts.greedy(x, workspace=memory.host)
    with refused(TypeError, f"{place} a cupy.ndarray on GPU 1"):
        ts.greedy(x, workspace=stub_cupy.ndarray.of(memory.host, 1))
    with refused(TypeError, "greedy: workspace is for calls on a GPU, and the arrays are on none"):
        ts.greedy(x.host, workspace=memory)
    with pytest.raises(TypeError, match="unexpected keyword argument 'workspace'"):
        ts.limits(x.host, workspace=None)  # which has no CUDA code


# ---------------------------------------------------------------- warmup

SOURCE = """
extern "C" __global__ void __launch_bounds__(256)
ts_square_float32_launch0(const int32_t n) {}

extern "C" __global__ void __launch_bounds__(32) ts_square_float64_launch0(const int64_t n) {}
"""


def test_warmup_loads_what_calls_need(package: Any) -> None:
    (package.folder / "square.sm_90.cu").write_text(SOURCE)
    said = package.run(
        "ts.warmup(ts.square, device=1)",
        "ts.warmup(ts.square, device=cupy.Device(0))",
        "ts.warmup(ts.square)",  # again
        "cupy.here.captured = True",
        "print(cupy.Module.loaded, len(cupy.attributes), ts.square(x).host, len(cupy.compiled))",
    )
    names = [f"source ts_square_{t}_launch0 on {k}" for k in (1, 0) for t in ("float32", "float64")]
    assert said == f"{names} 4 [9.] 2"


def test_a_captured_call_that_nobody_warmed_up(package: Any) -> None:
    (package.folder / "square.sm_90.cu").write_text(SOURCE)
    assert package.run("cupy.here.captured = True", "ts.square(x)") == (
        "RuntimeError: square: its code is not loaded, and cannot be while a CUDA graph is "
        "captured; call warmup(square) before"
    )


def test_warmup_of_all_functions(ts: ModuleType) -> None:
    before = len(stub_cupy.attributes)
    ts.warmup(device=1)
    assert len(stub_cupy.attributes) - before == 24
    with capture():
        ts.greedy(there([1, 2]), workspace=stub_cupy.ndarray.of(np.zeros(2000, np.uint8)))
    ts.warmup(device=1)
    assert len(stub_cupy.attributes) - before == 24


def test_a_package_without_its_source(package: Any) -> None:
    (package.folder / "square.sm_90.fatbin").touch()
    assert package.run("ts.warmup(ts.square)") == (
        f"RuntimeError: square: the package standin lacks square.sm_90.cu in {package.folder}; "
        "install the package again"
    )


def test_warmup_of_what_is_no_kernel(ts: ModuleType) -> None:
    for wrong in (len, "square", np.square, ts.warmup):
        with refused(TypeError, f"warmup: {wrong!r} is no kernel's function of standin"):
            ts.warmup(wrong)
    with refused(
        TypeError, "limits: there is no CUDA code; for the processor's, pass cupy.asnumpy(...)"
    ):
        ts.warmup(ts.limits)
    with refused(TypeError, "square: its CUDA code is for sm_90 and later; GPU 7 is sm_75"):
        ts.warmup(ts.square, device=7)
