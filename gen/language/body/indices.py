"""Index expressions of the spec as IR: bounds, conditions, shapes, and what can be told of them.

Output: INDEX expressions over dims, integer scalar parameters and indices. No array is read in
them, so the prover knows every domain exactly.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import reduce

from ...errors import Span, SpecError
from ...ir import algebra, walk
from ...ir import nodes as ir
from ...ir.index.linear import Linear, linear
from ...ir.nodes import BinaryOp, UnaryOp
from .. import yaml
from ..syntax import nodes as syntax
from .program import Range

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


def extent(index: ir.Expr, ranges: Mapping[str, Range], dims: Collection[str]) -> ir.Expr | None:
    """The size, never negative, of an axis that `index` stays within while the ranges run.

    None where that cannot be told.
    """
    largest = _bound(index, ranges, upper=True)
    return None if largest is None else size(algebra.add(largest, 1), dims)


def size(expr: ir.Expr, dims: Collection[str]) -> ir.Expr:
    """The expression, or 0 where it is negative; constants gathered."""
    form = linear(expr)
    plain = _in_order(form)
    return plain if is_not_negative(form, dims) else algebra.maximum(plain, 0)


def tidy(expr: ir.Expr) -> ir.Expr:
    """The expression with its terms gathered."""
    return replace(_in_order(linear(expr)), span=expr.span)


def _in_order(form: Linear) -> ir.Expr:
    """The sum as an expression: added terms first, the constant last."""
    result: ir.Expr | None = None
    for term, coefficient in sorted(form.terms.items(), key=lambda item: item[1] < 0):
        part = algebra.mul(abs(coefficient), term)
        if coefficient < 0:
            result = algebra.sub(result or 0, part)
        else:
            result = part if result is None else algebra.add(result, part)
    if result is None:
        return algebra.index(form.constant)
    constant = form.constant
    return algebra.add(result, constant) if constant >= 0 else algebra.sub(result, -constant)


_MAX_CHOICES = 8  # of one operand of a min or max each: twice the work for every one


def is_not_negative(form: Linear, dims: Collection[str], choices: int = _MAX_CHOICES) -> bool:
    """Whether that follows from the dims being at least 0; False where it is not plain."""

    def known(term: ir.Expr) -> bool:
        match term:
            case ir.Var(name):
                return name in dims
            case ir.Binary(BinaryOp.MUL, lhs, rhs):
                return all(is_not_negative(linear(e), dims, choices) for e in (lhs, rhs))
            case ir.Binary(BinaryOp.FLOORDIV, lhs, ir.Const(int(divisor))) if divisor > 0:
                return is_not_negative(linear(lhs), dims, choices)
            case ir.Binary(BinaryOp.MOD, _, ir.Const(int(divisor))) if divisor > 0:
                return True
            case _:
                return False

    for term, coefficient in form.terms.items():
        match term:
            case ir.Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs) if choices:
                # A max that is added, or a min that is subtracted, is at least with either operand.
                enough = any if (op is BinaryOp.MAX) == (coefficient > 0) else all
                rest = form.without(term)
                return enough(
                    is_not_negative(rest + linear(e) * coefficient, dims, choices - 1)
                    for e in (lhs, rhs)
                )
    return form.constant >= 0 and all(c > 0 and known(term) for term, c in form.terms.items())


def _bound(expr: ir.Expr, ranges: Mapping[str, Range], *, upper: bool) -> ir.Expr | None:
    """The largest (or smallest) value of `expr`, free of the ranges' indices."""
    match expr:
        case ir.Var(name) if name in ranges:
            over = ranges[name]
            last = algebra.sub(over.upper, 1) if upper else over.lower
            return _bound(last, ranges, upper=upper)
        case ir.Var() | ir.Const():
            return expr
        case ir.Binary(BinaryOp.ADD | BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            a, b = _bound(lhs, ranges, upper=upper), _bound(rhs, ranges, upper=upper)
        case ir.Binary(BinaryOp.SUB as op, lhs, rhs):
            a, b = _bound(lhs, ranges, upper=upper), _bound(rhs, ranges, upper=not upper)
        case ir.Binary(BinaryOp.MUL | BinaryOp.FLOORDIV as op, lhs, ir.Const(int(c)) as rhs) if (
            c > 0
        ):
            a, b = _bound(lhs, ranges, upper=upper), rhs
        case ir.Binary(BinaryOp.MUL as op, ir.Const(int(c)) as lhs, rhs) if c > 0:
            a, b = lhs, _bound(rhs, ranges, upper=upper)
        case _ if not walk.variables(expr) & ranges.keys():
            return expr
        case _:
            return None
    return None if a is None or b is None else algebra.simplify(ir.Binary(op, a, b))


_MAX_SIZES = 16


def cover(a: ir.Expr, b: ir.Expr, dims: Collection[str]) -> ir.Expr | None:
    """The smallest size that is plainly at least both; None where too many could be that."""
    kept = _maxima(a)
    for part in _maxima(b):
        if not any(_at_least(k, part, dims) for k in kept):
            kept = (*(k for k in kept if not _at_least(part, k, dims)), part)
    if len(kept) > _MAX_SIZES:
        return None
    return reduce(algebra.maximum, sorted(kept, key=lambda part: isinstance(part, ir.Const)))


def _maxima(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    match expr:
        case ir.Binary(BinaryOp.MAX, lhs, rhs):
            return _maxima(lhs) + _maxima(rhs)
        case _:
            return (expr,)


def _at_least(a: ir.Expr, b: ir.Expr, dims: Collection[str]) -> bool:
    return is_not_negative(linear(a) - linear(b), dims)
