"""Index expressions with what is known decided in them.

Input: an index expression, and facts about its variables. Output: the same value with the minima,
maxima, quotients and remainders gone that the facts decide.
"""

from math import gcd

from ..algebra import add, floordiv, index
from ..nodes import Binary, BinaryOp, Const, Expr, Var
from ..walk import remembered
from .facts import Facts
from .linear import Linear, linear, tidy


def resolve(expr: Expr, facts: Facts) -> Expr:
    """The index expression, terms gathered."""
    return tidy(expr if _is_sum(expr) else _resolve(expr, facts))


@remembered
def _is_sum(expr: Expr) -> bool:
    """Whether there is nothing in it that facts could decide."""
    match expr:
        case Binary(BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL, lhs, rhs):
            return _is_sum(lhs) and _is_sum(rhs)
        case _:
            return isinstance(expr, Const | Var)


def decided(op: BinaryOp, a: Expr, b: Expr, facts: Facts) -> Expr:
    """The min or max of both, as one of the two where the facts decide."""
    if facts.holds(linear(b) - linear(a)):
        return a if op is BinaryOp.MIN else b
    if facts.holds(linear(a) - linear(b)):
        return b if op is BinaryOp.MIN else a
    return Binary(op, a, b)


def _resolve(expr: Expr, facts: Facts) -> Expr:
    match expr:
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            return decided(op, _resolve(lhs, facts), _resolve(rhs, facts), facts)
        case Binary(BinaryOp.MOD, lhs, Const(int(divisor))) if divisor > 0:
            value = linear(_resolve(lhs, facts))
            rest = value.modulo(int(divisor))
            if _is_rest(rest, int(divisor), facts):
                return rest.expr()
            return _remainder(_reduced(value, int(divisor)), int(divisor), facts)
        case Binary(BinaryOp.FLOORDIV, lhs, Const(int(divisor))) if divisor > 0:
            value = _without_rest(linear(_resolve(lhs, facts)), int(divisor), facts)
            whole = linear(floordiv(value.expr(), int(divisor)))
            left = {atom: c for atom, c in whole.terms.items() if not _is_zero(atom, facts)}
            return Linear(left, whole.constant).expr()
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD as op, lhs, rhs):
            value, size = linear(_resolve(lhs, facts)), linear(_resolve(rhs, facts))
            turn = _turn(value, size, facts)
            if turn is None:
                return Binary(op, value.expr(), size.expr())
            return index(turn) if op is BinaryOp.FLOORDIV else (value - size * turn).expr()
        case Binary(op, lhs, rhs):
            return Binary(op, _resolve(lhs, facts), _resolve(rhs, facts))
        case _:
            return expr


def _turn(value: Linear, size: Linear, facts: Facts) -> int | None:
    """The quotient by a size, where the facts decide that it is 0, or one turn around a ring: as of
    `(i - 1) % n` and `(i + 1) % n`, away from the ends and at them. The size is positive then.
    """
    for turn in (0, -1, 1):
        rest = value - size * turn
        if facts.holds(rest) and facts.holds(size - rest - 1):
            return turn
    return None


def _remainder(value: Linear, divisor: int, facts: Facts) -> Expr:
    """The remainder, with what stays below a factor of the divisor outside of it, so that lanes lie
    side by side: (4*i + l) % 8 as 4*i % 8 + l, where l is below 4.
    """
    for factor in sorted({gcd(c, divisor) for c in value.terms.values()}, reverse=True):
        rest = value.modulo(factor)
        if factor > 1 and rest.terms and _is_rest(rest, factor, facts):
            steps = _reduced(value - rest, divisor).expr()
            return add(Binary(BinaryOp.MOD, steps, index(divisor)), rest.expr())
    return Binary(BinaryOp.MOD, value.expr(), index(divisor))


def _without_rest(value: Linear, divisor: int, facts: Facts) -> Linear:
    """A form of the same quotient, without what stays below a factor of the divisor, so that lanes
    lie in one row: (4*i + l) // 8 as 4*i // 8, where l is below 4.
    """
    for factor in sorted({gcd(c, divisor) for c in value.terms.values()}, reverse=True):
        rest = value.modulo(factor)
        if 1 < factor < divisor and rest.terms and _is_rest(rest, factor, facts):
            return value - rest
    return value


def _reduced(value: Linear, divisor: int) -> Linear:
    """A form that leaves the same remainder. No coefficient is larger than it was: `-n % 1000` as
    `999*n % 1000` could leave 64 bits where `-n` does not (`index_limits`).
    """
    terms = {a: c % divisor if c > 0 else -(-c % divisor) for a, c in value.terms.items()}
    return Linear({a: c for a, c in terms.items() if c}, value.constant % divisor)


def _is_rest(value: Linear, divisor: int, facts: Facts) -> bool:
    """Whether the form, of coefficients that are not negative, is its own remainder, as each of its
    terms then is.
    """
    known = all(facts.holds(linear(atom)) for atom in value.terms)
    return known and _within(value.expr(), divisor, facts)


def _is_zero(atom: Expr, facts: Facts) -> bool:
    match atom:
        case Binary(BinaryOp.FLOORDIV, rest, Const(int(divisor))):
            return _within(rest, int(divisor), facts)
        case _:
            return False


def _within(expr: Expr, size: int, facts: Facts) -> bool:
    """Whether 0 <= expr < size."""
    value = linear(expr)
    return facts.holds(value) and facts.holds(value * -1 + (size - 1))
