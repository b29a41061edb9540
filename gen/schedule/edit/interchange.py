"""Two nested loops exchanged, whatever shape they run over.

Input: a loop and the one directly inside it. Output: the same two the other way round, over the
same points: what the inner one's bounds say of the outer variable becomes bounds of that variable,
as in Fourier-Motzkin elimination; what is divided by a constant is multiplied out. The range of
what goes outside may hold values at which nothing runs.
"""

from collections.abc import Iterator
from dataclasses import replace

from ...ir.algebra import add, ceildiv, floordiv, less, mul, sub
from ...ir.index.bounds import LoopRange, highest, larger, lowest, normal, sides, smaller
from ...ir.index.linear import linear
from ...ir.nodes import Binary, BinaryOp, Const, Expr, Loop, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import variables
from .tree import CannotApply


def depends(outer: Loop, inner: Loop) -> bool:
    """Whether the bounds of the inner loop depend on the outer one."""
    return outer.var in variables(inner.lower) | variables(inner.upper)


def bounds_in(outer: Loop, inner: Loop) -> Iterator[Expr]:
    """The conditions that those bounds of the inner loop are which depend on the outer one."""
    for side in sides(BinaryOp.MAX, inner.lower):
        if outer.var in variables(side):
            yield Binary(BinaryOp.LE, side, Var(inner.var))
    for side in sides(BinaryOp.MIN, inner.upper):
        if outer.var in variables(side):
            yield less(Var(inner.var), side)


def widened(outer: Loop, inner: Loop) -> tuple[Loop, Loop]:
    """The two the other way round, the one that goes outside over all that it runs over in any
    iteration of the other. Raises CannotApply as below.
    """
    span = LoopRange(outer.var, outer.lower, sub(outer.upper, 1))
    first, last = lowest(inner.lower, (span,)), highest(inner.upper, (span,))
    if first is None or last is None:
        raise _refusal(inner, outer, inner.lower if first is None else inner.upper)
    return replace(inner, lower=first, upper=last), outer


def exchanged(outer: Loop, inner: Loop, around: tuple[LoopRange, ...]) -> tuple[Loop, Loop]:
    """around: the ranges further out. Raises CannotApply where the bounds of the inner loop are no
    maxima and minima of sums in the outer variable.
    """
    new, _ = widened(outer, inner)
    known = (*around, LoopRange(inner.var, new.lower, sub(new.upper, 1)))
    lower, upper = outer.lower, outer.upper
    for side, j in _sides(BinaryOp.MAX, inner.lower, outer, Var(inner.var)):  # c*i + rest <= j
        c, rest = _solved(side, inner, outer)
        if c > 0:
            upper = smaller(upper, add(floordiv(normal(sub(j, rest)), c), 1), known)
        elif c < 0:
            lower = larger(lower, ceildiv(normal(sub(rest, j)), -c), known)
    for side, j in _sides(BinaryOp.MIN, inner.upper, outer, Var(inner.var)):  # j < c*i + rest
        c, rest = _solved(side, inner, outer)
        if c > 0:
            lower = larger(lower, ceildiv(normal(sub(add(j, 1), rest)), c), known)
        elif c < 0:
            upper = smaller(upper, add(floordiv(normal(sub(sub(rest, j), 1)), -c), 1), known)
    return new, replace(outer, lower=normal(lower), upper=normal(upper))


def _sides(op: BinaryOp, bound: Expr, outer: Loop, j: Expr) -> Iterator[tuple[Expr, Expr]]:
    """What a lower (MAX) or upper (MIN) bound of j comes to: pairs, of which each side bounds its
    multiple of j.
    """
    opposite = BinaryOp.MIN if op is BinaryOp.MAX else BinaryOp.MAX
    for side in sides(op, bound):
        form = linear(side)
        inside = [atom for atom in form.terms if outer.var in variables(atom)]
        found = next((atom for atom in inside if not isinstance(atom, Var)), None)
        factor = form.terms[found] if found else 0
        rest = form.without(found).expr() if found else side
        match found:
            case Binary(BinaryOp.MAX | BinaryOp.MIN as each, a, b) if each is (
                op if factor > 0 else opposite
            ):
                for x in (a, b):
                    yield from _sides(op, add(rest, mul(x, factor)), outer, j)
            case Binary(BinaryOp.FLOORDIV, e, Const(int(d))) if factor == 1 and len(inside) == 1:
                # floor(e / d) + rest <= j where e - d + 1 <= d * (j - rest); > where it is >.
                multiple = mul(sub(j, rest), int(d))
                yield from _sides(op, normal(sub(e, int(d) - 1)), outer, multiple)
            case _:
                yield side, j


def _solved(side: Expr, inner: Loop, outer: Loop) -> tuple[int, Expr]:
    """The factor of the outer variable in a sum, and the rest of the sum."""
    form = linear(side)
    rest = form.without(Var(outer.var))
    if outer.var in rest.variables():
        raise _refusal(inner, outer, side)
    return form.coefficient(outer.var), rest.expr()


def _refusal(inner: Loop, outer: Loop, bound: Expr) -> CannotApply:
    return CannotApply(
        f"the bounds of loop '{inner.var}' depend on '{outer.var}', which goes inside, by"
        f" `{expr_to_text(bound)}`"
    )
