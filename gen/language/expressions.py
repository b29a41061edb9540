"""Typed IR from a spec's expressions: promotion made explicit as Casts and typed constants.

Input: a syntax tree without reductions and the element type of every array and scalar. Output: an
IR expression and its type. Invariant: both operands of every Binary have one type; INDEX
arithmetic is simplified, float arithmetic is kept as written.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never, final

from ..errors import Span, SpecError
from ..ir import algebra, walk
from ..ir import nodes as ir
from ..ir.nodes import BinaryOp, Function, UnaryOp
from ..ir.types import INDEX, DType, Kind
from .exact import alike, position
from .syntax import nodes as syntax
from .syntax.grammar import CONSTANTS, MAX_POWER
from .values.functions import OF_COMPLEX, complex_number, folded, part
from .values.types import AnyType, Weak, as_float, concrete, holds, is_complex, promote, real_of
from .values.values import (
    PARTS,
    Typed,
    check_ordered,
    constant,
    convert,
    is_integer,
    literal,
    needs,
    type_name,
)

MAX_NODES = 4096

_LOGICAL = frozenset({BinaryOp.AND, BinaryOp.OR})
_BITWISE = frozenset({BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR})
_DIVISIONS = frozenset({BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.MOD})
_ORDERED = ir.COMPARISONS | {BinaryOp.MIN, BinaryOp.MAX}
_EQUALITIES = frozenset({BinaryOp.EQ, BinaryOp.NE})
_WIDENED = _ORDERED | {BinaryOp.FLOORDIV, BinaryOp.MOD}
_WHOLE = frozenset({Function.FLOOR, Function.CEIL, Function.ROUND, Function.TRUNC})
_OF_INTEGERS = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.SHL, BinaryOp.SHR})


@final
@dataclass(frozen=True, slots=True)
class Types:
    """Element types: of arrays, of scalar parameters, and what the names of types stand for; and
    the combiners and external functions that the spec has.
    """

    arrays: Mapping[str, DType]
    scalars: Mapping[str, DType]
    casts: Mapping[str, DType]
    combiners: Mapping[str, ir.DefinedCombiner] = field(default_factory=dict)
    externals: Mapping[str, ir.External] = field(default_factory=dict)


def typed(expr: syntax.Expr, types: Types) -> Typed:
    """The expression in IR. Raises SpecError where an operator does not fit its operands."""
    span = expr.span
    match expr:
        case syntax.Literal(value):
            return literal(value, span)
        case syntax.Name(name):
            return _name(name, types, span)
        case syntax.Element(array, indices):
            at = tuple(as_index(index, types) for index in indices)
            return _read(ir.Load(array, at, types.arrays[array], span=span))
        case syntax.AsIndex(value):
            return Typed(as_index(value, types), INDEX)
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
            if name in types.externals:
                return _external(types.externals[name], values, span)
            return _call(Function(name), values, span)
        case syntax.Fold():
            raise SpecError("a reduction cannot stand here", span)
        case syntax.Group():
            raise AssertionError("the values of a group are typed one by one")
        case _:
            assert_never(expr)


def as_index(expr: syntax.Expr, types: Types) -> ir.Expr:
    """An array index: an integer, as INDEX."""
    value = typed(expr, types)
    if not is_integer(value.type):
        raise SpecError(f"an index must be an integer, not {type_name(value.type)}", expr.span)
    return position(value, expr.span)


def _read(stored: ir.Expr) -> Typed:
    """What storage holds, in the type that is computed in."""
    dtype = algebra.dtype_of(stored)
    value = ir.Cast(dtype.computed, stored, span=stored.span) if dtype.only_stores else stored
    return Typed(value, dtype.computed)


# ---------------------------------------------------------------- leaves


def _name(name: str, types: Types, span: Span) -> Typed:
    if name in CONSTANTS:
        return literal(CONSTANTS[name], span)
    if name in types.arrays:
        return _read(ir.Load(name, (), types.arrays[name], span=span))
    if name in types.scalars:
        dtype = types.scalars[name]
        return Typed(ir.Var(name, dtype, span=span), dtype)
    return Typed(ir.Var(name, span=span), Weak.INT)


# ---------------------------------------------------------------- operators


def _unary(op: UnaryOp, value: Typed, span: Span) -> Typed:
    is_bool = value.type is DType.BOOL
    match op:
        case UnaryOp.NOT:
            needs(is_bool, "not", "a bool", value.type, span)
        case UnaryOp.INVERT:
            needs(is_bool or is_integer(value.type), "~", "an integer", value.type, span)
        case UnaryOp.NEG:
            needs(not is_bool, "-", "a number", value.type, span)
            if value.type is Weak.INT:
                return _weak(BinaryOp.SUB, literal(0, span), value, span)
            if value.type is Weak.FLOAT:
                return _weak(BinaryOp.MUL, literal(-1.0, span), value, span)
            if value.type is Weak.COMPLEX:
                return _weak(BinaryOp.SUB, literal(0, span), value, span)
        case _:
            assert_never(op)
    dtype = concrete(value.type)
    return Typed(ir.Unary(op, convert(value, dtype, span), span=span), dtype)


def _binary(op: BinaryOp, lhs: Typed, rhs: Typed, span: Span) -> Typed:
    if op in _WIDENED:
        lhs, rhs = alike(op, lhs, rhs, span)
    common = promote(lhs.type, rhs.type)
    is_bool = common is DType.BOOL
    if op in _LOGICAL:
        for side in (lhs, rhs):
            needs(side.type is DType.BOOL, op.value, "bools", side.type, span)
        return Typed(algebra.simplify(ir.Binary(op, lhs.expr, rhs.expr, span=span)), DType.BOOL)
    if op in _OF_INTEGERS | _BITWISE:
        _check_common(op, lhs, rhs, common, span)
    if op in _OF_INTEGERS:
        needs(is_integer(common), op.value, "integers", common, span)
    elif op in _BITWISE:
        needs(is_bool or is_integer(common), op.value, "integers or bools", common, span)
    elif op not in ir.COMPARISONS:
        needs(not is_bool, op.value, "numbers", common, span)
    if op in _ORDERED - _EQUALITIES:
        check_ordered(op.value, common, span)
    if op is BinaryOp.DIV:
        common = as_float(common)
    if isinstance(common, Weak) and op not in ir.COMPARISONS:
        return _weak(op, lhs, rhs, span)
    dtype = concrete(common)
    new = ir.Binary(op, convert(lhs, dtype, span), convert(rhs, dtype, span), span=span)
    if isinstance(common, Weak):
        return Typed(algebra.simplify(new), DType.BOOL)
    return Typed(new, DType.BOOL if op in ir.COMPARISONS else common)


def _check_common(op: BinaryOp, lhs: Typed, rhs: Typed, common: AnyType, span: Span) -> None:
    """Raises SpecError where no integer type holds the integers of both sides: NumPy's common type
    of uint64 and a signed one is float64.
    """
    if is_integer(lhs.type) and is_integer(rhs.type) and not is_integer(common):
        types = f"{type_name(lhs.type)} and {type_name(rhs.type)}"
        raise SpecError(
            f"'{op.value}' needs one type of integers: none holds {types}",
            span,
            "cast one side: int64(...) or uint64(...)",
        )


def _chosen(choose: Callable[..., float]) -> Callable[[float, float], float]:
    """The min or max of numbers, as in kernels: NaN if either is NaN, and -0 is less than 0."""

    def of_two(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return math.nan
        return choose(a, b, key=lambda x: (x, math.copysign(1, x)))

    return of_two


_FOLD: dict[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: lambda a, b: a / b,
    BinaryOp.MIN: _chosen(min),
    BinaryOp.MAX: _chosen(max),
}


def _weak(op: BinaryOp, lhs: Typed, rhs: Typed, span: Span) -> Typed:
    """Arithmetic on numbers, dims and indices, as Python does it; constants are folded."""
    least = Weak.FLOAT if op is BinaryOp.DIV else Weak.INT
    type_ = max(least, *(v.type for v in (lhs, rhs) if isinstance(v.type, Weak)))
    dtype = concrete(type_)
    a, b = convert(lhs, dtype, span), convert(rhs, dtype, span)
    if op in _DIVISIONS and isinstance(b, ir.Const) and not b.value:
        raise SpecError("division by zero", span)
    if type_ is Weak.INT:
        result = algebra.simplify(ir.Binary(op, a, b, span=span))
        if isinstance(result, ir.Const):
            result = constant(result.value, INDEX, span)
        return Typed(result, type_)
    if isinstance(a, ir.Const) and isinstance(b, ir.Const) and op in _FOLD:
        return Typed(constant(_FOLD[op](a.value, b.value), dtype, span), type_)
    return Typed(ir.Binary(op, a, b, span=span), type_)


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


def _complex_power(base: Typed, exponent: Typed, span: Span) -> Typed:
    """Of small whole numbers a product, or 1 over one; else exp(w * log(z)), and 1 where w is 0."""
    number = exponent.expr.value if isinstance(exponent.expr, ir.Const) else None
    if exponent.type is Weak.INT and isinstance(number, int) and 0 < abs(number) <= MAX_POWER:
        product = _power(base, abs(number), span)
        return product if number > 0 else _binary(BinaryOp.DIV, literal(1, span), product, span)
    common = promote(promote(base.type, exponent.type), Weak.COMPLEX)
    z, w = (Typed(convert(x, concrete(common), span), common) for x in (base, exponent))
    one = Typed(convert(literal(1, span), concrete(common), span), common)
    if number == 0:
        return one
    logarithm = _call(Function.LOG, (z,), span)
    power = _call(Function.EXP, (_binary(BinaryOp.MUL, w, logarithm, span),), span)
    if number is not None:
        return power
    zero = _binary(BinaryOp.EQ, w, literal(0, span), span)
    return Typed(ir.Select(zero.expr, one.expr, power.expr, span=span), common)


def _conditional(
    condition: syntax.Expr, then: Typed, otherwise: Typed, types: Types, span: Span
) -> Typed:
    test = typed(condition, types)
    if test.type is not DType.BOOL:
        raise SpecError(f"a condition must be a bool, not {type_name(test.type)}", condition.span)
    common = promote(then.type, otherwise.type)
    dtype = concrete(common)
    a, b = convert(then, dtype, span), convert(otherwise, dtype, span)
    return Typed(ir.Select(test.expr, a, b, span=span), common)


# ---------------------------------------------------------------- functions


def _cast(value: Typed, dtype: DType, span: Span) -> Typed:
    if is_complex(value.type) and not dtype.is_complex and dtype is not DType.BOOL:
        raise SpecError(f"a cast to {dtype.value} would drop an imaginary part", span, PARTS)
    return _read(convert(value, dtype, span))


def _external(function: ir.External, values: tuple[Typed, ...], span: Span) -> Typed:
    args = []
    for k, (value, dtype) in enumerate(zip(values, function.parameters, strict=True)):
        if not holds(dtype, value.type):
            raise SpecError(
                f"argument {k + 1} of '{function.name}' is {dtype.value}, not"
                f" {type_name(value.type)}",
                value.expr.span or span,
                f"write {dtype.value}(...) if that is meant",
            )
        args.append(convert(value, dtype, span))
    return Typed(ir.Call(function, tuple(args), span=span), function.result)


def _sign(value: Typed, span: Span) -> Typed:
    """1, 0 or -1, of the integer's type."""
    above = _binary(BinaryOp.MIN, value, literal(1, span), span)
    if isinstance(value.type, DType) and value.type.kind is Kind.UNSIGNED:
        return above
    return _binary(BinaryOp.MAX, above, literal(-1, span), span)


