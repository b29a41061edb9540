"""Reads of vectors that begin within a vector of a register buffer: lane shifts.

Input: the view of a register buffer and the indices of a read. Output: the vectors that the read
takes lanes from, and C for it. Only reads: a store to part of two vectors would be two blends.
"""

from itertools import pairwise

from ....ir.nodes import Expr
from ...c.views import Registers, register_count, register_start


def readable(view: Registers, indices: tuple[Expr, ...], lane: str, lanes: int) -> bool:
    """Whether the elements are whole vectors, or shifted ones, of those that hold the buffer."""
    start = register_start(view, indices, lane)
    last = -(-lanes // view.lanes) - 1
    return start is not None and -(-start // view.lanes) + last < register_count(view)


def read(
    view: Registers, indices: tuple[Expr, ...], lane: str, suffix: str, count: int
) -> tuple[str, ...]:
    """The `count` vectors from an element on, as C."""
    start = register_start(view, indices, lane)
    assert start is not None
    number, shift = divmod(start, view.lanes)
    names = [f"{view.name}[{number + q}]" for q in range(count + bool(shift))]
    if not shift:
        return tuple(names)
    return tuple(f"ts_shift_{suffix}({lo}, {hi}, {shift})" for lo, hi in pairwise(names))
