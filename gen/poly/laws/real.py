"""Expressions over the real numbers, in a normal form in which equal ones look alike.

A `Real` is a sum of products of a rational number, powers of atoms, and the exponential of such a
sum without exponentials. An atom is what is not looked into. `exp(a) * exp(b)` and `exp(a + b)` are
one product, and nothing is ever cancelled against a divisor: `1 / d` is an atom of its own, so that
`a * d / d` is not `a`, which it is not where d is 0. Equal normal forms are equal numbers, wherever
both are defined; different ones may be equal.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import final

Atom = Hashable
Powers = frozenset[tuple[Atom, int]]
Exponent = frozenset[tuple[Powers, Fraction]]
Product = tuple[Powers, Exponent]

_NONE: Powers = frozenset()
_ZERO: Exponent = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Real:
    """products: each with its factor, which is not 0."""

    products: frozenset[tuple[Product, Fraction]]

    def __add__(self, other: "Real") -> "Real":
        return _sum((*self.products, *other.products))

    def __sub__(self, other: "Real") -> "Real":
        return self + number(-1) * other

    def __mul__(self, other: "Real") -> "Real":
        return _sum((_times(p, q), a * b) for p, a in self.products for q, b in other.products)


@final
@dataclass(frozen=True, slots=True)
class Opaque:
    """The atom that a function makes of values, which is not looked into. of: values, and whatever
    else it depends on.
    """

    function: Hashable
    of: tuple[Hashable, ...]

    @property
    def divisor(self) -> Real | None:
        """d, where this is 1 / d."""
        if self.function != "reciprocal":
            return None
        (divisor,) = self.of
        assert isinstance(divisor, Real)
        return divisor


def number(value: Fraction | float) -> Real:
    return _sum([((_NONE, _ZERO), Fraction(value))])


def atom(name: Atom) -> Real:
    return product(frozenset({(name, 1)}), _ZERO)


def product(powers: Powers, exponent: Exponent) -> Real:
    return _sum([((powers, exponent), Fraction(1))])


def exponential(value: Real) -> Real | None:
    """exp(value); None where value has exponentials itself."""
    if any(exponent for (_, exponent), _ in value.products):
        return None
    return product(_NONE, frozenset((powers, factor) for (powers, _), factor in value.products))


def reciprocal(value: Real) -> Real:
    """1 / value. Raises ZeroDivisionError for 0."""
    if not value.products:
        raise ZeroDivisionError
    if len(value.products) > 1:
        return atom(_reciprocal(value))
    (((powers, exponent), factor),) = value.products
    inverse = frozenset((_reciprocal(atom(name)), power) for name, power in powers)
    opposite = frozenset((p, -f) for p, f in exponent)
    return number(1 / factor) * product(inverse, opposite)


def _reciprocal(value: Real) -> Opaque:
    return Opaque("reciprocal", (value,))


def atoms(value: Real) -> Iterator[Atom]:
    """The atoms of a value, in exponents and in opaque ones, too."""
    for (powers, exponent), _ in value.products:
        for inner in (powers, *(p for p, _ in exponent)):
            for name, _ in inner:
                yield name
                for part in name.of if isinstance(name, Opaque) else ():
                    if isinstance(part, Real):
                        yield from atoms(part)


def is_zero(value: Real, positive: "Positive") -> bool:
    """Whether it is 0 wherever the atoms that are known to be positive are. Divisors are multiplied
    out, which is right only for those that are not 0.
    """
    while (found := _divided(value)) is not None:
        name, divisor = found
        if not positive(divisor):
            return False
        most = max(_power(powers, name) for (powers, _), _ in value.products)
        value = reduce(
            Real.__add__,
            (
                _raised(divisor, most - _power(powers, name))
                * _sum([((_without(powers, name), exponent), factor)])
                for (powers, exponent), factor in value.products
            ),
        )
    return not value.products


@final
@dataclass(frozen=True, slots=True)
class Positive:
    """Says which values are above 0: sums of products of atoms that are."""

    atoms: frozenset[Atom]

    def __call__(self, value: Real) -> bool:
        return bool(value.products) and all(
            factor > 0 and all(self._is(name) for name, _ in powers)
            for (powers, _), factor in value.products
        )

    def _is(self, name: Atom) -> bool:
        if isinstance(name, Opaque) and name.divisor is not None:
            return self(name.divisor)
        return name in self.atoms


def _sum(parts: Iterable[tuple[Product, Fraction]]) -> Real:
    factors: defaultdict[Product, Fraction] = defaultdict(Fraction)
    for which, factor in parts:
        factors[which] += factor
    return Real(frozenset((p, f) for p, f in factors.items() if f))


def _times(p: Product, q: Product) -> Product:
    powers: defaultdict[Atom, int] = defaultdict(int)
    for name, power in (*p[0], *q[0]):
        powers[name] += power
    exponent: defaultdict[Powers, Fraction] = defaultdict(Fraction)
    for which, factor in (*p[1], *q[1]):
        exponent[which] += factor
    kept = frozenset((which, factor) for which, factor in exponent.items() if factor)
    return frozenset(powers.items()), kept


def _divided(value: Real) -> tuple[Opaque, Real] | None:
    """An atom that is a reciprocal, and of what."""
    for (powers, _), _ in value.products:
        for name, _ in powers:
            if isinstance(name, Opaque) and name.divisor is not None:
                return name, name.divisor
    return None


def _power(powers: Powers, name: Atom) -> int:
    return next((power for other, power in powers if other == name), 0)


def _without(powers: Powers, name: Atom) -> Powers:
    return frozenset(p for p in powers if p[0] != name)


def _raised(value: Real, power: int) -> Real:
    return reduce(Real.__mul__, [value] * power, number(1))
