"""What the IR's operators compute, on scalars: the arithmetic of the interpreter.

Input: operators and element types. Output: functions of values. Values of integer types are Python
integers within the type's range, truth values are Python bools, all others are NumPy scalars of
the element type; every function here keeps that.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, assert_never

import numpy as np

from ...errors import TilesmithError
from .. import nodes as ir
from .. import storage
from ..algebra import result_of
from ..types import DType, Kind
from .special import erfinv, lgamma

NumpyDType = np.dtype[Any]
Value = Any  # bool, int or a NumPy scalar


class InterpError(TilesmithError):
    """What a correct kernel never does: an access out of bounds, a read of nothing, ..."""


@cache
def numpy_dtype(dtype: DType) -> NumpyDType:
    """NumPy's type; bfloat16 needs the package ml_dtypes."""
    if dtype is not DType.BFLOAT16:
        plain: NumpyDType = np.dtype(dtype.value)
        return plain
    try:
        return storage.bfloat16()
    except ImportError as e:
        raise InterpError("bfloat16 needs the package ml_dtypes") from e


def scalar(value: Value, dtype: DType) -> Value:
    """A number as a value of the type, integers wrapped around."""
    match dtype.kind:
        case Kind.BOOL:
            return bool(value)
        case Kind.SIGNED | Kind.UNSIGNED:
            return wrap(dtype)(int(value))
        case Kind.FLOAT if dtype is DType.BFLOAT16:
            return np.uint16(storage.bits(float(value), dtype)).view(numpy_dtype(dtype))
        case Kind.FLOAT | Kind.COMPLEX:
            return numpy_dtype(dtype).type(value)
        case kind:
            assert_never(kind)


def wrap(dtype: DType) -> Callable[[int], int]:
    """An integer modulo 2^bits, in the type's range."""
    lowest, highest = range_of(dtype)
    size = 1 << dtype.bits

    def wrapped(value: int) -> int:
        return value if lowest <= value <= highest else (value - lowest) % size + lowest

    return wrapped


def range_of(dtype: DType) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    lowest = -(1 << (dtype.bits - 1)) if dtype.kind is Kind.SIGNED else 0
    return lowest, lowest + (1 << dtype.bits) - 1


def poison(dtype: DType) -> Value:
    """What an element holds that was never written: NaN where the type has one."""
    match dtype.kind:
        case Kind.BOOL:
            return True
        case Kind.SIGNED | Kind.UNSIGNED:
            return wrap(dtype)(0xABABABABABABABAB)
        case Kind.FLOAT | Kind.COMPLEX:
            return numpy_dtype(dtype).type(math.nan)
        case kind:
            assert_never(kind)


# ---------------------------------------------------------------- operators


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a % b if b else 0


