"""Typed IR from a spec's expressions: promotion made explicit as Casts and typed constants.

Input: a syntax tree without reductions and the element type of every array and scalar. Output: an
IR expression and its type. Invariant: both operands of every Binary have one type; INDEX
arithmetic is simplified, float arithmetic is kept as written.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never, final

from ..errors import Span, SpecError
from ..ir import nodes as ir
from ..ir import walk
from ..ir.nodes import BinaryOp, Function, UnaryOp
from ..ir.types import INDEX, DType, Kind
from . import syntax
from .language import CONSTANTS
from .types import AnyType, Weak, as_float, concrete, promote

MAX_NODES = 4096

_LOGICAL = frozenset({BinaryOp.AND, BinaryOp.OR})
_BITWISE = frozenset({BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR})
_DIVISIONS = frozenset({BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.MOD})
_OF_INTEGERS = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.SHL, BinaryOp.SHR})


@final
@dataclass(frozen=True, slots=True)
class Types:
    """Element types: of arrays, of scalar parameters, and what the names of types stand for."""

    arrays: Mapping[str, DType]
    scalars: Mapping[str, DType]
    casts: Mapping[str, DType]


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """A weak expression has the IR type that `concrete` gives for it until it is converted."""

    expr: ir.Expr
    type: AnyType


def typed(expr: syntax.Expr, types: Types) -> Typed:
    """The expression in IR. Raises SpecError where an operator does not fit its operands."""
    span = expr.span
    match expr:
        case syntax.Literal(value):
            return _literal(value, span)
        case syntax.Name(name):
            return _name(name, types, span)
        case syntax.Element(array, indices):
            at = tuple(as_index(index, types) for index in indices)
            dtype = types.arrays[array]
            return Typed(ir.Load(array, at, dtype, span=span), dtype)
        case syntax.Unary(op, operand):
            return _unary(op, typed(operand, types), span)
        case syntax.Binary(op, lhs, rhs):
            return _binary(op, typed(lhs, types), typed(rhs, types), span)
        case syntax.Power(base, exponent):
            return _power(typed(base, types), exponent, span)
        case syntax.Conditional(condition, then, otherwise):
            return _conditional(condition, typed(then, types), typed(otherwise, types), types, span)
        case syntax.Apply(name, args):
            values = tuple(typed(arg, types) for arg in args)
            if name in types.casts:
                return _cast(values[0], types.casts[name], span)
            return _call(Function(name), values, span)
        case syntax.Fold():
            raise SpecError("a reduction cannot stand here", span)
        case _:
            assert_never(expr)


def as_index(expr: syntax.Expr, types: Types) -> ir.Expr:
    """An array index: an integer, as INDEX."""
    value = typed(expr, types)
    if not _is_integer(value.type):
        raise SpecError(f"an index must be an integer, not {_type_name(value.type)}", expr.span)
    return convert(value, INDEX, expr.span)


def convert(value: Typed, dtype: DType, span: Span) -> ir.Expr:
    """The value in an element type: numbers become constants of it, the rest a Cast."""
    expr = value.expr
    if isinstance(value.type, Weak) and isinstance(expr, ir.Const):
        return _constant(expr.value, dtype, span)
    return expr if walk.dtype_of(expr) is dtype else ir.Cast(dtype, expr, span=span)


def _constant(value: bool | int | float | complex, dtype: DType, span: Span) -> ir.Const:
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
        raise SpecError(f"{number} does not fit in {dtype.value}", span)
    return number


# ---------------------------------------------------------------- leaves


def _literal(value: bool | int | float, span: Span) -> Typed:
    if isinstance(value, bool):
        return Typed(ir.Const(value, DType.BOOL, span=span), DType.BOOL)
    if isinstance(value, int):
        return Typed(_constant(value, INDEX, span), Weak.INT)
    return Typed(ir.Const(value, DType.FLOAT64, span=span), Weak.FLOAT)


def _name(name: str, types: Types, span: Span) -> Typed:
    if name in CONSTANTS:
        return _literal(CONSTANTS[name], span)
    if name in types.arrays:
        dtype = types.arrays[name]
        return Typed(ir.Load(name, (), dtype, span=span), dtype)
    if name in types.scalars:
        dtype = types.scalars[name]
        return Typed(ir.Var(name, dtype, span=span), dtype)
    return Typed(ir.Var(name, span=span), Weak.INT)


# ---------------------------------------------------------------- operators


def _is_integer(type_: AnyType) -> bool:
    return type_ is Weak.INT or (isinstance(type_, DType) and type_.is_integer)


def _type_name(type_: AnyType) -> str:
    return concrete(type_).value


def _needs(condition: bool, op: str, what: str, type_: AnyType, span: Span) -> None:
    if not condition:
        raise SpecError(f"'{op}' needs {what}, not {_type_name(type_)}", span)


def _unary(op: UnaryOp, value: Typed, span: Span) -> Typed:
    is_bool = value.type is DType.BOOL
    match op:
        case UnaryOp.NOT:
            _needs(is_bool, "not", "a bool", value.type, span)
        case UnaryOp.INVERT:
            _needs(is_bool or _is_integer(value.type), "~", "an integer", value.type, span)
        case UnaryOp.NEG:
            _needs(not is_bool, "-", "a number", value.type, span)
            if value.type is Weak.INT:
                return _weak(BinaryOp.SUB, _literal(0, span), value, span)
            if value.type is Weak.FLOAT:
                return _weak(BinaryOp.MUL, _literal(-1.0, span), value, span)
        case _:
            assert_never(op)
    return Typed(ir.Unary(op, value.expr, span=span), concrete(value.type))


def _binary(op: BinaryOp, lhs: Typed, rhs: Typed, span: Span) -> Typed:
    common = promote(lhs.type, rhs.type)
    is_bool = common is DType.BOOL
    if op in _LOGICAL:
        for side in (lhs, rhs):
            _needs(side.type is DType.BOOL, op.value, "bools", side.type, span)
        return Typed(walk.simplify(ir.Binary(op, lhs.expr, rhs.expr, span=span)), DType.BOOL)
    if op in _OF_INTEGERS:
        _needs(_is_integer(common), op.value, "integers", common, span)
    elif op in _BITWISE:
        _needs(is_bool or _is_integer(common), op.value, "integers or bools", common, span)
    elif op not in ir.COMPARISONS:
        _needs(not is_bool, op.value, "numbers", common, span)
    if op is BinaryOp.DIV:
        common = as_float(common)
    if isinstance(common, Weak) and op not in ir.COMPARISONS:
        return _weak(op, lhs, rhs, span)
    dtype = concrete(common)
    new = ir.Binary(op, convert(lhs, dtype, span), convert(rhs, dtype, span), span=span)
    if isinstance(common, Weak):
        return Typed(walk.simplify(new), DType.BOOL)
    return Typed(new, DType.BOOL if op in ir.COMPARISONS else common)


_FOLD: dict[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: lambda a, b: a / b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


def _weak(op: BinaryOp, lhs: Typed, rhs: Typed, span: Span) -> Typed:
    """Arithmetic on numbers, dims and indices, as Python does it; constants are folded."""
    type_ = Weak.FLOAT if op is BinaryOp.DIV or Weak.FLOAT in (lhs.type, rhs.type) else Weak.INT
    dtype = concrete(type_)
    a, b = convert(lhs, dtype, span), convert(rhs, dtype, span)
    if op in _DIVISIONS and isinstance(b, ir.Const) and not b.value:
        raise SpecError("division by zero", span)
    if type_ is Weak.INT:
        result = walk.simplify(ir.Binary(op, a, b, span=span))
        if isinstance(result, ir.Const):
            result = _constant(result.value, INDEX, span)
        return Typed(result, type_)
    if isinstance(a, ir.Const) and isinstance(b, ir.Const) and op in _FOLD:
        value = _FOLD[op](_real(a), _real(b))
        return Typed(ir.Const(value, dtype, span=span), type_)
    return Typed(ir.Binary(op, a, b, span=span), type_)


def _real(constant: ir.Const) -> float:
    assert not isinstance(constant.value, complex)
    return float(constant.value)


def _power(base: Typed, exponent: int, span: Span) -> Typed:
    if exponent * sum(1 for _ in walk.walk(base.expr)) > MAX_NODES:
        raise SpecError(
            "the power expands to too large a product",
            span,
            "define the base as an array of its own",
        )
    result = base
    for _ in range(exponent - 1):
        result = _binary(BinaryOp.MUL, result, base, span)
    return result


def _conditional(
    condition: syntax.Expr, then: Typed, otherwise: Typed, types: Types, span: Span
) -> Typed:
    test = typed(condition, types)
    if test.type is not DType.BOOL:
        raise SpecError(f"a condition must be a bool, not {_type_name(test.type)}", condition.span)
    common = promote(then.type, otherwise.type)
    dtype = concrete(common)
    a, b = convert(then, dtype, span), convert(otherwise, dtype, span)
    return Typed(ir.Select(test.expr, a, b, span=span), common)


# ---------------------------------------------------------------- functions


def _cast(value: Typed, dtype: DType, span: Span) -> Typed:
    return Typed(convert(value, dtype, span), dtype)


_MATH: dict[Function, Callable[[float], float]] = {
    Function.SQRT: math.sqrt,
    Function.EXP: math.exp,
    Function.LOG: math.log,
    Function.TANH: math.tanh,
    Function.ERF: math.erf,
    Function.ABS: abs,
}


def _call(function: Function, values: tuple[Typed, ...], span: Span) -> Typed:
    common = values[0].type
    for value in values[1:]:
        common = promote(common, value.type)
    if _is_integer(common) and function in (Function.FLOOR, Function.CEIL):
        return values[0]
    if _is_integer(common) and function is Function.ABS:
        return _binary(BinaryOp.MAX, values[0], _unary(UnaryOp.NEG, values[0], span), span)
    _needs(common is not DType.BOOL, function.value, "a number", common, span)
    type_ = as_float(common)
    dtype = concrete(type_)
    args = tuple(convert(value, dtype, span) for value in values)
    if function is Function.ISNAN:
        return Typed(ir.Call(function, args, span=span), DType.BOOL)
    folded = _folded(function, args, span) if isinstance(type_, Weak) else None
    return Typed(folded or ir.Call(function, args, span=span), type_)


def _folded(function: Function, args: tuple[ir.Expr, ...], span: Span) -> ir.Const | None:
    """A function of a number, where it has a finite value."""
    if function not in _MATH or not isinstance(args[0], ir.Const):
        return None
    try:
        return ir.Const(_MATH[function](_real(args[0])), DType.FLOAT64, span=span)
    except (ValueError, OverflowError):
        return None
