"""The language's functions on values: of numbers, folded; of complex numbers and their parts.

Input: typed values. Output: typed values. Functions of arrays' elements become Calls.
"""

import cmath
import math
from collections.abc import Callable, Collection

from ...errors import Span
from ...ir import algebra
from ...ir import nodes as ir
from ...ir.interpret.special import erfinv, lgamma
from ...ir.nodes import Function
from ...ir.types import DType
from .. import yaml
from .types import AnyType, Weak, as_float, complex_of, concrete, is_complex, real_of
from .values import Typed, constant, convert, literal, needs, real_value

# What other languages and libraries call them.
_ELSEWHERE = {
    "ln": "log", "power": "pow", "fabs": "abs", "absolute": "abs", "where": "select",
    "maximum": "max", "fmax": "max", "minimum": "min", "fmin": "min", "logistic": "sigmoid",
    "conjugate": "conj", "product": "prod", "rint": "round", "around": "round", "fix": "trunc",
    "sgn": "sign", "signbit": "copysign", "arctan": "atan", "arctan2": "atan2", "arcsin": "asin",
    "arccos": "acos", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "isposinf": "isinf", "isneginf": "isinf", "gammaln": "lgamma", "loggamma": "lgamma",
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


def _sign(x: float) -> float:
    return math.copysign(1, x) if x else abs(x)


_MATH: dict[Function, Callable[..., float]] = {
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
    Function.ROUND: lambda x: math.copysign(round(x), x),
    Function.TRUNC: lambda x: math.copysign(math.trunc(x), x),
    Function.SIGN: lambda x: x if math.isnan(x) else _sign(x),
    Function.COPYSIGN: math.copysign,
    Function.EXP2: lambda x: 2.0**x,
    Function.LOG2: math.log2,
    Function.LOG10: math.log10,
    Function.SINH: math.sinh,
    Function.COSH: math.cosh,
    Function.TAN: math.tan,
    Function.ATAN: math.atan,
    Function.ATAN2: math.atan2,
    Function.ASIN: math.asin,
    Function.ACOS: math.acos,
    Function.ASINH: math.asinh,
    Function.ACOSH: math.acosh,
    Function.ATANH: math.atanh,
    Function.HYPOT: math.hypot,
    Function.CBRT: math.cbrt,
    Function.FMOD: math.fmod,
    Function.ERFC: math.erfc,
    Function.ERFINV: erfinv,
    Function.LGAMMA: lgamma,
}


_COMPLEX_MATH: dict[Function, Callable[[complex], complex]] = {
    Function.ABS: abs,
    Function.EXP: cmath.exp,
    Function.LOG: cmath.log,
    Function.SQRT: cmath.sqrt,
    Function.REAL: lambda z: z.real,
    Function.IMAG: lambda z: z.imag,
    Function.CONJ: lambda z: z.conjugate(),
}
OF_COMPLEX = ir.PREDICATES | {Function.ABS, Function.EXP, Function.LOG, Function.SQRT}


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
    """A function of numbers, where it has a finite value."""
    numbers = [arg for arg in args if isinstance(arg, ir.Const)]
    if function not in _MATH or len(numbers) < len(args):
        return None
    try:
        if isinstance(numbers[0].value, complex):
            value = _COMPLEX_MATH[function](numbers[0].value)
            dtype = algebra.result_of(function, DType.COMPLEX128)
            return constant(value, dtype, span)
        return ir.Const(_MATH[function](*map(real_value, numbers)), DType.FLOAT64, span=span)
    except (ValueError, OverflowError):
        return None
