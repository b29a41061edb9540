"""Bounds of index expressions over ranges of loop variables, for all sizes at once.

Input: INDEX expressions over loop variables and dims. Output: expressions without the given
variables, or a yes where an inequality holds for every size. All answers are one-sided: a bound
may be loose and a "not proved" may be true, but a bound is never exceeded and a "proved" is never
wrong. Nothing here is trusted by the prover.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import final

from ..algebra import add, floordiv, index, maximum, minimum, sub
from ..nodes import Binary, BinaryOp, Const, Expr, Select, Var
from ..walk import variables
from .facts import Facts, of_sizes
from .linear import Linear, linear


@final
@dataclass(frozen=True, slots=True)
class LoopRange:
    """`lower <= var <= upper`; the bounds may use variables of ranges further out."""

    var: str
    lower: Expr
    upper: Expr


def normal(e: Expr) -> Expr:
    """The expression with its terms gathered, and constants inside a min or max."""
    form = linear(e)
    match [*form.terms.items()]:
        case [(Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b), 1)]:
            both = minimum if op is BinaryOp.MIN else maximum
            return both(normal(add(a, form.constant)), normal(add(b, form.constant)))
        case _:
            return form.expr()


def lowest(e: Expr, ranges: Iterable[LoopRange]) -> Expr | None:
    """A lower bound without the ranges' variables (outermost first); None where none is found."""
    return _extreme_over(e, tuple(ranges), -1)


def highest(e: Expr, ranges: Iterable[LoopRange]) -> Expr | None:
    """An upper bound without the ranges' variables (outermost first); None where none is found."""
    return _extreme_over(e, tuple(ranges), 1)


def _extreme_over(e: Expr, ranges: tuple[LoopRange, ...], sign: int) -> Expr | None:
    bound: Linear | None = linear(e)
    for r in reversed(ranges):
        bound = None if bound is None else _extreme(bound, r, sign)
    return None if bound is None else bound.expr() if ranges else e


def _extreme(form: Linear, r: LoopRange, sign: int) -> Linear | None:
    """A bound above (sign 1) or below (sign -1), with `r.var` at whichever end attains it."""
    if r.var not in form.variables():
        return form
    result = Linear({}, form.constant)
    for atom, c in form.terms.items():
        if r.var not in variables(atom):
            result += Linear({atom: c})
            continue
        bound = _extreme_atom(atom, r, sign if c > 0 else -sign)
        if bound is None:
            return None
        result += linear(bound) * c
    return result


def _extreme_of_expr(e: Expr, r: LoopRange, sign: int) -> Expr | None:
    bound = _extreme(linear(e), r, sign)
    return None if bound is None else bound.expr()


def _extreme_atom(atom: Expr, r: LoopRange, sign: int) -> Expr | None:
    match atom:
        case Var():
            return r.upper if sign > 0 else r.lower
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            a, b = _extreme_of_expr(lhs, r, sign), _extreme_of_expr(rhs, r, sign)
            if a is None or b is None:
                return None
            return minimum(a, b) if op is BinaryOp.MIN else maximum(a, b)
        case Binary(BinaryOp.FLOORDIV, lhs, Const(int(c)) as divisor) if c > 0:
            a = _extreme_of_expr(lhs, r, sign)
            return None if a is None else floordiv(a, divisor)
        case Binary(BinaryOp.MOD, _, Const(int(c))) if c > 0:
            return index(c - 1 if sign > 0 else 0)
        case Select(_, then, otherwise):
            a, b = _extreme_of_expr(then, r, sign), _extreme_of_expr(otherwise, r, sign)
            if a is None or b is None:
                return None
            return maximum(a, b) if sign > 0 else minimum(a, b)
        case _:
            return None


def not_negative(e: Expr, ranges: Iterable[LoopRange] = ()) -> bool:
    """Whether `e >= 0` is proved wherever the ranges' variables are inside them.

    Variables without a range are dims, and so not negative; no range is empty.
    """
    return _known((e,), tuple(ranges)).holds(linear(e))


def at_most(a: Expr, b: Expr, ranges: Iterable[LoopRange] = ()) -> bool:
    """Whether `a <= b` is proved."""
    return not_negative(sub(b, a), ranges)


def _known(exprs: Iterable[Expr], ranges: tuple[LoopRange, ...]) -> Facts:
    """What holds inside the ranges, all other variables being dims."""
    ends = (e for r in ranges for e in (r.lower, r.upper))
    used = frozenset[str]().union(*map(variables, (*exprs, *ends)))
    return inside(of_sizes(sorted(used - {r.var for r in ranges})), ranges)


def inside(facts: Facts, ranges: Iterable[LoopRange]) -> Facts:
    """With what holds inside the ranges, of which none is empty."""
    for r in ranges:
        first, last = linear(r.lower), linear(r.upper)
        extent = last - first
        facts = facts.knowing(extent, *_multiplied(extent)).within(r.var, first, last)
    return facts


def _multiplied(form: Linear) -> Iterator[Linear]:
    """What the form being at least 0 says of what is divided in it: d * (x // d) is at most x."""
    for atom, c in form.terms.items():
        match atom:
            case Binary(BinaryOp.FLOORDIV, x, Const(int(d))) if d > 0 and c > 0:
                yield form.without(atom) * int(d) + linear(x) * c


def larger(a: Expr, b: Expr, ranges: tuple[LoopRange, ...]) -> Expr:
    """max(a, b), without the sides that never decide."""
    return reduce(maximum, _deciding(BinaryOp.MAX, a, b, ranges))


def smaller(a: Expr, b: Expr, ranges: tuple[LoopRange, ...]) -> Expr:
    """min(a, b), without the sides that never decide."""
    return reduce(minimum, _deciding(BinaryOp.MIN, a, b, ranges))


def _deciding(op: BinaryOp, a: Expr, b: Expr, ranges: tuple[LoopRange, ...]) -> tuple[Expr, ...]:
    parts = (*sides(op, normal(a)), *sides(op, normal(b)))
    return deciding(op, parts, _known(parts, ranges))


def deciding(op: BinaryOp, parts: Iterable[Expr], facts: Facts) -> tuple[Expr, ...]:
    """Those of which the others' min or max is never beyond them."""
    sign = 1 if op is BinaryOp.MAX else -1

    def covers(x: Expr, y: Expr) -> bool:
        return facts.holds((linear(x) - linear(y)) * sign)

    kept: list[Expr] = []
    for part in parts:
        if not any(covers(other, part) for other in kept):
            kept = [other for other in kept if not covers(part, other)] + [part]
    return tuple(kept)


def sides(op: BinaryOp, e: Expr) -> tuple[Expr, ...]:
    """The expressions of which `e` is the min or max."""
    match e:
        case Binary(found, lhs, rhs) if found is op:
            return (*sides(op, lhs), *sides(op, rhs))
        case _:
            return (e,)
