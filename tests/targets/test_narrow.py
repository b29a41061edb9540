"""Vectors of 8 and 16 bits, and bools as numbers: widened as they are loaded, and narrowed."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen.ir.types import DType
from gen.targets.cpu.levels import Level, Processor

from .kernels import compiled

RNG = np.random.default_rng(5)
NARROW = ("bool", "int8", "uint8", "int16", "uint16")
OTHERS = ("int8", "uint16", "int32", "uint64", "float32", "float64")


def conversions(a: str, width: int) -> str:
    """A narrow type as each of the others: plain, and where a condition holds."""
    results = [f"{k}_{b}: Out[{b}[n]]" for b in OTHERS for k in "yz"]
    lines = [f"def conversions(n, x: {a}[n], w: float32[n], {', '.join(results)}):"]
    for b in OTHERS:
        cast = f"{b}(x[i])" if a != b else "x[i]"
        for name, value in ((f"y_{b}", cast), (f"z_{b}", f"{cast} if w[i] > 0.0 else {b}(1)")):
            lines += [
                f"    for {name}.c in range((n + {width - 1})//{width}):",
                f"        for {name}.l in vectorized({width}):",
                f'            with block("{name}", i=spatial({name}.c*{width} + {name}.l, n),'
                f" where={name}.c*{width} + {name}.l < n):",
                f"                {name}[i] = {value}",
            ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("dtype", NARROW)
def test_conversions(level: Level, dtype: str) -> None:
    lanes = Processor(level).lanes(DType.FLOAT32)
    kernel = compiled(conversions(dtype, lanes), level, packed=())  # for any strides
    assert "lanes" not in kernel.source  # nothing is computed lane by lane
    for n in (0, 1, lanes - 1, 2 * lanes, 3 * lanes + 5):
        for step in (1, 2):
            x = _random(dtype, n * step)[::step]
            w = RNG.standard_normal(n).astype("f")
            results = {f"{k}_{b}": np.zeros(n, b) for b in OTHERS for k in "yz"}
            kernel({"x": x, "w": w, **results})
            for b in OTHERS:
                exact = x.astype(b)
                np.testing.assert_array_equal(results[f"y_{b}"], exact)
                some = np.where(w > 0, exact, np.ones(n, b))
                np.testing.assert_array_equal(results[f"z_{b}"], some)


def _random(dtype: str, n: int) -> NDArray[Any]:
    if dtype == "bool":
        return RNG.random(n) < 0.5
    info = np.iinfo(dtype)
    drawn: NDArray[Any] = RNG.integers(info.min, info.max, n, dtype, endpoint=True)
    return drawn


REDUCED = """\
def reduced(m, n, x: {a}[m, n], y: Out[{a}[m]]):
    for y.i in range(m):
        with allocate(t={a}[{w}] @ register):
            for t.l in vectorized({w}):
                with block("t", i=spatial(y.i), l=spatial(t.l)):
                    t[l] = {none}
            for u.c in range((n + {last})//{w}):
                for u.l in vectorized({w}):
                    with block("u", i=spatial(y.i), c=reduction(u.c), l=spatial(u.l),
                               where=u.c*{w} + u.l < n):
                        t[l] = combine.{op}(t[l], x[i, c*{w} + l])
            for y.l in vectorized({w}):
                with block("y", i=spatial(y.i), l=reduction(y.l), initialises=True):
                    y[i] = combine.{op}(y[i], t[l])
"""


@pytest.mark.parametrize("dtype", NARROW[1:])
@pytest.mark.parametrize("op", ["min", "max", "sum"])
def test_reductions(level: Level, dtype: str, op: str) -> None:
    lanes = Processor(level).lanes(DType(dtype))
    info = np.iinfo(dtype)
    none = {"min": info.max, "max": info.min, "sum": 0}[op]
    given = {"a": dtype, "w": lanes, "last": lanes - 1, "op": op, "none": f"{dtype}({none})"}
    kernel = compiled(REDUCED.format(**given), level)
    for n in (1, lanes, 3 * lanes + 7):
        x = _random(dtype, 2 * n).reshape(2, n)
        y = np.zeros(2, dtype)
        kernel({"x": x, "y": y})
        function = {"min": np.min, "max": np.max, "sum": np.sum}[op]
        exact = function(x, axis=1, **({"dtype": dtype} if op == "sum" else {}))
        np.testing.assert_array_equal(y, exact)
