"""What a block asks the caches for ahead of time.

Input: a block marked by the step `prefetch`, in the loops' variables. Output: C for each line of
memory that it reads, further on by the marked steps along the array's axes. The addresses are
integers: they may lie outside the array. `ahead` is 1, or 0 in a call that has all in its caches.
"""

from ....errors import TilesmithError
from ....ir.algebra import index
from ....ir.index.linear import linear
from ....ir.nodes import Block, Expr, Stmt
from ....ir.walk import blocks, loads
from ...c.expr import c_type
from ...c.views import ArgumentView, at_lane, element
from ..context import Context
from ..levels import LINE


def prefetches(block: Block, context: Context, lane: str = "", lanes: int = 1) -> list[str]:
    """lane: the variable of the vectorized loop around, of `lanes` lanes; empty: one instance."""
    lines: list[str] = []
    for key, value in block.annotations:
        kind, _, buffer = key.partition(" ")
        if kind != "prefetch":
            continue
        *steps, last = str(value).split(", ")
        near = last != "l2"
        by = [int(step) for step in (*steps, *([last] if near else []))]
        asked: list[tuple[Expr, ...]] = []
        for read in loads(block.body):
            if read.buffer != buffer:
                continue
            moving = lane and linear(read.indices[-1]).coefficient(lane) == 1
            first = at_lane(read.indices, lane, index(0)) if lane else read.indices
            width = LINE // read.dtype.bytes
            if any(_near(first, other, width) for other in asked):
                continue
            asked.append(first)
            for k in range(0, lanes if moving else 1, width):
                lines.append(_line(buffer, first, k, by, context, near))
    return lines


def check_reads(stmt: Stmt) -> None:
    """Raises TilesmithError for a block that does not read what it is marked to ask for."""
    read = {(b.name, load.buffer) for b in blocks(stmt) for load in loads(b.body)}
    for block in blocks(stmt):
        for key, _ in block.annotations:
            kind, _, buffer = key.partition(" ")
            if kind == "prefetch" and (block.name, buffer) not in read:
                raise TilesmithError(
                    f"prefetch (block {block.name}, buffer {buffer}): the block does not read it",
                    block.span,
                    "a later step of the recipe has replaced the read",
                )


def _near(a: tuple[Expr, ...], b: tuple[Expr, ...], width: int) -> bool:
    """Whether two places are less than a line apart, as far as one can tell."""
    apart = [linear(i) - linear(j) for i, j in zip(a, b, strict=True)]
    if any(d.terms for d in apart) or any(d.constant for d in apart[:-1]):
        return False
    return not apart or abs(apart[-1].constant) < width


def _line(
    buffer: str,
    first: tuple[Expr, ...],
    lanes: int,
    by: list[int],
    context: Context,
    near: bool,
) -> str:
    """near: into the first-level cache, not the second."""
    view = context.views[buffer]
    assert isinstance(view, ArgumentView)
    moved = [_step(view, axis, step) for axis, step in enumerate(by) if step]
    offset = element(context.views, context.scalars, buffer, first)[len(view.name) + 1 : -1]
    inside = _step(view, len(by) - 1, lanes)
    place = f"{offset} + {inside}" if lanes else offset
    size = f"sizeof({c_type(view.buffer.dtype)})"
    by_all = moved[0] if len(moved) == 1 and "*" not in moved[0] else f"({' + '.join(moved)})"
    at = f"({place} + ahead * {by_all})"
    address = f"(const void *)((uintptr_t){view.name} + {size} * (uintptr_t){at})"
    return f"__builtin_prefetch({address});" if near else f"__builtin_prefetch({address}, 0, 2);"


def _step(view: ArgumentView, axis: int, step: int) -> str:
    if axis in view.unit:
        return str(step)
    return view.strides[axis] if step == 1 else f"{step} * {view.strides[axis]}"
