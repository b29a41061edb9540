"""Index expressions as sums of integer multiples of atoms.

An atom is a variable, or an expression that is not affine (a floor division, a minimum, a product
of two sizes, a load), taken as one thing. Input and output: expressions of INDEX type; the value
is kept exactly.
"""

from dataclasses import dataclass
from typing import final

from ..ir.algebra import add, conjuncts, dtype_of, floordiv, index, mul, sub
from ..ir.nodes import Binary, BinaryOp, Const, Expr, Unary, UnaryOp, Var
from ..ir.types import INDEX
from ..ir.walk import remembered, variables


@final
@dataclass(frozen=True, slots=True)
class Affine:
    """constant + sum of coefficient * atom; no coefficient is 0."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int = 0

    def __add__(self, other: "Affine | int") -> "Affine":
        return self._plus(other, 1)

    def _plus(self, other: "Affine | int", factor: int) -> "Affine":
        if isinstance(other, int):
            return Affine(self.terms, self.constant + other * factor)
        sums = dict(self.terms)
        for atom, coefficient in other.terms:
            sums[atom] = sums.get(atom, 0) + coefficient * factor
        terms = tuple((atom, c) for atom, c in sums.items() if c)
        return Affine(terms, self.constant + other.constant * factor)

    def __mul__(self, factor: int) -> "Affine":
        if not factor:
            return Affine(())
        return Affine(tuple((a, c * factor) for a, c in self.terms), self.constant * factor)

    def __sub__(self, other: "Affine | int") -> "Affine":
        return self._plus(other, -1)

    def coefficient(self, name: str) -> int:
        """Of the variable `name`."""
        for atom, c in self.terms:
            if isinstance(atom, Var) and atom.name == name:
                return c
        return 0

    def modulo(self, divisor: int) -> "Affine":
        """A form that leaves the same remainder, with coefficients in [0, divisor)."""
        terms = tuple((a, c % divisor) for a, c in self.terms if c % divisor)
        return Affine(terms, self.constant % divisor)

    def without(self, atom: Expr) -> "Affine":
        return Affine(tuple((a, c) for a, c in self.terms if a != atom), self.constant)

    def put(self, name: str, value: "Affine") -> "Affine":
        """`value` in place of the variable `name`."""
        c = self.coefficient(name)
        rest = Affine(
            tuple((a, k) for a, k in self.terms if not (isinstance(a, Var) and a.name == name)),
            self.constant,
        )
        return rest + value * c


@remembered
def affine(expr: Expr) -> Affine:
    match expr:
        case Const(int(value)):
            return Affine((), int(value))
        case Binary(BinaryOp.ADD, lhs, rhs):
            return affine(lhs) + affine(rhs)
        case Binary(BinaryOp.SUB, lhs, rhs):
            return affine(lhs) - affine(rhs)
        case Unary(UnaryOp.NEG, operand):
            return affine(operand) * -1
        case Binary(BinaryOp.MUL, lhs, rhs):
            a, b = affine(lhs), affine(rhs)
            if not a.terms:
                return b * a.constant
            if not b.terms:
                return a * b.constant
            return Affine(((expr, 1),))
        case Binary(BinaryOp.FLOORDIV, lhs, Const(int(divisor))) if divisor > 0:
            return _quotient(affine(lhs), int(divisor))
        case _:
            return Affine(((expr, 1),))


def _quotient(value: Affine, divisor: int) -> Affine:
    """The floor of value / divisor, with what divides evenly taken out of the division."""
    whole = tuple((a, c // divisor) for a, c in value.terms if c % divisor == 0)
    rest = Affine(tuple((a, c) for a, c in value.terms if c % divisor), value.constant % divisor)
    outside = Affine(whole, value.constant // divisor)
    if not rest.terms:
        return outside
    return outside + Affine(((floordiv(expression(rest), divisor), 1),))


def expression(value: Affine) -> Expr:
    """The sum, positive terms first, the constant last."""
    result: Expr = index(0)
    for atom, coefficient in sorted(value.terms, key=lambda term: term[1] < 0):
        if coefficient > 0:
            result = add(result, mul(atom, coefficient))
        else:
            result = sub(result, mul(atom, -coefficient))
    c = value.constant
    return add(result, c) if c >= 0 else sub(result, -c)


@remembered
def tidy(expr: Expr) -> Expr:
    """An equal index expression with like terms gathered, minima and maxima included."""
    match expr:
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            a, b = tidy(lhs), tidy(rhs)
            difference = affine(a) - affine(b)
            if not difference.terms:
                return a if (difference.constant <= 0) is (op is BinaryOp.MIN) else b
            return Binary(op, a, b)
        case _:
            return expression(affine(expr))


def inequalities(condition: Expr) -> tuple[Affine, ...] | None:
    """Affine forms that are all >= 0 exactly where the one conjunct holds; None if it is no
    comparison of index expressions by order.
    """
    match condition:
        case Binary(BinaryOp.LT, a, b) | Binary(BinaryOp.GT, b, a) if _is_index(a):
            return (affine(b) - affine(a) - 1,)
        case Binary(BinaryOp.LE, a, b) | Binary(BinaryOp.GE, b, a) if _is_index(a):
            return (affine(b) - affine(a),)
        case Binary(BinaryOp.EQ, a, b) if _is_index(a):
            return (affine(b) - affine(a), affine(a) - affine(b))
        case _:
            return None


def _is_index(expr: Expr) -> bool:
    return dtype_of(expr) is INDEX


Ranges = tuple[tuple[str, Affine, Affine], ...]  # variable, first, last; outer ones first


def least(value: Affine, ranges: Ranges) -> Affine | None:
    """The least value over the ranges' variables; None where one is left inside an atom."""
    for name, first, last in reversed(ranges):
        c = value.coefficient(name)
        if c:
            value = value.put(name, first if c > 0 else last)
    names = {name for name, _, _ in ranges}
    if any(variables(atom) & names for atom, _ in value.terms):
        return None
    return value


def all_inequalities(condition: Expr) -> tuple[Affine, ...]:
    """Affine forms that are >= 0 where the conjunction holds."""
    return tuple(f for part in conjuncts(condition) for f in inequalities(part) or ())


def constant(expr: Expr) -> int | None:
    """The value of a constant index expression."""
    value = affine(expr)
    return None if value.terms else value.constant
