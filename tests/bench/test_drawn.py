"""Sizes that are drawn: they are what the seed says, within limits, and printed worst first."""

import numpy as np
import pytest

from bench import drawn, report
from bench.cases import Case
from bench.kernels import KERNELS
from bench.kernels.kernel import Kernel
from bench.results import Cell, Group, Row
from bench.worker import copy_of

EVERY = list(KERNELS.values())


def text(case: Case) -> str:
    return f"{case.label} {case.kind} {case.offset} {case.gap}"


def test_a_seed_draws_the_same_cases_and_another_one_others() -> None:
    first, again, other = (drawn.draw(EVERY, 60, seed) for seed in (1, 1, 2))
    assert list(map(text, first)) == list(map(text, again)) != list(map(text, other))


@pytest.mark.parametrize("kernel", EVERY, ids=lambda k: k.name)
def test_drawn_cases_are_within_limits(kernel: Kernel) -> None:
    found = drawn.draw([kernel], 20, 3)
    assert len({case.label for case in found}) > 10
    for case in found:
        assert min(case.dims) >= 1 and len(case.dims) == kernel.rank
        assert case.bytes_read + case.bytes_written <= drawn.MOST_BYTES
        assert case.operations <= drawn.MOST_OPERATIONS
        assert kernel.rank == 1 or max(case.dims) <= drawn.MOST_ASPECT * min(case.dims)


def test_arrays_begin_anywhere_and_have_room_between_rows() -> None:
    cases = drawn.draw(EVERY, 200, 4)
    offsets, gaps = {case.offset for case in cases}, {case.gap for case in cases}
    assert None in offsets and len(offsets) > 10 and 0 in gaps and len(gaps) > 10
    copy = copy_of(np.ones((3, 5), np.float32), 12, 4)
    assert copy.strides == (36, 4) and copy.ctypes.data % 64 == 12 and (copy == 1).all()


def row(dims: tuple[int, ...], kind: str, mine: float, best: tuple[float, ...]) -> Row:
    cells = {"tilesmith": Cell("ok", (mine,) * 4), "torch": Cell("ok", best)}
    return Row("sum", dims, kind, 1, 1, 1, 1, {}, 0.0, cells)


def test_the_worst_come_first_and_noise_is_marked() -> None:
    rows = [
        row((1,), "drawn", 1.0, (2.0, 2.0, 2.1, 2.0)),
        row((2,), "drawn, at 4", 2.0, (1.0, 1.0, 2.0, 2.0)),
        row((3,), "main", 4.0, (1.0,) * 4),
    ]
    group = Group(["tilesmith"], ["torch"], [])
    _, _, *lines = report.table(report.worst_first(rows, group), group)
    assert [line.split(" | ")[0] for line in lines] == ["| sum 2", "| sum 1", "| sum 3"]
    assert ["0.75x ~ |" in lines[0], " ~" in lines[1], " ~" in lines[2]] == [True, False, False]
