"""Steps on tuples of which one part is read: the others are as right."""

import pytest

from gen.errors import ScheduleError
from gen.schedule.examples import ROW_EXPONENTIALS

from .support import assert_same, schedule, start

ARGMAX = """\
def argmax(m, n, x: float32[m, n], y: Out[int64[m]]):
    with allocate(v=float32[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""
FOLDED = "- fold_storage: {buffer: v, axis: 0, factor: 2}\n"
DOUBLE = "- double_buffer: {buffer: v, loop: y.i}\n"
RESCALED = """\
- rescale: {blocks: [peak, y]}
- fold_storage: {buffer: peak, axis: 0, factor: 2}
"""


@pytest.mark.parametrize(
    ("text", "steps", "then", "reason"),
    [
        (ARGMAX, FOLDED, "- decompose_reduction: {block: y, loop: y.i}", "'v' holds the term y[0"),
        (ARGMAX, FOLDED, "- reorder: {loops: [y.j, y.i]}", "'v' holds the term y[0"),
        (ARGMAX, DOUBLE, "- reorder: {loops: [y.j, y.i]}", "'v' holds the term y[0"),
        (
            ROW_EXPONENTIALS,
            RESCALED,
            "- decompose_reduction: {block: peak, loop: peak.i}",
            "'peak' holds the term peak[0",
        ),
    ],
)
def test_a_part_that_nothing_reads_is_kept_to_the_last_term(
    text: str, steps: str, then: str, reason: str
) -> None:
    before = start(text)
    right = schedule(before, steps)[-1].state
    assert_same(before.kernel, right.kernel, sizes=(1, 3, 4))
    with pytest.raises(ScheduleError, match="combines parts that hold different terms") as refused:
        schedule(before, steps + then)
    assert reason in refused.value.message
