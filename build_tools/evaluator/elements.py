"""Numbers and their types: NumPy's, under the promotion that NumPy has since 2.0 (NEP 50).

A type is a NumPy dtype, or one of Python's `int`, `float`, `complex` for numbers that take the type
of the other operand. Values are NumPy's scalars of the type, or Python's. float16 and bfloat16 are
types of storage alone: values of theirs are float32.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy import special

DType = np.dtype[Any]
Type = DType | type[int] | type[float] | type[complex]
Unary = Callable[[Any], Any]

BOOL, INT64, UINT64 = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.uint64)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_WEAK: tuple[type, ...] = (int, float, complex)
# bits of the significand, exponent of the least number, largest number
_STORED = {
    "float16": (11, -24, 65504.0),
    "bfloat16": (8, -133, float.fromhex("0x1.fep127")),
}


class Unspecified(Exception):
    """What the page gives no value for, such as the cast of a float that an integer cannot hold."""


@cache
def dtype(element: str) -> DType:
    """NumPy's type of an element type's name; bfloat16 is that of ml_dtypes."""
    if element != "bfloat16":
        return np.dtype(element)
    import ml_dtypes

    found: DType = np.dtype(ml_dtypes.bfloat16)
    return found


def is_stored(element: DType) -> bool:
    return element.name in _STORED


def computed(element: DType) -> DType:
    """What values of the type are computed in."""
    return FLOAT32 if is_stored(element) else element


def common(*types: Type) -> Type:
    """What operands of these types take."""
    strong = [t for t in types if isinstance(t, np.dtype)]
    weak = max((_WEAK.index(t) for t in types if not isinstance(t, np.dtype)), default=-1)
    if not strong:
        found: Type = _WEAK[weak]
        return found
    return np.result_type(*strong, *((_WEAK[weak](1),) if weak >= 0 else ()))


def strong(of: Type) -> DType:
    """The type of a number where no other operand gives one."""
    return of if isinstance(of, np.dtype) else np.dtype(of)


def is_integer(of: Type) -> bool:
    return of is int or (isinstance(of, np.dtype) and of.kind in "iu")


def same(a: Type, b: Type) -> bool:
    """NumPy takes Python's `int` for its int64."""
    return isinstance(a, np.dtype) == isinstance(b, np.dtype) and a == b


def conversion(source: Type, target: Type) -> Unary:
    """Values of one type as those of another."""
    if same(source, target):
        return lambda v: v
    if not isinstance(target, np.dtype):
        return target
    if target.kind == "b":
        return lambda v: np.bool_(v != 0)
    if target.kind in "iu":
        whole = same(source, BOOL) or is_integer(source)
        return lambda v: wrapped(int(v), target) if whole else _truncated(v, target)
    if is_stored(target):
        bits, least, largest = _STORED[target.name]
        first = conversion(source, FLOAT32) if is_integer(source) else float
        return lambda v: np.float32(_rounded(float(first(v)), bits, least, largest))
    if source is int:
        return lambda v: target.type(np.int64(v)) if abs(v) < 1 << 63 else target.type(v)
    return target.type


def wrapped(value: int, target: DType) -> Any:
    size = 1 << 8 * target.itemsize
    low = -(size >> 1) if target.kind == "i" else 0
    return target.type((value - low) % size + low)


def _truncated(value: Any, target: DType) -> Any:
    limits = np.iinfo(target)
    if not math.isfinite(value) or not limits.min <= math.trunc(float(value)) <= limits.max:
        raise Unspecified(f"{value} as {target}")
    return target.type(math.trunc(float(value)))


def _rounded(value: float, bits: int, least: int, largest: float) -> float:
    """To nearest, ties to even, in one step."""
    if not math.isfinite(value) or value == 0:
        return value
    quantum = 2.0 ** max(math.frexp(value)[1] - bits, least)
    result = round(value / quantum) * quantum
    return math.copysign(result if abs(result) <= largest else math.inf, value)


def extreme(of: DType, highest: bool) -> Any:
    """The largest or the least value of the type."""
    if of.kind in "iu":
        return of.type(np.iinfo(of).max if highest else np.iinfo(of).min)
    return of.type(highest if of.kind == "b" else math.inf if highest else -math.inf)


