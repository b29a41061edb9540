"""Register buffers become vectors at constant places, or are refused."""

import numpy as np
import pytest

from gen.errors import TilesmithError
from gen.jit import compile_kernel
from gen.lower.target import Level

from .kernels import compiled, lowered


def copied(
    tile: str, store: str, load: str, outer: str = "unrolled", dtype: str = "float32"
) -> str:
    return f"""
def copied(n, x: {dtype}[n, 2, 8], y: Out[{dtype}[n, 2, 8]]):
    for y.i in range(n):
        with allocate({tile} @ register):
            for t.a in {outer}(2):
                for t.l in vectorized(8):
                    with block("t", i=spatial(y.i), a=spatial(t.a), l=spatial(t.l)):
                        {store} = x[i, a, l]
            for y.a in {outer}(2):
                for y.l in vectorized(8):
                    with block("y", i=spatial(y.i), a=spatial(y.a), l=spatial(y.l)):
                        y[i, a, l] = {load}
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_longer_and_shorter_than_native_ones(level: Level, dtype: str) -> None:
    text = copied(f"t={dtype}[2, 8]", "t[a, l]", "t[a, l]", dtype=dtype)
    kernel = compiled(text, level)
    assert f"ts_f{dtype[-2:]} t[" in kernel.source
    x = np.arange(48, dtype=dtype).reshape(3, 2, 8)
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            copied("t=float32[2, 8]", "t[a, l]", "t[a, l]", outer="range"),
            r"'t' cannot be kept in registers: t\[t.a, t.l\] is used as a vector of 8 at no",
        ),
        (
            copied("t=float32[2, 16]", "t[a, 2*l]", "t[a, 2*l]"),
            r"t\[0, (2 \* t.l|t.l \* 2)\] is used as a vector of 8 at no constant place",
        ),
        (
            copied("t=float32[2, 8]", "t[a, l]", "t[a, l] + t[a, 0]"),
            r"t\[0, 0\] is used as a scalar, and elsewhere as a vector of 8",
        ),
        (
            copied("t=int8[2, 8]", "t[a, l]", "t[a, l]", dtype="int8"),
            r"'t' cannot be kept in registers: t\[0, t.l\] is used as a scalar at no",
        ),
    ],
)
def test_other_places_are_refused(text: str, words: str) -> None:
    with pytest.raises(TilesmithError, match=words):
        compile_kernel(lowered(text, Level.V3), Level.V3)


def test_lanes_that_a_mask_leaves_out_keep_their_value_where_it_is_read(level: Level) -> None:
    text = """
def k(m, n, x: float32[m, 8], y: Out[float32[8]]):
    with allocate(t=float32[8] @ register):
        for z.l in vectorized(8):
            with block("z", l=spatial(z.l)):
                t[l] = 0.0
        for t.i in range(m):
            for t.l in vectorized(8):
                with block("t", l=spatial(t.l), i=reduction(t.i), where=t.l < n - t.i):
                    t[l] = combine.sum(t[l], x[i, l])
        for y.l in vectorized(8):
            with block("y", l=spatial(y.l)):
                y[l] = t[l]
"""
    kernel = compiled(text, level)
    x, y = np.ones((4, 8), "f"), np.zeros(8, "f")
    kernel({"x": x, "y": y}, dims={"n": 6})
    np.testing.assert_array_equal(y, [4, 4, 4, 3, 2, 1, 0, 0])
