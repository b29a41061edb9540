"""reuse_at: windows that move with a loop, and why one does not."""

import pytest

from gen.errors import ScheduleError
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import blocks
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.schedule.examples import BLUR, STENCIL, TWICE

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
HALVES = REUSED.replace("{buffer: t, loop: y.i", "{buffer: t, loop: y.i, layout: halves")
CIRCULAR = HALVES.replace("halves", "circular")

# Two stages, of which the second would look at the first before the loop.
CHAIN = (
    BLUR.replace("t=float32[n + 2]", "s=float32[n + 2], t=float32[n + 2]")
    .replace(
        """\
                t[i] = x[i] * 2.0
""",
        """\
                t[i] = s[i] + 1.0
""",
    )
    .replace(
        """\
        for t.i""",
        """\
        for s.i in range(n + 2):
            with block("s", i=spatial(s.i)):
                s[i] = x[i] * 2.0
        for t.i""",
    )
)

INPLACE = """\
def inplace(n, y: InOut[float32[n + 1]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i, 0, n)):
            y[i + 1] = y[i] + 1.0
"""

TWO_READERS = """\
def readers(n, x: float32[n + 1], y: Out[float32[n]], z: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[i] + x[i + 1]
        with block("z", i=spatial(y.i)):
            z[i] = x[i] - x[i + 1]
"""


@pytest.mark.parametrize("text", [BLUR, WIDE, STENCIL, BACKWARDS, SUMS], ids=lambda t: t[4:12])
@pytest.mark.parametrize("fill", ["before", "inside"])
@pytest.mark.parametrize("unrolled", [0, 3])
def test_circular_windows(text: str, fill: str, unrolled: int) -> None:
    steps = CIRCULAR.replace("circular", f"circular, fill: {fill}")
    steps += f"\n- unroll: {{loop: y.i, factor: {unrolled}}}" if unrolled else ""
    done = schedule(start(text), steps)[-1].state.kernel
    assert " % " in to_text(done)
    assert_same(start(text).kernel, done, sizes=(0, 1, 2, 5))


@pytest.mark.parametrize(
    ("layout", "fill"), [("circular", "before"), ("circular", "inside"), ("halves", "before")]
)
def test_nothing_is_read_for_an_empty_loop(layout: str, fill: str) -> None:
    """Where there are no columns, t is not computed."""
    text = IMAGE.replace("t[i, j] - t[i, j + 2]", "t[i, j] - t[i, j + 1]")
    steps = f"- reuse_at: {{buffer: t, loop: y.j, layout: {layout}, fill: {fill}}}"
    done = schedule(start(text), steps)[-1].state.kernel
    assert "where=0 < w" in to_text(done)
    assert_same(start(text).kernel, done, sizes=(0, 1, 3))


def test_a_reader_of_several() -> None:
    steps = """\
- reuse_at: {buffer: x, loop: y.i, block: z, as: [w, first, move]}
- reuse_at: {buffer: x, loop: y.i, block: y, layout: circular}
"""
    done = schedule(start(TWO_READERS), steps)[-1].state.kernel
    assert "y[i] = x_reuse[i % 2] + x_reuse[(i + 1) % 2]" in to_text(done)
    assert "z[i] = w[" in to_text(done)
    assert_same(start(TWO_READERS).kernel, done)


def test_a_copy_of_a_remainder_that_is_half_of_a_place_stays_folded() -> None:
    """With i // 4 beside it, i % 4 is no window's: the copy is of the buffer as it lies."""
    steps = """\
- transform_layout: {buffer: t, axis: 0, factors: [null, 4]}
- cache_read: {block: y, buffer: t}
"""
    plain = start(TWICE.replace("n]", "4 * n]").replace("range(n)", "range(4 * n)"))
    done = schedule(plain, steps)[-1].state.kernel
    assert "t_cache[i // 4, i % 4]" in to_text(done)
    assert_same(plain.kernel, done, sizes=(0, 1, 3))


STAGES = """\
- compute_at: {block: t, loop: y.i}
- reuse_at: {buffer: t, loop: y.i, fill: inside}
- compute_at: {block: s, loop: y.i}
- reuse_at: {buffer: s, loop: y.i, fill: inside}
"""


def test_stage_after_stage_in_one_loop() -> None:
    """Each begins as much earlier as the next one needs."""
    plain = start(CHAIN.replace("s[i] + 1.0", "s[i] - s[max(i - 2, 0)]"))
    done = schedule(plain, STAGES)[-1].state.kernel
    text = to_text(done)
    assert "for y.i in range(-4, n):" in text
    assert [b.name for b in blocks(done.body)] == ["s", "t", "y"]
    assert "where=0 <= y.i" in text
    assert_same(plain.kernel, done, sizes=(0, 1, 2, 5, 8))


