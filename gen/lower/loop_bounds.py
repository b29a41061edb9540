"""Guards become loop bounds, and loops are cut into parts where that makes guards empty.

Input: a tree whose blocks carry their guards as predicates. Output: the same instances in the same
order, in which
  - a guard that all blocks of a serial or parallel loop share, and that no loop further in takes
    part in, is that loop's bound;
  - a serial or parallel loop around unrolled or vectorized loops is cut into a head, a full part
    and a tail where the guards (and the clamped indices) of the full part are provably true;
  - guards that no loop inside changes stand in an If around it.
What is left in a vectorized loop is a mask.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import conjunction, conjuncts, index, less
from ..ir.index.facts import Facts, map_inside, of_kernel
from ..ir.index.inequalities import Ranges, inequalities, least, threshold
from ..ir.index.linear import Linear, constant, linear
from ..ir.index.simplify import decided
from ..ir.launch import has_barrier
from ..ir.walk import (
    blocks,
    loads,
    loops,
    map_nested,
    nested,
    remembered,
    seq,
    statements,
    substitute,
    variables,
    walk,
)
from ..schedule.nests import tensorized

_WHOLE = (ir.LoopKind.UNROLLED, ir.LoopKind.VECTORIZED)


def split_guards(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel), in_edge=False))


def _visit(stmt: ir.Stmt, facts: Facts, in_edge: bool) -> ir.Stmt:
    match stmt:
        case ir.Block():
            return unguarded(stmt, facts)
        case ir.Loop():
            return _loop(stmt, facts, in_edge)
        case ir.Delinearize():
            return _fused(stmt, facts, in_edge)
        case _:
            return map_inside(stmt, facts, lambda s, inside: _visit(s, inside, in_edge))


def unguarded(block: ir.Block, facts: Facts) -> ir.Block:
    """Without the guards that the facts imply."""
    left = (p for p in conjuncts(block.predicate) if not implied(p, facts))
    return replace(block, predicate=conjunction(*left))


def implied(condition: ir.Expr, facts: Facts) -> bool:
    forms = inequalities(condition)
    return forms is not None and all(facts.holds(form) for form in forms)


def _loop(loop: ir.Loop, facts: Facts, in_edge: bool) -> ir.Stmt:
    if loop.kind in _WHOLE:
        return replace(loop, body=_visit(loop.body, facts.inside(loop), in_edge))
    loop = tightened(loop, facts)
    first, last = _full_part(loop, facts, in_edge)
    if first is None and last is None:
        return replace(loop, body=_visit(loop.body, facts.inside(loop), in_edge))
    begin = decided(ir.BinaryOp.MAX, loop.lower, first, facts) if first else loop.lower
    end = decided(ir.BinaryOp.MIN, loop.upper, last, facts) if last else loop.upper
    head_end = decided(ir.BinaryOp.MIN, begin, loop.upper, facts) if first else loop.lower
    tail_begin = decided(ir.BinaryOp.MAX, end, head_end, facts) if last else loop.upper
    reach = _reach(loop, facts)
    parts = list[ir.Loop]()
    for lower, upper, edge in (
        (reach.lower if first else loop.lower, head_end, True),
        (begin, end, in_edge),  # empty where begin >= end
        (tail_begin, reach.upper if last else loop.upper, True),
    ):
        part = replace(loop, lower=lower, upper=upper)
        if lower == upper:
            continue
        if edge:
            part = _reached(part, facts)
        if edge and _at_most_once(part, facts):
            part = replace(part, kind=ir.LoopKind.SERIAL)
        parts.append(replace(part, body=_visit(part.body, facts.inside(part), edge)))
    once = any(part.kind is ir.LoopKind.SERIAL for part in parts)
    if once and len(parts) > 1 and _worth_a_thread(loop):
        return _together(loop, parts)
    return seq(tuple(parts))


def _fused(stmt: ir.Delinearize, facts: Facts, in_edge: bool) -> ir.Stmt:
    """A fused loop cannot be cut, as the parts of one of its variables are no range of it. Where a
    tile in registers is inside, an If is around the full part, and one around each edge: else all
    tiles would be as small as those at the edges are.
    """
    inside = facts.inside(stmt)
    tile = any(b.scope is ir.Scope.REGISTER for b in _temporaries(stmt.body))
    if in_edge or not tile:
        return replace(stmt, body=_visit(stmt.body, inside, in_edge))
    along = [
        ir.Loop(var, index(0), extent, ir.LoopKind.SERIAL, stmt.body)
        for var, extent in zip(stmt.vars, stmt.extents, strict=True)
    ]
    return replace(stmt, body=_parted(stmt.body, along, inside))


def _parted(body: ir.Stmt, along: Sequence[ir.Loop], facts: Facts) -> ir.Stmt:
    """The body, by itself where it is full along all of the loops."""
    for k, loop in enumerate(along):
        first, last = _full_part(loop, facts, in_edge=False)
        if first is None and last is not None:
            var = ir.Var(loop.var)
            full, edge = less(var, last), ir.Binary(ir.BinaryOp.LE, last, var)
            whole = _parted(body, along[k + 1 :], facts.where(full))
            rest = _visit(body, facts.where(edge), in_edge=True)
            return ir.Seq((ir.If(full, whole), ir.If(edge, rest)))
    return _visit(body, facts, in_edge=False)


def _worth_a_thread(loop: ir.Loop) -> bool:
    """Whether an iteration of a parallel loop may be long, as one of some rows is not: that has one
    loop inside, and a workspace that all iterations share, if no If is around it.
    """
    inside = [n for n in loops(loop.body) if n.kind not in _WHOLE]
    deep = any(n.kind not in _WHOLE for outer in inside for n in loops(outer.body))
    return loop.kind is ir.LoopKind.PARALLEL and deep


def _together(loop: ir.Loop, parts: Sequence[ir.Loop]) -> ir.Loop:
    """The parts of a parallel loop in one: an edge runs beside the rest, not after it, when other
    threads would have to wait.
    """
    var, inside = ir.Var(loop.var), []
    for k, part in enumerate(parts):
        after = [ir.Binary(ir.BinaryOp.LE, part.lower, var)] if k else []
        before = [less(var, part.upper)] if part is not parts[-1] else []
        inside.append(ir.If(conjunction(*after, *before), part.body))
    body = ir.Seq(tuple(inside))
    return replace(loop, lower=parts[0].lower, upper=parts[-1].upper, body=body)


def _reached(edge: ir.Loop, facts: Facts) -> ir.Loop:
    """The edge without iterations in which no lane of any block is active."""
    inner = _bound_inside(edge.body)
    ends: list[list[Linear]] = []
    for block, ranges, _ in _placed(edge.body, (), frozenset()):
        forms = _forms(block.predicate)
        best = [low * -1 for f in forms if (low := least(f * -1, ranges))]
        ends.append([f for f in best if not f.variables() & inner])
    for form in ends[0] if ends else ():
        shared = all(form in others for others in ends)
        if _bounds(form, edge.var) and shared:
            edge = bounded(edge, form, facts)
    return edge


def _at_most_once(loop: ir.Loop, facts: Facts) -> bool:
    return facts.holds(linear(loop.lower) - linear(loop.upper) + 1)


# ---------------------------------------------------------------- guards as bounds


def tightened(loop: ir.Loop, facts: Facts) -> ir.Loop:
    """The loop with the guards that all its blocks share, of its own variable alone, as bounds."""
    inner = _bound_inside(loop.body)
    inside = blocks(loop.body)
    for guard in conjuncts(inside[0].predicate) if inside else ():
        forms = None if loads(guard) else inequalities(guard)
        if forms is None or any(guard not in conjuncts(b.predicate) for b in inside):
            continue
        if variables(guard) & inner or not all(_bounds(f, loop.var) for f in forms):
            continue
        for form in forms:
            loop = bounded(loop, form, facts)
        loop = replace(loop, body=_without(loop.body, guard))
    return loop


def _forms(condition: ir.Expr) -> list[Linear]:
    """What is at least 0 where the condition holds; not of data, which is no bound before the last
    proof (`narrow`).
    """
    parts = (part for part in conjuncts(condition) if not loads(part))
    return [form for part in parts for form in inequalities(part) or ()]


def _reach(loop: ir.Loop, facts: Facts) -> ir.Loop:
    """The loop without the iterations at its ends in which the guards of its blocks hold for no
    iteration of the unrolled and vectorized loops inside: those that are alike in all blocks.
    """
    inner = _bound_inside(loop.body)
    found = [
        [f * -1 for g in guards if (f := least(g * -1, ranges)) is not None]
        for guards, ranges in _guards(loop.body, ())
    ]
    for form in found[0] if found else ():
        shared = all(form in forms for forms in found)
        if shared and _bounds(form, loop.var) and not form.variables() & inner:
            loop = bounded(loop, form, facts)
    return loop


def _guards(stmt: ir.Stmt, ranges: Ranges) -> Iterator[tuple[list[Linear], Ranges]]:
    """What each block's guards hold >= 0, and the unrolled and vectorized loops around it."""
    match stmt:
        case ir.Block():
            yield _forms(stmt.predicate), ranges
        case ir.Loop(var, lower, upper, kind) if kind in _WHOLE and constant(upper) is not None:
            inside = (*ranges, (var, linear(lower), linear(upper) - 1))
            yield from _guards(stmt.body, inside)
        case _:
            for s in nested(stmt):
                yield from _guards(s, ranges)


