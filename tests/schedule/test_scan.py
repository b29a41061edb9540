"""scan: what it refuses, with the reason; on columns; in other orders of loops."""

import pytest

from gen.errors import ScheduleError
from gen.schedule.examples import RUNNING_SUM, SCALE, TRIANGLE

from .support import assert_same, schedule, start

SHIFTED = RUNNING_SUM.replace("range(y.j + 1)", "range(y.j)").replace("k, j + 1)", "k, j)")
FROM_ONE = RUNNING_SUM.replace("range(y.j + 1)", "range(1, y.j + 1)").replace(
    "reduction(y.k, j + 1)", "reduction(y.k, 1, j + 1)"
)
LATE = RUNNING_SUM.replace("range(n)", "range(1, n)").replace("Out[", "InOut[")
WEIGHTED = RUNNING_SUM.replace("x[i, k])", "x[i, k] * x[i, j])")
ANY = RUNNING_SUM.replace("float32", "bool").replace("combine.sum", "combine.any")
DIAGONAL = RUNNING_SUM.replace("y[i, j]", "y[i, i + j]").replace(
    "Out[float32[m, n]]", "InOut[float32[m, m + n]]"
)
ROWS_TOO = """\
def rows(n, x: float32[n, n], y: InOut[float32[n, n]]):
    for y.j in range(n):
        for y.i in range(y.j):
            for y.k in range(y.j + 1):
                with block(
                    "y",
                    j=spatial(y.j),
                    i=spatial(y.i, j),
                    k=reduction(y.k, j + 1),
                    initialises=True,
                ):
                    y[i, j] = combine.sum(y[i, j], x[i, k])
"""

REFUSALS = [
    (SCALE, "scan: {block: y}", "block 'y' is not a reduction with an init of its own"),
    (RUNNING_SUM, "scan: {block: y, width: 1}", "width 1 is less than 2"),
    (RUNNING_SUM, "scan: {block: y, as: [a, b]}", "`as` must give 1 name"),
    (RUNNING_SUM, "scan: {block: y, width: 4, as: part}", "`as` must give 2 names"),
    (RUNNING_SUM, "scan: {block: y, as: x}", "the name 'x' is taken"),
    (RUNNING_SUM, "scan: {block: y, width: 4, as: [a, a]}", "the name 'a' is taken"),
    (SHIFTED, "scan: {block: y}", "loop 'y.k' is over range(0, y.j), not over range(0, the"),
    (FROM_ONE, "scan: {block: y}", "loop 'y.k' is over range(1, y.j + 1), not over range(0, the"),
    (LATE, "scan: {block: y}", "loop 'y.j' does not start at 0"),
    (WEIGHTED, "scan: {block: y}", "the terms of block 'y' depend on 'j', so that no two results"),
    (TRIANGLE, "scan: {block: y}", "the terms of block 'y' depend on 'i', so that no two results"),
    (ANY, "scan: {block: y, width: 4}", "no operator combines two partial results of 'any'"),
    (DIAGONAL, "scan: {block: y}", "the place of block 'y' does not move with 'j' along one axis"),
    (ROWS_TOO, "scan: {block: y}", "what else block 'y' runs over depends on loop 'y.j'"),
    (
        RUNNING_SUM,
        "split: {loop: y.j, factors: [null, 4]}\n- scan: {block: y}",
        "is over range(0, y.j_0 * 4 + y.j_1 + 1), not over range(0, the variable of a loop",
    ),
    (
        RUNNING_SUM,
        "split: {loop: y.k, factors: [null, 4]}\n- scan: {block: y}",
        "block 'y' does not reduce over the one loop directly around it",
    ),
    (
        RUNNING_SUM,
        "parallel: {loop: y.j}\n- scan: {block: y}",
        "loop 'y.j' is parallel already",
    ),
]


@pytest.mark.parametrize(("text", "step", "reason"), REFUSALS)
def test_refused(text: str, step: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), f"- {step}")
    assert reason in refusal.value.message


@pytest.mark.parametrize(
    "recipe",
    [
        "- scan: {block: y, as: so_far}",
        "- scan: {block: y, width: 3, as: [part, so_far]}\n- parallel: {loop: y.i}",
        "- reorder: {loops: [y.j, y.i, y.k]}\n- scan: {block: y}",
        "- reorder: {loops: [y.j, y.i, y.k]}\n- scan: {block: y, width: 4}",
        "- split: {loop: y.i, factors: [null, 2, 4]}\n"
        "- reorder: {loops: [y.i_0, y.j, y.i_1, y.i_2, y.k]}\n"
        "- scan: {block: y}\n- vectorize: {loop: y.i_2, width: 4}\n- parallel: {loop: y.i_0}",
    ],
)
def test_the_same_sums(recipe: str) -> None:
    state = start(RUNNING_SUM)
    assert_same(state.kernel, schedule(state, recipe)[-1].state.kernel)


def test_a_running_any_has_a_carry() -> None:
    state = start(ANY)
    assert_same(state.kernel, schedule(state, "- scan: {block: y}")[-1].state.kernel)
