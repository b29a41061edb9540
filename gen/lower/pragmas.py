"""Loops that a note on a loop around lets be unrolled.

Input: a tree. Output: the same, in which below a loop with the note `pragma_auto_unroll_max_step`
the serial loops of constant extent that come to at most so many statements are unrolled; with
`pragma_unroll_explicit` 0 they are marked, for the C compiler to unroll them. These notes are gone.
"""

from dataclasses import dataclass, replace
from typing import assert_never, final

from ..ir.algebra import sub
from ..ir.linear import constant
from ..ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Delinearize,
    If,
    Kernel,
    Loop,
    LoopKind,
    Seq,
    Stmt,
    Transfer,
)
from ..schedule.notes import EXPLICIT, MAX_STEP, UNROLL, noted


@final
@dataclass(frozen=True, slots=True)
class _Wish:
    """The most statements that an unrolled loop may come to, and whether they are written out."""

    most: int = 0
    explicit: bool = True

    def of(self, loop: Loop) -> "_Wish":
        said = noted(loop)
        most, explicit = said.get(MAX_STEP, self.most), said.get(EXPLICIT, self.explicit)
        return _Wish(int(most), bool(explicit))


def auto_unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_visit(kernel.body, _Wish())[0])


def _visit(stmt: Stmt, wish: _Wish) -> tuple[Stmt, int | None]:
    """The statement, and how many it comes to; None where loops stay in it."""
    match stmt:
        case Block() | Barrier() | Transfer():
            return stmt, 1
        case Seq(body):
            parts = [_visit(s, wish) for s in body]
            counts = [count for _, count in parts if count is not None]
            whole = len(counts) == len(parts)
            return replace(stmt, body=tuple(s for s, _ in parts)), sum(counts) if whole else None
        case Delinearize() | If() | Allocate():
            inner, count = _visit(stmt.body, wish)
            return replace(stmt, body=inner), count
        case Loop():
            return _loop(stmt, wish.of(stmt))
        case _:
            assert_never(stmt)


def _loop(loop: Loop, wish: _Wish) -> tuple[Loop, int | None]:
    body, count = _visit(loop.body, wish)
    left = tuple(note for note in loop.annotations if note[0] not in (MAX_STEP, EXPLICIT))
    new = replace(loop, body=body, annotations=left)
    extent = constant(sub(loop.upper, loop.lower))
    if count is None or extent is None or loop.kind is LoopKind.PARALLEL:
        return new, None
    if loop.kind is LoopKind.VECTORIZED:
        return new, count
    count *= max(extent, 0)
    if loop.kind is LoopKind.UNROLLED:
        return new, count
    if count > wish.most:
        return new, None
    if wish.explicit:
        return replace(new, kind=LoopKind.UNROLLED), count
    return replace(new, annotations=(*left, (UNROLL, max(extent, 1)))), count
