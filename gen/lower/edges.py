"""Tiles at the edges of an array are computed a row or a vector at a time; with guards where each
row would read again what is far.

Input: a tree after its guards became bounds. Output: the same instances. Where the statements
around a register buffer are all guarded inside unrolled loops that walk the tile alike, those loops
become one serial loop around the buffer, up to the edge; the buffer shrinks to what one iteration
uses. So an edge takes a small kernel of its own, not a guard at each unrolled statement of the
large one.
Iterations of the new loop touch different places, so their order does not matter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import conjuncts, index, less, sub
from ..ir.index.facts import Facts, map_inside, of_kernel
from ..ir.index.inequalities import inequalities
from ..ir.index.linear import Linear, constant, linear
from ..ir.index.simplify import resolve
from ..ir.walk import (
    blocks,
    loops,
    map_children,
    map_nested,
    seq,
    substitute,
    targets,
    variables,
    walk,
)
from .loop_bounds import bounded, unguarded

FEW = 16
"""Iterations that are so few that to read all again costs less than their guards."""

_STEP, _LANE = "#", "@"  # stand for the unrolled loop's variable, and for the lane inside it


def edge_tiles(kernel: ir.Kernel) -> ir.Kernel:
    arguments = frozenset(p.buffer.name for p in kernel.parameters)
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel), arguments))


def _visit(stmt: ir.Stmt, facts: Facts, arguments: frozenset[str]) -> ir.Stmt:
    inside = partial(_visit, arguments=arguments)
    whole = partial(map_inside, stmt, facts, inside)
    if not isinstance(stmt, ir.Allocate):
        return whole()
    if all(b.scope is not ir.Scope.REGISTER for b in stmt.buffers):
        return whole()
    ways = [(w, p) for w in _walkers(stmt.body) if (p := _places(stmt, w)) is not None]
    for walkers, places in ways:
        if not _read_again(walkers, arguments):
            return inside(_a_step_at_a_time(stmt, walkers, places, facts), facts)
    for walkers, places in ways:
        if trips := _trips(stmt.body, walkers):
            steps = inside(_a_step_at_a_time(stmt, walkers, places, facts), facts)
            return seq((ir.If(less(trips, FEW + 1), steps), ir.If(less(FEW, trips), whole())))
    return whole()


# ---------------------------------------------------------------- loops that walk the tile alike


@final
@dataclass(frozen=True, slots=True)
class _Walkers:
    """Unrolled loops of one extent, each block of the tile in one of them, guarded alike.

    forms: what the guards hold >= 0, in _STEP and _LANE. lanes: of the vectorized loops inside.
    """

    loops: tuple[ir.Loop, ...]
    extent: int
    forms: tuple[Linear, ...]
    lanes: int


def _walkers(body: ir.Stmt) -> Iterator[_Walkers]:
    found: dict[object, list[ir.Loop]] = {}
    for loop in loops(body):
        if loop.kind is ir.LoopKind.UNROLLED and (forms := _guards(loop)):
            alike = loop.lower, loop.upper, _lanes(loop), frozenset(forms)
            found.setdefault(alike, []).append(loop)
    for group in found.values():
        first, extent = group[0], constant(group[0].upper)
        inside = [b for loop in group for b in blocks(loop)]
        if first.lower == index(0) and extent and len(inside) == len(blocks(body)):
            yield _Walkers(tuple(group), extent, _guards(first) or (), _lanes(first))


def _guards(loop: ir.Loop) -> tuple[Linear, ...] | None:
    """The guards on the loop's variable, the same in all blocks; None where they are not."""
    names = _names(loop)
    every: list[tuple[Linear, ...]] = []
    for block in blocks(loop):
        guards = [p for p in conjuncts(block.predicate) if loop.var in variables(p)]
        forms = [inequalities(substitute(p, names)) for p in guards]
        if any(form is None for form in forms):
            return None
        every.append(tuple(f for form in forms for f in form or ()))
    return every[0] if every and all(forms == every[0] for forms in every) else None


