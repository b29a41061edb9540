"""Fused loops as the tuple of their parts.

Input: loops around a Delinearize. Output: where the extents after the first are constants, the
parts as affine functions of the value; otherwise a `Fused` nest, whose parts take the place of the
loops. That is right where the loops, outermost first, count the value up by ones from 0 to at
least the product of the extents, which is checked on the expressions: `n*i + j` with a symbolic n
is never needed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import final

from ...ir import nodes as ir
from ...ir.algebra import floordiv, index, mod, mul
from ..witness import Refused
from .sums import sum_of


@final
@dataclass(frozen=True, slots=True)
class Fused:
    """Directly nested loops that enumerate the tuples of `vars` in lexicographic order."""

    loops: tuple[str, ...]
    kinds: tuple[ir.LoopKind, ...]
    vars: tuple[str, ...]
    extents: tuple[ir.Expr, ...]
    body: ir.Stmt


def fused(loop: ir.Loop) -> Fused | None:
    """The nest that starts at `loop`, or None if it has none or needs none.

    Raises Refused where a nest needs its parts but does not enumerate them in order.
    """
    nest = [loop]
    while isinstance(nest[-1].body, ir.Loop):
        nest.append(nest[-1].body)
    inner = nest[-1].body
    if not isinstance(inner, ir.Delinearize):
        return None
    names, extents, body = _flatten(inner)
    if all(isinstance(e, ir.Const) for e in extents[1:]):
        return None
    weights = _linear(inner.value)
    if weights is None or loop.var not in weights:
        return None  # a loop further in may start the nest
    if not _counts_up(nest, weights, extents):
        raise Refused(
            f"the loops around '{names[0]}' do not count up to the product of its symbolic extents",
            span=inner.span,
        )
    return Fused(tuple(x.var for x in nest), tuple(x.kind for x in nest), names, extents, body)


def constant_parts(node: ir.Delinearize) -> tuple[ir.Expr | tuple[str, ir.Expr], ...]:
    """The parts as functions of the value, and the conditions that the value is in range.

    Raises Refused where an extent after the first is symbolic.
    """
    result: list[ir.Expr | tuple[str, ir.Expr]] = [ir.Binary(ir.BinaryOp.GE, node.value, index(0))]
    below: ir.Expr = index(1)
    for var, extent in reversed(list(zip(node.vars, node.extents, strict=True))):
        part = floordiv(node.value, below)
        if var != node.vars[0]:
            if not isinstance(extent, ir.Const):
                raise Refused(
                    f"the parts of '{node.vars[0]}' have symbolic extents and its loops are not"
                    " directly around it",
                    span=node.span,
                )
            part = mod(part, extent)
        result.append((var, part))
        below = mul(below, extent)
    result.append(ir.Binary(ir.BinaryOp.LT, ir.Var(node.vars[0]), node.extents[0]))
    return tuple(result)


def _flatten(node: ir.Delinearize) -> tuple[tuple[str, ...], tuple[ir.Expr, ...], ir.Stmt]:
    """A Delinearize of a part of this one, merged into it."""
    names, extents, body = node.vars, node.extents, node.body
    while isinstance(body, ir.Delinearize) and isinstance(body.value, ir.Var):
        if body.value.name not in names:
            break
        k = names.index(body.value.name)
        if _factors(body.extents) != _factors((extents[k],)):
            break
        names = (*names[:k], *body.vars, *names[k + 1 :])
        extents = (*extents[:k], *body.extents, *extents[k + 1 :])
        body = body.body
    return names, extents, body


def _counts_up(
    nest: list[ir.Loop], weights: Mapping[str, int], extents: tuple[ir.Expr, ...]
) -> bool:
    """Whether the value is the number whose digits are the loops' variables, from 0 up to at least
    the product of the extents.
    """
    expected: dict[str, int] = {}
    step = 1
    for loop in reversed(nest):
        expected[loop.var] = step
        if loop.lower != index(0):
            return False
        if loop is not nest[0]:
            if not (isinstance(loop.upper, ir.Const) and isinstance(loop.upper.value, int)):
                return False
            step *= loop.upper.value
    total, rounds = nest[0].upper, 1
    while divided := _ceildiv(total):
        total, rounds = divided[0], rounds * divided[1]
    same = _factors((total,)) == _factors(extents) or sum_of(total) == sum_of(reduce(mul, extents))
    return same and rounds <= step and dict(weights) == expected


def _ceildiv(expr: ir.Expr) -> tuple[ir.Expr, int] | None:
    """The numerator and the constant divisor of a division that rounds up."""
    match expr:
        case ir.Binary(
            ir.BinaryOp.FLOORDIV,
            ir.Binary(ir.BinaryOp.ADD, n, ir.Const(int() as less)),
            ir.Const(int() as c),
        ):
            return (n, c) if less == c - 1 else None
        case _:
            return None


def _linear(expr: ir.Expr) -> dict[str, int] | None:
    """The variables' constant factors in a sum without a constant term, or None."""
    match expr:
        case ir.Var(name, _):
            return {name: 1}
        case ir.Binary(ir.BinaryOp.ADD, lhs, rhs):
            a, b = _linear(lhs), _linear(rhs)
            if a is None or b is None:
                return None
            return {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *b)}
        case ir.Binary(ir.BinaryOp.MUL, lhs, ir.Const(int() as c)) | ir.Binary(
            ir.BinaryOp.MUL, ir.Const(int() as c), lhs
        ):
            a = _linear(lhs)
            return None if a is None else {name: c * factor for name, factor in a.items()}
        case _:
            return None


def _factors(exprs: tuple[ir.Expr, ...]) -> tuple[int, Counter[ir.Expr]]:
    """The product of the expressions: a constant, and the other factors."""
    constant, others = 1, Counter[ir.Expr]()
    pending = list(exprs)
    while pending:
        match pending.pop():
            case ir.Binary(ir.BinaryOp.MUL, lhs, rhs):
                pending += [lhs, rhs]
            case ir.Const(int() as c):
                constant *= c
            case other:
                others[other] += 1
    return constant, others
