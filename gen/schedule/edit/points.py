"""The points of loops at which blocks run: what the sets of `poly.queries.times` are made from.

Input: a kernel and loops in it. Output: what is known further out, the conditions that bounds are,
and whether other bounds make a difference.
"""

from collections.abc import Iterable

from ...ir.algebra import index, sub
from ...ir.index.bounds import LoopRange
from ...ir.nodes import Binary, BinaryOp, Expr, Kernel, Loop, Stmt, Var
from ...ir.types import INDEX
from ...ir.walk import blocks
from ...poly.queries.times import Known, includes, known
from ...poly.sets.affine import NotAffine
from .tree import loops_around, ranges_of


def context(kernel: Kernel, around: Iterable[Stmt]) -> Known:
    """What is known of dims and of what the statements around bind."""
    scalars = (s.name for s in kernel.scalars if s.dtype is INDEX)
    phases = [LoopRange(p.name, index(0), index(p.size - 1)) for p in kernel.phases]
    ranges = (*phases, *ranges_of(around))
    sizes = (Binary(BinaryOp.GE, Var(d), index(0)) for d in kernel.dims)
    conditions = (c for r in ranges for c in _conditions(r))
    return known(
        (*kernel.dims, *scalars, *(r.var for r in ranges)),
        (*sizes, *kernel.assumptions, *conditions),
    )


def bounds(loop: Loop) -> tuple[Expr, Expr]:
    """The conditions that the loop's bounds are."""
    return _conditions(LoopRange(loop.var, loop.lower, sub(loop.upper, 1)))


def _conditions(r: LoopRange) -> tuple[Expr, Expr]:
    return Binary(BinaryOp.GE, Var(r.var), r.lower), Binary(BinaryOp.LE, Var(r.var), r.upper)


def guarded(outside: Known, old: Iterable[Loop], new: Iterable[Loop], body: Stmt) -> bool:
    """Whether the guards of all blocks in `body` leave out what other bounds of the loops around it
    let in.
    """
    old, new = tuple(old), tuple(new)
    for block in blocks(body):
        inner = [c for loop in loops_around(body, block) for c in bounds(loop)]
        names = (*(x.var for x in old), *(x.var for x in loops_around(body, block)))
        within = [c for loop in new for c in bounds(loop)]
        wanted = [c for loop in old for c in bounds(loop)]
        try:
            if not includes(outside, names, wanted, (*within, *inner), block.predicate):
                return False
        except NotAffine:
            return False
    return True
