"""Bounds of index expressions over ranges of loop variables, for all sizes at once.

Input: INDEX expressions over loop variables and dims. Output: expressions without the given
variables, or a yes where an inequality holds for every size. All answers are one-sided: a bound
may be loose and a "not proved" may be true, but a bound is never exceeded and a "proved" is never
wrong. Nothing here is trusted by the prover.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import final

from ..algebra import add, floordiv, index, maximum, minimum, sub
from ..nodes import Binary, BinaryOp, Const, Expr, Select, Var
from ..walk import variables
from .linear import Linear, linear


@final
@dataclass(frozen=True, slots=True)
class Range:
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


def lowest(e: Expr, ranges: Iterable[Range]) -> Expr | None:
    """A lower bound without the ranges' variables (outermost first); None where none is found."""
    return _extreme_over(e, tuple(ranges), -1)


def highest(e: Expr, ranges: Iterable[Range]) -> Expr | None:
    """An upper bound without the ranges' variables (outermost first); None where none is found."""
    return _extreme_over(e, tuple(ranges), 1)


def _extreme_over(e: Expr, ranges: tuple[Range, ...], sign: int) -> Expr | None:
    bound: Linear | None = linear(e)
    for r in reversed(ranges):
        bound = None if bound is None else _extreme(bound, r, sign)
    return None if bound is None else bound.expr() if ranges else e


def _extreme(form: Linear, r: Range, sign: int) -> Linear | None:
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


def _extreme_of_expr(e: Expr, r: Range, sign: int) -> Expr | None:
    bound = _extreme(linear(e), r, sign)
    return None if bound is None else bound.expr()


def _extreme_atom(atom: Expr, r: Range, sign: int) -> Expr | None:
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


def not_negative(e: Expr, ranges: Iterable[Range] = ()) -> bool:
    """Whether `e >= 0` is proved wherever the ranges' variables are inside them.

    Variables without a range are dims, and so not negative; no range is empty.
    """
    return _not_negative(linear(e), tuple(ranges))


def at_most(a: Expr, b: Expr, ranges: Iterable[Range] = ()) -> bool:
    """Whether `a <= b` is proved."""
    return not_negative(sub(b, a), ranges)


def _not_negative(form: Linear, ranges: tuple[Range, ...]) -> bool:
    extremes = [
        ((atom.op is BinaryOp.MAX) == (c > 0), atom, c)
        for atom, c in form.terms.items()
        if isinstance(atom, Binary) and atom.op in (BinaryOp.MIN, BinaryOp.MAX)
    ]
    # What has to hold of both sides comes first: then another one helps each.
    for one_is_enough, atom, c in sorted(extremes, key=lambda found: found[0]):
        rest = form.without(atom)
        parts = (_not_negative(rest + linear(x) * c, ranges) for x in (atom.lhs, atom.rhs))
        return any(parts) if one_is_enough else all(parts)
    if _without_ranges(form, ranges):
        return True
    return any(_without_ranges(form - fact, ranges) for fact in _facts(ranges))


def _facts(ranges: tuple[Range, ...]) -> Iterator[Linear]:
    """Forms that are not negative since no range is empty."""
    for r in ranges:
        extent = linear(sub(r.upper, r.lower))
        yield extent
        for atom in extent.terms:
            match atom:
                case Binary(BinaryOp.FLOORDIV, _, Const(int(d))):
                    yield extent * int(d)


def _without_ranges(form: Linear, ranges: tuple[Range, ...]) -> bool:
    for r in reversed(ranges):
        bound = _extreme(form, r, -1)
        if bound is None:
            return False
        form = bound
        if any(isinstance(a, Binary) and a.op in (BinaryOp.MIN, BinaryOp.MAX) for a in form.terms):
            return _not_negative(form, ranges[: ranges.index(r)])
    return _sum_not_negative(form)


def _sum_not_negative(form: Linear) -> bool:
    """Whether the sum is proved not negative by its terms, of dims alone."""
    for atom, c in form.terms.items():
        match atom:
            case Var() if c > 0:
                pass
            case Binary(BinaryOp.FLOORDIV, x, Const(int(d))) if d > 0 and c % d == 0:
                # d*(x // d) lies in [x - d + 1, x].
                inside = linear(x) - (int(d) - 1) if c > 0 else linear(x)
                return _not_negative(form.without(atom) + inside * (c // int(d)), ())
            case Binary(BinaryOp.FLOORDIV, x, Const(int(d))) if d > 0 and c > 0:
                if not not_negative(x):
                    return False
            case _:
                return False
    return form.constant >= 0


def larger(a: Expr, b: Expr, ranges: tuple[Range, ...]) -> Expr:
    """max(a, b), without the sides that never decide."""
    return _extreme_of(BinaryOp.MAX, a, b, lambda x, y: at_most(x, y, ranges))


def smaller(a: Expr, b: Expr, ranges: tuple[Range, ...]) -> Expr:
    """min(a, b), without the sides that never decide."""
    return _extreme_of(BinaryOp.MIN, a, b, lambda x, y: at_most(y, x, ranges))


def _extreme_of(op: BinaryOp, a: Expr, b: Expr, covers: Callable[[Expr, Expr], bool]) -> Expr:
    """The min or max of both; `covers(x, y)` says that x is of no use beside y."""
    kept: list[Expr] = []
    for side in (*sides(op, normal(a)), *sides(op, normal(b))):
        if not any(covers(side, other) for other in kept):
            kept = [other for other in kept if not covers(other, side)] + [side]
    both = minimum if op is BinaryOp.MIN else maximum
    return reduce(both, kept)


def sides(op: BinaryOp, e: Expr) -> tuple[Expr, ...]:
    """The expressions of which `e` is the min or max."""
    match e:
        case Binary(found, lhs, rhs) if found is op:
            return (*sides(op, lhs), *sides(op, rhs))
        case _:
            return (e,)
