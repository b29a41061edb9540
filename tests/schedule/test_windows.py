"""reuse_at: windows that move with a loop, and why one does not."""

import pytest

from gen.errors import ScheduleError
from gen.ir.parser import from_text
from gen.ir.printer import to_text
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.schedule.examples import BLUR, STENCIL

from .support import assert_same, schedule, start

MOVED = """\
- split: {loop: y.i, factors: [null, 4]}
- compute_at: {loop: y.i_0, block: t}
- reuse_at: {buffer: t, loop: y.i_0}
"""

# Rows in groups, a window along the columns for each row, as the image kernels have it.
IMAGE = """\
def image(h, w, x: float32[h, w], y: Out[float32[h, w]]):
    with allocate(t=float32[h, w + 2]):
        for t.i in range(h):
            for t.j in range(w + 2):
                with block("t", i=spatial(t.i), j=spatial(t.j), where=w > 0):
                    t[i, j] = x[i, min(max(j - 1, 0), w - 1)] + x[min(i + 1, h - 1), 0]
        for y.i in range(h):
            for y.j in range(w):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, j] - t[i, j + 2]
"""

WIDE = BLUR.replace("n + 2", "n + 4").replace("t[i + 2]", "t[i + 4]")

BACKWARDS = BLUR.replace("t[i] + t[i + 1] + t[i + 2]", "t[n - 1 - i] + t[n - i]")

DIAGONAL = """\
def diagonal(n, x: float32[n + 1, n + 1], y: Out[float32[n]]):
    with allocate(t=float32[n + 1, n + 1]):
        for t.i in range(n + 1):
            for t.j in range(n + 1):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i, i] + t[i + 1, i + 1]
"""

SAME = """\
def same(n, x: float32[4], y: Out[float32[n]]):
    with allocate(t=float32[4]):
        for t.i in range(4):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[0] + t[3]
"""

GATHER = """\
def gather(n, x: float32[n], at: int64[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[min(max(at[i], 0), n - 1)] + t[i]
"""


STRETCHED = BLUR.replace("n + 2", "2*n").replace("t[i + 1] + t[i + 2]", "t[2*i]")

SUMS = """\
def sums(n, x: float32[n + 1, n], y: Out[float32[n]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n + 1):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=reduction(t.j), initialises=True):
                    t[i] = combine.sum(t[i], x[i, j])
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + t[i + 1]
"""

OUTSIDE = """\
def outside(n, x: float32[n], y: Out[float32[n]], z: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
            with block("y", i=spatial(t.i)):
                y[i] = t[i] + 1.0
        for z.i in range(n):
            with block("z", i=spatial(z.i)):
                z[i] = t[i] - 1.0
"""


@pytest.mark.parametrize("step", [2, 3, 4, 8])
def test_steps_of_any_length(step: int) -> None:
    state = start(BLUR)
    done = schedule(state, MOVED.replace("4]", f"{step}]"))[-1].state.kernel
    assert f"t=float32[{2 * step}]" in to_text(done)
    assert_same(state.kernel, done, sizes=(0, 1, 2, 7, 8, 9, 17))


def test_all_of_a_step_may_be_kept() -> None:
    done = schedule(start(WIDE), MOVED)[-1].state.kernel
    assert "t[i - start - 4] = t[i - start]" in to_text(done)
    assert_same(start(WIDE).kernel, done, sizes=(0, 1, 4, 5, 13))


def test_a_window_that_lies_before_the_place_where_it_is_read() -> None:
    """The values before the first are those of the first; compute_at has put a guard on them."""
    done = schedule(start(STENCIL), MOVED)[-1].state.kernel
    assert_same(start(STENCIL).kernel, done, sizes=(0, 1, 4, 5, 13))


