"""Loops that a note on a loop around lets be unrolled.

Input: a tree. Output: the same, in which below a loop with the note `pragma_auto_unroll_max_step`
the serial loops of constant extent that come to at most so many statements are unrolled; with
`pragma_unroll_explicit` 0 they are marked, for the C compiler to unroll them. These notes are gone.
"""

from dataclasses import dataclass, replace
from typing import final

from ..ir.algebra import sub
from ..ir.index.linear import constant
from ..ir.nodes import Kernel, Loop, LoopKind, Stmt
from ..ir.walk import map_nested
from ..schedule.edit.notes import EXPLICIT, MAX_STEP, UNROLL, noted
from ..schedule.edit.unrolling import written_out


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
    return replace(kernel, body=_visit(kernel.body, _Wish()))


def _visit(stmt: Stmt, wish: _Wish) -> Stmt:
    match stmt:
        case Loop():
            wish = wish.of(stmt)
            left = tuple(n for n in stmt.annotations if n[0] not in (MAX_STEP, EXPLICIT))
            return _loop(replace(stmt, body=_visit(stmt.body, wish), annotations=left), wish)
        case _:
            return map_nested(stmt, lambda s: _visit(s, wish))


def _loop(loop: Loop, wish: _Wish) -> Loop:
    """The loop, those inside being done."""
    count = written_out(loop)
    if loop.kind is not LoopKind.SERIAL or count is None or count > wish.most:
        return loop
    if wish.explicit:
        return replace(loop, kind=LoopKind.UNROLLED)
    extent = constant(sub(loop.upper, loop.lower)) or 1
    return replace(loop, annotations=(*loop.annotations, (UNROLL, max(extent, 1))))
