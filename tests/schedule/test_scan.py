"""scan: what it refuses, with the reason; on columns; in other orders of loops."""

import re

import pytest

from gen.errors import ScheduleError
from gen.schedule.examples import RUNNING_SUM, SCALE, TRIANGLE

from .support import assert_same, schedule, start


def running(terms: str, results: str = "n", place: str = "j") -> str:
    """Sums over `range(terms)`, as it is in `j`, for the results of `range(results)`."""
    lower, _, upper = results.rpartition(", ")
    at = "y.j" if not lower else f"y.j, {lower}, {upper}"
    loop = re.sub(r"\bj\b", "y.j", terms)
    text = RUNNING_SUM.replace("range(y.j + 1)", f"range({loop})")
    text = text.replace("reduction(y.k, j + 1)", f"reduction(y.k, {terms})")
    text = text.replace("y.j in range(n)", f"y.j in range({results})")
    text = text.replace("spatial(y.j)", f"spatial({at})").replace("y[i, j]", f"y[i, {place}]")
    return text if results == "n" else text.replace("Out[", "InOut[")


FORMS = {
    "up to each place": running("j + 1"),
    "before each place": running("j"),
    "from each place on": running("j, n"),
    "after each place": running("j + 1, n"),
    "shifted": running("j + 1", "n - 1", "j + 1"),
    "before, from the second on": running("j", "1, n"),
    "without the first term": running("1, j + 1"),
    "without the last term": running("j, n - 1"),
    "shifted back": running("j + 1, n", "n - 1"),
    "in turned order": running("j + 1", "n", "n - 1 - j"),
    "in turned order, from each place on": running("j, n", "n", "n - 1 - j"),
}
LATE = running("j + 1", "1, n")
AHEAD = running("j + 2", "n - 1")
HALF = running("j, n", "n - n // 2")
WEIGHTED = RUNNING_SUM.replace("x[i, k])", "x[i, k] * x[i, j])")
ANY = RUNNING_SUM.replace("float32", "bool").replace("combine.sum", "combine.any")
DIAGONAL = RUNNING_SUM.replace("y[i, j]", "y[j, j]").replace(
    "Out[float32[m, n]]", "InOut[float32[n, n]]"
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
    (LATE, "scan: {block: y}", "the first result of block 'y' does not have one term, or none"),
    (AHEAD, "scan: {block: y}", "the first result of block 'y' does not have one term, or none"),
    (HALF, "scan: {block: y}", "the last result of block 'y' does not have one term, or none"),
    (
        running("2 * j"),
        "scan: {block: y}",
        "loop 'y.k' is over range(0, 2 * y.j), of which no loop around it moves one end, by 1",
    ),
    (
        running("j, 2 * j"),
        "scan: {block: y}",
        "loop 'y.k' is over range(y.j, 2 * y.j), of which no loop around it moves one end, by 1",
    ),
    (WEIGHTED, "scan: {block: y}", "the terms of block 'y' depend on 'j', so that no two results"),
    (TRIANGLE, "scan: {block: y}", "the terms of block 'y' depend on 'i', so that no two results"),
    (ANY, "scan: {block: y, width: 4}", "no operator combines two partial results of 'any'"),
    (DIAGONAL, "scan: {block: y}", "the place of block 'y' does not move with 'j' along one axis"),
    (ROWS_TOO, "scan: {block: y}", "what else block 'y' runs over depends on loop 'y.j'"),
    (
        RUNNING_SUM,
        "split: {loop: y.j, factors: [null, 4]}\n- scan: {block: y}",
        "'y.j_1' and 'y.k' are not both iteration variables of block 'y': scan before splitting",
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "combiner",
    ["sum", "min", *(pytest.param(c, marks=pytest.mark.thorough) for c in ("prod", "max"))],
)
def test_forms(form: str, combiner: str) -> None:
    """One at a time and in chunks; along rows, and with the loop over rows inside."""
    state = start(FORMS[form].replace("combine.sum", f"combine.{combiner}"))
    for width in ("", ", width: 4"):
        scan = f"- scan: {{block: y{width}}}"
        for turn in ("", "- reorder: {loops: [y.j, y.i, y.k]}\n"):
            assert_same(state.kernel, schedule(state, turn + scan)[-1].state.kernel)


@pytest.mark.parametrize("form", ["before each place", "after each place"])
def test_what_reads_the_results_reads_the_one_without_terms(form: str) -> None:
    text = FORMS[form].replace("y: Out[float32[m, n]]", "z: Out[float32[m, n]]")
    head, _, rest = text.partition("\n")
    inner = "".join(f"    {line}\n" for line in rest.splitlines())
    reader = """\
        for z.i in range(m):
            for z.j in range(n):
                with block("z", i=spatial(z.i), j=spatial(z.j)):
                    z[i, j] = y[i, j] * x[i, j]
"""
    state = start(f"{head}\n    with allocate(y=float32[m, n]):\n{inner}{reader}")
    for steps in (
        "- scan: {block: y}",
        "- scan: {block: y, width: 4}",
        "- merge: {loops: [y.i, z.i]}\n- scan: {block: y, width: 4}\n- parallel: {loop: y.i}",
    ):
        assert_same(state.kernel, schedule(state, steps)[-1].state.kernel)


def test_a_running_any_has_a_carry() -> None:
    state = start(ANY)
    assert_same(state.kernel, schedule(state, "- scan: {block: y}")[-1].state.kernel)
