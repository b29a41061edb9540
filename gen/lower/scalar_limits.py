"""How large a caller's int64 scalars may be so that index arithmetic stays in 64 bits.

Input: the lowered trees of a kernel, with the conditions of their variants. Output: for each scalar
that takes part in index arithmetic the largest magnitude that is safe. Proofs know no bounds, but
code counts in int64: `x[i + 2 * s]` under `i + 2 * s < n` is proved, and reads anywhere once 2 * s
wraps. What a call gives is held against the limits before anything runs.

Method: interval arithmetic. Emitted code may add the terms of a sum, and of the two sides of a
comparison or of a loop's bounds, in another order than the tree, so what must fit is the sum of
the terms' magnitudes, in any order then. What is read from memory is left out: the code that is
made for it allows for every value (`emit.expr`, `narrow`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from ..ir.algebra import conjuncts, dtype_of
from ..ir.nodes import (
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
    Kernel,
    Load,
    Loop,
    Node,
    Select,
    Target,
    Unary,
    UnaryOp,
    Var,
)
from ..ir.types import INDEX, Kind
from ..ir.walk import children, walk

SIZES = (2**31, 2**47)
"""The largest size of a call, for which there is a limit each: nearly all calls; and all that there
can be, since 2**47 elements are more than any memory holds. A product such as `i * stride` leaves
a stride that much less room. What broadcasts without memory may be larger: calls refuse it."""

Limits = Mapping[str, tuple[int, ...]]
"""By scalar: the largest magnitude for each of SIZES, a power of two or 0."""

_LARGEST = 2**62
_MOST = 2**63 - 2**48  # what lowering and emission add of their own is constants: lanes, tiles

Variants = Sequence[tuple[Kernel, Expr | None]]


def scalar_limits(variants: Variants) -> Limits:
    """The limits with which no index expression of the variants, lowered and each with its
    condition, leaves 64 bits.
    """
    if not any(s.dtype is INDEX for kernel, _ in variants for s in kernel.scalars):
        return {}
    used = sorted(frozenset().union(*(r.scalars for r in _ranges(variants, 1, 1))))
    limits = tuple(_limit(variants, size) for size in SIZES)
    return {name: limits for name in used}


def smallest(all_limits: Iterable[Limits]) -> Limits:
    """What is within all of the limits."""
    found: dict[str, tuple[int, ...]] = {}
    for limits in all_limits:
        for name, values in limits.items():
            found[name] = tuple(map(min, found.get(name, values), values))
    return found


def check(
    kernel: str, limits: Limits, scalars: Mapping[str, complex], sizes: Sequence[int]
) -> None:
    """Raises ValueError where a call's sizes or scalars are outside of the limits."""
    largest = max(sizes, default=0)
    if limits and largest > SIZES[-1]:
        raise ValueError(
            f"{kernel}: a size of {largest} is more than its indices allow: {SIZES[-1]}"
        )
    for name, by_size in limits.items():
        limit, value = by_size[bisect_left(SIZES, largest)], int(scalars[name].real)
        if not -limit <= value <= limit:
            raise ValueError(
                f"{kernel}: scalar {name} must be from {-limit} to {limit}, or indices would leave"
                f" 64 bits, got {value}"
            )


def _limit(variants: Variants, size: int) -> int:
    def leaves(exponent: int) -> bool:
        return any(r.peak > _MOST for r in _ranges(variants, size, 2**exponent))

    exponents = range(_LARGEST.bit_length())
    first = bisect_left(exponents, True, key=leaves)
    return 2 ** (first - 1) if first else 0


# ---------------------------------------------------------------- ranges


@final
@dataclass(frozen=True, slots=True)
class _Range:
    """The values of an expression, from `least` to `most`. magnitude: those of its terms, added up;
    peak: the largest magnitude of it and its parts; scalars: those that take part. Where none
    does, these are sizes, which calls check, and there is no peak.
    """

    least: int
    most: int
    magnitude: int
    peak: int
    scalars: frozenset[str]