def _names(loop: ir.Loop) -> dict[str, ir.Expr]:
    lanes = (n.var for n in loops(loop.body) if n.kind is ir.LoopKind.VECTORIZED)
    return {loop.var: ir.Var(_STEP), **{lane: ir.Var(_LANE) for lane in lanes}}


def _lanes(loop: ir.Loop) -> int:
    extents = {constant(n.upper) or 0 for n in loops(loop.body) if n.kind is ir.LoopKind.VECTORIZED}
    return max(extents, default=1)


def _read_again(walkers: _Walkers, arguments: frozenset[str]) -> bool:
    """Whether each step would read vectors of an argument that all others read, too, and that may
    be far: more than an iteration's guards cost.
    """
    return any(
        name in arguments and _LANE in used and _STEP not in used
        for loop in walkers.loops
        for block in blocks(loop)
        for name, indices in _uses(block, _names(loop))
        for used in [frozenset[str]().union(*map(variables, indices))]
    )


def _trips(body: ir.Stmt, walkers: _Walkers) -> ir.Expr | None:
    """The iterations of the loop around walkers; None where there is none, or more than one."""
    serial = [n for n in loops(body) if n.kind is ir.LoopKind.SERIAL]
    around = [n for n in serial if any(x in loops(n.body) for x in walkers.loops)]
    return sub(around[0].upper, around[0].lower) if len(around) == 1 else None


# ---------------------------------------------------------------- places of one iteration


@final
@dataclass(frozen=True, slots=True)
class _Stretch:
    """Where an iteration accesses a buffer: [step * k, step * (k + 1)) along an axis, modulo
    `modulo` if not 0.
    """

    axis: int
    step: int
    modulo: int


def _places(allocate: ir.Allocate, walkers: _Walkers) -> Mapping[str, _Stretch] | None:
    """For each buffer that the tile's statements write, the places that keep iterations apart; None
    where there are none, or where a buffer of the tile would not shrink to them.
    """
    own = {b.name: b for b in allocate.buffers}
    inside = _within(walkers)
    uses: dict[str, list[tuple[ir.Expr, ...]]] = {}
    for loop in walkers.loops:
        for block in blocks(loop):
            for name, indices in _uses(block, _names(loop)):
                uses.setdefault(name, []).append(tuple(_resolved(i, inside) for i in indices))
    written = dict.fromkeys(t.buffer for b in blocks(allocate.body) for t in targets(b.body))
    places: dict[str, _Stretch] = {}
    for name in written:
        place = _place(uses[name], walkers)
        if place is None or (name in own and not _shrinks(own[name], place, uses[name][0])):
            return None
        places[name] = place
    return places if written.keys() >= own.keys() else None


def _resolved(i: ir.Expr, facts: Facts) -> ir.Expr:
    """The index with its quotients decided; a remainder says where a window is, so it stays."""
    remainder = isinstance(i, ir.Binary) and i.op is ir.BinaryOp.MOD
    return i if remainder else resolve(i, facts)


def _within(walkers: _Walkers) -> Facts:
    """The ranges of an unrolled loop's variable, and of the lane in it."""
    known = Facts((), ())
    for var, extent in ((_STEP, walkers.extent), (_LANE, walkers.lanes)):
        known = known.inside(ir.Loop(var, index(0), index(extent), ir.LoopKind.SERIAL, ir.Seq(())))
    return known


def _uses(
    block: ir.Block, names: Mapping[str, ir.Expr]
) -> Iterator[tuple[str, tuple[ir.Expr, ...]]]:
    values = {
        it.name: substitute(b, names) for it, b in zip(block.iters, block.bindings, strict=True)
    }
    for node in walk(block.body):
        if isinstance(node, ir.Load | ir.Destination):
            yield node.buffer, tuple(substitute(i, values) for i in node.indices)


