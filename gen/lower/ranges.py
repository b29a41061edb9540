"""The values that index expressions take, for sizes and scalars within limits.

Input: an expression, and the ranges of its variables. Output: its range.

Method: interval arithmetic. Emitted code may add the terms of a sum, and of the two sides of a
comparison, of a minimum or of a loop's bounds, in another order than the tree, so a range has the
sum of the terms' magnitudes, in any order then. What is made of data is left out, since it wraps
(`ir.wrapping`); what it is compared with must stay below `FAR`, where `narrow` holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import dtype_of
from ..ir.types import INDEX, Kind
from ..ir.walk import loads
from ..ir.wrapping import wraps
from ..poly.rewrites.narrowed import FAR


@final
@dataclass(frozen=True, slots=True)
class Range:
    """The values of an expression, from `least` to `most`. magnitude: those of its terms, added up;
    peak: the largest magnitude of it and its parts; scalars: those that take part.
    """

    least: int
    most: int
    magnitude: int
    peak: int
    scalars: frozenset[str] = frozenset()


_NONE = frozenset[str]()
_DATA = Range(-FAR, FAR, FAR, 0)
"""What may be any number, and is held between these where it meets a size or an index."""


def range_between(
    least: int,
    most: int,
    parts: Sequence[Range] = (),
    magnitude: int = 0,
    peak: int | None = None,
) -> Range:
    """The range of what is made of the parts. peak: where it is not the largest of theirs."""
    scalars = _NONE.union(*[part.scalars for part in parts])
    magnitude = max(magnitude, abs(least), abs(most))
    if peak is None:
        peak = max(magnitude, *[part.peak for part in parts], 0)
    return Range(least, most, magnitude, peak, scalars)


def of_variable(least: int, most: int, bounds: Sequence[Range]) -> Range:
    """Of a variable between the bounds, which are looked at by themselves."""
    result = range_between(least, most, bounds)
    return replace(result, peak=result.magnitude)


def _sum(least: int, most: int, a: Range, b: Range) -> Range:
    """Of the sum or difference, which a minimum in one of both may be taken out of."""
    peak = max(a.magnitude + max(b.magnitude, b.peak), b.magnitude + max(a.magnitude, a.peak))
    return range_between(least, most, (a, b), a.magnitude + b.magnitude, peak)


def together(a: Range, b: Range) -> Range:
    """Of both sides of a comparison, which may be subtracted."""
    return _sum(min(a.least, b.least), max(a.most, b.most), a, b)


Known = dict[ir.Expr, Range]
"""Of variables, and of the products of sizes that calls work out."""


def range_of(expr: ir.Expr, known: Known) -> Range:
    """The range of an index expression."""
    match expr:
        case ir.Var() | ir.Binary(ir.BinaryOp.MUL) if expr in known:
            return known[expr]
        case ir.Const(int(number)):
            return range_between(int(number), int(number), peak=0)  # as large as its type allows
        case ir.Cast(_, operand) if dtype_of(operand) is INDEX:
            return range_of(operand, known)
        case ir.Cast(_, operand) if (dtype := dtype_of(operand)).bits <= 32 and not dtype.is_float:
            signed = dtype.kind is Kind.SIGNED
            return range_between(-(2 ** (dtype.bits - 1)) * signed, 2 ** (dtype.bits - signed) - 1)
        case ir.Select(_, then, otherwise):
            a, b = range_of(then, known), range_of(otherwise, known)
            return _either(min(a.least, b.least), max(a.most, b.most), a, b, expr)
        case ir.Unary() | ir.Binary() if wraps(expr):
            return _DATA
        case ir.Unary(ir.UnaryOp.NEG, operand):
            a = range_of(operand, known)
            return range_between(-a.most, -a.least, (a,), a.magnitude)
        case ir.Unary(ir.UnaryOp.INVERT, operand) if not loads(expr):
            a = range_of(operand, known)
            return range_between(-a.most - 1, -a.least - 1, (a,), a.magnitude + 1)
        case ir.Binary(op, lhs, rhs):
            a, b = range_of(lhs, known), range_of(rhs, known)
            return _of_data(expr, a, b) if loads(expr) else _of_binary(op, a, b)
        case _:
            return _DATA


def _of_data(expr: ir.Binary, a: Range, b: Range) -> Range:
    """Where data takes part that does not wrap; its two sides are never subtracted."""
    match expr.op:
        case ir.BinaryOp.MIN:
            return _either(min(a.least, b.least), min(a.most, b.most), a, b, expr)
        case ir.BinaryOp.MAX:
            return _either(max(a.least, b.least), max(a.most, b.most), a, b, expr)
        case ir.BinaryOp.FLOORDIV:
            return _either(-a.magnitude, a.magnitude, a, b, expr)
        case ir.BinaryOp.MOD:
            return _either(-b.magnitude if b.least < 0 else 0, b.magnitude, a, b, expr)
        case ir.BinaryOp.BITAND if isinstance(expr.rhs, ir.Const) and b.least >= 0:
            return _either(0, b.most, a, b, expr)
        case ir.BinaryOp.ADD | ir.BinaryOp.SUB | ir.BinaryOp.MUL:
            return _of_binary(expr.op, a, b)
        case _:
            return _DATA


def _either(least: int, most: int, a: Range, b: Range, expr: ir.Expr) -> Range:
    """Of one of the two, or what is between them; of data no more than is known of all data."""
    if loads(expr):
        held = range_between(max(min(least, FAR), -FAR), min(max(most, -FAR), FAR), (a, b))
        return replace(held, peak=max(a.peak, b.peak))
    return range_between(least, most, (a, b), max(a.magnitude, b.magnitude))


def _of_binary(op: ir.BinaryOp, a: Range, b: Range) -> Range:
    match op:
        case ir.BinaryOp.ADD:
            return _sum(a.least + b.least, a.most + b.most, a, b)
        case ir.BinaryOp.SUB:
            return _sum(a.least - b.most, a.most - b.least, a, b)
        case ir.BinaryOp.MUL:
            products = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
            return range_between(min(products), max(products), (a, b), a.magnitude * b.magnitude)
        case ir.BinaryOp.FLOORDIV if (
            b.least == b.most > 0
        ):  # of `3*k - 1`, the divisor is added first
            return range_between(a.least // b.least, a.most // b.least, (together(a, b),))
        case ir.BinaryOp.FLOORDIV:  # where it rounds up, too
            return range_between(-a.magnitude, a.magnitude, (together(a, b),))
        case ir.BinaryOp.MOD:
            within = max(0, -b.least, b.most)
            return range_between(-within if b.least < 0 else 0, within, (together(a, b),))
        case ir.BinaryOp.MIN:
            return range_between(min(a.least, b.least), min(a.most, b.most), (together(a, b),))
        case ir.BinaryOp.MAX:
            return range_between(max(a.least, b.least), max(a.most, b.most), (together(a, b),))
        case ir.BinaryOp.SHL:
            by = 2 ** min(max(b.most, 0), 64)
            return range_between(a.least * by, a.most * by, (a, b), a.magnitude * by)
        case ir.BinaryOp.SHR:
            return range_between(-a.magnitude, a.magnitude, (a, b))
        case ir.BinaryOp.BITAND if min(a.least, b.least) >= 0:
            return range_between(0, min(a.most, b.most), (a, b))
        case _:  # other bits are no more than the longer operand's
            within = 2 ** max(a.magnitude, b.magnitude).bit_length()
            return range_between(-within, within, (a, b))
