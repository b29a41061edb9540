"""Unrolled loops as text, and the temporaries that can then live in vector registers.

Input: a lowered tree. Output: one in which unrolled loops of constant extents are sequences; and,
once inlined, the names of temporaries of which whole native vectors at constant places are used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never, final

from ..ir.nodes import (
    Allocate,
    Block,
    Buffer,
    Combiner,
    Delinearize,
    Expr,
    If,
    Load,
    Loop,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Target,
    Update,
)
from ..ir.types import DType
from ..ir.walk import (
    blocks,
    children,
    conjuncts,
    index,
    seq,
    substitute,
    targets,
    variables,
    walk,
)
from ..lower.affine import constant
from ..lower.target import Target as Machine
from .vector import VECTOR_TYPES, by_lane, maskable
from .views import Registers, fixed_step, register_count, register_number

MOST_TRIPS = 64  # of a loop that is unrolled as text
MOST_VECTORS = 64  # in an array of registers
_SMALL_TRIPS = 16  # of a serial loop that is unrolled to make a register's number a constant


def unroll(stmt: Stmt) -> Stmt:
    registers = frozenset(
        b.name
        for n in walk(stmt)
        if isinstance(n, Allocate)
        for b in n.buffers
        if b.scope is Scope.REGISTER
    )
    return _unroll(stmt, registers)


def _unroll(stmt: Stmt, registers: frozenset[str]) -> Stmt:
    match stmt:
        case Block():
            return stmt
        case Loop(var, lower, upper, kind):
            body = _unroll(stmt.body, registers)
            first, last = constant(lower), constant(upper)
            most = MOST_TRIPS if kind is LoopKind.UNROLLED else _SMALL_TRIPS
            wanted = kind is LoopKind.UNROLLED or (
                kind is LoopKind.SERIAL and _numbers(body, var, registers)
            )
            if not wanted or first is None or last is None or last - first > most:
                return replace(stmt, body=body)
            return seq(tuple(substitute(body, {var: index(i)}) for i in range(first, last)))
        case Delinearize() | If() | Allocate():
            return replace(stmt, body=_unroll(stmt.body, registers))
        case Seq(body_):
            return seq(tuple(_unroll(s, registers) for s in body_))
        case _:
            assert_never(stmt)


def _numbers(stmt: Stmt, var: str, registers: frozenset[str]) -> bool:
    """Whether an index of a register buffer depends on the variable."""
    return any(
        isinstance(n, Load | Target) and n.buffer in registers and var in variables(n)
        for block in blocks(stmt)
        for n in walk(_in_loops(block))
    )


def _in_loops(block: Block) -> Node:
    """The block's body in the loops' variables."""
    values = {it.name: b for it, b in zip(block.iters, block.bindings, strict=True)}
    return substitute(block.body, values)


# ---------------------------------------------------------------- statements as vectors


def has_vector_form(block: Block, lane: str, dtypes: Mapping[str, DType]) -> bool:
    """Whether a block (in the loops' variables) becomes vector statements; else it is a scalar
    loop over its lanes. dtypes: of all buffers.
    """
    body = block.body
    if not all(dtypes[t.buffer] in VECTOR_TYPES for t in targets(body)):
        return False
    if not all(maskable(p, lane) for p in conjuncts(block.predicate)):
        return False
    if isinstance(body, Update) and body.combiner in (Combiner.ANY, Combiner.ALL):
        return False
    places = targets(body)
    moving = [lane in variables(place) for place in places]
    if any(moving) is not all(moving):
        return False
    if not any(moving) and not (
        isinstance(body, Update) and any(lane in variables(v) for v in body.values)
    ):
        return False
    return all(fixed_step(place.indices, lane) for place in places)


def in_lanes(stmt: Stmt, lane: str) -> bool:
    """Whether the body of a vectorized loop is run a statement at a time, all lanes at once: its
    inner loops and conditions do not depend on the lane.
    """
    match stmt:
        case Block():
            return True
        case Loop(_, lower, upper, kind):
            uniform = lane not in variables(lower) | variables(upper)
            return uniform and kind is not LoopKind.VECTORIZED and in_lanes(stmt.body, lane)
        case If(condition, body):
            return lane not in variables(condition) and in_lanes(body, lane)
        case Seq(body_):
            return all(in_lanes(s, lane) for s in body_)
        case Delinearize() | Allocate():
            return False
        case _:
            assert_never(stmt)


# ---------------------------------------------------------------- registers


@final
@dataclass(frozen=True, slots=True)
class _Access:
    buffer: str
    indices: tuple[Expr, ...]
    lane: str
    lanes: int


def registers(stmt: Stmt, machine: Machine, dtypes: Mapping[str, DType]) -> frozenset[str]:
    """Names of the temporaries that become arrays of native vectors."""
    buffers = [b for n in walk(stmt) if isinstance(n, Allocate) for b in n.buffers]
    views = {b.name: Registers(b.name, b, machine.lanes(b.dtype)) for b in buffers if _small(b)}
    fits = {n for n, v in views.items() if register_count(v) <= MOST_VECTORS}
    for access in _accesses(stmt, dtypes, _Around()):
        view = views.get(access.buffer)
        if view is None or not _whole_vectors(access, view):
            fits.discard(access.buffer)
    return frozenset(fits)


def _whole_vectors(access: _Access, view: Registers) -> bool:
    if not access.lane or access.lanes % view.lanes:
        return False
    return register_number(view, access.indices, access.lane) is not None


def _small(buffer: Buffer) -> bool:
    places = (Scope.REGISTER, Scope.STACK)
    known = all(constant(e) is not None for e in buffer.shape)
    return buffer.scope in places and buffer.dtype in VECTOR_TYPES and known


@final
@dataclass(frozen=True, slots=True)
class _Around:
    """What is around a statement.

    seen: temporaries allocated. far: those of them outside the parallel loop that it is in.
    """

    seen: frozenset[str] = frozenset()
    far: frozenset[str] = frozenset()
    lane: str = ""
    lanes: int = 0


def _accesses(stmt: Stmt, dtypes: Mapping[str, DType], around: _Around) -> Iterator[_Access]:
    """All accesses; those that memory has to serve have an empty `lane`."""
    match stmt:
        case Block():
            vector = around.lane and has_vector_form(stmt, around.lane, dtypes)
            for node, moving in _places(stmt, around.lane if vector else ""):
                kept = moving if node.buffer not in around.far else ""
                yield _Access(node.buffer, node.indices, kept, around.lanes)
        case Loop(var, _, upper, LoopKind.VECTORIZED) if not around.lane and in_lanes(
            stmt.body, var
        ):
            inside = replace(around, lane=var, lanes=constant(upper) or 0)
            yield from _accesses(stmt.body, dtypes, inside)
        case Loop(_, _, _, LoopKind.PARALLEL):
            yield from _accesses(stmt.body, dtypes, replace(around, far=around.seen))
        case Allocate(buffers, body):
            own = {b.name for b in buffers}
            inside = replace(around, seen=around.seen | own, far=around.far - own)
            yield from _accesses(body, dtypes, inside)
        case Loop() | Delinearize() | If():
            yield from _accesses(stmt.body, dtypes, around)
        case Seq(parts):
            for s in parts:
                yield from _accesses(s, dtypes, around)
        case _:
            assert_never(stmt)


def _places(block: Block, lane: str) -> Iterator[tuple[Load | Target, str]]:
    """The block's accesses, with the lane where a vector of them is accessed at once."""

    def go(node: Node, lane: str) -> Iterator[tuple[Load | Target, str]]:
        if isinstance(node, Load | Target):
            yield node, lane if lane in variables(node) else ""
            lane = ""  # indices are scalars
        elif lane and isinstance(node, Expr) and lane in variables(node) and by_lane(node, lane):
            lane = ""
        for child in children(node):
            yield from go(child, lane)

    yield from go(block.predicate, lane)
    yield from go(block.body, lane)
