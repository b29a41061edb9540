"""Blocks in the loops' variables, with what the surroundings decide about them decided.

Input: a lowered tree, unrolled. Output: the tree for emission alone: blocks without iteration
variables, in whose indices the minima, maxima and remainders, and in whose values the selections,
that follow from the loops' bounds and the guards are gone; clamped reads of vectors are selections.
"""

from dataclasses import replace
from typing import cast

from ...ir.algebra import conjunction, conjuncts
from ...ir.index.facts import Facts, map_inside
from ...ir.index.simplify import resolve
from ...ir.nodes import (
    Block,
    Destination,
    Expr,
    Load,
    Loop,
    LoopKind,
    Node,
    Select,
    Stmt,
)
from ...ir.walk import map_children, substitute
from ...lower.loop_bounds import implied
from .clamps import selected


def inline(stmt: Stmt, facts: Facts, lanes: frozenset[str] = frozenset()) -> Stmt:
    """lanes: the variables of the vectorized loops around."""
    match stmt:
        case Block():
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
        case Loop(var, _, _, kind):
            within = lanes | {var} if kind is LoopKind.VECTORIZED else lanes
            return replace(stmt, body=inline(stmt.body, facts.inside(stmt), within))
        case _:
            return map_inside(stmt, facts, lambda s, inside: inline(s, inside, lanes))


def _decided(node: Node, facts: Facts, lanes: frozenset[str]) -> Node:
    """The node with the indices and selections in it decided."""

    def go(n: Node) -> Node:
        return _decided(n, facts, lanes)

    match node:
        case Select(condition, then, otherwise):
            if all(implied(p, facts) for p in conjuncts(condition)):
                return go(then)
            inside = facts.where(condition)
            sides = (go(condition), _decided(then, inside, lanes), go(otherwise))
            return Select(*cast(tuple[Expr, Expr, Expr], sides))
        case Load() | Destination():
            new = map_children(map_children(node, go), lambda i: resolve(i, facts))
            return selected(new, lanes, facts) if isinstance(new, Load) else new
        case _:
            return map_children(node, go)
