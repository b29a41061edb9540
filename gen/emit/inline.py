"""Blocks in the loops' variables, with what the surroundings decide about them decided.

Input: a lowered tree, unrolled. Output: the tree for emission alone: blocks without iteration
variables, in whose indices the minima, maxima and remainders, and in whose values the selections,
that follow from the loops' bounds and the guards are gone.
"""

from dataclasses import replace
from typing import assert_never

from ..ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Const,
    Delinearize,
    Expr,
    If,
    Load,
    Loop,
    Node,
    Select,
    Seq,
    Stmt,
    Target,
)
from ..ir.walk import conjunction, conjuncts, index, map_children, seq, substitute
from ..lower.affine import affine, expression, tidy
from ..lower.bounds import implied
from ..lower.facts import Facts


def inline(stmt: Stmt, facts: Facts) -> Stmt:
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
                body=map_children(substitute(stmt.body, values), lambda n: _decided(n, inner)),
            )
        case Loop():
            return replace(stmt, body=inline(stmt.body, facts.loop(stmt)))
        case Delinearize():
            return replace(stmt, body=inline(stmt.body, facts.delinearize(stmt)))
        case If(condition, body):
            return replace(stmt, body=inline(body, facts.where(condition)))
        case Allocate():
            return replace(stmt, body=inline(stmt.body, facts))
        case Seq(body_):
            return seq(tuple(inline(s, facts) for s in body_))
        case _:
            assert_never(stmt)


def _decided(node: Node, facts: Facts) -> Node:
    """The node with the indices and selections in it decided."""

    def go(n: Node) -> Node:
        return _decided(n, facts)

    match node:
        case Select(condition, then, _):
            if all(implied(p, facts) for p in conjuncts(condition)):
                return go(then)
            inside = facts.where(condition)
            return map_children(node, lambda n: _decided(n, inside if n is then else facts))
        case Load() | Target():
            new = map_children(node, go)
            return replace(new, indices=tuple(resolve(i, facts) for i in new.indices))
        case _:
            return map_children(node, go)


def resolve(expr: Expr, facts: Facts) -> Expr:
    """The index expression with the minima, maxima and remainders that the facts decide replaced,
    terms gathered.
    """
    return tidy(_resolve(expr, facts))


def _resolve(expr: Expr, facts: Facts) -> Expr:
    match expr:
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            a, b = _resolve(lhs, facts), _resolve(rhs, facts)
            if facts.holds(affine(b) - affine(a)):
                return a if op is BinaryOp.MIN else b
            if facts.holds(affine(a) - affine(b)):
                return b if op is BinaryOp.MIN else a
            return Binary(op, a, b)
        case Binary(BinaryOp.MOD, lhs, Const(int(divisor))) if divisor > 0:
            value = affine(_resolve(lhs, facts)).modulo(int(divisor))
            if facts.holds(value) and facts.holds(value * -1 + (int(divisor) - 1)):
                return expression(value)
            return Binary(BinaryOp.MOD, expression(value), index(int(divisor)))
        case Binary(op, lhs, rhs):
            return Binary(op, _resolve(lhs, facts), _resolve(rhs, facts))
        case _:
            return expr
