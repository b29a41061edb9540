"""Where blocks stand, and where their temporaries: what the primitives' examples do not show."""

import pytest

from gen.errors import ScheduleError
from gen.ir.text.printer import to_text
from gen.schedule.examples import (
    BELOW,
    BLUR,
    PAIR,
    ROW_SQUARES,
    ROW_SUM,
    SCALE,
    SHARE,
    STENCIL,
    TWICE,
)

from .support import assert_same, schedule, start

SUMS = """\
def sums(m, n, x: float32[m, n], y: Out[float32[m]], z: Out[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
            with block("z", i=spatial(y.i), j=reduction(y.j), initialises=True):
                z[i] = combine.max(z[i], x[i, j])
"""

SUM_AND_SCALE = """\
def sum_and_scale(m, n, x: float32[m, n], y: Out[float32[m]], z: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
    for z.i in range(m):
        for z.j in range(n):
            with block("z", i=spatial(z.i), j=spatial(z.j)):
                z[i, j] = x[i, j] * 2.0
"""

SUM_THEN_SCALE = """\
def sum_then_scale(m, n, x: float32[m, 3, n], y: Out[float32[m, 3]]):
    with allocate(t=float32[m, 3]):
        for t.i in range(m):
            for t.j in range(3):
                for t.k in range(n):
                    with block(
                        "t",
                        i=spatial(t.i),
                        j=spatial(t.j),
                        k=reduction(t.k),
                        initialises=True,
                    ):
                        t[i, j] = combine.sum(t[i, j], x[i, j, k])
        for y.i in range(m):
            for y.j in range(3):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, j] * 2.0
"""

CHANGING = """\
def changing(n, x: InOut[float32[n]], y: Out[float32[n]]):
    with allocate(a=float32[n], b=float32[n]):
        for a.i in range(n):
            with block("a", i=spatial(a.i)):
                a[i] = x[i] + 1.0
        for b.i in range(n):
            with block("b", i=spatial(b.i)):
                b[i] = 3.0
        for x.i in range(n):
            with block("x", i=spatial(x.i)):
                x[i] = b[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = a[i] * x[i]
"""

