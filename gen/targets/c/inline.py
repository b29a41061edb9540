"""Blocks in the loops' variables, with what the surroundings decide about them decided.

Input: a lowered tree, unrolled. Output: the tree for emission alone: blocks without iteration
variables, in whose indices the minima, maxima and remainders, and in whose values the selections,
that follow from the loops' bounds and the guards are gone; clamped reads of vectors are selections.
"""

from dataclasses import replace
from typing import cast

from ...ir import nodes as ir
from ...ir.algebra import conjunction, conjuncts
from ...ir.index.facts import Facts, map_inside
from ...ir.index.simplify import resolve
from ...ir.walk import map_children, substitute
from ...lower.loop_bounds import implied
from .clamps import selected


def inline(stmt: ir.Stmt, facts: Facts, lanes: frozenset[str] = frozenset()) -> ir.Stmt:
    """lanes: the variables of the vectorized loops around."""
    match stmt:
        case ir.Block():
            values = {it.name: b for it, b in zip(stmt.iters, stmt.bindings, strict=True)}
            guards = (p for p in conjuncts(stmt.predicate) if not implied(p, facts))
            inner = facts.where(stmt.predicate)
            return replace(
                stmt,
                iters=(),
                bindings=(),
                predicate=conjunction(*guards),
                origin=stmt.origin and substitute(stmt.origin, values),
                body=map_children(
                    substitute(stmt.body, values), lambda n: _decided(n, inner, lanes)
                ),
            )
        case ir.Loop(var, _, _, kind):
            within = lanes | {var} if kind is ir.LoopKind.VECTORIZED else lanes
            return replace(stmt, body=inline(stmt.body, facts.inside(stmt), within))
        case _:
            return map_inside(stmt, facts, lambda s, inside: inline(s, inside, lanes))


def _decided(node: ir.Node, facts: Facts, lanes: frozenset[str]) -> ir.Node:
    """The node with the indices and selections in it decided."""

    def go(n: ir.Node) -> ir.Node:
        return _decided(n, facts, lanes)

    match node:
        case ir.Select(condition, then, otherwise):
            if all(implied(p, facts) for p in conjuncts(condition)):
                return go(then)
            inside = facts.where(condition)
            sides = (go(condition), _decided(then, inside, lanes), go(otherwise))
            return ir.Select(*cast(tuple[ir.Expr, ir.Expr, ir.Expr], sides))
        case ir.Load() | ir.Destination():
            new = map_children(map_children(node, go), lambda i: resolve(i, facts))
            return selected(new, lanes, facts) if isinstance(new, ir.Load) else new
        case _:
            return map_children(node, go)
