"""`expand`: what iterations hand each other has elements of its own in each."""

import pytest

from gen.errors import ScheduleError
from gen.ir.text.print_expr import expr_to_text
from gen.ir.walk import buffers
from gen.schedule.examples import ROW_SQUARES, SUMS, TRIANGLE_SUMS, TWICE

from .support import assert_same, schedule, start

ROWS = """\
def rows(m, n, x: float32[m, n], y: InOut[float32[m, n]]):
    with allocate(t=float32[n]):
        for t.i in range(2, m):
            for t.j in range(n):
                with block("t", i=spatial(t.i, 2, m), j=spatial(t.j)):
                    t[j] = x[i, j] * 2.0
            for y.j in range(n):
                with block("y", i=spatial(t.i, 2, m), j=spatial(y.j)):
                    y[i, j] = t[max(j - 1, 0)] + t[j]
"""

LATER = """\
def later(m, x: float32[m], y: InOut[float32[m]]):
    with allocate(t=float32[()]):
        for t.i in range(max(m - 3, 0), m):
            with block("t", i=spatial(t.i, max(m - 3, 0), m)):
                t[()] = x[i] * 2.0
            with block("y", i=spatial(t.i, max(m - 3, 0), m)):
                y[i] = t[()] + 1.0
"""

BELOW = """\
def below(m, x: float32[m + 2], y: Out[float32[m + 2]]):
    with allocate(t=float32[()]):
        for t.i in range(-2, m):
            with block("t", i=spatial(t.i, -2, m)):
                t[()] = x[i + 2] * 2.0
            with block("y", i=spatial(t.i, -2, m)):
                y[i + 2] = t[()] + 1.0
"""

DOWNWARDS = """\
def downwards(m, x: float32[m], y: Out[float32[m]]):
    with allocate(t=float32[()]):
        for t.i in range(m):
            with block("t", i=spatial(m - t.i - 1, m)):
                t[()] = x[i] * 2.0
            with block("y", i=spatial(m - t.i - 1, m)):
                y[i] = t[()] + 1.0
"""

CARRIED = """\
def carried(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[()]):
        with block("t0"):
            t[()] = 0.0
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[()] = t[()] + x[i]
            with block("y", i=spatial(t.i)):
                y[i] = t[()]
"""

OF_DATA = """\
def of_data(m, n, e: int64[m], x: float32[m, n], y: InOut[float32[m, n]]):
    with allocate(t=float32[()]):
        for t.i in range(m):
            for t.j in range(e[t.i]):
                with block("t", i=spatial(t.i), j=spatial(t.j, n)):
                    t[()] = x[i, j] * 2.0
                with block("y", i=spatial(t.i), j=spatial(t.j, n)):
                    y[i, j] = t[()]
"""


@pytest.mark.parametrize(
    ("kernel", "buffer", "names", "shape"),
    [
        (SUMS, "s", ("s.i",), "m"),
        (TRIANGLE_SUMS, "s", ("s.i", "s.j"), "m, m"),
        (TRIANGLE_SUMS, "s", ("s.j",), "m"),
        (TRIANGLE_SUMS, "s", ("s.j", "s.i"), "m, m"),
        (ROWS, "t", ("t.i",), "m, n"),
        (LATER, "t", ("t.i",), "m - max(m - 3, 0)"),
        (BELOW, "t", ("t.i",), "m + 2"),
        (DOWNWARDS, "t", ("t.i",), "m"),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_an_axis_a_loop(
    kernel: str, buffer: str, names: tuple[str, ...], shape: str, cut: bool
) -> None:
    """Of as many elements as the loop has iterations, whatever those of the loops around it."""
    text = f"- expand: {{buffer: {buffer}, loops: [{', '.join(names)}]}}"
    if cut:
        text += "".join(f"\n- fission: {{loop: {loop}}}" for loop in sorted(names, reverse=True))
    state = schedule(start(kernel), text)[-1].state
    found = ", ".join(map(expr_to_text, buffers(state.kernel)[buffer].shape))
    assert found == shape
    assert_same(start(kernel).kernel, state.kernel)


@pytest.mark.parametrize("first", ["reverse: {loop: s.i}", "shift: {loop: s.i, by: 3}"])
def test_after_a_loop_was_turned_or_shifted(first: str) -> None:
    state = schedule(start(SUMS), f"- {first}\n- expand: {{buffer: s, loops: [s.i]}}")[-1].state
    assert_same(start(SUMS).kernel, state.kernel)


@pytest.mark.parametrize(
    ("kernel", "steps", "reason"),
    [
        (SUMS, "- expand: {buffer: s, loops: []}", "`loops` names each loop once"),
        (SUMS, "- expand: {buffer: s, loops: [s.i, s.i]}", "`loops` names each loop once"),
        (SUMS, "- expand: {buffer: s, loops: [s.x]}", "there is no loop 's.x'"),
        (SUMS, "- expand: {buffer: t, loops: [s.i]}", "there is no buffer 't'"),
        (TWICE, "- expand: {buffer: t, loops: [y.i]}", "loop 'y.i' is not around block 't'"),
        (OF_DATA, "- expand: {buffer: t, loops: [t.j]}", "runs as far as data says, not sizes"),
        (CARRIED, "- expand: {buffer: t, loops: [t.i]}", "loop 't.i' is not around block 't0'"),
        (
            ROW_SQUARES,
            "- storage_align: {buffer: t, axis: 0, factor: 16}\n"
            "- expand: {buffer: t, loops: [t.i]}",
            "'t' is aligned: do this before",
        ),
        (SUMS, "- fission: {loop: s.i}", "the proof was refused"),
    ],
)
def test_refused(kernel: str, steps: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(kernel), steps)
    assert reason in refusal.value.message