# ---------------------------------------------------------------- operators and functions


def operator(symbol: str, of: Type) -> Callable[[Any, Any], Any]:
    """The function of two operands of the type."""
    if symbol == "//" or symbol == "%":
        return _divided(symbol, of)
    if symbol == "<<" or symbol == ">>":
        return _shifted(symbol, of)
    if of is int and symbol != "/":
        return _PYTHON[symbol]
    numpy = _NUMPY[symbol]
    if isinstance(of, np.dtype):
        return numpy
    wide = np.complex128 if of is complex else np.float64
    kind = of if symbol != "/" or of is complex else float
    return lambda a, b: kind(numpy(wide(a), wide(b)))


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    **_PYTHON,
    "/": np.true_divide,
    "min": np.minimum,
    "max": np.maximum,
}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def _divided(symbol: str, of: Type) -> Callable[[Any, Any], Any]:
    def divided(a: Any, b: Any) -> Any:
        quotient, rest = divmod(int(a), int(b)) if b else (0, 0)
        result = quotient if symbol == "//" else rest
        return wrapped(result, of) if isinstance(of, np.dtype) else result

    return divided


def _shifted(symbol: str, of: Type) -> Callable[[Any, Any], Any]:
    bits = 8 * of.itemsize if isinstance(of, np.dtype) else 64

    def shifted(a: Any, b: Any) -> Any:
        by = int(b) if 0 <= b < bits else bits
        result = int(a) << by if symbol == "<<" else int(a) >> by
        return wrapped(result, of) if isinstance(of, np.dtype) else result

    return shifted


def negated(of: Type) -> Unary:
    return (lambda v: wrapped(-int(v), of)) if _wraps(of) else lambda v: -v  # type: ignore[arg-type]


def absolute(of: Type) -> Unary:
    return (lambda v: wrapped(abs(int(v)), of)) if _wraps(of) else abs  # type: ignore[arg-type]


def _wraps(of: Type) -> bool:
    return isinstance(of, np.dtype) and of.kind in "iu"


def inverted(of: Type) -> Unary:
    return np.logical_not if same(of, BOOL) else lambda v: ~v


def _sigmoid(x: Any) -> Any:
    e, one = np.exp(-abs(x)), type(x)(1)
    return (e if x < 0 else one) / (one + e)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at 0 and negative integers, and where it is too large
        return math.inf


FUNCTIONS: dict[str, Unary] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: type(x)(1) / np.sqrt(x),
    "exp": np.exp,
    "expm1": np.expm1,
    "sigmoid": _sigmoid,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": lambda x: type(x)(math.erf(x)),
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "sign": np.sign,
    "exp2": np.exp2,
    "log2": np.log2,
    "log10": np.log10,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tan": np.tan,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erfc": lambda x: type(x)(math.erfc(x)),
    "erfinv": lambda x: type(x)(math.copysign(special.erfinv(float(x)), x)),
    "lgamma": lambda x: type(x)(_lgamma(float(x))),
}
OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "pow": np.power,
    "copysign": np.copysign,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
}


def sign_of_integer(value: Any) -> Any:
    return type(value)((value > 0) - (value < 0)) if value else value


def fused(a: Any, b: Any, c: Any) -> Any:
    """A * b + c, rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return a * b + c
    bits, least = (24, -149) if isinstance(a, np.float32) else (53, -1074)
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    for power in (exponent + 1, exponent):  # the one with 2**(power - 1) <= |exact| < 2**power
        if abs(exact) >= Fraction(2) ** (power - 1):
            break
    quantum = Fraction(2) ** max(power - bits, least)
    try:
        return type(a)(math.copysign(float(round(exact / quantum) * quantum), exact))
    except OverflowError:
        return type(a)(math.copysign(math.inf, exact))


def better(largest: bool, a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
    """Of two values with their indices the one to keep: the first of equals, and of NaNs."""
    first, second = (a, b) if a[1] < b[1] else (b, a)
    if first[0] != first[0]:
        return first
    beaten = second[0] > first[0] if largest else second[0] < first[0]
    return second if beaten or second[0] != second[0] else first
