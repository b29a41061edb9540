"""Accumulators that a loop does not move are kept in vector registers while it runs.

Input: a tree, unrolled and inlined. Output: the tree in which each innermost serial loop whose
vector statements update places that do not depend on it loads those places before, updates
registers, and stores them after. So `c[i, j] += a[i, l]*b[l, j]` reads and writes a tile of c once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import assert_never, final

from ..ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Delinearize,
    Expr,
    If,
    Load,
    Loop,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Store,
    Target,
    Update,
    Var,
)
from ..ir.types import DType
from ..ir.walk import add, conjunction, index, loads, seq, targets, variables
from ..lower.affine import Affine, affine, constant
from ..lower.target import Target as Machine
from .unroll import MOST_VECTORS, has_vector_form, registers


@final
@dataclass(frozen=True, slots=True)
class _Use:
    """A block in a vectorized loop of `lanes` lanes (`lane` is empty outside one), and all the
    conditions that it runs under.
    """

    block: Block
    condition: Expr
    lane: str
    lanes: int


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """A vector of elements that is updated, and under which condition."""

    target: Target
    condition: Expr
    lane: str
    lanes: int


@final
@dataclass(frozen=True, slots=True)
class _Around:
    """memory: buffers that are not in registers already. numbers: for new names."""

    machine: Machine
    dtypes: Mapping[str, DType]
    memory: frozenset[str]
    numbers: Iterator[int]


def promote(stmt: Stmt, machine: Machine, dtypes: Mapping[str, DType]) -> Stmt:
    """The tree with its loops' accumulators in registers. dtypes: of all buffers."""
    memory = dtypes.keys() - registers(stmt, machine, dtypes)
    return _promote(stmt, _Around(machine, dtypes, frozenset(memory), count(1)))


def _promote(stmt: Stmt, around: _Around) -> Stmt:
    match stmt:
        case Block():
            return stmt
        case Loop(_, _, _, LoopKind.SERIAL) if (uses := _uses(stmt.body, (), "", 0)) is not None:
            written = {t.buffer for u in uses for t in targets(u.block.body)} & around.memory
            for buffer in sorted(written):
                places = _places(stmt, buffer, uses, around)
                if places:
                    rest = replace(around, memory=around.memory - {buffer})
                    return _in_registers(stmt, buffer, places, rest)
            return stmt
        case Loop() | Delinearize() | If() | Allocate():
            return replace(stmt, body=_promote(stmt.body, around))
        case Seq(body):
            return seq(tuple(_promote(s, around) for s in body))
        case _:
            assert_never(stmt)


def _uses(stmt: Stmt, conditions: tuple[Expr, ...], lane: str, lanes: int) -> list[_Use] | None:
    """The blocks of an innermost loop's body; None where there is a loop further in."""
    match stmt:
        case Block():
            return [_Use(stmt, conjunction(*conditions, stmt.predicate), lane, lanes)]
        case Loop(var, _, upper, LoopKind.VECTORIZED, body) if not lane:
            return _uses(body, conditions, var, constant(upper) or 0)
        case If(condition, body):
            return _uses(body, (*conditions, condition), lane, lanes)
        case Seq(body_):
            found: list[_Use] = []
            for s in body_:
                inner = _uses(s, conditions, lane, lanes)
                if inner is None:
                    return None
                found += inner
            return found
        case Loop() | Delinearize() | Allocate():
            return None
        case _:
            assert_never(stmt)


def _places(loop: Loop, buffer: str, uses: list[_Use], around: _Around) -> tuple[_Place, ...]:
    """The places of the buffer that the loop's statements update; none if it cannot be promoted."""
    places: list[_Place] = []
    for use in uses:
        if any(load.buffer == buffer for load in (*loads(use.block.body), *loads(use.condition))):
            return ()
        for target in targets(use.block.body):
            if target.buffer != buffer:
                continue
            if not isinstance(use.block.body, Update) or not use.lane:
                return ()
            if loop.var in variables(target) | variables(use.condition):
                return ()
            if use.lane not in variables(target) or not _whole(use, buffer, around):
                return ()
            place = _Place(target, use.condition, use.lane, use.lanes)
            if place not in places:
                places.append(place)
    vectors = sum(p.lanes for p in places) // around.machine.lanes(around.dtypes[buffer])
    apart = all(_disjoint(a, b) for a, b in combinations(places, 2))
    return tuple(places) if apart and vectors <= MOST_VECTORS else ()


def _whole(use: _Use, buffer: str, around: _Around) -> bool:
    fits = use.lanes % around.machine.lanes(around.dtypes[buffer]) == 0
    return fits and has_vector_form(use.block, use.lane, around.dtypes)


def _disjoint(a: _Place, b: _Place) -> bool:
    """Whether a constant distance in one dimension keeps the vectors apart."""
    for i, j in zip(a.target.indices, b.target.indices, strict=True):
        x, y = affine(i), affine(j)
        moves = x.coefficient(a.lane), y.coefficient(b.lane)
        distance = x.put(a.lane, Affine(())) - y.put(b.lane, Affine(()))
        reach = max(abs(moves[0]) * a.lanes, abs(moves[1]) * b.lanes, 1)
        if moves[0] == moves[1] and not distance.terms and abs(distance.constant) >= reach:
            return True
    return False


# ---------------------------------------------------------------- rewriting


def _in_registers(loop: Loop, buffer: str, places: tuple[_Place, ...], around: _Around) -> Stmt:
    name, dtype = f"{buffer}.acc{next(around.numbers)}", around.dtypes[buffer]
    starts = {p: sum(q.lanes for q in places[:k]) for k, p in enumerate(places)}
    size = sum(p.lanes for p in places)
    kept = Buffer(name, dtype, (index(size),), Scope.REGISTER)

    def at(place: _Place) -> tuple[Expr, ...]:
        return (add(Var(place.lane), starts[place]),)

    before = tuple(
        _copy(p, Target(name, at(p)), Load(p.target.buffer, p.target.indices, dtype))
        for p in places
    )
    after = tuple(_copy(p, p.target, Load(name, at(p), dtype)) for p in places)
    moved = {(p.target, p.lane): Target(name, at(p)) for p in places}
    inside = replace(loop, body=_moved(loop.body, moved, ""))
    more = _promote(inside, replace(around, dtypes={**around.dtypes, name: dtype}))
    runs = Binary(BinaryOp.LT, loop.lower, loop.upper)
    return Allocate((kept,), If(runs, seq((*before, more, *after))))


def _copy(place: _Place, target: Target, value: Expr) -> Stmt:
    block = Block(target.buffer, (), (), place.condition, Store(target, value))
    return Loop(place.lane, index(0), index(place.lanes), LoopKind.VECTORIZED, block)


def _moved(stmt: Stmt, moved: Mapping[tuple[Target, str], Target], lane: str) -> Stmt:
    match stmt:
        case Block(body=Update() as body):
            new = tuple(moved.get((t, lane), t) for t in body.targets)
            return replace(stmt, body=replace(body, targets=new))
        case Block():
            return stmt
        case Loop():
            return replace(stmt, body=_moved(stmt.body, moved, stmt.var))
        case Delinearize() | If() | Allocate():
            return replace(stmt, body=_moved(stmt.body, moved, lane))
        case Seq(body_):
            return seq(tuple(_moved(s, moved, lane) for s in body_))
        case _:
            assert_never(stmt)
