"""Short loops over a temporary in registers are unrolled, since registers have no index.

Input: a tree whose temporaries have their places. Output: the same, in which the serial loops that
stand between a register buffer and constant places of it are unrolled. That is done where it makes
all places constant, and where what is written out is little; else the buffer is a local array
whatever is done, and loops stay as they are. Unrolled loops run as serial ones do, so this changes
no result.
"""

from collections.abc import Iterator
from dataclasses import replace

from ..ir.index.facts import Facts, map_inside, of_kernel
from ..ir.index.linear import linear
from ..ir.index.simplify import resolve
from ..ir.nodes import (
    Allocate,
    Block,
    Buffer,
    Destination,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Scope,
    Stmt,
    Var,
)
from ..ir.walk import accessed, map_nested, nested, substitute, walk
from ..schedule.edit.unrolling import written_out

MOST = 64
"""Statements that a loop may come to."""


def unroll_over_registers(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    new = map_inside(stmt, facts, _visit)
    if isinstance(new, Allocate):
        for buffer in new.buffers:
            if buffer.scope is Scope.REGISTER:
                new = replace(new, body=_unrolled(new.body, buffer, facts))
    return new


def _unrolled(body: Stmt, buffer: Buffer, facts: Facts) -> Stmt:
    """With the loops over the buffer unrolled, where that is enough."""
    over = {loop.var: loop for loop in _over(body, buffer.name, facts, ()) if loop}
    if not any(loop.kind is LoopKind.SERIAL for loop in over.values()):
        return body
    new = _marked(body, frozenset(over))
    left = _over(new, buffer.name, facts, ())
    return new if all(loop and _has_no_index(loop) for loop in left) else body


def _over(stmt: Stmt, name: str, facts: Facts, around: tuple[Loop, ...]) -> Iterator[Loop | None]:
    """The loops inside on whose variables places of the buffer depend; None for whatever else they
    depend on.
    """
    if name not in accessed(stmt):
        return
    if not isinstance(stmt, Block):
        known = facts.inside(stmt)
        inside = (*around, stmt) if isinstance(stmt, Loop) else around
        for s in nested(stmt):
            yield from _over(s, name, known, inside)
        return
    values = {it.name: b for it, b in zip(stmt.iters, stmt.bindings, strict=True)}
    known, loops = facts.where(stmt.predicate), {loop.var: loop for loop in around}
    for node in walk(stmt.body):
        if isinstance(node, Load | Destination) and node.buffer == name:
            for index in node.indices:
                place = linear(resolve(substitute(index, values), known))
                moving = (v for v in sorted(place.variables()) if not _is_zero(v, known))
                yield from map(loops.get, moving)


def _is_zero(name: str, facts: Facts) -> bool:
    """Whether the variable is one of a loop that runs once."""
    value = linear(Var(name))
    return facts.holds(value) and facts.holds(value * -1)


def _has_no_index(loop: Loop) -> bool:
    return loop.kind in (LoopKind.VECTORIZED, LoopKind.UNROLLED)


def _marked(stmt: Stmt, over: frozenset[str]) -> Stmt:
    """The short loops over these variables as unrolled ones, the inner ones first."""
    new = map_nested(stmt, lambda s: _marked(s, over))
    if isinstance(new, Loop) and new.var in over and new.kind is LoopKind.SERIAL:
        count = written_out(new)
        if count is not None and count <= MOST:
            return replace(new, kind=LoopKind.UNROLLED)
    return new