def test_rows_have_windows_of_their_own() -> None:
    state = start(IMAGE)
    steps = """\
- split: {loop: y.i, factors: [null, 2], as: [y.i0, y.i1]}
- split: {loop: y.j, factors: [null, 4], as: [y.j0, y.j1]}
- reorder: {loops: [y.i0, y.j0, y.i1, y.j1]}
- compute_at: {block: t, loop: y.j0}
- reuse_at: {buffer: t, loop: y.j0, as: [begin, carry]}
- set_scope: {buffer: t, scope: register}
- unroll: {loop: t.i}
- vectorize: {loop: carry.j, width: 4}
- parallel: {loop: y.i0}
"""
    done = schedule(state, steps)[-1].state.kernel
    assert "t=float32[h, 8] @ register" in to_text(done)
    assert_same(state.kernel, done, sizes=(0, 1, 2, 5, 9))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t[i - start - 2] = t[i - start + 2]", "t[i - start - 2] = t[i - start + 1]"),
        ("t[i - start - 2] = t[i - start + 2]", "t[i - start - 1] = t[i - start + 2]"),
        ("0 <= -2 + t_first.i and", "1 <= -2 + t_first.i and"),
        ("start=spatial(0, 1)", "start=spatial(1, 2)"),
    ],
)
def test_a_wrong_window_is_refused(old: str, new: str) -> None:
    plain = start(BLUR)
    state = schedule(plain, MOVED)[-1].state
    text = to_text(state.kernel)
    wrong = text.replace(old, new)
    assert wrong != text
    with pytest.raises(Refused):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


COMPUTED = "- compute_at: {block: t, loop: y.i}\n"
REUSED = COMPUTED + "- reuse_at: {buffer: t, loop: y.i}"
REFUSALS = [
    (BLUR, REUSED, "moves by 1 of 3 places: some are read in more than two iterations"),
    (BLUR, "- reuse_at: {buffer: x, loop: y.i}", "'x' is an argument: all of it is there"),
    (DIAGONAL, REUSED, "what loop 'y.i' reads of 't' moves along several axes"),
    (SAME, REUSED, "every iteration of loop 'y.i' reads the same of 't'"),
    (GATHER, REUSED, "what an iteration of loop 'y.i' reads of 't' is no box"),
    (STRETCHED, REUSED, "does not move by a constant from one iteration to the next"),
    (SUMS, REUSED, "block 't' is a reduction: its values grow in place"),
    (OUTSIDE, "- reuse_at: {buffer: t, loop: t.i}", "block 'z' uses 't' outside loop 't.i'"),
    (
        IMAGE,
        "- fuse: {loops: [y.i, y.j]}\n- compute_at: {block: t, loop: y.i_j}\n"
        "- reuse_at: {buffer: t, loop: y.i_j}",
        "loop 'y.i_j' is fused",
    ),
    (BACKWARDS, REUSED, "what loop 'y.i' reads of 't' moves backwards"),
    (
        BLUR.replace("t[i] + t[i + 1] + t[i + 2]", "t[i] + 1.0"),
        REUSED,
        "no two iterations of loop 'y.i' read the same of 't'",
    ),
    (STENCIL, MOVED + "- reuse_at: {buffer: t, loop: y.i_0}", "several blocks write 't'"),
    (STENCIL, MOVED.replace("0}\n", "0, as: [a]}\n"), "`as` must give 2 names"),
    (STENCIL, MOVED.replace("0}\n", "0, as: [y, move]}\n"), "the name 'y' is taken"),
    (
        BLUR,
        MOVED.replace("- reuse_at", "- unroll: {loop: t.i}\n- reuse_at"),
        "loop 't.i' is unrolled already; reuse first",
    ),
    (
        BLUR,
        MOVED.replace("- reuse_at", "- parallel: {loop: y.i_0}\n- reuse_at"),
        "loop 'y.i_0' is parallel already",
    ),
]


@pytest.mark.parametrize(("text", "steps", "reason"), REFUSALS, ids=lambda x: str(x)[-40:])
def test_refusals(text: str, steps: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), steps)
    assert reason in refusal.value.message
