"""The language's functions on values: of numbers, folded; of complex numbers and their parts.

Input: typed values. Output: typed values. Functions of arrays' elements become Calls.
"""

import cmath
import math
from collections.abc import Callable, Collection

from ...errors import Span
from ...ir import algebra
from ...ir import nodes as ir
from ...ir.nodes import Function
from ...ir.types import DType
from .. import yaml
from .types import AnyType, Weak, as_float, complex_of, concrete, is_complex, real_of
from .values import Typed, constant, convert, literal, needs, real_value

# What other languages and libraries call them.
_ELSEWHERE = {
    "ln": "log", "power": "pow", "fabs": "abs", "absolute": "abs", "where": "select",
    "maximum": "max", "fmax": "max", "minimum": "min", "fmin": "min", "logistic": "sigmoid",
    "conjugate": "conj", "product": "prod",
}  # fmt: skip


def elsewhere(name: str) -> str:
    """The language's name of what other languages and libraries call so."""
    return _ELSEWHERE.get(name.lower(), name)


def hint(name: str, known: Collection[str]) -> str | None:
    """Which of the known functions a name that is none of them may mean."""
    meant = elsewhere(name)
    return f"did you mean '{meant}'?" if meant in known else yaml.hint(name, known)


def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return (e if x < 0 else 1) / (1 + e)


_MATH: dict[Function, Callable[[float], float]] = {
    Function.SQRT: math.sqrt,
    Function.EXP: math.exp,
    Function.EXPM1: math.expm1,
    Function.SIGMOID: _sigmoid,
    Function.LOG: math.log,
    Function.LOG1P: math.log1p,
    Function.TANH: math.tanh,
    Function.ERF: math.erf,
    Function.SIN: math.sin,
    Function.COS: math.cos,
    Function.ABS: abs,
}


_COMPLEX_MATH: dict[Function, Callable[[complex], complex]] = {
    Function.ABS: abs,
    Function.EXP: cmath.exp,
    Function.REAL: lambda z: z.real,
    Function.IMAG: lambda z: z.imag,
    Function.CONJ: lambda z: z.conjugate(),
}
OF_COMPLEX = frozenset({Function.ABS, Function.EXP, Function.ISNAN})


def part(function: Function, value: Typed, span: Span) -> Typed:
    """real, imag and conj: of real numbers as of complex ones with imaginary part 0."""
    needs(value.type is not DType.BOOL, function.value, "a number", value.type, span)
    if not is_complex(value.type):
        if function is not Function.IMAG:
            return value
        zero = constant(0, concrete(value.type), span)
        return Typed(zero, value.type)
    type_ = value.type if function is Function.CONJ else real_of(value.type)
    if isinstance(value.type, Weak) and isinstance(value.expr, ir.Const):
        part = _COMPLEX_MATH[function](complex(value.expr.value))
        return Typed(constant(part, concrete(type_), span), type_)
    return Typed(ir.Call(function, (value.expr,), span=span), type_)


def complex_number(values: tuple[Typed, ...], common: AnyType, span: Span) -> Typed:
    """complex(re, im)."""
    real = common is not DType.BOOL and not is_complex(common)
    needs(real, "complex", "two real numbers", common, span)
    type_ = Weak.COMPLEX if isinstance(common, Weak) else complex_of(concrete(as_float(common)))
    parts = tuple(convert(value, concrete(type_).real, span) for value in values)
    if isinstance(type_, Weak) and all(isinstance(part, ir.Const) for part in parts):
        re, im = (real_value(part) for part in parts if isinstance(part, ir.Const))
        return literal(complex(re, im), span)
    return Typed(ir.Call(Function.COMPLEX, parts, span=span), type_)


def folded(function: Function, args: tuple[ir.Expr, ...], span: Span) -> ir.Const | None:
    """A function of a number, where it has a finite value."""
    if function not in _MATH or not isinstance(args[0], ir.Const):
        return None
    try:
        if isinstance(args[0].value, complex):
            value = _COMPLEX_MATH[function](args[0].value)
            dtype = algebra.result_of(function, DType.COMPLEX128)
            return constant(value, dtype, span)
        return ir.Const(_MATH[function](real_value(args[0])), DType.FLOAT64, span=span)
    except (ValueError, OverflowError):
        return None
