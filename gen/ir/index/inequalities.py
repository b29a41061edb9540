"""What linear forms tell of conditions and ranges, for all sizes at once.

Input: bool expressions, and linear forms over loop variables. Output: the forms that are not
negative where a condition holds, and the least value of a form.
"""

from ..algebra import ceildiv, conjuncts, dtype_of, floordiv
from ..nodes import Binary, BinaryOp, Expr, Var
from ..types import INDEX
from .linear import Linear, linear

Ranges = tuple[tuple[str, Linear, Linear], ...]  # variable, first, last; outer ones first


def inequalities(condition: Expr) -> tuple[Linear, ...] | None:
    """Linear forms that are all >= 0 exactly where the one conjunct holds; None if it is no
    comparison of index expressions by order.
    """
    match condition:
        case Binary(BinaryOp.LT, a, b) | Binary(BinaryOp.GT, b, a) if _is_index(a):
            return (linear(b) - linear(a) - 1,)
        case Binary(BinaryOp.LE, a, b) | Binary(BinaryOp.GE, b, a) if _is_index(a):
            return (linear(b) - linear(a),)
        case Binary(BinaryOp.EQ, a, b) if _is_index(a):
            return (linear(b) - linear(a), linear(a) - linear(b))
        case _:
            return None


def _is_index(expr: Expr) -> bool:
    return dtype_of(expr) is INDEX


def all_inequalities(condition: Expr) -> tuple[Linear, ...]:
    """Linear forms that are >= 0 where the conjunction holds."""
    return tuple(f for part in conjuncts(condition) for f in inequalities(part) or ())


def threshold(form: Linear, var: str) -> Expr:
    """The first value of `var` from which on the form is >= 0; or, where it falls with the
    variable, from which on it is not.
    """
    c, rest = form.coefficient(var), form.without(Var(var))
    if c < 0:
        return (linear(floordiv(rest.expr(), -c)) + 1).expr()
    return linear(ceildiv((rest * -1).expr(), c)).expr()


def least(value: Linear, ranges: Ranges) -> Linear | None:
    """The least value over the ranges' variables; None where one is left inside an atom."""
    for name, first, last in reversed(ranges):
        c = value.coefficient(name)
        if c:
            value = value.put(name, first if c > 0 else last)
    names = {name for name, _, _ in ranges}
    return None if value.variables() & names else value