def _bounds(form: Linear, var: str) -> bool:
    """Whether a form is a bound of the variable: it has a term of it, and none, such as a
    remainder, has it inside.
    """
    return form.coefficient(var) != 0 and var not in form.without(ir.Var(var)).variables()


def bounded(loop: ir.Loop, form: Linear, facts: Facts) -> ir.Loop:
    """The loop over those of its iterations in which the form is >= 0."""
    end = threshold(form, loop.var)
    if form.coefficient(loop.var) < 0:
        return replace(loop, upper=decided(ir.BinaryOp.MIN, loop.upper, end, facts))
    return replace(loop, lower=decided(ir.BinaryOp.MAX, loop.lower, end, facts))


def _without(stmt: ir.Stmt, guard: ir.Expr) -> ir.Stmt:
    if not isinstance(stmt, ir.Block):
        return map_nested(stmt, lambda s: _without(s, guard))
    left = (p for p in conjuncts(stmt.predicate) if p != guard)
    return replace(stmt, predicate=conjunction(*left))


@remembered
def _bound_inside(stmt: ir.Stmt) -> frozenset[str]:
    """Variables that loops and Delinearize nodes below bind."""
    parts = (n.vars for n in statements(stmt) if isinstance(n, ir.Delinearize))
    return frozenset(loop.var for loop in loops(stmt)).union(*parts)


