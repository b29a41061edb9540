"""Stencils over rings of cells, of unknown sizes; `test_affine_compiled.py` compiles some."""

from dataclasses import replace

import pytest

from gen.errors import ScheduleError
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.finish import finish
from gen.lower.lower import lower
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import schedule, start

TORUS = """\
def torus(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(t=float32[m, n]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, (j + 1) % n] - x[(i - 1) % m, j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[(i + 1) % m, j] + t[i, (j + n - 2) % n]
"""


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ("- merge: {loops: [t.i, y.i]}", "y[i=0, j=0] reads 't' before t[i=1, j=0] computes it"),
        ("- reverse: {loop: y.i}\n- reverse: {loop: t.i}\n- merge: {loops: [t.i, y.i]}",
         "y[i=1, j=0] reads 't' before t[i=0, j=0] computes it"),
    ],
)  # fmt: skip
def test_the_ring_is_closed(steps: str, reason: str) -> None:
    """Whichever way it is walked, the one end needs the other."""
    with pytest.raises(ScheduleError) as refused:
        schedule(start(TORUS), steps)
    assert refused.value.message.endswith(f"the proof was refused: {reason}")


def test_a_step_in_place_around_the_ring() -> None:
    text = """\
def step(n, x: InOut[float32[n]]):
    for x.i in range(n):
        with block("x", i=spatial(x.i)):
            x[i] = x[i] + x[(i + 1) % n]
"""
    with pytest.raises(ScheduleError) as refused:
        schedule(start(text), "- parallel: {loop: x.i}")
    assert "parallel loop 'x.i' has a race: x[i=0] writes 'x'" in refused.value.message


def ring(shift: str) -> str:
    return f"""\
def ring(n, x: float32[n], y: Out[float32[n]]):
    assume(n >= 1)
    for y.j in range(n):
        with block("y", j=spatial(y.j)):
            y[j] = x[(j {shift}) % n]
"""


VECTORS = "- vectorize: {loop: y.j, width: 8, accumulators: 3}"


@pytest.mark.parametrize("shift", ["- 7", "+ 7", "- 16"])
def test_neighbours_further_away_than_the_ring_is_long(shift: str) -> None:
    """A ring of one cell is gone around seven times."""
    state = start(ring(shift))
    (*_, last) = schedule(state, VECTORS)
    lowered = lower(last.state, Cpu(Level.V3).lowering)
    prove(state.kernel, lowered)
    off = to_text(lowered.kernel).replace(f"(j {shift}) % n", f"(j {shift} + 1) % n", 1)
    with pytest.raises(Refused, match=r"x\[.*\]|needs"):
        prove(state.kernel, replace(lowered, kernel=from_text(off)))


def test_neighbours_too_far_around_the_ring() -> None:
    state = start(ring("- 17"))
    (*_, last) = schedule(state, VECTORS)
    with pytest.raises(Refused) as refused:
        prove(state.kernel, lower(last.state, Cpu(Level.V3).lowering))
    assert refused.value.reason == (
        "block 'y' reads `x[(j - 17) % n]`, a place that is known exactly there, or in the plain"
        " schedule, and not in both"
    )
    assert refused.value.hint == (
        "remainders by a size are known where it goes into the number at most 16 times: say in"
        " `constraints` how large it is"
    )
    far = ring("- 17").replace("n >= 1", "n >= 2")
    state = start(far)
    (*_, last) = schedule(state, VECTORS)
    prove(state.kernel, lower(last.state, Cpu(Level.V3).lowering))


@pytest.mark.parametrize(("least", "left"), [(1, 1), (2, 0)])
def test_where_both_ends_are_peeled_nothing_is_divided(least: int, left: int) -> None:
    """All of the rest is vectors, and so fast as a stencil that has no ring. In a ring that may be
    of one cell the first cell asks where its right neighbour is.
    """
    plain = start(f"""\
def ring(n, x: float32[n], y: Out[float32[n]]):
    assume(n >= {least})
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[(i - 1) % n] + x[(i + 1) % n]
""")
    steps = (
        "- peel: {loop: y.i, at: 1, as: [y.first, y.i]}\n"
        "- peel: {loop: y.i, at: -1, as: [y.i, y.last]}\n"
        "- vectorize: {loop: y.i, width: 8}"
    )
    target = Cpu(Level.V3)
    lowered = lower(schedule(plain, steps)[-1].state, target.lowering).kernel
    assert to_text(finish(lowered, target.finishing)).count("%") == left