def _place(uses: Sequence[tuple[ir.Expr, ...]], walkers: _Walkers) -> _Stretch | None:
    for axis, i in enumerate(uses[0]):
        value, modulo = _modulo(i)
        step = value.coefficient(_STEP)
        rest = value.without(ir.Var(_STEP))
        reach = value.coefficient(_LANE) * (walkers.lanes - 1)
        inner = variables(i) & {_STEP, _LANE}
        if (
            step <= 0
            or not 0 <= reach < step
            or rest.without(ir.Var(_LANE)).variables() & {_STEP, _LANE}
        ):
            continue
        if modulo and (modulo % step or modulo < step * walkers.extent):
            continue
        if inner and all(_same(u[axis], i) for u in uses):
            return _Stretch(axis, step, modulo)
    return None


def _modulo(i: ir.Expr) -> tuple[Linear, int]:
    match i:
        case ir.Binary(ir.BinaryOp.MOD, value, ir.Const(int(modulo))):
            return linear(value), int(modulo)
        case _:
            return linear(i), 0


def _same(a: ir.Expr, b: ir.Expr) -> bool:
    return _modulo(a) == _modulo(b)


def _shrinks(buffer: ir.Buffer, place: _Stretch, use: tuple[ir.Expr, ...]) -> bool:
    """Whether the places of an iteration, modulo the step, are 0, 1, ... from its first lane on."""
    value, modulo = _modulo(use[place.axis])
    rest = value.modulo(place.step)
    whole = constant(buffer.shape[place.axis]) == modulo
    return whole and not rest.constant and rest.terms.keys() <= {ir.Var(_LANE)}


# ---------------------------------------------------------------- rewriting


def _a_step_at_a_time(
    allocate: ir.Allocate, walkers: _Walkers, places: Mapping[str, _Stretch], facts: Facts
) -> ir.Stmt:
    updates = (n for n in walkers.loops if any(isinstance(b.body, ir.Update) for b in blocks(n)))
    var = next(updates, walkers.loops[0]).var
    buffers = tuple(_shrunk(b, places[b.name]) for b in allocate.buffers)
    body = _without(allocate.body, walkers, var)
    for b in allocate.buffers:
        body = _moved(body, b.name, places[b.name])
    loop = ir.Loop(
        var, index(0), index(walkers.extent), ir.LoopKind.SERIAL, ir.Allocate(buffers, body)
    )
    for form in walkers.forms:
        lane = form.coefficient(_LANE)
        widest = form.put(_LANE, Linear({}, walkers.lanes - 1 if lane > 0 else 0))
        loop = bounded(loop, widest.put(_STEP, linear(ir.Var(var))), facts)
    return replace(loop, body=_unguarded(loop.body, facts.inside(loop)))


def _shrunk(buffer: ir.Buffer, place: _Stretch) -> ir.Buffer:
    shape = list(buffer.shape)
    shape[place.axis] = index(place.step)
    return replace(buffer, shape=tuple(shape))


def _without(stmt: ir.Stmt, walkers: _Walkers, var: str) -> ir.Stmt:
    """The tile's body in one iteration."""
    if isinstance(stmt, ir.Loop) and any(stmt is loop for loop in walkers.loops):
        return substitute(stmt.body, {stmt.var: ir.Var(var)})
    return map_nested(stmt, lambda s: _without(s, walkers, var))


def _moved(stmt: ir.Stmt, name: str, place: _Stretch) -> ir.Stmt:
    """The accesses of the buffer modulo the step."""

    def go(node: ir.Node) -> ir.Node:
        new = map_children(node, go)
        if isinstance(new, ir.Load | ir.Destination) and new.buffer == name:
            at = list(new.indices)
            old = at[place.axis]
            assert isinstance(old, ir.Binary)
            at[place.axis] = replace(old, rhs=index(place.step))
            return replace(new, indices=tuple(at))
        return new

    return map_children(stmt, go)


def _unguarded(stmt: ir.Stmt, facts: Facts) -> ir.Stmt:
    """Without the guards that the facts imply."""
    if isinstance(stmt, ir.Block):
        return unguarded(stmt, facts)
    return map_nested(stmt, lambda s: _unguarded(s, facts))
