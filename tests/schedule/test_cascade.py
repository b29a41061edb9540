"""cascade beyond its examples: less rounding in fact, several values at once, other blocks."""

import numpy as np
import pytest

from gen.errors import ScheduleError
from gen.ir.interpret.interp import run
from gen.schedule.examples import ROW_SUM

from .support import assert_same, schedule, start

PEAKS = """\
def peaks(m, n, x: float32[m, n], v: Out[float32[m]], at: Out[int64[m]]):
    for v.i in range(m):
        for v.j in range(n):
            with block("v", i=spatial(v.i), j=reduction(v.j), initialises=True):
                v[i], at[i] = combine.argmax((v[i], at[i]), (x[i, j], j))
"""

TWO = """\
def two(n, x: float32[n], y: Out[float32[1]], z: Out[float32[1]]):
    for y.j in range(n):
        with block("y", i=spatial(0, 1), j=reduction(y.j), initialises=True):
            y[i] = combine.sum(y[i], x[j])
        with block("z", i=spatial(0, 1), j=reduction(y.j), initialises=True):
            z[i] = combine.sum(z[i], x[j] * x[j])
"""

GROUPS = """\
def groups(m, k, n, x: float32[m, k, n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.c in range(k):
            for y.j in range(n):
                with block(
                    "y", i=spatial(y.i), c=reduction(y.c), j=reduction(y.j), initialises=True
                ):
                    y[i] = combine.sum(y[i], x[i, c, j])
"""


def test_a_long_sum_is_rounded_less() -> None:
    plain = start(ROW_SUM)
    kernels = (
        plain,
        schedule(plain, "- cascade: {block: y, loop: y.j, lengths: [16, 16]}")[-1].state,
    )
    x = np.full((1, 4096), 0.1, np.float32)
    sums = [run(s.kernel, {"x": x}, {}, dims={"m": 1, "n": 4096})["y"][0] for s in kernels]
    once, by_blocks = (abs(float(y) / (4096 * float(x[0, 0])) - 1) for y in sums)
    assert by_blocks < 1e-6
    assert once > 20e-6


def test_several_values_at_once() -> None:
    state = start(PEAKS)
    after = schedule(state, "- cascade: {block: v, loop: v.j, lengths: [2, 3]}")[-1].state
    assert_same(state.kernel, after.kernel)


def test_another_block_in_the_loop() -> None:
    state = start(TWO)
    after = schedule(state, "- cascade: {block: y, loop: y.j, lengths: [3]}")[-1].state
    assert_same(state.kernel, after.kernel)


@pytest.mark.parametrize("loop", ["y.j", "y.c"])
def test_in_a_loop_over_groups_that_may_be_empty(loop: str) -> None:
    state = start(GROUPS)
    step = f"- cascade: {{block: y, loop: {loop}, lengths: [3, 2]}}"
    after = schedule(state, step)[-1].state
    assert_same(state.kernel, after.kernel, (0, 1, 3, 7))


def test_a_loop_that_is_misspelt() -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(ROW_SUM), "- cascade: {block: y, loop: y.jj, lengths: [3]}")
    assert refusal.value.message == "cascade (block y, loop y.jj): there is no loop 'y.jj'"
    assert refusal.value.hint == "did you mean 'y.j'?"
