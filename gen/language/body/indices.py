"""Index expressions of the spec as IR: bounds, conditions, shapes, and what can be told of them.

Output: INDEX expressions over dims, integer scalar parameters and indices. No array is read in
them, so the prover knows every domain exactly.
"""

from collections.abc import Collection, Mapping
from functools import reduce

from ...errors import Span, SpecError
from ...ir import algebra
from ...ir import nodes as ir
from ...ir.index import bounds
from ...ir.index.linear import linear
from ...ir.nodes import BinaryOp, UnaryOp
from .. import yaml
from ..syntax import nodes as syntax
from .program import Range
from .sizes import Sizes

ARITHMETIC = frozenset(
    {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.MIN,
     BinaryOp.MAX}
)  # fmt: skip


def index_expr(expr: syntax.Expr, names: Collection[str]) -> ir.Expr:
    """An integer expression over `names`. Raises SpecError for anything else."""
    match expr:
        case syntax.Name(name) if name in names:
            return ir.Var(name, span=expr.span)
        case syntax.Name(name):
            message = f"'{name}' is not a dim, an index or an integer parameter here"
            raise SpecError(message, expr.span, yaml.hint(name, names))
        case syntax.Literal(int(value)) if not isinstance(value, bool):
            return _fitting(algebra.index(value), expr.span)
        case syntax.Unary(UnaryOp.NEG, operand):
            return algebra.sub(0, index_expr(operand, names))
        case syntax.Binary(op, lhs, rhs) if op in ARITHMETIC:
            a, b = index_expr(lhs, names), index_expr(rhs, names)
            return _fitting(algebra.simplify(ir.Binary(op, a, b, span=expr.span)), expr.span)
        case syntax.Element():
            raise SpecError(
                "an array cannot be read here",
                expr.span,
                "bounds and conditions are over dims, indices and integer parameters",
            )
        case _:
            raise SpecError("this is not an integer expression over dims and indices", expr.span)


def _fitting(expr: ir.Expr, span: Span) -> ir.Expr:
    if isinstance(expr, ir.Const) and not -(2**63) <= (number := int(expr.value.real)) < 2**63:
        raise SpecError(f"{number} does not fit in {expr.dtype.value}", span)
    return expr


def condition_expr(expr: syntax.Expr, names: Collection[str]) -> ir.Expr:
    """A bool expression over integer expressions over `names`. Raises SpecError."""
    match expr:
        case syntax.Binary(BinaryOp.AND | BinaryOp.OR as op, lhs, rhs):
            a, b = condition_expr(lhs, names), condition_expr(rhs, names)
            return algebra.simplify(ir.Binary(op, a, b, span=expr.span))
        case syntax.Binary(op, lhs, rhs) if op in ir.COMPARISONS:
            a, b = index_expr(lhs, names), index_expr(rhs, names)
            return algebra.simplify(ir.Binary(op, a, b, span=expr.span))
        case syntax.Unary(UnaryOp.NOT, operand):
            return ir.Unary(UnaryOp.NOT, condition_expr(operand, names), span=expr.span)
        case _:
            raise SpecError(
                "this is not a condition over dims and indices",
                expr.span,
                "compare integers, as in n <= 16; choose between values with select",
            )


# ---------------------------------------------------------------- extents


def extent(index: ir.Expr, ranges: Mapping[str, Range], sizes: Sizes) -> ir.Expr | None:
    """The size, never negative, of an axis that `index` stays within while the ranges run.

    None where that cannot be told.
    """
    over = (bounds.LoopRange(r.index, r.lower, algebra.sub(r.upper, 1)) for r in ranges.values())
    largest = bounds.highest(index, over)
    return None if largest is None else sizes.shared(size(algebra.add(largest, 1), sizes))


def size(expr: ir.Expr, sizes: Sizes) -> ir.Expr:
    """The expression, or 0 where it is negative; constants gathered."""
    plain = linear(expr).expr(number_first=True)
    return plain if sizes.never_negative(expr) else algebra.maximum(plain, 0)


_MAX_SIZES = 16


def cover(a: ir.Expr, b: ir.Expr, sizes: Sizes) -> ir.Expr | None:
    """The smallest size that is plainly at least both; None where too many could be that."""
    parts = (*bounds.sides(BinaryOp.MAX, a), *bounds.sides(BinaryOp.MAX, b))
    kept = bounds.deciding(BinaryOp.MAX, parts, sizes.about(*parts))
    if len(kept) > _MAX_SIZES:
        return None
    return reduce(algebra.maximum, sorted(kept, key=lambda part: isinstance(part, ir.Const)))
