"""Clamped reads in vectorized loops become selections.

Input: a load in the loops' variables, and the lanes around it. Output: where a minimum or maximum
in its indices moves with a lane, `x[i] if i <= n else x[n]` in place of `x[min(i, n)]`: both sides
are read in vectors then, under masks, where a clamped index would be read lane by lane.
"""

from dataclasses import replace

from ...ir.index.facts import Facts
from ...ir.index.simplify import resolve
from ...ir.nodes import Binary, BinaryOp, Expr, Load, Node, Select
from ...ir.walk import children, map_children, variables
from .views import fixed_step

_FIRST = {BinaryOp.MIN: BinaryOp.LE, BinaryOp.MAX: BinaryOp.GE}  # where the first operand is it
_MOST = 2  # clamps of one load that are written out: each doubles what is read


def selected(load: Load, lanes: frozenset[str], facts: Facts) -> Expr:
    """The load, or the selection that reads the same in vectors."""
    return _selected(load, lanes, facts, _MOST) or load


def _selected(load: Load, lanes: frozenset[str], facts: Facts, depth: int) -> Expr | None:
    """None where it would still be read lane by lane."""
    clamp = next((c for i in load.indices if (c := _clamp(i, lanes))), None)
    if clamp is None:
        return load if all(fixed_step(load.indices, lane) for lane in lanes) else None
    if not depth:
        return None

    def side(value: Expr, known: Facts) -> Expr | None:
        indices = (resolve(_put(i, clamp, value), known) for i in load.indices)
        return _selected(replace(load, indices=tuple(indices)), lanes, known, depth - 1)

    first = Binary(_FIRST[clamp.op], clamp.lhs, clamp.rhs)
    then, otherwise = side(clamp.lhs, facts.where(first)), side(clamp.rhs, facts)
    return None if then is None or otherwise is None else Select(first, then, otherwise)


def _clamp(node: Node, lanes: frozenset[str]) -> Binary | None:
    """An innermost minimum or maximum that moves with a lane."""
    for child in children(node):
        if found := _clamp(child, lanes):
            return found
    match node:
        case Binary(BinaryOp.MIN | BinaryOp.MAX) if variables(node) & lanes:
            return node
        case _:
            return None


def _put(expr: Expr, clamp: Binary, value: Expr) -> Expr:
    def go(node: Node) -> Node:
        return value if node == clamp else map_children(node, go)

    new: Expr = map_children(expr, go) if expr != clamp else value
    return new
