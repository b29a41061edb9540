"""Vectors of any width: no lane is left out, and no lane beyond the width is touched."""

import numpy as np
import pytest

from gen.targets.cpu.levels import Level

from . import kernels
from .kernels import compiled

# Conditions on element j, each a mask made in its own way. They leave out j == 1, where x is NaN.
CONDITIONS = (
    "{j} != 1",
    "{j} >= 2 or {j} == 0",
    "not ({j} == 1 or isnan(x[{j}]))",
    "x[{j}] > 0.0",
    "not isnan(x[{j}])",
)


def added(width: int) -> str:
    """x is added to each row: of `one` in one vector, of `all_` in as many as it takes."""
    lines = ["def added(n, x: float64[n], one: InOut[float32[5, n]], all_: InOut[float32[5, n]]):"]
    for row, condition in enumerate(CONDITIONS):
        for y, chunks, j in (
            ("one", "1", "l"),
            ("all_", f"(n + {width - 1})//{width}", f"c*{width} + l"),
        ):
            name = f"{y}{row}"
            place = f"{name}.l" if y == "one" else f"{name}.c*{width} + {name}.l"
            holds = condition.format(j=f"({place})")
            where = holds if y == "one" else f"{place} < n and ({holds})"
            lines += [
                f"    for {name}.c in range({chunks}):",
                f"        for {name}.l in vectorized({width}):",
                f'            with block("{name}", c=spatial({name}.c), l=spatial({name}.l),',
                f"                       where={where}):",
                f"                {y}[{row}, {j}] = {y}[{row}, {j}] + float32(x[{j}])",
            ]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("width", [3, 6, 12])
def test_masks_end_at_the_width(level: Level, width: int) -> None:
    kernel = compiled(added(width), level)
    n = 2 * width + 1
    x, one, every = np.ones(n + 64), np.full((5, n + 64), 7, "f"), np.full((5, n + 64), 7, "f")
    x[1] = np.nan
    kernel({"x": x[:n], "one": one[:, :n], "all_": every[:, :n]})
    j = np.arange(n + 64)
    np.testing.assert_array_equal(one, [np.where((j < width) & (j != 1), 8, 7)] * 5)
    np.testing.assert_array_equal(every, [np.where((j < n) & (j != 1), 8, 7)] * 5)


@pytest.mark.parametrize("width", [6, 12])
def test_conversions_of_any_width(level: Level, width: int) -> None:
    """Between 32 and 64 bits, with gathers and selects."""
    kernel = compiled(kernels.wide(width), level)
    n = 2 * width + 1
    i, x = np.arange(n + 64, dtype=np.int32), np.ones(n + 64, "f")
    y, z, big = np.full(n + 64, 7.0), np.full(n + 64, 7, np.int32), np.zeros(n, bool)
    given = {"i": i[:n], "x": x[:n], "flag": np.ones(n, bool)}
    kernel({**given, "y": y[:n], "z": z[:n], "big": big}, {"shift": 4})
    j = np.arange(n)
    np.testing.assert_array_equal(y[:n], np.where(j == 2, 1, j))
    np.testing.assert_array_equal(z[:n], j % 3 + 5)
    assert (y[n:] == 7).all() and (z[n:] == 7).all()


@pytest.mark.parametrize("width", [6, 12])
def test_lane_trees_of_any_width(level: Level, width: int) -> None:
    """They take no lane beyond the width, and all below."""
    kernel = compiled(kernels.argmax(width), level)
    n = 2 * width + 1
    v, at = np.zeros(n, "f"), np.zeros(n, np.int64)
    kernel({"x": np.eye(n, dtype="f") - 2, "v": v, "y": at})
    np.testing.assert_array_equal(at, np.arange(n))
    assert (v == -1).all()


@pytest.mark.parametrize("width", [6, 12])
def test_sums_of_any_width(level: Level, width: int) -> None:
    kernel = compiled(
        f"""
def total(m, x: float32[m, {width}], y: Out[float64[m]], z: Out[float32[m]]):
    for y.i in range(m):
        for y.l in vectorized({width}):
            with block("y", i=spatial(y.i), l=reduction(y.l), where=y.l % 2 == 0, initialises=True):
                y[i] = combine.sum(y[i], float64(x[i, l]))
        for z.l in vectorized({width}):
            with block("z", i=spatial(y.i), l=reduction(z.l), initialises=True):
                z[i] = combine.sum(z[i], x[i, l])
""",
        level,
    )
    x = np.arange(1, 3 * width + 1, dtype="f").reshape(3, width)
    y, z = np.zeros(3), np.zeros(3, "f")
    kernel({"x": x, "y": y, "z": z})
    np.testing.assert_array_equal(y, x[:, ::2].sum(1))
    np.testing.assert_array_equal(z, x.sum(1))