STEPS = {
    "a loop of other blocks, too, is copied": (
        SUMS,
        "- after: {block: y, other: z, loop: y.i}",
        "    for y.i in range(m):\n"
        "        for y.j in range(n):\n"
        '            with block("z", i=spatial(y.i), j=reduction(y.j), initialises=True):\n'
        "                z[i] = combine.max(z[i], x[i, j])\n"
        "        for y.j_2 in range(n):\n"
        '            with block("y", i=spatial(y.i), j=reduction(y.j_2), initialises=True):\n'
        "                y[i] = combine.sum(y[i], x[i, j])\n",
    ),
    "statements of one loop change places": (
        SUMS,
        "- before: {block: z, other: y, loop: y.j}",
        "        for y.j in range(n):\n"
        '            with block("z", i=spatial(y.i), j=reduction(y.j), initialises=True):\n'
        "                z[i] = combine.max(z[i], x[i, j])\n"
        '            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):\n'
        "                y[i] = combine.sum(y[i], x[i, j])\n",
    ),
    "the loops that others do not stand for go along": (
        SUM_AND_SCALE,
        "- vectorize: {loop: z.j, width: 4}\n- after: {block: z, other: y, loop: y.i}",
        "        for z.j_0 in range((n + 3) // 4):\n            for z.j_1 in vectorized(4):\n",
    ),
    "fused loops stand for fused loops": (
        SUM_AND_SCALE,
        "- decompose_reduction: {block: y, loop: y.i}\n"
        "- tile: {loops: [y.i, y.j], sizes: [4, 4]}\n"
        "- fuse: {loops: [y.i_0, y.j_0]}\n"
        "- tile: {loops: [z.i, z.j], sizes: [4, 4]}\n"
        "- fuse: {loops: [z.i_0, z.j_0]}\n"
        "- before: {block: z, other: y, loop: y.i_0_j_0}",
        "        with delinearize(y.i_0_j_0, (m + 3) // 4, (n + 3) // 4) as (y.i_0, y.j_0):\n"
        "            for z.i_1 in range(4):\n",
    ),
    "what it reads is there, so it goes after that": (
        TWICE,
        "- simple_compute_at: {block: y, loop: t.i}",
        '            with block("y", i=spatial(t.i)):\n                y[i] = t[i] + 1.0\n',
    ),
    "an init goes with its reduction": (
        SUM_AND_SCALE,
        "- simple_compute_at: {block: y, loop: z.j}",
        '            with block("y", i=spatial(z.i), j=reduction(z.j), initialises=True):\n',
    ),
    "outside of a loop that all shared": (
        PAIR,
        "- between: {block: y, first: t, last: z, loop: t.i}\n- after: {block: z, other: t}",
        '        for z.i in range(n):\n            with block("z", i=spatial(z.i)):\n',
    ),
    "normal after a fuse and a split": (
        SCALE,
        "- fuse: {loops: [y.i, y.j]}\n- split: {loop: y.i_j, factors: [null, 8]}\n- normalize: {}",
        "    for y.i in range(m):\n        for y.j in range(n):\n            with block(",
    ),
    "normal inside a loop of two blocks": (
        ROW_SQUARES,
        "- merge: {loops: [t.i, y.i]}\n- split: {loop: y.j, factors: [null, 4]}\n- normalize: {}",
        "            for y.j in range(n):\n"
        '                with block("y", i=spatial(t.i), j=reduction(y.j), initialises=True):\n',
    ),
    "normal but for one block": (
        TWICE,
        "- parallel: {loop: y.i}\n- shift: {loop: t.i, by: 1}\n- normalize: {}",
        "        for t.i in range(n):\n",
    ),
    "normal from a domain that starts at 1": (
        SCALE.replace("range(m)", "range(1, m)").replace("Out[", "InOut["),
        "- split: {loop: y.i, factors: [null, 4]}\n- normalize: {}",
        "    for y.i in range(m - 1):\n"
        "        for y.j in range(n):\n"
        '            with block("y", i=spatial(y.i + 1, 1, m), j=spatial(y.j)):\n',
    ),
    "a value without iteration variables": (
        SHARE.replace("i=reduction(t.i), ", "")
        .replace("    for t.i in range(n):\n        ", "")
        .replace("    t[()] = combine.sum(t[()], x[i])", "t[()] = 3.0")
        .replace(", initialises=True", ""),
        "- normalize: {block: t}",
        '        for t.unit in range(1):\n            with block("t"):\n',
    ),
    "stored in the loop in between": (
        ROW_SQUARES,
        "- reverse_compute_at: {block: y, loop: t.j}\n- store_at: {buffer: t, loop: t.i}",
        "    for t.i in range(m):\n        with allocate(t=float32[m, n]):\n",
    ),
    "stored longer, and split then": (
        TWICE,
        "- before: {block: t, other: y, loop: y.i}\n"
        "- store_at: {buffer: t}\n"
        "- vectorize: {loop: y.i, width: 4}",
        "    with allocate(t=float32[n]):\n        for y.i_0 in range((n + 3) // 4):\n",
    ),
    "stored longer, and merged with another loop then": (
        PAIR,
        "- between: {block: y, first: t, last: z, loop: t.i}\n"
        "- cache_write: {block: y, at: t.i}\n"
        "- store_at: {buffer: y_cache}\n"
        "- fission: {loop: t.i, as: [t.i, y.i, y_cache.i, z.i]}\n"
        "- merge: {loops: [t.i, y.i, y_cache.i]}\n"
        "- store_at: {buffer: y_cache}\n"
        "- merge: {loops: [t.i, z.i]}",
        "    with allocate(y_cache=float32[n]):\n        for t.i in range(n):\n",
    ),
    "loops inside one loop alone": (
        TWICE,
        "- split: {loop: t.i, factors: [null, 4]}\n"
        "- split: {loop: y.i, factors: [null, 4]}\n"
        "- auto_unroll: {max_step: 4, loop: y.i_0}",
        "            for t.i_1 in range(4):\n",
    ),
    "a vector statement is one, of an unrolled loop each": (
        SCALE,
        "- vectorize: {loop: y.j, width: 8}\n"
        "- split: {loop: y.j_0, factors: [null, 2], as: [y.j_a, y.j_b]}\n"
        "- unroll: {loop: y.j_b}\n"
        "- tile: {loops: [y.i, y.j_a], sizes: [3, 1]}\n"
        "- auto_unroll: {max_step: 6}",
        "            for y.i_1 in unrolled(3):\n",
    ),
    "a reduction computed where a part of a fused loop needs it": (
        SUM_THEN_SCALE,
        "- fuse: {loops: [y.i, y.j]}\n"
        "- split: {loop: y.i_j, factors: [null, 4]}\n"
        "- compute_at: {block: t, loop: y.i_j_0}\n"
        "- parallel: {loop: y.i_j_0}",
        "            for t.i_j_1 in range(4):\n"
        "                with delinearize(y.i_j_0 * 4 + t.i_j_1, m, 3) as (t.i, t.j):\n"
        "                    for t.k in range(n):\n",
    ),
    "rows of a fused loop that are read whole: a box": (
        SUM_THEN_SCALE.replace("t[i, j] * 2.0", "t[i, 0] + t[i, 2]"),
        "- fuse: {loops: [y.i, y.j]}\n"
        "- split: {loop: y.i_j, factors: [null, 4]}\n"
        "- compute_at: {block: t, loop: y.i_j_0}",
        "            for t.i in range(m):\n                for t.j in range(3):\n",
    ),
    "a row of a fused loop, once for all of its elements: a box": (
        SUM_THEN_SCALE.replace("j=spatial(t.j)", "j=reduction(t.j)")
        .replace("t[i, j]", "t[i]")
        .replace("t=float32[m, 3]", "t=float32[m]"),
        "- fuse: {loops: [y.i, y.j]}\n"
        "- split: {loop: y.i_j, factors: [null, 4]}\n"
        "- compute_at: {block: t, loop: y.i_j_0}",
        "            for t.i in range(m):\n                for t.j in range(3):\n",
    ),
    "as many statements as the limit": (
        PAIR,
        "- merge: {loops: [y.i, z.i]}\n"
        "- split: {loop: y.i, factors: [null, 4]}\n"
        "- auto_unroll: {max_step: 8}",
        "            for y.i_1 in unrolled(4):\n",
    ),
    "several reads of one temporary": (
        BLUR,
        "- inline_all: {}",
        "y[i] = x[i] * 2.0 + x[i + 1] * 2.0 + x[i + 2] * 2.0\n",
    ),
}


