"""What has a vector form: types, and expressions in a vectorized loop.

Input: element types, and expressions over loop variables of which one is the lane. Output: whether
vectors hold them.
"""

from ....ir.algebra import dtype_of
from ....ir.index.linear import Linear, linear
from ....ir.nodes import (
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
from ....ir.types import DType
from ....ir.walk import variables
from ...c.expr import is_index
from ...c.names import SUFFIX
from ...c.views import fixed_step

VECTOR_TYPES = frozenset(SUFFIX)
# Those that have forms across lanes as well: scans, transposes, rows that are streamed.
WORDS = frozenset(dtype for dtype in VECTOR_TYPES if dtype.bits >= 32)

# What has no vectors, but is loaded as numbers. A bool is a byte that is 0 or 1.
STORED = {DType.BOOL: DType.UINT8}


def moves_alone(form: Linear, lane: str) -> bool:
    return form.coefficient(lane) != 0 and lane not in form.without(Var(lane)).variables()


def plain(expr: Expr, lane: str) -> bool:
    """Whether the lane is in the index expression only by an integer multiple."""
    return moves_alone(linear(expr), lane)


# ---------------------------------------------------------------- what has a vector form


def by_lane(expr: Expr, lane: str) -> bool:
    """Whether the root of the expression has to be computed lane by lane."""
    dtype = dtype_of(expr)
    if dtype not in VECTOR_TYPES:
        return True
    match expr:
        case Load(_, indices, _):
            return not fixed_step(indices, lane)
        case Select(condition, _, _):
            return not maskable(condition, lane)
        case Cast(to, operand):
            return not _castable(dtype_of(operand), to, operand, lane)
        case Unary(op, _):
            return op is UnaryOp.INVERT and not dtype.is_integer
        case Call(function, _):
            return isinstance(function, External)
        case _ if is_index(expr):
            return not plain(expr, lane)
        case Binary(op, _, _):
            return op in _SCALAR_ONLY or (op is BinaryOp.DIV and dtype.is_integer)
        case Const() | Var():
            return False


_SCALAR_ONLY = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD})


def maskable(condition: Expr, lane: str) -> bool:
    """Whether a condition has a mask form."""
    if lane not in variables(condition):
        return True
    match condition:
        case Binary(BinaryOp.AND | BinaryOp.OR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case Binary(BinaryOp.BITAND | BinaryOp.BITOR | BinaryOp.BITXOR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case Unary(UnaryOp.NOT | UnaryOp.INVERT, a):
            return maskable(a, lane)
        case Call(Function.ISNAN, (a,)):
            return dtype_of(a) in VECTOR_TYPES
        case Binary(op, a, _) if op in COMPARISONS:
            return dtype_of(a) in VECTOR_TYPES
        case _:
            return False


def _castable(old: DType, new: DType, operand: Expr, lane: str) -> bool:
    if old is DType.BOOL and not isinstance(operand, Load):
        return maskable(operand, lane)
    if isinstance(operand, Load) and old in STORED:
        return new in VECTOR_TYPES and fixed_step(operand.indices, lane)
    return {old, new} <= VECTOR_TYPES
