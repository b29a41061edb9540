"""What has a vector form: types, and expressions in a vectorized loop.

Input: element types, and expressions over loop variables of which one is the lane. Output: whether
vectors hold them.
"""

from ....ir import nodes as ir
from ....ir.algebra import dtype_of
from ....ir.index.linear import Linear, linear
from ....ir.types import DType
from ....ir.walk import variables
from ...c.expr import is_index
from ...c.names import SUFFIX
from ...c.views import fixed_step

VECTOR_TYPES = frozenset(SUFFIX)
# Those that have forms across lanes as well: scans, transposes, rows that are streamed.
WORDS = frozenset(dtype for dtype in VECTOR_TYPES if dtype.bits >= 32)

# What has no vectors, but is loaded and stored as numbers. A bool is a byte that is 0 or 1.
STORED = {DType.BOOL: DType.UINT8}
UNSIGNED = {t.bits: t for t in (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64)}


def moves_alone(form: Linear, lane: str) -> bool:
    return form.coefficient(lane) != 0 and lane not in form.without(ir.Var(lane)).variables()


def plain(expr: ir.Expr, lane: str) -> bool:
    """Whether the lane is in the index expression only by an integer multiple."""
    return moves_alone(linear(expr), lane)


# ---------------------------------------------------------------- what has a vector form


def by_lane(expr: ir.Expr, lane: str) -> bool:
    """Whether the root of the expression has to be computed lane by lane."""
    dtype = dtype_of(expr)
    if dtype not in VECTOR_TYPES:
        return True
    match expr:
        case ir.Load(_, indices, _):
            return not fixed_step(indices, lane)
        case ir.Select(condition, _, _):
            return not maskable(condition, lane)
        case ir.Cast(to, operand):
            return not _castable(dtype_of(operand), to, operand, lane)
        case ir.Unary(op, _):
            return op is ir.UnaryOp.INVERT and not dtype.is_integer
        case ir.Call(function, _):
            return isinstance(function, ir.External)
        case _ if is_index(expr):
            return not plain(expr, lane)
        case ir.Binary(op, _, _):
            return op in _SCALAR_ONLY or (op is ir.BinaryOp.DIV and dtype.is_integer)
        case ir.Const() | ir.Var():
            return False


_SCALAR_ONLY = frozenset({ir.BinaryOp.FLOORDIV, ir.BinaryOp.MOD})


def maskable(condition: ir.Expr, lane: str) -> bool:
    """Whether a condition has a mask form."""
    if lane not in variables(condition):
        return True
    match condition:
        case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case ir.Binary(ir.BinaryOp.BITAND | ir.BinaryOp.BITOR | ir.BinaryOp.BITXOR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case ir.Unary(ir.UnaryOp.NOT | ir.UnaryOp.INVERT, a):
            return maskable(a, lane)
        case ir.Call(function, (a,)) if function in ir.PREDICATES:
            return dtype_of(a) in VECTOR_TYPES
        case ir.Binary(op, a, _) if op in ir.COMPARISONS:
            return dtype_of(a) in VECTOR_TYPES
        case ir.Load(_, indices):
            return fixed_step(indices, lane)
        case _:
            return False


def _castable(old: DType, new: DType, operand: ir.Expr, lane: str) -> bool:
    if old is DType.BOOL and not isinstance(operand, ir.Load):
        return maskable(operand, lane)
    if isinstance(operand, ir.Load) and old in STORED:
        return new in VECTOR_TYPES and fixed_step(operand.indices, lane)
    return {old, new} <= VECTOR_TYPES
