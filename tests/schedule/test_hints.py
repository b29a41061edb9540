"""What a refusal suggests, word for word; and that the suggestion is accepted."""

import islpy as isl
import pytest

from gen.errors import ScheduleError
from gen.poly.certificate import Scheduled
from gen.poly.queries.distances import distances
from gen.schedule.examples import ROW_SUM

from .recurrences import (
    FLOYD_WARSHALL,
    GAUSS_SEIDEL,
    HEAT,
    JACOBI,
    LSTM,
    SEIDEL,
    SUBSTITUTION,
)
from .support import schedule, start
from .test_affine import CHAIN

FIRST_AHEAD = CHAIN.replace("t[i] + t[i + 1]", "t[i + 1]")

HINTS = {
    "Gauss-Seidel": (
        GAUSS_SEIDEL,
        "parallel: {loop: s.j}",
        "skew: {loops: [s.i, s.j]}, then reorder: {loops: [s.j, s.i]}, then parallel: {loop: s.i}",
    ),
    "Gauss-Seidel in vectors": (
        GAUSS_SEIDEL,
        "vectorize: {loop: s.j, width: 4}",
        "skew: {loops: [s.i, s.j]}, then reorder: {loops: [s.j, s.i]},"
        " then vectorize: {loop: s.i, width: 4}",
    ),
    "sweeps, of which each follows the one before": (
        SEIDEL,
        "parallel: {loop: a.t}",
        "skew: {loops: [a.t, a.i], factor: 2}, then reorder: {loops: [a.i, a.t]},"
        " then parallel: {loop: a.t}",
    ),
    "steps of time in another order": (
        JACOBI,
        "reorder: {loops: [s.i, s.t]}",
        "skew: {loops: [s.t, s.i]}, then reorder: {loops: [s.i, s.t]}",
    ),
    "tiles in time and space": (
        HEAT,
        "tile: {loops: [s.t, s.i, s.j], sizes: [2, 3, 4]}",
        "skew: {loops: [s.t, s.i]}, then skew: {loops: [s.t, s.j]},"
        " then tile: {loops: [s.t, s.i, s.j], sizes: [2, 3, 4]}",
    ),
    "another loop is free": (JACOBI, "parallel: {loop: s.t}", "parallel: {loop: s.i}"),
    "layers of cells over time": (
        LSTM,
        "parallel: {loop: c.l}",
        "skew: {loops: [c.t, c.l]}, then reorder: {loops: [c.l, c.t]}, then parallel: {loop: c.t}",
    ),
    "a triangle by columns": (
        SUBSTITUTION,
        "parallel: {loop: y.i}",
        "reorder: {loops: [y.k, y.i]}, then parallel: {loop: y.i}",
    ),
    "rows of a sum": (ROW_SUM, "parallel: {loop: y.j}", "parallel: {loop: y.i}"),
    "a consumer that looks ahead": (
        CHAIN,
        "merge: {loops: [t.i, y.i]}",
        "shift: {loop: y.i, by: 1}, then merge: {loops: [t.i, y.i]}",
    ),
}


def refusal(state: Scheduled, step: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as refused:
        schedule(state, f"- {step}")
    return refused.value


@pytest.mark.parametrize("name", HINTS)
def test_the_hint_is_accepted(name: str) -> None:
    text, step, steps = HINTS[name]
    error = refusal(start(text), step)
    assert "the proof was refused" in error.message
    assert error.hint == f"legal in place of this step: {steps}"
    schedule(start(text), recipe(steps))


def recipe(hint: str) -> str:
    """The steps of a hint as lines of a recipe."""
    return "\n".join(f"- {step}" for step in hint.split(", then "))


def test_rows_of_paths_by_way_of_one_node_are_independent() -> None:
    """With the guards, which leave out what would stay as it is; without, diagonals are."""
    schedule(start(FLOYD_WARSHALL), "- parallel: {loop: p.i}")
    unguarded = FLOYD_WARSHALL.replace("where=p.i != p.k and p.j != p.k,", "")
    error = refusal(start(unguarded), "parallel: {loop: p.i}")
    assert error.message == (
        "parallel (loop p.i): the proof was refused: parallel loop 'p.i' has a race: "
        "p[k=0, i=0, j=1] writes 'p' and p[k=0, i=1, j=1] reads it in another iteration"
    )
    assert error.hint == (
        "legal in place of this step: skew: {loops: [p.i, p.j]}, then reorder: {loops: [p.j, p.i]},"
        " then parallel: {loop: p.i}"
    )


def test_paths_by_way_of_several_nodes_at_once() -> None:
    """It takes that a second relaxation changes nothing: no reordering does."""
    error = refusal(start(FLOYD_WARSHALL), "tile: {loops: [p.k, p.i], sizes: [2, 2]}")
    assert error.message == (
        "tile stands for reorder (loops [p.k_0, p.i_0, p.k_1, p.i_1]): the proof was refused: "
        "p[k=3, i=1, j=1] reads 'p' before p[k=2, i=3, j=1] computes it"
    )
    assert error.hint is None


def test_distances() -> None:
    """Of Seidel's sweep: to cells that take the new value, and from those that took the old one."""
    found = distances(start(SEIDEL).kernel, ("a.i", "a.j"), terms=True)
    assert found.is_equal(isl.Set("{ [0, 1]; [1, -1]; [1, 0]; [1, 1] }"))
