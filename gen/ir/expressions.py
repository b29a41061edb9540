"""Expressions: the part of the IR's grammar that blocks and loops are made of (see `nodes`)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from ..errors import Span
from .types import INDEX, DType, Word


class _Remembered:
    """What was once found out about a node, which never changes: its children, and what functions
    that `walk.remembered` marks have answered. No part of its value.
    """

    __slots__ = ("_answers", "_children")
    _answers: dict[Callable[..., object], Any]
    _children: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Node(_Remembered):
    span: Span | None = field(default=None, kw_only=True, compare=False, repr=False)


@final
class UnaryOp(Word):
    NEG = "-"
    NOT = "not"
    INVERT = "~"


@final
class BinaryOp(Word):
    """Both operands have one type; comparisons give bool, the rest that type."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"  # floats
    FLOORDIV = "//"  # rounds towards minus infinity, as in Python
    MOD = "%"  # has the sign of the divisor, as in Python
    MIN = "min"  # NaN if either is NaN
    MAX = "max"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "and"
    OR = "or"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"
    SHL = "<<"
    SHR = ">>"


COMPARISONS = frozenset(
    {BinaryOp.EQ, BinaryOp.NE, BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE}
)


@final
class Function(Word):
    """Functions of floats that keep their type, unless said."""

    ABS = "abs"  # of floats and complex numbers, a float
    SQRT = "sqrt"  # of floats and complex numbers, as are exp and log
    RSQRT = "rsqrt"
    EXP = "exp"
    EXPM1 = "expm1"
    SIGMOID = "sigmoid"
    LOG = "log"
    LOG1P = "log1p"
    POW = "pow"  # pow(x, y) = x^y, as C has it
    TANH = "tanh"
    ERF = "erf"
    SIN = "sin"
    COS = "cos"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # to nearest, ties to even
    TRUNC = "trunc"
    SIGN = "sign"  # 0 of both zeros
    COPYSIGN = "copysign"  # copysign(x, y): the size of x, the sign of y
    EXP2 = "exp2"
    LOG2 = "log2"
    LOG10 = "log10"
    SINH = "sinh"
    COSH = "cosh"
    TAN = "tan"
    ATAN = "atan"
    ATAN2 = "atan2"  # atan2(y, x): the angle of the point (x, y)
    ASIN = "asin"
    ACOS = "acos"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    HYPOT = "hypot"
    CBRT = "cbrt"
    FMOD = "fmod"  # has the sign of the dividend, as C has it
    ERFC = "erfc"
    ERFINV = "erfinv"
    LGAMMA = "lgamma"  # log(|gamma(x)|)
    ISNAN = "isnan"  # of floats and complex numbers, gives bool; so do isinf and isfinite
    ISINF = "isinf"
    ISFINITE = "isfinite"
    FMA = "fma"  # fma(a, b, c) = a*b + c, rounded once where the level can; complex too
    REAL = "real"  # of a complex number, a float
    IMAG = "imag"  # likewise
    CONJ = "conj"  # of a complex number
    COMPLEX = "complex"  # complex(re, im) of floats, a complex number


PREDICATES = frozenset({Function.ISNAN, Function.ISINF, Function.ISFINITE})
"""The functions that give a bool."""


@final
@dataclass(frozen=True, slots=True)
class External:
    """A C function of numbers that a spec declares: its value depends on its arguments alone.

    symbol: its name in C. header: the system's header that declares it; source: C code that defines
    it; one of both may be empty. A value, no node: nothing in it belongs to a tree.
    """

    name: str
    symbol: str
    parameters: tuple[DType, ...]
    result: DType
    header: str = ""
    source: str = ""

    @property
    def value(self) -> str:
        """Its name, as of a Function."""
        return self.name


@final
@dataclass(frozen=True, slots=True)
class Var(Node):
    """A loop variable, iteration variable, dim (all INDEX) or scalar parameter."""

    name: str
    dtype: DType = INDEX


@final
@dataclass(frozen=True, slots=True)
class Const(Node):
    value: bool | int | float | complex
    dtype: DType

    def __eq__(self, other: object) -> bool:
        """Whether both are one number: zeros of other signs are two, though Python's are equal."""
        if not isinstance(other, Const) or self.dtype is not other.dtype:
            return False
        a, b = self.value, other.value
        return a is b or (a == b and (self.dtype is INDEX or _signs(a) == _signs(b)))


def _signs(number: complex) -> tuple[float, float]:
    return math.copysign(1.0, number.real), math.copysign(1.0, number.imag)


@final
@dataclass(frozen=True, slots=True)
class Unary(Node):
    op: UnaryOp
    operand: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Binary(Node):
    op: BinaryOp
    lhs: "Expr"
    rhs: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Select(Node):
    """`then if condition else otherwise`. Only the taken side is read from memory."""

    condition: "Expr"
    then: "Expr"
    otherwise: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Cast(Node):
    dtype: DType
    operand: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Call(Node):
    function: Function | External
    args: tuple["Expr", ...]


@final
@dataclass(frozen=True, slots=True)
class Load(Node):
    buffer: str
    indices: tuple["Expr", ...]
    dtype: DType


Expr = Var | Const | Unary | Binary | Select | Cast | Call | Load