def _shift(shifted: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
    """By more than there are bits: nothing is left but the sign."""
    return lambda a, b: shifted(a, b if 0 <= b < bits else bits)


_ARITHMETIC: dict[ir.BinaryOp, Callable[[Value, Value], Value]] = {
    ir.BinaryOp.ADD: operator.add,
    ir.BinaryOp.SUB: operator.sub,
    ir.BinaryOp.MUL: operator.mul,
    ir.BinaryOp.DIV: operator.truediv,
    ir.BinaryOp.FLOORDIV: operator.floordiv,
    ir.BinaryOp.MOD: operator.mod,
    ir.BinaryOp.MIN: np.minimum,
    ir.BinaryOp.MAX: np.maximum,
    ir.BinaryOp.BITAND: operator.and_,
    ir.BinaryOp.BITOR: operator.or_,
    ir.BinaryOp.BITXOR: operator.xor,
    ir.BinaryOp.EQ: operator.eq,
    ir.BinaryOp.NE: operator.ne,
    ir.BinaryOp.LT: operator.lt,
    ir.BinaryOp.LE: operator.le,
    ir.BinaryOp.GT: operator.gt,
    ir.BinaryOp.GE: operator.ge,
}
_ON_INTEGERS: dict[ir.BinaryOp, Callable[[int, int], int]] = {
    ir.BinaryOp.FLOORDIV: _floordiv,
    ir.BinaryOp.MOD: _mod,
    ir.BinaryOp.MIN: min,
    ir.BinaryOp.MAX: max,
}


def binary(op: ir.BinaryOp, dtype: DType) -> Callable[[Value, Value], Value]:
    """The function of two operands of `dtype`. AND and OR are the caller's: they are lazy."""
    if op in ir.COMPARISONS:
        compare = _ARITHMETIC[op]
        return lambda a, b: bool(compare(a, b))
    if dtype is DType.BOOL:
        on_bools = _ON_INTEGERS.get(op) or _ARITHMETIC[op]
        return lambda a, b: bool(on_bools(a, b))
    if not dtype.is_integer:
        return _ARITHMETIC[op]
    wrapped = wrap(dtype)
    match op:
        case ir.BinaryOp.SHL:
            on_integers = _shift(operator.lshift, dtype.bits)
        case ir.BinaryOp.SHR:
            on_integers = _shift(operator.rshift, dtype.bits)
        case _:
            on_integers = _ON_INTEGERS.get(op) or _ARITHMETIC[op]
    return lambda a, b: wrapped(on_integers(a, b))


def unary(op: ir.UnaryOp, dtype: DType) -> Callable[[Value], Value]:
    match op:
        case ir.UnaryOp.NOT:
            return operator.not_
        case ir.UnaryOp.NEG if dtype.is_integer:
            wrapped = wrap(dtype)
            return lambda a: wrapped(-a)
        case ir.UnaryOp.NEG:
            return operator.neg
        case ir.UnaryOp.INVERT if dtype is DType.BOOL:
            return operator.not_
        case ir.UnaryOp.INVERT:
            inverted = wrap(dtype)
            return lambda a: inverted(~a)
        case _:
            assert_never(op)


def cast(source: DType, target: DType) -> Callable[[Value], Value]:
    """Conversion as C and NumPy do it: floats to integers truncate, integers wrap around."""
    if source is target:
        return lambda a: a
    if target is DType.BOOL:
        return bool
    if target.is_integer and not source.is_float:
        wrapped = wrap(target)
        return lambda a: wrapped(int(a))
    if target is DType.BFLOAT16:
        return lambda a: scalar(a, target)
    source_type, target_type = numpy_dtype(source), numpy_dtype(target)
    if target.is_integer:
        return lambda a: int(np.asarray(a, source_type).astype(target_type).item())
    # Through an array of the source type, so that an integer is rounded once.
    return lambda a: np.asarray(a, source_type).astype(target_type)[()]


def function(name: ir.Function, dtype: DType) -> Callable[..., Value]:
    """The function of floats, or complex numbers, of type `dtype`."""
    number = numpy_dtype(dtype).type
    match name:
        case ir.Function.ABS:
            return np.abs
        case ir.Function.SQRT:
            return np.sqrt
        case ir.Function.RSQRT:
            return lambda a: number(1) / np.sqrt(a)
        case ir.Function.EXP:
            return np.exp
        case ir.Function.EXPM1:
            return np.expm1
        case ir.Function.SIGMOID:
            return lambda a: _sigmoid(a, number(1))
        case ir.Function.LOG:
            return np.log
        case ir.Function.LOG1P:
            return np.log1p
        case ir.Function.POW:
            return np.power
        case ir.Function.TANH:
            return np.tanh
        case ir.Function.ERF:
            return lambda a: number(math.erf(float(a)))
        case ir.Function.SIN:
            return np.sin
        case ir.Function.COS:
            return np.cos
        case ir.Function.FLOOR:
            return np.floor
        case ir.Function.CEIL:
            return np.ceil
        case ir.Function.ERFC:
            return lambda a: number(math.erfc(float(a)))
        case ir.Function.ERFINV:
            return lambda a: number(erfinv(float(a)))
        case ir.Function.LGAMMA:
            return lambda a: number(lgamma(float(a)))
        case ir.Function.ISNAN:
            return lambda a: bool(np.isnan(a))
        case ir.Function.ISINF:
            return lambda a: bool(np.isinf(a))
        case ir.Function.ISFINITE:
            return lambda a: bool(np.isfinite(a))
        case ir.Function.FMA if dtype.is_complex:
            return lambda a, b, c: a * b + c
        case ir.Function.FMA:
            return lambda a, b, c: _fused(a, b, c, number)
        case ir.Function.REAL:
            return np.real
        case ir.Function.IMAG:
            return np.imag
        case ir.Function.CONJ:
            return np.conj
        case ir.Function.COMPLEX:
            return lambda re, im: _complex(re, im, result_of(name, dtype))
        case _:
            return _NUMPYS[name]


_NUMPYS: dict[ir.Function, Callable[..., Value]] = {
    ir.Function.ROUND: np.rint,
    ir.Function.TRUNC: np.trunc,
    ir.Function.SIGN: np.sign,
    ir.Function.COPYSIGN: np.copysign,
    ir.Function.EXP2: np.exp2,
    ir.Function.LOG2: np.log2,
    ir.Function.LOG10: np.log10,
    ir.Function.SINH: np.sinh,
    ir.Function.COSH: np.cosh,
    ir.Function.TAN: np.tan,
    ir.Function.ATAN: np.arctan,
    ir.Function.ATAN2: np.arctan2,
    ir.Function.ASIN: np.arcsin,
    ir.Function.ACOS: np.arccos,
    ir.Function.ASINH: np.arcsinh,
    ir.Function.ACOSH: np.arccosh,
    ir.Function.ATANH: np.arctanh,
    ir.Function.HYPOT: np.hypot,
    ir.Function.CBRT: np.cbrt,
    ir.Function.FMOD: np.fmod,
}


def _complex(re: Value, im: Value, dtype: DType) -> Value:
    """Part by part: `re + 1j * im` would lose infinities and signs of zeros."""
    return numpy_dtype(dtype).type(complex(re, im))


def _fused(a: Value, b: Value, c: Value, number: Callable[[float], Value]) -> Value:
    """A * b + c, rounded once: to odd first, so that rounding to float32 then is right."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    try:
        near = float(exact)
    except OverflowError:
        return number(math.inf if exact > 0 else -math.inf)
    if exact == 0:
        return a * b + c  # the sign of zero
    if (
        number is np.float32
        and Fraction(near) != exact
        and near.hex().split("p")[0][-1] in "02468ace"
    ):
        near = math.nextafter(near, math.inf if exact > near else -math.inf)
    return number(near)


def _sigmoid(x: Value, one: Value) -> Value:
    """1 / (1 + exp(-x)) where it overflows nowhere."""
    e = np.exp(-np.abs(x))
    return (e if x < 0 else one) / (one + e)


# ---------------------------------------------------------------- reductions

Combine = Callable[[tuple[Value, ...], tuple[Value, ...]], tuple[Value, ...]]


def identity(combiner: ir.AnyCombiner, dtypes: tuple[DType, ...]) -> tuple[Value, ...]:
    """What each of the combiner's targets holds before anything is combined into it."""
    first = dtypes[0]
    match combiner:
        case ir.Combiner.SUM:
            return (scalar(0, first),)
        case ir.Combiner.PROD:
            return (scalar(1, first),)
        case ir.Combiner.ANY:
            return (False,)
        case ir.Combiner.ALL:
            return (True,)
        case ir.Combiner.MIN:
            return (_extreme(first, highest=True),)
        case ir.Combiner.MAX:
            return (_extreme(first, highest=False),)
        case ir.Combiner.ARGMIN:
            return (_extreme(first, highest=True), _extreme(dtypes[1], highest=True))
        case ir.Combiner.ARGMAX:
            return (_extreme(first, highest=False), _extreme(dtypes[1], highest=True))
        case ir.DefinedCombiner(identity=values):
            return tuple(scalar(none.value, none.dtype) for none in values)
        case _:
            assert_never(combiner)


def identity_constants(combiner: ir.AnyCombiner, dtypes: tuple[DType, ...]) -> tuple[ir.Const, ...]:
    """The same as constants of a tree."""
    return tuple(
        ir.Const(none.item() if isinstance(none, np.generic) else none, dtype)
        for none, dtype in zip(identity(combiner, dtypes), dtypes, strict=True)
    )


def _extreme(dtype: DType, highest: bool) -> Value:
    if dtype.is_integer:
        limits = np.iinfo(numpy_dtype(dtype))
        return int(limits.max if highest else limits.min)
    return highest if dtype is DType.BOOL else scalar(math.inf if highest else -math.inf, dtype)


def combine(combiner: ir.Combiner, dtypes: tuple[DType, ...]) -> Combine:
    """The function that joins two tuples of values, one for each target."""
    match combiner:
        case ir.Combiner.ARGMIN:
            return lambda a, b: _better(a, b, operator.lt)
        case ir.Combiner.ARGMAX:
            return lambda a, b: _better(a, b, operator.gt)
        case _:
            join = binary(_JOINS[combiner], dtypes[0])
            return lambda a, b: (join(a[0], b[0]),)


_JOINS = {
    ir.Combiner.SUM: ir.BinaryOp.ADD,
    ir.Combiner.PROD: ir.BinaryOp.MUL,
    ir.Combiner.MIN: ir.BinaryOp.MIN,
    ir.Combiner.MAX: ir.BinaryOp.MAX,
    ir.Combiner.ANY: ir.BinaryOp.BITOR,
    ir.Combiner.ALL: ir.BinaryOp.BITAND,
}


def _better(
    a: tuple[Value, ...], b: tuple[Value, ...], beats: Callable[[Value, Value], bool]
) -> tuple[Value, ...]:
    """Of two (value, index) pairs, the one to keep: NaN first, the smaller index among equals."""
    a_nan, b_nan = a[0] != a[0], b[0] != b[0]
    if a_nan or b_nan:
        tied, first = a_nan and b_nan, a_nan
    else:
        tied, first = a[0] == b[0], beats(a[0], b[0])
    if tied:
        return a if a[1] <= b[1] else b
    return a if first else b
