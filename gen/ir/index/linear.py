"""Linear forms: index expressions as sums of integer multiples of atoms.

An atom is a variable, or an expression that is not linear (a floor division, a minimum, a product
of two sizes, a load, a sum of data that may wrap around), taken as one thing. Input and output:
expressions of INDEX type; the value is kept exactly, as a number: forms may be added, compared and
held against 0. Equal forms are equal values; the reverse holds as far as sums tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from ..algebra import add, floordiv, index, mul, sub
from ..nodes import Binary, BinaryOp, Const, Expr, Unary, UnaryOp, Var
from ..walk import remembered, variables
from ..wrapping import wraps


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient * atom; no coefficient is 0."""

    terms: Mapping[Expr, int] = field(default_factory=dict)
    constant: int = 0

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.constant))

    def __add__(self, other: "Linear | int") -> "Linear":
        return self.combined(1, other, 1)

    def __sub__(self, other: "Linear | int") -> "Linear":
        return self.combined(1, other, -1)

    def __mul__(self, factor: int) -> "Linear":
        terms = {atom: c * factor for atom, c in self.terms.items()} if factor else {}
        return Linear(terms, self.constant * factor)

    def combined(self, by: int, other: "Linear | int", factor: int) -> "Linear":
        """The sum of both, each times a factor that is not 0."""
        if isinstance(other, int):
            other = Linear({}, other)
        constant = self.constant * by + other.constant * factor
        if by == 1 and not other.terms:
            return Linear(self.terms, constant)
        terms = dict(self.terms) if by == 1 else {a: c * by for a, c in self.terms.items()}
        for atom, c in other.terms.items():
            total = terms.get(atom, 0) + c * factor
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Linear(terms, constant)

    def __floordiv__(self, divisor: int) -> "Linear":
        """The floor of the quotient, by what divides all coefficients."""
        terms = {atom: c // divisor for atom, c in self.terms.items()}
        return Linear(terms, self.constant // divisor)

    def coefficient(self, name: str) -> int:
        """Of the variable `name`."""
        return self.terms.get(Var(name), 0)

    def modulo(self, divisor: int) -> "Linear":
        """A form that leaves the same remainder, with coefficients in [0, divisor)."""
        terms = {a: c % divisor for a, c in self.terms.items() if c % divisor}
        return Linear(terms, self.constant % divisor)

    def without(self, atom: Expr) -> "Linear":
        return Linear({a: c for a, c in self.terms.items() if a != atom}, self.constant)

    def put(self, name: str, value: "Linear") -> "Linear":
        """`value` in place of the variable `name`."""
        return self.without(Var(name)) + value * self.coefficient(name)

    def variables(self) -> frozenset[str]:
        return frozenset[str]().union(*map(variables, self.terms))

    def expr(self, *, number_first: bool = False) -> Expr:
        """The sum, positive terms first, the constant last. number_first: `4 * h`, as specs and
        signatures have it, not `h * 4`.
        """
        result: Expr = index(0)
        for atom, c in sorted(self.terms.items(), key=lambda term: term[1] < 0):
            term = mul(abs(c), atom) if number_first else mul(atom, abs(c))
            result = add(result, term) if c > 0 else sub(result, term)
        c = self.constant
        return add(result, c) if c >= 0 else sub(result, -c)


@remembered
def linear(expr: Expr) -> Linear:
    match expr:
        case Const(int(value)):
            return Linear({}, int(value))
        case Binary() | Unary() if wraps(expr):
            return Linear({expr: 1})
        case Binary(BinaryOp.ADD, lhs, rhs):
            return linear(lhs) + linear(rhs)
        case Binary(BinaryOp.SUB, lhs, rhs):
            return linear(lhs) - linear(rhs)
        case Unary(UnaryOp.NEG, operand):
            return linear(operand) * -1
        case Binary(BinaryOp.MUL, lhs, rhs):
            a, b = linear(lhs), linear(rhs)
            if not a.terms:
                return b * a.constant
            if not b.terms:
                return a * b.constant
            return Linear({expr: 1})
        case Binary(BinaryOp.FLOORDIV, lhs, Const(int(divisor))) if divisor > 0:
            return _quotient(linear(lhs), int(divisor))
        case _:
            return Linear({expr: 1})


def _quotient(value: Linear, divisor: int) -> Linear:
    """The floor of value / divisor, with what divides evenly taken out of the division."""
    rest = Linear({a: c for a, c in value.terms.items() if c % divisor}, value.constant % divisor)
    whole = (value - rest) // divisor
    return whole + Linear({floordiv(rest.expr(), divisor): 1}) if rest.terms else whole


def constant(expr: Expr) -> int | None:
    """The value of a constant index expression."""
    form = linear(expr)
    return None if form.terms else form.constant


def same(a: Expr, b: Expr) -> bool:
    """Whether the two are equal for all values of their variables, as far as sums tell."""
    return linear(a) == linear(b)


@remembered
def tidy(expr: Expr) -> Expr:
    """An equal index expression with like terms gathered, minima and maxima included."""
    match expr:
        case Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            a, b = tidy(lhs), tidy(rhs)
            difference = constant(sub(a, b))
            if difference is not None:
                return a if (difference <= 0) is (op is BinaryOp.MIN) else b
            return Binary(op, a, b)
        case _:
            return linear(expr).expr()