# ---------------------------------------------------------------- full parts


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """A form that the full part makes >= 0, over the unrolled and vectorized loops inside."""

    form: Linear
    ranges: Ranges
    vectorized: frozenset[str]


def _full_part(loop: ir.Loop, facts: Facts, in_edge: bool) -> tuple[ir.Expr | None, ir.Expr | None]:
    """Where the full part begins and ends; None where it is not cut.

    In an edge only vectorized loops are worth another cut, and tiles, whose edges are small (see
    `edges`): what else is unrolled keeps its guards.
    """
    first: ir.Expr | None = None
    last: ir.Expr | None = None
    inner = facts.inside(loop)
    tile = any(b.scope is ir.Scope.REGISTER for b in _temporaries(loop.body))
    for want in _wanted(loop.body):
        c = want.form.coefficient(loop.var)
        names = {atom.name for atom in want.form.terms if isinstance(atom, ir.Var)}
        if not c or not names & {name for name, _, _ in want.ranges}:
            continue
        if in_edge and not names & want.vectorized and not tile:
            continue
        bound = least(want.form, want.ranges)
        if bound is None or bound.variables() & _bound_inside(loop.body):
            continue
        if loop.var in bound.without(ir.Var(loop.var)).variables():
            continue
        if inner.holds(bound):
            continue
        limit = threshold(bound, loop.var)
        if c < 0:
            last = limit if last is None else decided(ir.BinaryOp.MIN, last, limit, facts)
        else:
            first = limit if first is None else decided(ir.BinaryOp.MAX, first, limit, facts)
    return first, last


def _temporaries(stmt: ir.Stmt) -> Iterator[ir.Buffer]:
    return (b for n in statements(stmt) if isinstance(n, ir.Allocate) for b in n.buffers)


def _wanted(stmt: ir.Stmt) -> Iterator[_Wanted]:
    for block, ranges, vectorized in _placed(stmt, (), frozenset()):
        forms = _forms(block.predicate)
        if vectorized:
            forms += _clamps(block)
        yield from (_Wanted(f, ranges, vectorized) for f in forms)