def _range(least: int, most: int, parts: Sequence[_Range] = (), magnitude: int = 0) -> _Range:
    """The range of what is made of the parts."""
    scalars = frozenset[str]().union(*(part.scalars for part in parts))
    magnitude = max(magnitude, abs(least), abs(most))
    if not scalars:
        least, most = max(least, -_LARGEST), min(most, _LARGEST)
        return _Range(least, most, min(magnitude, _LARGEST), 0, scalars)
    peak = max(magnitude, *(part.peak for part in parts))
    return _Range(least, most, magnitude, peak, scalars)


def _variable(least: int, most: int, bounds: Sequence[_Range]) -> _Range:
    """Of a variable between the bounds, which are looked at by themselves."""
    result = _range(least, most, bounds)
    return replace(result, peak=result.magnitude) if result.scalars else result


def _sum(least: int, most: int, a: _Range, b: _Range) -> _Range:
    """Of the sum or difference, which a minimum in one of both may be taken out of."""
    result = _range(least, most, (a, b), a.magnitude + b.magnitude)
    peak = max(a.magnitude + max(b.magnitude, b.peak), b.magnitude + max(a.magnitude, a.peak))
    return replace(result, peak=peak) if result.scalars else result


def _together(a: _Range, b: _Range) -> _Range:
    """Of both sides of a comparison, which may be subtracted."""
    return _sum(min(a.least, b.least), max(a.most, b.most), a, b)


_Known = Mapping[str, _Range]


def _ranges(variants: Variants, size: int, limit: int) -> Iterator[_Range]:
    """Of all index expressions, for sizes up to `size` and scalars up to `limit`."""
    for kernel, when in variants:
        known = {d: _range(0, size) for d in kernel.dims}
        known |= {p.name: _range(0, p.size - 1) for p in kernel.phases}
        scalars = [s.name for s in kernel.scalars if s.dtype is INDEX]
        known |= {s: _scalar(s, -limit, limit) for s in scalars}
        if when is not None:
            yield from _inside(when, known)
        known |= {s: _scalar(s, *_assumed(kernel, s, limit)) for s in scalars}
        yield from _below(kernel.body, known)


def _scalar(name: str, least: int, most: int) -> _Range:
    magnitude = max(abs(least), abs(most))
    return _Range(least, most, magnitude, magnitude, frozenset((name,)))


def _assumed(kernel: Kernel, scalar: str, limit: int) -> tuple[int, int]:
    """The scalar's values within the limit, as far as `s >= 0` and the like say."""
    least, most = -limit, limit
    for part in (p for assumption in kernel.assumptions for p in conjuncts(assumption)):
        match part:
            case Binary(BinaryOp.GE, Var(name), Const(int(number))) if name == scalar:
                least = min(max(least, number), limit)
            case Binary(BinaryOp.LE, Var(name), Const(int(number))) if name == scalar:
                most = max(min(most, number), -limit)
    return least, max(least, most)


def _below(stmt: Node, known: _Known) -> Iterator[_Range]:
    """Of the index expressions of a statement."""
    match stmt:
        case Loop(var, lower, upper, _, body):
            first, end = _of(lower, known), _of(upper, known)
            yield _together(first, end)
            yield from (*_inside(lower, known), *_inside(upper, known))
            inside = _variable(first.least, max(first.least, end.most - 1), (first, end))
            yield from _below(body, {**known, var: inside})
        case Delinearize(names, extents, value, body):
            yield _of(value, known)
            ends = [_of(extent, known) for extent in extents]
            yield from ends
            parts = [_variable(0, max(0, end.most - 1), (end,)) for end in ends]
            yield from _below(body, {**known, **dict(zip(names, parts, strict=True))})
        case Block():
            values = [_of(binding, known) for binding in stmt.bindings]
            yield from values
            yield from _inside(stmt.predicate, known)
            iters = dict(zip((v.name for v in stmt.iters), values, strict=True))
            yield from _inside(stmt.body, {**known, **iters})
        case If(condition, body):
            yield from _inside(condition, known)
            yield from _below(body, known)
        case Allocate(buffers, body):
            yield from (_of(extent, known) for buffer in buffers for extent in buffer.shape)
            yield from _below(body, known)
        case _:
            for child in children(stmt):
                yield from _below(child, known)


