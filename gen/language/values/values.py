"""Typed values of a spec's expressions: what they are made of, and what is refused of them.

Input: numbers and IR expressions. Output: IR expressions of the element type asked for. Weak values
stay weak until they are converted.
"""

import math
from dataclasses import dataclass
from typing import final

from ...errors import Span, SpecError
from ...ir import algebra
from ...ir import nodes as ir
from ...ir.types import INDEX, DType, Kind
from .types import AnyType, Weak, concrete, is_complex


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """A weak expression has the IR type that `concrete` gives for it until it is converted; but a
    number that only a uint64 holds is one.
    """

    expr: ir.Expr
    type: AnyType


def convert(value: Typed, dtype: DType, span: Span) -> ir.Expr:
    """The value in an element type: numbers become constants of it, the rest a Cast."""
    expr = value.expr
    if isinstance(value.type, Weak) and isinstance(expr, ir.Const):
        return constant(expr.value, dtype, span)
    if isinstance(expr, ir.Cast) and dtype.only_stores and algebra.dtype_of(expr.operand) is dtype:
        return expr.operand  # as it was read
    if dtype.only_stores and not algebra.dtype_of(expr).is_float:
        expr = ir.Cast(dtype.computed, expr, span=span)
    return expr if algebra.dtype_of(expr) is dtype else ir.Cast(dtype, expr, span=span)


def constant(value: bool | int | float | complex, dtype: DType, span: Span) -> ir.Const:
    match dtype.kind:
        case Kind.BOOL:
            return ir.Const(bool(value), dtype, span=span)
        case Kind.FLOAT:
            assert not isinstance(value, complex)
            return ir.Const(float(value), dtype, span=span)
        case Kind.COMPLEX:
            return ir.Const(complex(value), dtype, span=span)
        case Kind.SIGNED | Kind.UNSIGNED:
            return ir.Const(_integer(value, dtype, span), dtype, span=span)


def _integer(value: bool | int | float | complex, dtype: DType, span: Span) -> int:
    if isinstance(value, complex) or not math.isfinite(value):
        raise SpecError(f"{value} is not an integer", span)
    number = int(value)
    signed = dtype.kind is Kind.SIGNED
    lowest = -(2 ** (dtype.bits - 1)) if signed else 0
    if not lowest <= number < 2 ** (dtype.bits - signed):
        shown = f"{value:g}" if abs(number) >= 2**64 else number
        raise SpecError(f"{shown} does not fit in {dtype.value}", span)
    return number


def literal(value: bool | int | float | complex, span: Span) -> Typed:
    if isinstance(value, bool):
        return Typed(ir.Const(value, DType.BOOL, span=span), DType.BOOL)
    if isinstance(value, int):
        dtype = DType.UINT64 if value >= 2**63 else INDEX
        return Typed(constant(value, dtype, span), Weak.INT)
    if isinstance(value, complex):
        return Typed(ir.Const(value, DType.COMPLEX128, span=span), Weak.COMPLEX)
    return Typed(ir.Const(value, DType.FLOAT64, span=span), Weak.FLOAT)


def is_integer(type_: AnyType) -> bool:
    return type_ is Weak.INT or (isinstance(type_, DType) and type_.is_integer)


def type_name(type_: AnyType) -> str:
    return concrete(type_).value


PARTS = "take real(...), imag(...) or abs(...) first"


def check_ordered(what: str, type_: AnyType, span: Span) -> None:
    """Refuses what compares complex numbers by size."""
    if is_complex(type_):
        raise SpecError(
            f"'{what}' needs numbers that have an order, not {type_name(type_)}",
            span,
            "compare abs(...) or real(...)",
        )


def needs(condition: bool, op: str, what: str, type_: AnyType, span: Span) -> None:
    if not condition:
        raise SpecError(f"'{op}' needs {what}, not {type_name(type_)}", span)


def real_value(constant: ir.Const) -> float:
    assert not isinstance(constant.value, complex)
    return float(constant.value)