def _placed(
    stmt: ir.Stmt, ranges: Ranges, vectorized: frozenset[str]
) -> Iterator[tuple[ir.Block, Ranges, frozenset[str]]]:
    """The blocks, each with the unrolled and vectorized loops around it, and which of them are
    vectorized, or computed by an intrinsic.
    """
    match stmt:
        case ir.Block():
            yield stmt, ranges, vectorized
        case ir.Loop(var, lower, upper, kind) if kind in _WHOLE and constant(upper) is not None:
            inside = (*ranges, (var, linear(lower), linear(upper) - 1))
            lanes = vectorized | {var} if kind is ir.LoopKind.VECTORIZED else vectorized
            if tensorized(stmt):
                lanes |= {own.var for own in loops(stmt)}
            yield from _placed(stmt.body, inside, lanes)
        case _:
            for s in nested(stmt):
                yield from _placed(s, ranges, vectorized)


def _clamps(block: ir.Block) -> list[Linear]:
    """What makes the block's clamped indices and affine selections take their first choice; not
    what no proof can compare a loop with, as a position `i * stride` by a stride that is no number.
    """
    values = {it.name: b for it, b in zip(block.iters, block.bindings, strict=True)}
    forms: list[Linear] = []
    for node in walk(block.body):
        if isinstance(node, ir.Select):
            forms += _forms(substitute(node.condition, values))
    for load in loads(block.body):
        for i in load.indices:
            forms += _unclamped(substitute(i, values))[1]
    return [f for f in forms if all(map(_affine, f.terms))]


def _affine(atom: ir.Expr) -> bool:
    """Whether the prover knows the values of the atom of a linear form exactly."""
    match atom:
        case ir.Var():
            return True
        case ir.Binary(ir.BinaryOp.FLOORDIV | ir.BinaryOp.MOD, whole, ir.Const(int() as by)):
            return by > 0 and all(map(_affine, linear(whole).terms))
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX, a, b):
            return all(map(_affine, (*linear(a).terms, *linear(b).terms)))
        case _:
            return False


def _unclamped(expr: ir.Expr) -> tuple[ir.Expr, list[Linear]]:
    """The expression with each clamp replaced by the side that moves, and what that takes."""
    match expr:
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX as op, lhs, rhs):
            (a, fa), (b, fb) = _unclamped(lhs), _unclamped(rhs)
            moving, fixed = (a, b) if len(linear(a).terms) >= len(linear(b).terms) else (b, a)
            room = linear(fixed) - linear(moving)
            return moving, [*fa, *fb, room if op is ir.BinaryOp.MIN else room * -1]
        case ir.Binary(ir.BinaryOp.ADD | ir.BinaryOp.SUB as op, lhs, rhs):
            (a, fa), (b, fb) = _unclamped(lhs), _unclamped(rhs)
            return replace(expr, lhs=a, rhs=b), [*fa, *fb]
        case _:
            return expr, []


# ---------------------------------------------------------------- guards around loops


def hoist_guards(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=hoist(kernel.body))


def hoist(stmt: ir.Stmt, lanes: frozenset[str] = frozenset()) -> ir.Stmt:
    """Guards that all blocks of a loop share and that nothing inside it changes, around it.

    lanes: of vectors and intrinsics around; what guards those is a mask, and stays with the block.
    """
    if not isinstance(stmt, ir.Loop) or has_barrier(stmt):  # which all threads have to reach
        return map_nested(stmt, lambda s: hoist(s, lanes))
    bound = {stmt.var} | _bound_inside(stmt.body) | lanes
    inside = blocks(stmt.body)
    shared = [
        guard
        for guard in (conjuncts(inside[0].predicate) if inside else ())
        if not variables(guard) & bound and all(guard in conjuncts(b.predicate) for b in inside)
    ]
    body = stmt.body
    for guard in shared:
        body = _without(body, guard)
    in_lanes = stmt.kind is ir.LoopKind.VECTORIZED or tensorized(stmt)
    inner = lanes | {stmt.var} if in_lanes else lanes
    new = replace(stmt, body=hoist(body, inner))
    return ir.If(conjunction(*shared), new) if shared else new
