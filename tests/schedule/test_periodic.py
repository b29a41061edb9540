"""Stencils over rings of cells, of unknown sizes; `test_affine_compiled.py` compiles some."""

import pytest

from gen.errors import ScheduleError

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
