"""Exponentials of unrolled vector statements, computed in fours: the same bits."""

import re

import numpy as np
import pytest

from gen.ir.types import DType
from gen.targets.cpu.levels import Level, Processor

from .kernels import compiled

RNG = np.random.default_rng(13)


def sums(w: int, times: int, value: str = "exp(x[i, j] - 1.0)", dtype: str = "float32") -> str:
    """A row's exponentials, into y, in `times` vectors an iteration."""
    at = f"y.j*{w * times} + y.a*{w} + y.l"
    return f"""
def sums(m, n, x: {dtype}[m, n], y: Out[{dtype}[m, n]]):
    for y.i in range(m):
        for y.j in range((n + {w * times - 1})//{w * times}):
            for y.a in unrolled({times}):
                for y.l in vectorized({w}):
                    with block("y", i=spatial(y.i), j=spatial({at}, n), where={at} < n):
                        y[i, j] = {value}
"""


def fours(text: str, level: Level) -> int:
    source = compiled(text, level).source
    return len(re.findall(r"ts_exp_by_four_f32\(", source))


@pytest.mark.parametrize(("times", "together"), [(3, 0), (4, 1), (6, 1), (8, 2)])
def test_each_four_of_an_iteration_are_one_call(level: Level, times: int, together: int) -> None:
    w = Processor(level).lanes(DType.FLOAT32)
    assert fours(sums(w, times), level) == together
    kernel, one = compiled(sums(w, times), level), compiled(sums(w, 1), level)
    assert "by_four" not in one.source
    for n in (0, 1, w * times - 1, 3 * w * times + w + 1):
        x = RNG.standard_normal((2, n)).astype("f") * 20
        y, expected = np.zeros_like(x), np.zeros_like(x)
        kernel({"x": x, "y": y})
        one({"x": x, "y": expected})
        np.testing.assert_array_equal(y, expected)


def test_two_vectors_a_statement_make_four_of_two(level: Level) -> None:
    w = Processor(level).lanes(DType.FLOAT32)
    assert fours(sums(2 * w, 2), level) == 1
    assert fours(sums(2 * w, 1), level) == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("exp(x[i, j]) if x[i, j] > 0.0 else 0.0", id="a side of a choice"),
        pytest.param("exp(1.0)", id="one number"),
    ],
)
def test_what_stays_alone(level: Level, text: str) -> None:
    w = Processor(level).lanes(DType.FLOAT32)
    assert fours(sums(w, 4, text), level) == 0
    assert fours(sums(w, 4, dtype="float64"), level) == 0


def test_what_the_statements_store_is_not_read_ahead(level: Level) -> None:
    """y is read and stored: each vector of it follows from the one before."""
    w = Processor(level).lanes(DType.FLOAT32)
    text = f"""
def chain(m, y: InOut[float32[m, {w}]]):
    for y.i in range(m // 4):
        for y.a in unrolled(4):
            for y.l in vectorized({w}):
                with block("y", i=spatial(y.i*4 + y.a, m), j=spatial(y.l)):
                    y[i, j] = exp(-y[max(i - 1, 0), j])
"""
    kernel = compiled(text, level)
    assert "by_four" not in kernel.source
    y = RNG.standard_normal((8, w)).astype("f")
    expected = y.copy()
    kernel({"y": y})
    for i in range(8):
        expected[i] = np.exp(-expected[max(i - 1, 0)])
    np.testing.assert_allclose(y, expected, rtol=1e-5)