@pytest.mark.parametrize(("old", "new"), [("-4, n", "-1, n"), ("0 <= y.i):", "-1 <= y.i):")])
def test_a_stage_that_begins_late_or_early_is_refused(old: str, new: str) -> None:
    plain = start(CHAIN.replace("s[i] + 1.0", "s[i] - s[max(i - 2, 0)]"))
    state = schedule(plain, STAGES)[-1].state
    text = to_text(state.kernel)
    wrong = text.replace(old, new)
    assert wrong != text
    with pytest.raises(Refused):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t[i % 3] = x", "t[(i + 1) % 3] = x"),  # in both writers, so a reader finds another value
        ("t=float32[3]", "t=float32[2]"),
        ("% 3", "% 2"),  # what is new overwrites what is still read
        ("t_first.i in range(2)", "t_first.i in range(1)"),
        ("i=spatial(y.i + 2, n + 2)", "i=spatial(y.i + 1, n + 2)"),
    ],
)
def test_a_wrong_circle_is_refused(old: str, new: str) -> None:
    plain = start(BLUR)
    state = schedule(plain, CIRCULAR)[-1].state
    text = to_text(state.kernel)
    wrong = text.replace(old, new)
    assert wrong != text
    with pytest.raises(Refused):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


REFUSALS = [
    (BLUR, HALVES, "moves by 1 of 3 places: some are read in more than two iterations"),
    (BLUR, "- reuse_at: {buffer: x, loop: y.i}", "no block in loop 'y.i' reads 'x'"),
    (DIAGONAL, REUSED, "what loop 'y.i' reads of 't' moves along several axes, 0 and 1"),
    (SAME, REUSED, "every iteration of loop 'y.i' reads the same of 't'"),
    (GATHER, REUSED, "what an iteration of loop 'y.i' reads of 't' is not a box"),
    (STRETCHED, REUSED, "does not move by a constant from one iteration to the next"),
    (SUMS, HALVES, "block 't' is a reduction: its values grow in place"),
    (OUTSIDE, "- reuse_at: {buffer: t, loop: t.i}", "block 'z' uses 't' outside loop 't.i'"),
    (
        IMAGE,
        "- fuse: {loops: [y.i, y.j]}\n- compute_at: {block: t, loop: y.i_j}\n"
        "- reuse_at: {buffer: t, loop: y.i_j}",
        "loop 'y.i_j' is fused",
    ),
    (BACKWARDS, HALVES, "what loop 'y.i' reads of 't' moves backwards"),
    (
        BLUR.replace("t[i] + t[i + 1] + t[i + 2]", "t[i] + 1.0"),
        REUSED,
        "no two iterations of loop 'y.i' read the same of 't': along axis 0, each reads 1 and"
        " moves by 1",
    ),
    (
        STENCIL,
        MOVED + "- reuse_at: {buffer: t, loop: y.i_0}",
        "blocks 't_first' and 't' and 't_move' write 't': only one may",
    ),
    (STENCIL, MOVED.replace("0}\n", "0, as: [a]}\n"), "`as` must give 2 names"),
    (BLUR, CIRCULAR.replace("circular", "circular, as: [a, b]"), "`as` must give 1 name"),
    (STENCIL, MOVED.replace("0}\n", "0, as: [y, move]}\n"), "the name 'y' is taken"),
    (
        BLUR,
        MOVED.replace("- reuse_at", "- unroll: {loop: t.i}\n- reuse_at"),
        "loop 't.i' is unrolled already; reuse first",
    ),
    (
        BLUR,
        MOVED.replace("- reuse_at", "- parallel: {loop: y.i_0}\n- reuse_at"),
        "loop 'y.i_0' is parallel already: what an iteration keeps for the next has to run before",
    ),
    (
        CHAIN,
        "- compute_at: {block: t, loop: y.i}\n- compute_at: {block: s, loop: y.i}\n"
        "- reuse_at: {buffer: t, loop: y.i}",
        "block 't' reads 's', which block 's' computes in loop 'y.i': it is not there for what is"
        " kept of an iteration before",
    ),
    (
        BLUR,
        HALVES.replace("halves", "halves, fill: inside"),
        "the loop fills a window of which every place has one iteration: a circular one",
    ),
    (
        INPLACE,
        "- reuse_at: {buffer: y, loop: y.i}",
        "'y' is an argument, which block 'y' writes in the loop",
    ),
    (
        TWO_READERS,
        "- reuse_at: {buffer: x, loop: y.i}",
        "blocks 'y' and 'z' read 'x' in loop 'y.i'",
    ),
    (
        TWO_READERS,
        "- reuse_at: {buffer: x, loop: y.i, block: w}",
        "block 'w' does not read 'x' in loop 'y.i'",
    ),
    (
        BLUR,
        REUSED.replace("{buffer: t, loop: y.i", "{buffer: t, loop: y.i, block: y"),
        "'t' is computed in the loop: all blocks read it, not one of a copy",
    ),
]


@pytest.mark.parametrize(("text", "steps", "reason"), REFUSALS, ids=lambda x: str(x)[-40:])
def test_refusals(text: str, steps: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), steps)
    assert reason in refusal.value.message
