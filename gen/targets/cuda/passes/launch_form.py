"""Launches in launch form: one loop an axis, outermost, around one body.

Input: a tree with explicit inits, whose launches mean what `ir.launch` says. Output: the same
instances, in which the loops of a launch are its axes', blocks first, and no loop inside is bound:
as the code of a GPU is. What no loop of an axis was around runs in the first place on that axis.
Where a launch may have no place on an axis along which something runs all the same, the axis has
one, and what its loops were around asks for its own place.

It comes before temporaries shrink: what one thread uses of them, and what all threads of a block
use, is told by which loops are around.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from ....errors import NoCode
from ....ir.algebra import conjunction, index, maximum
from ....ir.index.facts import Facts, of_kernel
from ....ir.index.linear import linear
from ....ir.launch import axes, owners
from ....ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Expr,
    Kernel,
    Loop,
    LoopKind,
    Scope,
    Stmt,
    Var,
)
from ....ir.walk import loops, map_nested, nested, substitute

OUTERMOST_FIRST = (
    LoopKind.BLOCK_Z,
    LoopKind.BLOCK_Y,
    LoopKind.BLOCK_X,
    LoopKind.THREAD_Z,
    LoopKind.THREAD_Y,
    LoopKind.THREAD_X,
)
_PRIVATE = (Scope.STACK, Scope.REGISTER)


def launch_form(kernel: Kernel) -> Kernel:
    """Raises NoCode for a temporary that some threads of a block share, and others do not."""
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return _launch(stmt, facts)
    inside = facts.inside(stmt)
    return map_nested(stmt, lambda s: _visit(s, inside))


@final
@dataclass(frozen=True, slots=True)
class _Axis:
    """variable: of its loop. extent: of the loops that were bound to it. may_be_empty: whether
    something runs in its first place even where the extent is 0.
    """

    variable: str
    extent: Expr
    may_be_empty: bool

    @property
    def upper(self) -> Expr:
        return maximum(self.extent, 1) if self.may_be_empty else self.extent


def _launch(launch: Loop, facts: Facts) -> Stmt:
    first = {loop.kind: loop.var for loop in reversed(loops(launch)) if loop.kind.is_bound}
    found: dict[LoopKind, _Axis] = {}
    for kind, extent in axes(launch).items():
        empty = not facts.holds(linear(extent) - 1) and _outside(launch, kind)
        found[kind] = _Axis(first[kind], extent, empty)
    body = _merged(launch, found, frozenset())
    for kind in reversed(OUTERMOST_FIRST):
        if kind in found:
            axis = found[kind]
            body = Loop(axis.variable, index(0), axis.upper, kind, body, span=launch.span)
    return body


def _outside(stmt: Stmt, kind: LoopKind) -> bool:
    """Whether a block stands in no loop of the axis."""
    if isinstance(stmt, Loop) and stmt.kind is kind:
        return False
    return isinstance(stmt, Block) or any(_outside(s, kind) for s in nested(stmt))


def _merged(stmt: Stmt, found: Mapping[LoopKind, _Axis], around: frozenset[LoopKind]) -> Stmt:
    """The statement in the axes' variables. around: the axes of which a loop was around it."""
    match stmt:
        case Loop(var, kind=kind) if kind.is_bound:
            value = Var(found[kind].variable)
            body = stmt.body if var == value.name else substitute(stmt.body, {var: value})
            return _merged(body, found, around | {kind})
        case Block():
            return _placed(stmt, found, around)
        case Allocate(buffers, body):
            missing = frozenset(found) - around
            new = tuple(_scoped(b, found, missing) for b in buffers)
            return replace(stmt, buffers=new, body=_merged(body, found, around))
        case _:
            return map_nested(stmt, lambda s: _merged(s, found, around))


def _placed(block: Block, found: Mapping[LoopKind, _Axis], around: frozenset[LoopKind]) -> Block:
    """The block in the places where it ran."""
    places: list[Expr] = []
    for kind in OUTERMOST_FIRST:
        if kind in found:
            axis, here = found[kind], Var(found[kind].variable)
            if kind not in around:
                places.append(Binary(BinaryOp.EQ, here, index(0)))
            elif axis.may_be_empty:
                places.append(Binary(BinaryOp.LT, here, axis.extent))
    return replace(block, predicate=conjunction(*places, block.predicate)) if places else block


def _scoped(
    buffer: Buffer, found: Mapping[LoopKind, _Axis], missing: frozenset[LoopKind]
) -> Buffer:
    """The buffer as shared by all threads of a block, or as each thread's own."""
    if buffer.scope in (Scope.SHARED, Scope.LOCAL):
        return buffer
    if buffer.scope in _PRIVATE:
        return replace(buffer, scope=Scope.LOCAL)
    who = owners(buffer, {kind: axis.extent for kind, axis in found.items()}, missing)
    if who is None:
        return replace(buffer, scope=Scope.LOCAL)
    if any(kind.is_thread for kind in who):
        raise NoCode(
            f"'{buffer.name}' belongs to some threads of a block together, and GPUs have memory for"
            " all of a block or for one thread alone",
            buffer.span,
            f"say where it lives: `set_scope: {{buffer: {buffer.name}, scope: shared}}`",
        )
    return replace(buffer, scope=Scope.SHARED)