@pytest.mark.parametrize(("kernel", "steps", "lines"), STEPS.values(), ids=STEPS)
def test_step(kernel: str, steps: str, lines: str) -> None:
    before = start(kernel)
    after = schedule(before, steps)[-1].state.kernel
    assert lines in to_text(after)
    assert_same(before.kernel, after, sizes=(1, 3, 5))


REFUSALS = [
    (
        SUM_AND_SCALE,
        "parallel: {loop: z.i}\n- after: {block: z, other: y, loop: y.i}",
        "after (block z, loop y.i): loop 'z.i' is parallel already; move it first",
    ),
    (
        ROW_SQUARES,
        "split: {loop: t.j, factors: [null, 4]}\n- before: {block: y, other: t, loop: t.j_1}",
        "block 'y' has fewer loops than there are down to loop 't.j_1'",
    ),
    (TWICE, "simple_compute_at: {block: t, loop: t.i}", "is around block 't' already"),
    (TWICE, "after: {block: t, other: s}", "there is no block 's'"),
    (TWICE, "between: {block: y, first: t, last: s}", "there is no block 's'"),
    (PAIR, "between: {block: t, first: y, last: z}", "y[i=0] reads 't' before t[i=0] computes it"),
    (
        SHARE,
        "simple_compute_at: {block: y, loop: t.i}",
        "the proof was refused: what y[i=0] reads from 't' lacks the term t[1]",
    ),
    (
        ROW_SUM,
        "decompose_reduction: {block: y, loop: y.j}\n- after: {block: y.init, other: y}",
        "the proof was refused",
    ),
    (TWICE, "normalize: {block: t}", "has one loop for each iteration variable already"),
    (
        SCALE,
        "fuse: {loops: [y.i, y.j]}\n- parallel: {loop: y.i_j}\n- normalize: {}",
        "normalize (block y): loop 'y.i_j' is parallel already",
    ),
    (
        TWICE,
        "peel: {loop: y.i, at: 3}\n- normalize: {block: y}",
        "the loops of block 'y' may not run over all values of 'i'",
    ),
    (TWICE, "store_at: {buffer: y}", "'y' is an argument: it is not allocated here"),
    (
        STENCIL,
        "split: {loop: y.i, factors: [null, 4]}\n"
        "- compute_at: {block: t, loop: y.i_0}\n"
        "- store_at: {buffer: t, loop: y.i_0}",
        "'t' is allocated in loop 'y.i_0' already, which is not further in",
    ),
    (
        PAIR,
        "merge: {loops: [y.i, z.i]}\n"
        "- split: {loop: y.i, factors: [null, 4]}\n"
        "- auto_unroll: {max_step: 7}",
        "no serial loop comes to at most 7 statements",
    ),
    (TWICE, "auto_unroll: {max_step: 8, loop: y.i}", "no serial loop in 'y.i' comes to at most 8"),
]


@pytest.mark.parametrize(("kernel", "steps", "reason"), REFUSALS, ids=[s for _, s, _ in REFUSALS])
def test_refused(kernel: str, steps: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(kernel), "- " + steps)
    assert reason in refusal.value.message


