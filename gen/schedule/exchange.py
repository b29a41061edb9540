"""Two nested loops exchanged, whatever shape they run over.

Input: a loop and the one directly inside it. Output: the same two the other way round, over the
same points: what the inner one's bounds say of the outer variable becomes bounds of that variable,
as in Fourier-Motzkin elimination. The range of what goes outside may hold values at which nothing
runs.
"""

from dataclasses import replace

from ..ir.algebra import add, ceildiv, floordiv, sub
from ..ir.nodes import BinaryOp, Expr, Loop, Var
from ..ir.print_expr import expr_to_text
from ..ir.walk import variables
from .bounds import Range, highest, larger, linear, lowest, normal, sides, smaller
from .edit import CannotApply


def exchanged(outer: Loop, inner: Loop, around: tuple[Range, ...]) -> tuple[Loop, Loop]:
    """around: the ranges further out. Raises CannotApply where the bounds of the inner loop are no
    maxima and minima of sums in the outer variable.
    """
    if outer.var not in variables(inner.lower) | variables(inner.upper):
        return inner, outer
    span = Range(outer.var, outer.lower, sub(outer.upper, 1))
    first, last = lowest(inner.lower, (span,)), highest(inner.upper, (span,))
    if first is None or last is None:
        raise _refusal(inner, outer, inner.lower if first is None else inner.upper)
    new = replace(inner, lower=first, upper=last)
    known = (*around, Range(inner.var, first, sub(last, 1)))
    lower, upper, j = outer.lower, outer.upper, Var(inner.var)
    for side in sides(BinaryOp.MAX, inner.lower):  # c*i + rest <= j
        c, rest = _solved(side, inner, outer)
        if c > 0:
            upper = smaller(upper, add(floordiv(normal(sub(j, rest)), c), 1), known)
        elif c < 0:
            lower = larger(lower, ceildiv(normal(sub(rest, j)), -c), known)
    for side in sides(BinaryOp.MIN, inner.upper):  # j < c*i + rest
        c, rest = _solved(side, inner, outer)
        if c > 0:
            lower = larger(lower, ceildiv(normal(sub(add(j, 1), rest)), c), known)
        elif c < 0:
            upper = smaller(upper, add(floordiv(normal(sub(sub(rest, j), 1)), -c), 1), known)
    return new, replace(outer, lower=normal(lower), upper=normal(upper))


def _solved(side: Expr, inner: Loop, outer: Loop) -> tuple[int, Expr]:
    """The factor of the outer variable in a sum, and the rest of the sum."""
    form = linear(side)
    rest = form.without(Var(outer.var)).expr()
    if outer.var in variables(rest):
        raise _refusal(inner, outer, side)
    return form.terms.get(Var(outer.var), 0), rest


def _refusal(inner: Loop, outer: Loop, bound: Expr) -> CannotApply:
    return CannotApply(
        f"the bounds of loop '{inner.var}' depend on '{outer.var}', which goes inside, by"
        f" `{expr_to_text(bound)}`"
    )
