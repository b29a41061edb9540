"""Whether 32 bits are enough for the indices of a call.

Input: a finished tree. Output: C of the most that its index arithmetic comes to, in the sizes and
scalars of a call; that is proved by going through all of it. What it comes to is a polynomial with
coefficients of at least 0 in the magnitudes of sizes and scalars: of a sum the sum, in whatever
order code adds its terms, of a product the product. So tiles that reach over an array's end count
as what they reach. Offsets in arguments are told by their strides besides: an element that is
accessed lies inside its array, which the proof has seen to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from ...ir.algebra import dtype_of
from ...ir.nodes import (
    COMPARISONS,
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Cast,
    Const,
    Delinearize,
    Expr,
    If,
    Init,
    Kernel,
    Load,
    Loop,
    Node,
    Select,
    Store,
    Unary,
    UnaryOp,
    Update,
    Var,
)
from ...ir.types import INDEX
from ...ir.walk import children, loads, targets, walk

Monomial = tuple[str, ...]
"""Sizes and scalars multiplied, in alphabetical order."""


@final
@dataclass(frozen=True, slots=True)
class IndexReach:
    """A polynomial. terms: the coefficient of each monomial, none of them below 0."""

    terms: Mapping[Monomial, Fraction] = field(default_factory=dict)

    def __add__(self, other: "IndexReach") -> "IndexReach":
        return IndexReach({m: self.at(m) + other.at(m) for m in {**self.terms, **other.terms}})

    def __mul__(self, other: "IndexReach") -> "IndexReach":
        found: dict[Monomial, Fraction] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted((*m, *n)))
                found[key] = found.get(key, Fraction(0)) + c * d
        return IndexReach(found)

    def __or__(self, other: "IndexReach") -> "IndexReach":
        """One that is at least both."""
        return IndexReach({m: max(self.at(m), other.at(m)) for m in {**self.terms, **other.terms}})

    def at(self, monomial: Monomial) -> Fraction:
        return self.terms.get(monomial, Fraction(0))


_Known = Mapping[str, IndexReach]


def _number(value: int) -> IndexReach:
    return IndexReach({(): Fraction(abs(value))} if value else {})


_ONE = _number(1)


def reach(kernel: Kernel) -> IndexReach | None:
    """The most that index arithmetic comes to; None where data takes part in it."""
    scalars = [s.name for s in kernel.scalars if s.dtype is INDEX]
    known = {name: IndexReach({(name,): Fraction(1)}) for name in (*kernel.dims, *scalars)}
    known |= {p.name: _number(p.size) for p in kernel.phases}
    total = _ONE
    for name in scalars:
        total |= known[name]
    for found in _below(kernel.body, known):
        if found is None:
            return None
        total |= found
    return total


def _below(stmt: Node, known: _Known) -> Iterator[IndexReach | None]:
    """Of all index expressions of a statement."""
    match stmt:
        case Loop(var, lower, upper, _, body):
            ends = _either(_of(lower, known), _of(upper, known))
            yield from (*_parts(lower, known), *_parts(upper, known))
            if ends is not None:
                yield from _below(body, {**known, var: ends})
        case Delinearize(names, extents, value, body):
            parts = [_of(extent, known) for extent in extents]
            yield from (*_parts(value, known), *parts, _product(parts))
            inner = {n: p for n, p in zip(names, parts, strict=True) if p is not None}
            if len(inner) == len(names):
                yield from _below(body, {**known, **inner})
        case Block(predicate=predicate, body=body):
            yield from _inside(predicate, known)
            yield from _inside(body, known)
        case If(condition, body):
            yield from _inside(condition, known)
            yield from _below(body, known)
        case Allocate(buffers, body):
            for b in buffers:
                shape = [_of(extent, known) for extent in b.shape]
                yield from shape
                yield _product(shape)  # of which no offset is more
            yield from _below(body, known)
        case _:
            for child in children(stmt):
                yield from _below(child, known)


def _inside(node: Node, known: _Known) -> Iterator[IndexReach | None]:
    """Of the index expressions that a body or a condition is made of, each with all its parts."""
    for n in walk(node):
        if isinstance(n, Load):
            yield from (part for i in n.indices for part in _parts(i, known))
        elif not isinstance(n, Binary | Unary | Select) or loads(n):
            continue  # what is computed of data is computed in its own type
        elif dtype_of(n) is INDEX:
            yield from _parts(n, known)
        elif isinstance(n, Binary) and n.op in COMPARISONS and dtype_of(n.lhs) is INDEX:
            yield from (*_parts(n.lhs, known), *_parts(n.rhs, known))
    for target in targets(node) if isinstance(node, Store | Init | Update) else ():
        yield from (part for i in target.indices for part in _parts(i, known))


def _parts(expr: Expr, known: _Known) -> Iterator[IndexReach | None]:
    """Of the expression and of what it divides: its other parts come to no more than it does."""
    yield _of(expr, known)
    for n in walk(expr):
        if isinstance(n, Binary) and n.op in (BinaryOp.FLOORDIV, BinaryOp.MOD):
            yield _sum(_of(n.lhs, known), _of(n.rhs, known))


def _sum(a: IndexReach | None, b: IndexReach | None) -> IndexReach | None:
    return None if a is None or b is None else a + b


def _either(a: IndexReach | None, b: IndexReach | None) -> IndexReach | None:
    return None if a is None or b is None else a | b


def _product(parts: list[IndexReach | None]) -> IndexReach | None:
    total = _ONE
    for part in parts:
        if part is None:
            return None
        total = total * (part | _ONE)
    return total


def _of(expr: Expr, known: _Known) -> IndexReach | None:
    """Of an index expression, for any order in which its terms are added; None where something is
    not told.
    """
    if loads(expr):
        return None
    match expr:
        case Const(value):
            return _number(int(value.real))
        case Var(name):
            return known.get(name)
        case Unary(UnaryOp.NEG, operand):
            return _of(operand, known)
        case Select(_, then, otherwise):
            return _either(_of(then, known), _of(otherwise, known))
        case Cast(_, operand) if dtype_of(operand) is INDEX:
            return _of(operand, known)
        case Binary(BinaryOp.MUL, lhs, rhs):
            return _product([_of(lhs, known), _of(rhs, known)])
        case Binary(BinaryOp.FLOORDIV, lhs, Const(int(divisor))) if divisor > 0:
            part, whole = IndexReach({(): Fraction(1, int(divisor))}), _of(lhs, known)
            return None if whole is None else whole * part + _ONE
        case Binary(BinaryOp.MIN | BinaryOp.MAX, lhs, rhs):
            return _either(_of(lhs, known), _of(rhs, known))
        case Binary(BinaryOp.ADD | BinaryOp.SUB | BinaryOp.FLOORDIV | BinaryOp.MOD, lhs, rhs):
            return _sum(_of(lhs, known), _of(rhs, known))
        case _:
            return None