def _call(function: Function, values: tuple[Typed, ...], span: Span) -> Typed:
    common = values[0].type
    for value in values[1:]:
        common = promote(common, value.type)
    if function in (Function.REAL, Function.IMAG, Function.CONJ):
        return part(function, values[0], span)
    if function is Function.COMPLEX:
        return complex_number(values, common, span)
    if is_integer(common) and function in _WHOLE:
        return values[0]
    if is_integer(common) and function is Function.SIGN:
        return _sign(values[0], span)
    if is_integer(common) and function is Function.ABS:
        if isinstance(common, DType) and common.kind is Kind.UNSIGNED:
            return values[0]  # its negative wraps around, to what may be larger
        return _binary(BinaryOp.MAX, values[0], _unary(UnaryOp.NEG, values[0], span), span)
    needs(common is not DType.BOOL, function.value, "a number", common, span)
    if function is Function.POW and is_complex(common):
        return _complex_power(values[0], values[1], span)
    if is_complex(common) and function not in OF_COMPLEX:
        hint = "write a * b + c" if function is Function.FMA else PARTS
        raise SpecError(f"'{function.value}' has no complex form", span, hint)
    if function in (Function.POW, Function.FMOD):
        of_floats = not isinstance(common, DType) or common.is_float
        needs(of_floats, function.value, "floats", common, span)
    type_ = as_float(common)
    dtype = concrete(type_)
    args = tuple(convert(value, dtype, span) for value in values)
    if function in ir.PREDICATES:
        return Typed(ir.Call(function, args, span=span), DType.BOOL)
    number = folded(function, args, span) if isinstance(type_, Weak) else None
    result = real_of(type_) if function is Function.ABS else type_
    return Typed(number or ir.Call(function, args, span=span), result)
