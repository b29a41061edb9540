"""Loops over other shapes: shifted, skewed, and exchanged where bounds depend on loops."""

import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import LoopKind
from gen.ir.text.printer import to_text
from gen.ir.walk import loops
from gen.schedule.examples import SCALE

from .support import assert_same, from_spec, schedule, start

WAVES = """\
- skew: {{loops: [a.i, a.j], factor: {factor}}}
- reorder: {{loops: [a.j, a.i]}}
- parallel: {{loop: a.i}}
"""


def test_diagonals_of_gauss_seidel_are_parallel() -> None:
    """Each cell takes from the row above, up to one column to the right: 2 columns a row apart."""
    _, state = from_spec("seidel_2d")
    after = schedule(state, WAVES.format(factor=2))[-1].state.kernel
    found = {loop.var: loop.kind for loop in loops(after.body)}
    assert found["a.i"] is LoopKind.PARALLEL
    assert list(found) == ["a.t", "a.j", "a.i"]
    assert_same(state.kernel, after, scalars={"steps": 3})


def test_nearer_diagonals_are_not() -> None:
    _, state = from_spec("seidel_2d")
    with pytest.raises(ScheduleError) as refusal:
        schedule(state, WAVES.format(factor=1))
    assert refusal.value.message == (
        "parallel (loop a.i): the proof was refused: parallel loop 'a.i' has a race: "
        "a[t=0, i=1, j=2] writes 'a' and a[t=0, i=2, j=1] reads it in another iteration"
    )
    assert "for example: n=4, steps=1" in refusal.value.notes


CHAIN = """\
def chain(n, x: float32[n + 1], y: Out[float32[n]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n + 1):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + t[i + 1]
"""

SHIFTED = """\
def chain(n, x: float32[n + 1], y: Out[float32[n]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n + 1):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
            with block("y", i=spatial(t.i - 1, n), where=t.i >= 1):
                y[i] = t[i] + t[i + 1]
"""


def test_a_shift_makes_a_merge_right() -> None:
    """A consumer that looks ahead by one runs one iteration later."""
    state = start(CHAIN)
    with pytest.raises(ScheduleError, match="the proof was refused"):
        schedule(state, "- merge: {loops: [t.i, y.i]}")
    after = schedule(state, "- shift: {loop: y.i, by: 1}\n- merge: {loops: [t.i, y.i]}")
    kernel = after[-1].state.kernel
    assert to_text(kernel) == SHIFTED
    assert_same(state.kernel, kernel)


SKEWED = """\
        for y.j in range(y.i * 3, y.i * 3 + n):
            with block("y", i=spatial(y.i, m), j=spatial(y.j - y.i * 3, n)):
                y[i, j] = x[i, j] * 2.0
"""


def test_reordered_back() -> None:
    """What an exchange makes of bounds, quotients among them, another one takes back."""
    state = start(SCALE)
    wave = "- skew: {loops: [y.i, y.j], factor: 3}\n- reorder: {loops: [y.j, y.i]}\n"
    there, back = (
        schedule(state, steps)[-1].state.kernel
        for steps in (wave, wave + "- reorder: {loops: [y.i, y.j]}")
    )
    assert "// 3" in to_text(there)
    assert to_text(back).splitlines()[2:] == SKEWED.splitlines()
    assert_same(state.kernel, back)
