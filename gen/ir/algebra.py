"""Types of expressions, conditions as conjunctions, and the small algebra of index expressions.

Everything here is a pure function on expressions. Only index arithmetic and booleans are ever
simplified.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import assert_never, cast

from .expressions import (
    COMPARISONS,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    External,
    Function,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from .types import INDEX, DType

TRUE = Const(True, DType.BOOL)
FALSE = Const(False, DType.BOOL)


def dtype_of(expr: Expr) -> DType:
    match expr:  # the most frequent ones first
        case Binary(op, lhs, _):
            return DType.BOOL if op in COMPARISONS else dtype_of(lhs)
        case Var() | Const() | Cast() | Load():
            return expr.dtype
        case Unary(UnaryOp.NOT, _):
            return DType.BOOL
        case Unary(_, operand):
            return dtype_of(operand)
        case Select(_, then, _):
            return dtype_of(then)
        case Call(function, args):
            if isinstance(function, External):
                return function.result
            return result_of(function, dtype_of(args[0]))
        case _:
            assert_never(expr)


def result_of(function: Function, dtype: DType) -> DType:
    """The type of a function's value, for arguments of type `dtype`."""
    match function:
        case Function.ISNAN | Function.ISINF | Function.ISFINITE:
            return DType.BOOL
        case Function.ABS | Function.REAL | Function.IMAG:
            return dtype.real
        case Function.COMPLEX:
            return dtype.complex or dtype
        case _:
            return dtype


def bare_type(function: Function, context: DType | None) -> DType | None:
    """The type of constants that a function is called with, where the text of a script does not say
    it and the function's value is of type `context`.
    """
    match function:
        case Function.ISNAN | Function.ISINF | Function.ISFINITE:
            return None
        case Function.COMPLEX:
            return context and context.real
        case _:
            return context


# ---------------------------------------------------------------- index algebra


@lru_cache(1024)
def index(value: int) -> Const:
    return Const(value, INDEX)


def _binary(op: BinaryOp, lhs: Expr | int, rhs: Expr | int) -> Expr:
    a = index(lhs) if isinstance(lhs, int) else lhs
    b = index(rhs) if isinstance(rhs, int) else rhs
    return simplify(Binary(op, a, b))


def add(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.ADD, lhs, rhs)


def sub(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.SUB, lhs, rhs)


def mul(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MUL, lhs, rhs)


def floordiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.FLOORDIV, lhs, rhs)


def mod(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MOD, lhs, rhs)


def ceildiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return floordiv(add(lhs, sub(rhs, 1)), rhs)


def minimum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MIN, lhs, rhs)


def maximum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MAX, lhs, rhs)


def less(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.LT, lhs, rhs)


def conjunction(*conditions: Expr) -> Expr:
    """All of the conditions, duplicates and truths dropped."""
    parts: list[Expr] = []
    for condition in conditions:
        for part in conjuncts(condition):
            if part not in parts:
                parts.append(part)
    if not parts:
        return TRUE
    result = parts[0]
    for part in parts[1:]:
        result = Binary(BinaryOp.AND, result, part)
    return result


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts that all must hold; none for a truth."""
    match condition:
        case Binary(BinaryOp.AND, lhs, rhs):
            return conjuncts(lhs) + conjuncts(rhs)
        case Const(True):
            return ()
        case _:
            return (condition,)


_FOLD: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
_COMPARE: dict[BinaryOp, Callable[[int, int], bool]] = {
    BinaryOp.EQ: lambda a, b: a == b,
    BinaryOp.NE: lambda a, b: a != b,
    BinaryOp.LT: lambda a, b: a < b,
    BinaryOp.LE: lambda a, b: a <= b,
    BinaryOp.GT: lambda a, b: a > b,
    BinaryOp.GE: lambda a, b: a >= b,
}


def simplify(e: Binary) -> Expr:
    """One step of folding at the root, for INDEX arithmetic and booleans only: floats are never
    touched, since every rule here would change some float result.
    """
    op, a, b = e.op, e.lhs, e.rhs
    if op in (BinaryOp.AND, BinaryOp.OR):
        absorbing = op is BinaryOp.OR
        for side, other in ((a, b), (b, a)):
            if isinstance(side, Const):
                return side if bool(side.value) is absorbing else other
        return e
    if dtype_of(a) is not INDEX:
        return e
    if isinstance(a, Const) and isinstance(b, Const):
        x, y = int(cast(int, a.value)), int(cast(int, b.value))
        if op in _FOLD:
            return index(_FOLD[op](x, y))
        if op in _COMPARE:
            return Const(_COMPARE[op](x, y), DType.BOOL)
        if op is BinaryOp.FLOORDIV and y:
            return index(x // y)
        if op is BinaryOp.MOD and y:
            return index(x % y)
        return e
    return _neutral(op, a, b) or e


def _neutral(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """The simpler form of `a op b`, index arithmetic, where a rule gives one."""
    x = a.value if isinstance(a, Const) else None
    y = b.value if isinstance(b, Const) else None
    match op:
        case BinaryOp.ADD if y == 0:
            return a
        case BinaryOp.ADD if x == 0:
            return b
        case BinaryOp.SUB if y == 0:
            return a
        case BinaryOp.SUB if a == b:
            return index(0)
        case BinaryOp.MUL if 0 in (x, y):
            return index(0)
        case BinaryOp.MUL | BinaryOp.FLOORDIV if y == 1:
            return a
        case BinaryOp.MUL if x == 1:
            return b
        case BinaryOp.MOD if y == 1:
            return index(0)
        case BinaryOp.MIN | BinaryOp.MAX if a == b:
            return a
        case BinaryOp.MIN | BinaryOp.MAX if isinstance(b, Const):
            return b if _beyond(op, a, int(b.value.real)) else None
        case BinaryOp.ADD | BinaryOp.SUB:
            return _gather_constants(op, a, b)
        case _:
            return None


def _beyond(op: BinaryOp, a: Expr, bound: int) -> bool:
    """Whether a is never on the near side of the bound, as max(x, 0) is never below 0."""
    match op, a:
        case (BinaryOp.MIN, Binary(BinaryOp.MAX, _, Const(int(c)))):
            return int(c) >= bound
        case (BinaryOp.MAX, Binary(BinaryOp.MIN, _, Const(int(c)))):
            return int(c) <= bound
        case _:
            return False


def _gather_constants(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """(x + c1) + c2, (x - c1) + c2 and so on: constants gather on the right."""
    match a, b:
        case Binary(BinaryOp.ADD | BinaryOp.SUB as inner, x, Const(c1)), Const(c2):
            first = int(cast(int, c1)) * (1 if inner is BinaryOp.ADD else -1)
            total = first + int(cast(int, c2)) * (1 if op is BinaryOp.ADD else -1)
            if abs(total) >= 2**63:  # no number of this type
                return None
            return add(x, total) if total >= 0 else sub(x, -total)
        case _:
            return None
