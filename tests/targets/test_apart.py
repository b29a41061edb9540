"""Lines stored past the caches into other rows each iteration: the same bits, in no other place."""

# ruff: noqa: E501 (the scripts)

import re

import numpy as np
import pytest

from gen.errors import TilesmithError
from gen.targets.cpu.levels import Level
from tests.conftest import Golden

from .kernels import compiled
from .test_golden import emitted
from .test_streams import placed

RNG = np.random.default_rng(12)
STREAMING = (Level.V3, Level.V4)


def lines(w: int, dtype: str = "float32", rows: str = "range(8)", times: int = 1) -> str:
    """y = x + 1 in blocks of rows: a line of each row, then the next one of each; `times` lines."""
    c = w * times
    i, j = "y.b*8 + y.i", f"y.j*{c} + y.k*{w} + y.l"
    return f"""
def lines(m, n, x: {dtype}[m, n], y: Out[{dtype}[m, n]]):
    for y.b in parallel((m + 7)//8):
        for y.j in range((n + {c - 1})//{c}):
            for y.i in {rows}:
                for y.k in unrolled({times}):
                    for y.l in vectorized({w}):
                        with block("y", i=spatial({i}, m), j=spatial({j}, n), where={i} < m and {j} < n, annotations={{'stream': 7}}):
                            y[i, j] = x[i, j] + 1.0
"""


@pytest.mark.parametrize(("dtype", "w", "times"), [("float32", 16, 1), ("float64", 8, 2)])
def test_lines_apart_are_what_stores_would_be(level: Level, dtype: str, w: int, times: int) -> None:
    """In rows that begin with lines, and in rows that begin anywhere, each elsewhere."""
    kernel = compiled(lines(w, dtype, times=times), level)
    assert ("ts_line_push" in kernel.source) == (level in STREAMING)
    assert ("ts_stream_f" in kernel.source) == (level in STREAMING)
    for n in (0, 1, w - 1, w, 2 * w + 1, 7 * w + 3):
        for m in (0, 1, 19):
            x = RNG.standard_normal((m, n)).astype(dtype)
            for stride in (8 * w, 8 * w + 1, 8 * w + w // 2):
                for offset in (0, 8, 16, 40, 64 - np.dtype(dtype).itemsize):
                    y, around = placed((m, stride), dtype, offset)
                    kernel({"x": x, "y": y[:, :n]}, threads=2, stream=True)
                    np.testing.assert_array_equal(y[:, :n], x + 1)
                    y[:, :n] = np.frombuffer(b"\xa5" * 8, dtype)[0]
                    assert (around == 0xA5).all()


def test_arrays_of_any_stride(level: Level) -> None:
    kernel = compiled(lines(16), level, packed=())
    if level in STREAMING:
        assert "if (unit && stream" in kernel.source
    x = RNG.standard_normal((11, 50)).astype("f")
    for y in (np.zeros_like(x), np.zeros_like(x, order="F"), np.zeros((11, 100), "f")[:, ::2]):
        kernel({"x": x, "y": y}, stream=True)
        np.testing.assert_array_equal(y, x + 1)


def test_rows_without_number_keep_no_lines(level: Level) -> None:
    """Then only rows that begin with lines pass the caches by."""
    kernel = compiled(lines(16, rows="range(m - 8*y.b)"), level)
    assert "ts_line_push" not in kernel.source
    assert ("ts_stream_f32" in kernel.source) == (level in STREAMING)
    x = RNG.standard_normal((5, 37)).astype("f")
    for offset, stride in ((0, 48), (16, 48), (0, 37)):
        y, around = placed((5, stride), "float32", offset)
        kernel({"x": x, "y": y[:, :37]}, stream=True)
        np.testing.assert_array_equal(y[:, :37], x + 1)
        y[:, :37] = np.frombuffer(b"\xa5" * 4, "f")[0]
        assert (around == 0xA5).all()


def test_golden_of_lines_apart(golden: Golden) -> None:
    golden("targets/apart.v3.c", emitted(lines(16), packable=True))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lines(8), id="half lines"),
        pytest.param(lines(16, rows="range(y.j)"), id="rows that begin one after another"),
        pytest.param(
            lines(16).replace("y[i, j] =", "y[i, n - 1 - j] ="), id="lanes against the row"
        ),
    ],
)
def test_other_rows_are_refused(text: str) -> None:
    reason = "stream (block y): in loop 'y.i' "
    with pytest.raises(TilesmithError, match=re.escape(reason)) as refusal:
        compiled(text, Level.V3)
    assert refusal.value.span is not None and refusal.value.span.line == 7
