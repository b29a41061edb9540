"""Integers compared as the numbers that they are, and made positions, whatever their types.

Input: typed operands. Output: operands of one type that compare as those do. An INDEX holds no
uint64 of 2**63 and more, so a uint64 meets an INDEX in one of two ways, both made of operators that
the IR has: as a position it is at most the largest INDEX, which no size reaches; in comparisons
both count in uint64.
"""

from ..errors import Span
from ..ir import algebra
from ..ir import nodes as ir
from ..ir.nodes import BinaryOp
from ..ir.types import INDEX, DType, Kind
from .values.types import Weak
from .values.values import Typed, convert

_MOST = 2**63 - 1


def position(value: Typed, span: Span) -> ir.Expr:
    """An integer as INDEX; of a uint64 that is beyond it the largest."""
    if value.type is not DType.UINT64:
        return convert(value, INDEX, span)
    return ir.Cast(INDEX, _unsigned(BinaryOp.MIN, value.expr, _MOST), span=span)


def alike(op: BinaryOp, a: Typed, b: Typed, span: Span) -> tuple[Typed, Typed]:
    """The operands of a comparison, minimum, maximum, quotient or remainder, in one type where
    theirs may not hold both: a dim or index is not wrapped to the type of what an array holds, and
    a uint64 is compared exactly with all that may be below 0.
    """
    match op:
        case BinaryOp.FLOORDIV | BinaryOp.MOD if _has_unsigned(a, b):
            return a, b
        case BinaryOp.MAX if _has_index(a, b) and _has_unsigned(a, b):
            return _not_negative(a, span), _not_negative(b, span)
        case _ if op in ir.COMPARISONS and _has_unsigned(a, b) and any(map(_is_signed, (a, b))):
            return _counted(a, span), _counted(b, span)
        case _ if _has_index(a, b) and any(_is_data(v) for v in (a, b)):
            return _position(a, span), _position(b, span)
        case _:
            return a, b


def _is_index(value: Typed) -> bool:
    return value.type is Weak.INT and not isinstance(value.expr, ir.Const)


def _is_data(value: Typed) -> bool:
    return isinstance(value.type, DType) and value.type.is_integer


def _is_signed(value: Typed) -> bool:
    """Of a type that has numbers below 0; a number by itself fits the other's, or is refused."""
    return _is_index(value) or (isinstance(value.type, DType) and value.type.kind is Kind.SIGNED)


def _has_index(a: Typed, b: Typed) -> bool:
    return _is_index(a) or _is_index(b)


def _has_unsigned(a: Typed, b: Typed) -> bool:
    return DType.UINT64 in (a.type, b.type)


def _position(value: Typed, span: Span) -> Typed:
    return Typed(position(value, span), INDEX)


def _not_negative(value: Typed, span: Span) -> Typed:
    """At least 0, as a uint64."""
    if value.type is not DType.UINT64:
        least = algebra.maximum(convert(value, INDEX, span), 0)
        value = Typed(least, INDEX)
    return Typed(convert(value, DType.UINT64, span), DType.UINT64)


def _counted(value: Typed, span: Span) -> Typed:
    """As a uint64 in the order of the numbers: all that is below 0 is 0, every INDEX from 0 on one
    more than it is, and all beyond them 2**63 + 1.
    """
    if value.type is DType.UINT64:
        held = _unsigned(BinaryOp.MIN, value.expr, _MOST + 1)
    else:
        least = algebra.maximum(convert(value, INDEX, span), -1)
        held = ir.Cast(DType.UINT64, least, span=span)
    return Typed(_unsigned(BinaryOp.ADD, held, 1), DType.UINT64)


def _unsigned(op: BinaryOp, value: ir.Expr, number: int) -> ir.Expr:
    return ir.Binary(op, value, ir.Const(number, DType.UINT64), span=value.span)