def test_what_is_overwritten_before_its_use_is_not_inlined() -> None:
    before = start(CHANGING)
    after = schedule(before, "- inline_all: {}")[-1].state.kernel
    assert "a[i] = x[i] + 1.0" in to_text(after)
    assert "x[i] = 3.0" in to_text(after)
    assert_same(before.kernel, after, sizes=(0, 1, 4))
    with pytest.raises(ScheduleError) as refusal:
        schedule(before, "- compute_inline: {block: a}")
    assert "but x[i=0] writes it before" in refusal.value.message


@pytest.mark.parametrize("loop", [None, "y.i"])
def test_a_barrier_stays_in_its_loop(loop: str | None) -> None:
    """The loop that a block leaves still has a barrier, so the block's own gets another name."""
    there = "{block: z, other: y" + (f", loop: {loop}}}" if loop else "}")
    plain = start(PAIR)
    kernel = schedule(plain, f"- sync_threads: {{block: z}}\n- after: {there}")[-1].state.kernel
    text = to_text(kernel)
    assert ("for z.i_2 in range(n)" in text) is (loop is None)
    assert text.index('block("z"') < text.index("for z.i in range(n)") < text.index("barrier()")
    assert_same(plain.kernel, kernel, sizes=(0, 3))


# Each column takes from its row before: reader and writer share no row, whatever the column.
COLUMNS = """\
def columns(m, n, x: float32[m, n], y: InOut[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] + (y[i - 1, j] if i > 0 else 0.0)
"""
FROM_DIAGONAL = COLUMNS.replace("range(n)", "range(min(y.i, n), n)").replace(
    "j=spatial(y.j)", "j=spatial(y.j, 0, n)"
)
FROM_DIAGONAL = FROM_DIAGONAL.replace("range(m)", "range(1, m)").replace(
    "i=spatial(y.i)", "i=spatial(y.i, 1, m)"
)
FROM_DIAGONAL = FROM_DIAGONAL.replace("i > 0", "i > 1")


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        (COLUMNS, "- skew: {loops: [y.i, y.j]}"),
        (COLUMNS, "- skew: {loops: [y.i, y.j]}\n- normalize: {block: y}"),
        (COLUMNS, "- skew: {loops: [y.i, y.j]}\n- reorder: {loops: [y.j, y.i]}"),
        (COLUMNS, '- transform_block_layout: {block: y, indices: "i, j - i"}'),
        (FROM_DIAGONAL, "- reverse: {loop: y.j}"),
        (FROM_DIAGONAL, "- split: {loop: y.j, factors: [null, 4]}"),
        (FROM_DIAGONAL, "- peel: {loop: y.j, at: 2}"),
        (FROM_DIAGONAL, "- peel: {loop: y.j, at: -2}"),
    ],
)
def test_a_loop_that_is_numbered_anew_is_not_shared_as_before(text: str, recipe: str) -> None:
    before = start(text)
    assert before.flow["y", 1].shared == ("y.j",)
    after = schedule(before, recipe)[-1].state
    assert not any(source.shared for source in after.flow.values())
    assert_same(before.kernel, after.kernel, (0, 1, 3, 6))


FROM_ROW = """\
def from_row(n, x: float32[n, n], y: InOut[float32[n]]):
    for y.i in range(n):
        for y.j in range(y.i, n):
            with block("y", i=spatial(y.i), j=reduction(y.j, i, n)):
                y[i] = combine.sum(y[i], x[i, j])
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (BELOW, ("range(y.i_0 * 4)", "range(y.i_0 * 4, y.i_0 * 4 + y.i_1)")),
        (
            FROM_ROW,
            ("range(y.i_0 * 4 + y.i_1, min(y.i_0 * 4 + 3, n))", "range(min(y.i_0 * 4 + 3, n), n)"),
        ),
    ],
)
def test_peel_cuts_where_a_loop_further_out_says(text: str, parts: tuple[str, str]) -> None:
    """What the rows of a block share is a rectangle, whether it is the first part or the second."""
    before = start(text)
    recipe = (
        "- split: {loop: y.i, factors: [null, 4]}\n- peel: {loop: y.j, at: y.i_0, as: [y.a, y.b]}"
    )
    after = schedule(before, recipe)[-1].state
    assert_same(before.kernel, after.kernel, (0, 1, 3, 6, 9))
    assert all(part in to_text(after.kernel) for part in parts), to_text(after.kernel)


def test_a_loop_that_keeps_its_iterations_is_shared_as_before() -> None:
    for recipe in (
        "- reverse: {loop: y.j}",
        "- shift: {loop: y.j, by: 3}",
        "- align: {loop: y.j, buffer: y}",
    ):
        state = schedule(start(COLUMNS), recipe)[-1].state
        assert state.flow["y", 1].shared == ("y.j",)
