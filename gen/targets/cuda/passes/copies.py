"""Copies outside of launches become launches.

Input: a tree with explicit inits. Output: the same instances. What stands outside of launches runs
on the host, and a host has no arrays of a GPU; but recipes may leave copies there, of arguments
into the GPU's memory or back, as nests of loops around one copy. Their innermost loops are bound: a
block takes 256 neighbours along the last axis.
"""

from dataclasses import replace

from ....ir.algebra import TRUE, add, ceildiv, conjunction, index, mul, sub
from ....ir.index.linear import tidy
from ....ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Expr,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Stmt,
    Store,
    Var,
)
from ....ir.walk import loops, map_nested, substitute, variables
from ....schedule.edit.tree import fresh

THREADS = 256
_OUTER = (LoopKind.BLOCK_Y, LoopKind.BLOCK_Z)  # from the inner loops outwards


def launched_copies(kernel: Kernel) -> Kernel:
    fixed = frozenset((*kernel.dims, *(s.name for s in kernel.scalars)))
    taken = {loop.var for loop in loops(kernel.body)}
    return replace(kernel, body=_visit(kernel.body, fixed, taken))


def _visit(stmt: Stmt, fixed: frozenset[str], taken: set[str]) -> Stmt:
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return stmt
    if isinstance(stmt, Loop):
        nest = _nest(stmt)
        if nest and nest[-1].kind is LoopKind.SERIAL and variables(_extent(nest[-1])) <= fixed:
            return _launched(nest, fixed, taken)
        fixed |= {stmt.var}
    return map_nested(stmt, lambda s: _visit(s, fixed, taken))


def _extent(loop: Loop) -> Expr:
    return tidy(sub(loop.upper, loop.lower))


def _nest(loop: Loop) -> tuple[Loop, ...]:
    """The loops around one copy, outermost first; none where there is something else."""
    match loop.body:
        case Loop() as inner:
            found = _nest(inner)
            return (loop, *found) if found else ()
        case Block(body=Store(value=Load())):
            return (loop,)
        case _:
            return ()


def _launched(nest: tuple[Loop, ...], fixed: frozenset[str], taken: set[str]) -> Stmt:
    *around, last = nest
    extent = _extent(last)
    block, thread = (_name(last.var, part, taken) for part in ("block", "thread"))
    place = add(mul(Var(block), THREADS), Var(thread))
    inside = Binary(BinaryOp.LT, place, extent)
    body = _guarded(substitute(last.body, {last.var: add(last.lower, place)}), inside)
    outer: list[Loop] = []
    for loop, kind in zip(reversed(around), _OUTER, strict=False):
        height = _extent(loop)
        if loop.kind is not LoopKind.SERIAL or not variables(height) <= fixed:
            break
        body = substitute(body, {loop.var: add(loop.lower, Var(loop.var))})
        outer.append(replace(loop, lower=index(0), upper=height, kind=kind))
    body = replace(
        last, var=thread, lower=index(0), upper=index(THREADS), kind=LoopKind.THREAD_X, body=body
    )
    blocks = ceildiv(extent, THREADS)
    body = Loop(block, index(0), blocks, LoopKind.BLOCK_X, body, span=last.span)
    for loop in (*outer, *reversed(around[: len(around) - len(outer)])):
        body = replace(loop, body=body)
    return body


def _name(var: str, part: str, taken: set[str]) -> str:
    name = fresh(f"{var}_{part}", taken)
    taken.add(name)
    return name


def _guarded(stmt: Stmt, condition: Expr) -> Stmt:
    if isinstance(stmt, Block):
        parts = (stmt.predicate,) if stmt.predicate != TRUE else ()
        return replace(stmt, predicate=conjunction(*parts, condition))
    return map_nested(stmt, lambda s: _guarded(s, condition))
