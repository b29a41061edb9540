"""Windows in registers, read by lane shifts, and clamped reads by selections."""

import numpy as np
import pytest

from gen.ir.types import DType
from gen.targets.cpu.levels import Level, Processor

from .kernels import compiled


def window(offset: int, lanes: int, width: int, dtype: str) -> str:
    """Sums of neighbours from a window of the row, a vector at an offset in it."""
    return f"""
def k(n, x: {dtype}[n, {lanes}], y: Out[{dtype}[n, {width}]]):
    for y.i in range(n):
        with allocate(t={dtype}[{lanes}] @ register):
            for t.l in vectorized({lanes}):
                with block("t", i=spatial(y.i), l=spatial(t.l)):
                    t[l] = x[i, l]
            for y.l in vectorized({width}):
                with block("y", i=spatial(y.i), l=spatial(y.l)):
                    y[i, l] = t[l + {offset}] - t[l]
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_reads_within_vectors_are_shifts(level: Level, dtype: str) -> None:
    n = Processor(level).lanes(DType(dtype))
    x = np.arange(3 * 4 * n, dtype=dtype).reshape(3, 4 * n) ** 2
    for width, offset in ((n, n - 1), (n, 1), (2 * n, n + 1), (3 * n, n), (2 * n, 2 * n - 1)):
        kernel = compiled(window(offset, 4 * n, width, dtype), level)
        assert ("ts_shift_" in kernel.source) is (offset % n != 0)
        assert "_Alignas" not in kernel.source
        y = np.zeros((3, width), dtype)
        kernel({"x": x, "y": y})
        np.testing.assert_array_equal(y, x[:, offset : offset + width] - x[:, :width])


@pytest.mark.parametrize("half", [False, True])
def test_what_is_no_shift_of_whole_vectors_is_a_local_array(level: Level, half: bool) -> None:
    """A last vector that ends outside the buffer's, and vectors of half the native length."""
    n = Processor(level).lanes(DType.FLOAT32)
    lanes, width = (n // 2, n // 2) if half else (2 * n, 2 * n)
    text = window(1, lanes, width, "float32").replace(
        "y[i, l] = t", f"y[i, l] = 0.0 if l + 1 >= {lanes} else t"
    )
    kernel = compiled(text, level)
    assert "_Alignas(64) float t[" in kernel.source
    x = np.random.default_rng(0).standard_normal((3, lanes)).astype("f")
    y = np.ones_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(y[:, :-1], x[:, 1:] - x[:, :-1])
    assert not y[:, -1].any()


CLAMPED = """
def k(n, x: float32[n], y: Out[float32[n]]):
    for y.i_0 in range((n + 7) // 8):
        for y.i_1 in vectorized(8):
            with block("y", i=spatial(y.i_0 * 8 + y.i_1, n), where=y.i_0 * 8 + y.i_1 < n):
                y[i] = x[max(i - 3, 0)] + x[min(max(i + 2, 1), n - 1)]
"""


def test_clamped_reads_are_selections(level: Level) -> None:
    kernel = compiled(CLAMPED, level)
    assert "lanes1[" not in kernel.source and "ts_select_f32" in kernel.source
    for n in (2, 3, 7, 8, 9, 16, 40, 41):
        x = np.random.default_rng(n).standard_normal(n).astype("f")
        y = np.zeros_like(x)
        kernel({"x": x, "y": y})
        i = np.arange(n)
        wanted = x[np.maximum(i - 3, 0)] + x[np.minimum(np.maximum(i + 2, 1), n - 1)]
        np.testing.assert_array_equal(y, wanted)


def test_too_many_clamps_are_read_lane_by_lane(level: Level) -> None:
    text = CLAMPED.replace("x[max(i - 3, 0)]", "x[min(max(max(i - 3, 0), 4 - i), n - 1)]")
    kernel = compiled(text, level)
    assert "lanes1[" in kernel.source
    for n in (2, 9, 21):
        x = np.random.default_rng(n).standard_normal(n).astype("f")
        y = np.zeros_like(x)
        kernel({"x": x, "y": y})
        i = np.arange(n)
        first = np.minimum(np.maximum(np.maximum(i - 3, 0), 4 - i), n - 1)
        wanted = x[first] + x[np.minimum(np.maximum(i + 2, 1), n - 1)]
        np.testing.assert_array_equal(y, wanted)