def _inside(node: Node, known: _Known) -> Iterator[_Range]:
    """Of what expressions are indexed by, and what sizes and indices are compared with. A scalar
    that is compared with data alone is data.
    """
    for n in walk(node):
        match n:
            case Load(_, indices) | Target(_, indices):
                yield from (_of(i, known) for i in indices)
            case Binary(op, lhs, rhs) if op in COMPARISONS and dtype_of(lhs) is INDEX:
                if any(_counts(side, known) for side in (lhs, rhs)):
                    yield _together(_of(lhs, known), _of(rhs, known))


def _counts(expr: Expr, known: _Known) -> bool:
    """Whether a size or an index takes part, outside of what is read from memory."""
    match expr:
        case Load():
            return False
        case Var(name):
            return name in known and known[name].scalars != {name}
        case _:
            return any(_counts(child, known) for child in children(expr) if isinstance(child, Expr))


def _of(expr: Expr, known: _Known) -> _Range:
    """The range of an index expression. What is read from memory counts as 0."""
    match expr:
        case Const(int(number)):
            return _range(number, number)
        case Var(name) if name in known:
            return known[name]
        case Cast(_, operand) if (dtype := dtype_of(operand)).bits <= 32 and not dtype.is_float:
            signed = dtype.kind is Kind.SIGNED
            return _range(-(2 ** (dtype.bits - 1)) * signed, 2 ** (dtype.bits - signed) - 1)
        case Cast(_, operand):
            return _of(operand, known)
        case Unary(UnaryOp.NEG, operand):
            a = _of(operand, known)
            return _range(-a.most, -a.least, (a,), a.magnitude)
        case Select(_, then, otherwise):
            a, b = _of(then, known), _of(otherwise, known)
            larger = max(a.magnitude, b.magnitude)
            return _range(min(a.least, b.least), max(a.most, b.most), (a, b), larger)
        case Binary(op, lhs, rhs):
            return _of_binary(op, _of(lhs, known), _of(rhs, known))
        case _:
            return _range(0, 0)


def _of_binary(op: BinaryOp, a: _Range, b: _Range) -> _Range:
    larger = max(a.magnitude, b.magnitude)
    match op:
        case BinaryOp.ADD:
            return _sum(a.least + b.least, a.most + b.most, a, b)
        case BinaryOp.SUB:
            return _sum(a.least - b.most, a.most - b.least, a, b)
        case BinaryOp.MUL:
            products = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
            return _range(min(products), max(products), (a, b), a.magnitude * b.magnitude)
        case BinaryOp.FLOORDIV if b.least == b.most > 0:
            return _range(a.least // b.least, a.most // b.least, (a, b))
        case BinaryOp.FLOORDIV:  # where it rounds up, the divisor is added first
            return _range(-larger, larger, (_together(a, b),))
        case BinaryOp.MOD:
            within = max(0, -b.least, b.most)
            return _range(-within if b.least < 0 else 0, within, (_together(a, b),))
        case BinaryOp.MIN:
            return _range(min(a.least, b.least), min(a.most, b.most), (a, b))
        case BinaryOp.MAX:
            return _range(max(a.least, b.least), max(a.most, b.most), (a, b))
        case BinaryOp.EQ | BinaryOp.NE | BinaryOp.LT | BinaryOp.LE | BinaryOp.GT | BinaryOp.GE:
            return _range(0, 1, (_together(a, b),))
        case BinaryOp.AND | BinaryOp.OR:
            return _range(0, 1, (a, b))
        case _:  # bits, of which no index of use is made
            return _range(-(2**63), 2**63, (a, b))
