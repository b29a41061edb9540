"""Which integer arithmetic wraps around, and which is exact.

Input: expressions of INDEX type. What is made of sizes, indices, int64 scalars and numbers alone is
exact: a call for which it would leave 64 bits is refused (`lower.index_limits`). What is read from
memory may be as large as its type, and int64 data wraps as all integers do: `x[i] + 1` may be less
than `x[i]`. So nothing may be concluded from such a sum but that it equals itself; only data that
is small, by its type or a clamp, adds up as numbers do.
"""

from typing import cast

from .algebra import dtype_of
from .expressions import Binary, BinaryOp, Cast, Const, Expr, Load, Select, Unary, UnaryOp, Var
from .types import INDEX
from .walk import children, remembered

SMALL = 2**48
"""The most that data and numbers may add to a sum that is exact: far less than the room that the
limits of sizes leave."""

_Bounds = tuple[int | None, int | None]


def is_small(expr: Expr) -> bool:
    """Whether data and numbers take the expression no further than SMALL from what sizes and
    indices do.
    """
    return None not in _reach(expr)


@remembered
def wraps(expr: Expr) -> bool:
    """Whether the sum, difference, product or negation at the root may wrap around."""
    match expr:
        case Binary(BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL) | Unary(UnaryOp.NEG):
            return _reads(expr) and not is_small(expr)
        case _:
            return False


def _reads(expr: Expr) -> bool:
    """Whether something in it is read from memory."""
    return not isinstance(expr, Const | Var) and _reads_in(expr)


@remembered
def _reads_in(expr: Expr) -> bool:
    below = cast(tuple[Expr, ...], children(expr))
    return isinstance(expr, Load) or any(map(_reads, below))


@remembered
def _reach(expr: Expr) -> _Bounds:
    """How far below 0 and above 0 data and numbers take the expression, sizes and indices aside;
    None where that is more than SMALL.
    """
    low, high = _of(expr)
    return (
        None if low is None or low > SMALL else low,
        None if high is None or high > SMALL else high,
    )


def _of(expr: Expr) -> _Bounds:
    match expr:
        case Const(int(number)):
            return abs(int(number)), abs(int(number))
        case Cast(_, operand) if dtype_of(operand) is INDEX:
            return _reach(operand)
        case Cast(_, operand) if (dtype := dtype_of(operand)).bits <= 32 and not dtype.is_float:
            return 2**dtype.bits, 2**dtype.bits
        case Unary(UnaryOp.NEG, operand):
            low, high = _reach(operand)
            return high, low
        case Select(_, then, otherwise):
            (a, b), (c, d) = _reach(then), _reach(otherwise)
            return _larger(a, c), _larger(b, d)
        case Binary():
            return _of_binary(expr)
        case Var():
            return 0, 0
        case _:
            return None, None


def _of_binary(expr: Binary) -> _Bounds:
    (a, b), (c, d) = _reach(expr.lhs), _reach(expr.rhs)
    match expr.op:
        case BinaryOp.ADD:
            return _plus(a, c), _plus(b, d)
        case BinaryOp.SUB:
            return _plus(a, d), _plus(b, c)
        case BinaryOp.MUL if not _reads(expr):
            return 0, 0
        case BinaryOp.MUL:
            for side, by in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
                if isinstance(by, Const) and None not in _reach(side):
                    reach = max(m for m in _reach(side) if m is not None) * abs(int(by.value.real))
                    return reach, reach
            return None, None
        case BinaryOp.MIN:
            return _larger(a, c), _smaller(b, d)
        case BinaryOp.MAX:
            return _smaller(a, c), _larger(b, d)
        case BinaryOp.MOD | BinaryOp.FLOORDIV:  # less than the divisor, no more than the dividend
            most = _larger(c, d) if expr.op is BinaryOp.MOD else _larger(a, b)
            return most, most
        case BinaryOp.BITAND:
            masks = [int(e.value.real) for e in (expr.lhs, expr.rhs) if isinstance(e, Const)]
            return (0, masks[0]) if masks and masks[0] >= 0 else (None, None)
        case _:
            return None, None


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _larger(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)
