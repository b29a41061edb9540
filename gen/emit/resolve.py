"""Index expressions with what is known of their variables put to use.

Input: an index expression and facts. Output: an equal one, in fewer terms.
"""

from ..ir.nodes import Binary, BinaryOp, Const, Expr
from ..ir.walk import index
from ..lower.affine import affine, expression, tidy
from ..lower.facts import Facts


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
