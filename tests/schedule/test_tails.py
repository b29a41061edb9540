"""Sums over a tail, `sum(x[k] for k in range(i, n))`, and over bands: in vectors and in tiles."""

import pytest

from gen.errors import ScheduleError
from gen.schedule.examples import TRIANGLE

from .support import assert_same, schedule, start

TAIL = """\
def tail(n, a: float32[n, n], x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        for y.k in range(y.i, n):
            with block("y", i=spatial(y.i), k=reduction(y.k, i, n), initialises=True):
                y[i] = combine.sum(y[i], a[i, k] * x[k])
"""

# All after the diagonal, from the last row on: a back substitution's.
BEHIND = """\
def behind(n, a: float32[n, n], x: float32[n], y: Out[float32[n]]):
    for y.r in range(n):
        for y.k in range(n - y.r, n):
            with block(
                "y", i=spatial(n - 1 - y.r, n), k=reduction(y.k, i + 1, n), initialises=True
            ):
                y[i] = combine.sum(y[i], a[i, k] * x[k])
"""

BAND = """\
def band(n, a: float32[n, n], b: float32[n, n], c: Out[float32[n, n]]):
    for c.i in range(n):
        for c.j in range(n):
            for c.k in range(c.i, c.j + 1):
                with block(
                    "c",
                    i=spatial(c.i),
                    j=spatial(c.j),
                    k=reduction(c.k, i, j + 1),
                    initialises=True,
                ):
                    c[i, j] = combine.sum(c[i, j], a[i, k] * b[k, j])
"""

ADDED = TAIL.replace("Out[", "InOut[").replace(", initialises=True", "")

TILED = """\
- split: {loop: c.i, factors: [null, 2], as: [c.i0, c.i1]}
- split: {loop: c.j, factors: [null, 2, 4], as: [c.j0, c.j1, c.j2]}
- reorder: {loops: [c.j0, c.i0, c.k, c.i1, c.j1, c.j2]}
- cache_write: {block: c, at: c.i0, scope: register, as: tile}
- decompose_reduction: {block: c, loop: c.k}
- vectorize: {loop: c.init.j2, width: 4}
- vectorize: {loop: c.j2, width: 4}
- unroll: {loop: c.i1}
- parallel: {loop: c.j0}
"""

RECIPES = [
    (TAIL, "- split: {loop: y.k, factors: [null, 4]}"),
    (TAIL, "- split: {loop: y.k, factors: [null, 2, 4], as: [y.a, y.b, y.c]}"),
    (TAIL, "- vectorize: {loop: y.k, width: 4}\n- parallel: {loop: y.i}"),
    (TAIL, "- vectorize: {loop: y.k, width: 4, accumulators: 2}"),
    (
        TAIL,
        "- vectorize: {loop: y.k, width: 4, accumulators: 2}\n"
        "- cascade: {block: y_rf, loop: y.k_0, lengths: [2]}",
    ),
    (TAIL, "- reorder: {loops: [y.k, y.i]}\n- vectorize: {loop: y.i, width: 4}"),
    (TAIL, "- rfactor: {block: y, loop: y.k}"),
    (BEHIND, "- vectorize: {loop: y.k, width: 4}"),
    (BEHIND, "- reorder: {loops: [y.k, y.r]}"),
    (ADDED, "- split: {loop: y.k, factors: [null, 4]}"),
    (ADDED, "- vectorize: {loop: y.k, width: 4}"),
    (BAND, "- vectorize: {loop: c.k, width: 4}"),
    (BAND, "- reorder: {loops: [c.i, c.k, c.j]}\n- vectorize: {loop: c.j, width: 4}"),
    (BAND, "- reorder: {loops: [c.k, c.i, c.j]}"),
    (BAND, TILED),
    (BAND.replace("range(c.i, c.j + 1)", "range(c.j + 1)").replace("c.k, i, j", "c.k, j"), TILED),
]


@pytest.mark.parametrize(("text", "recipe"), RECIPES)
def test_the_same_sums(text: str, recipe: str) -> None:
    state = start(text)
    assert_same(state.kernel, schedule(state, recipe)[-1].state.kernel)


def test_parts_of_a_sum_that_starts_with_its_row_line_up() -> None:
    """As with `grid`; what has no init starts where its row does, as ever."""
    step = "- split: {{loop: y.k, factors: [null, 4]{}}}"
    for text, grid in (TAIL, True), (ADDED, False):
        found = [schedule(start(text), step.format(e))[-1].state for e in ("", ", grid: true")]
        assert (found[0] == found[1]) is grid


REFUSALS = [
    (
        TAIL,
        "split: {loop: y.k, factors: [4, null]}",
        "only the outermost factor can be inferred where the extent is symbolic",
    ),
    (
        TAIL,
        "split: {loop: y.k, factors: [2, 4]}",
        "the factors' product, 8, may be less than the loop's extent",
    ),
    (
        TRIANGLE,
        "shift: {loop: y.j, by: -1}\n- rfactor: {block: y, loop: y.j}",
        "loop 'y.j' may start below 0; split it first",
    ),
    (
        TAIL.replace("n, a", "n, b, a").replace("for y.i", "assume(b >= 1)\n    for y.i"),
        "split: {loop: y.k, factors: [null, b]}",
        "a factor that is given at run time is the second of two, `[null, b]`, of a loop whose"
        " start depends on no other",
    ),
]


@pytest.mark.parametrize(("text", "step", "reason"), REFUSALS)
def test_refused(text: str, step: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), f"- {step}")
    assert reason in refusal.value.message
