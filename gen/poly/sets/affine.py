"""Index expressions and conditions as isl functions and sets.

Input: expressions, and the values of their variables as functions of the point of one set space (a
`Frame`). Output: piecewise quasi-affine functions and sets over that space, exactly equal to the
expressions at all points that the frame is for; what isl cannot say raises `NotAffine`, so nothing
is ever approximated here. Only INDEX arithmetic counts: narrower integers wrap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import assert_never, final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import dtype_of
from ...ir.types import INDEX, DType, Kind
from ...ir.wrapping import wraps


class NotAffine(Exception):
    """The expression is not quasi-affine in the frame's variables and the dims."""

    def __init__(self, expr: ir.Expr) -> None:
        super().__init__()
        self.expr = expr


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """The variables' values at each point of `space`; dims are parameters of the space.

    known: holds all the points that functions and sets are taken at, if something is known of
        them. Elsewhere these may be anything.
    """

    space: isl.Space
    values: Mapping[str, isl.PwAff]
    known: isl.Set | None = None

    def bind(self, names: Mapping[str, isl.PwAff]) -> "Frame":
        return replace(self, values={**self.values, **names})

    def constant(self, value: int) -> isl.PwAff:
        return isl.PwAff.val_on_domain(isl.Set.universe(self.space), isl.Val(str(value)))


def frame(parameters: isl.Space, variables: tuple[str, ...]) -> Frame:
    """The frame of the space whose coordinates are the variables."""
    space = parameters.set_from_params().add_dims(isl.dim_type.set, len(variables))
    local = isl.LocalSpace.from_space(space)
    values = {
        str(space.get_dim_name(isl.dim_type.param, k)): isl.PwAff.var_on_domain(
            local, isl.dim_type.param, k
        )
        for k in range(space.dim(isl.dim_type.param))
    }
    for k, name in enumerate(variables):
        values[name] = isl.PwAff.var_on_domain(local, isl.dim_type.set, k)
    return Frame(space, values)


def affine(expr: ir.Expr, at: Frame) -> isl.PwAff:
    """The integer expression as a function of the frame's point. Raises NotAffine."""
    match expr:
        case ir.Var(name, _) if name in at.values:
            return at.values[name]
        case ir.Const(int() as value, dtype) if dtype is INDEX:
            return at.constant(value)
        case ir.Unary(ir.UnaryOp.NEG, operand):
            return affine(operand, at).neg()
        case ir.Cast(dtype, operand) if dtype is INDEX:
            return affine(operand, at)
        case ir.Select(condition, then, otherwise):
            holds = region(condition, at)
            taken = affine(then, at).intersect_domain(holds)
            return taken.union_add(affine(otherwise, at).intersect_domain(holds.complement()))
        case ir.Binary():
            return _arithmetic(expr, at)
        case ir.Var() | ir.Const() | ir.Unary() | ir.Cast() | ir.Call() | ir.Load():
            raise NotAffine(expr)
        case _:
            assert_never(expr)


def _arithmetic(expr: ir.Binary, at: Frame) -> isl.PwAff:
    lhs = affine(expr.lhs, at)
    match expr.rhs:
        case ir.Const(int() as number, dtype) if dtype is INDEX and number > 0:
            found = _with_number(expr.op, lhs, isl.Val(str(int(number))))
            if found is not None:
                return found
    rhs = affine(expr.rhs, at)
    match expr.op:
        case ir.BinaryOp.ADD:
            return lhs.add(rhs)
        case ir.BinaryOp.SUB:
            return lhs.sub(rhs)
        case ir.BinaryOp.MIN:
            return lhs.min(rhs)
        case ir.BinaryOp.MAX:
            return lhs.max(rhs)
        case ir.BinaryOp.MUL:
            product = _product(lhs, rhs, at)
            if product is None:
                raise NotAffine(expr)
            return product
        case ir.BinaryOp.FLOORDIV | ir.BinaryOp.MOD:
            quotient = lhs.div(rhs).floor() if _positive(rhs) else _quotient(lhs, rhs, at)
            if quotient is None:
                raise NotAffine(expr)
            return quotient if expr.op is ir.BinaryOp.FLOORDIV else lhs.sub(quotient.mul(rhs))
        case _:
            raise NotAffine(expr)


def _with_number(op: ir.BinaryOp, lhs: isl.PwAff, number: isl.Val) -> isl.PwAff | None:
    """The value with a positive number on its right, by what isl does faster than with a function
    that is constant; None where it has no such thing.
    """
    match op:
        case ir.BinaryOp.ADD:
            return lhs.add_constant_val(number)
        case ir.BinaryOp.SUB:
            return lhs.add_constant_val(number.neg())
        case ir.BinaryOp.MUL:
            return lhs.scale_val(number)
        case ir.BinaryOp.FLOORDIV:
            return lhs.scale_down_val(number).floor()
        case ir.BinaryOp.MOD:
            return lhs.mod_val(number)
        case _:
            return None


MOST_FACTOR = 16


def _product(lhs: isl.PwAff, rhs: isl.PwAff, at: Frame) -> isl.PwAff | None:
    """The product, where a factor is a number, or one of few numbers at the frame's points: with p
    of 0 and 1, `p * (n // 2)` is 0 or n // 2. None where it may be beyond MOST_FACTOR, above or
    below 0.
    """
    if lhs.is_cst() or rhs.is_cst():
        return lhs.mul(rhs)
    if at.known is None:
        return None
    least, most = at.constant(-MOST_FACTOR), at.constant(MOST_FACTOR)
    for factor, other in ((lhs, rhs), (rhs, lhs)):
        if at.known.is_subset(factor.le_set(most)) and at.known.is_subset(factor.ge_set(least)):
            pieces = [
                (other.mul(at.constant(number)), here)
                for number in range(-MOST_FACTOR, MOST_FACTOR + 1)
                if not at.known.is_disjoint(here := factor.eq_set(at.constant(number)))
            ]
            return _chosen(pieces) if pieces else at.constant(0)
    return None


def _chosen(pieces: Sequence[tuple[isl.PwAff, isl.Set]]) -> isl.PwAff:
    """The function that is each piece's where that is, and the last one's elsewhere."""
    *others, (result, _) = pieces
    for piece, here in others:
        elsewhere = result.intersect_domain(here.complement())
        result = piece.intersect_domain(here).union_add(elsewhere)
    return result


MOST_QUOTIENT = 16


def _quotient(lhs: isl.PwAff, rhs: isl.PwAff, at: Frame) -> isl.PwAff | None:
    """The quotient, rounded down, by a positive number that is no constant: of `i + 1` by n it is 0
    or 1 where i < n. None where it may be beyond MOST_QUOTIENT, above or below 0, at the frame's
    points.
    """
    if at.known is None:
        return None
    least, most = (rhs.mul(at.constant(q)) for q in (-MOST_QUOTIENT, MOST_QUOTIENT + 1))
    if not at.known.is_subset(lhs.ge_set(least).intersect(lhs.lt_set(most))):
        return None  # at once: to find out piece by piece takes isl ten times as long
    rest, pieces = at.known, list[tuple[isl.PwAff, isl.Set]]()
    for numbers in (range(MOST_QUOTIENT + 1), range(-1, -MOST_QUOTIENT - 1, -1)):
        for quotient in map(at.constant, numbers):
            low = rhs.mul(quotient)
            above, below = lhs.ge_set(low), lhs.lt_set(low.add(rhs))
            if rest.is_disjoint(above if numbers.step > 0 else below):
                break  # nor is it further from 0
            here = above.intersect(below)  # so the divisor is positive
            if rest.is_disjoint(here):
                continue
            pieces.append((quotient, here.gist(at.known)))
            rest = rest.subtract(here)
    if not rest.is_empty():
        return None
    return _chosen(pieces) if pieces else at.constant(0)


def _positive(value: isl.PwAff) -> bool:
    return bool(value.is_cst()) and bool(value.pos_set().is_equal(value.domain()))


Interval = tuple[isl.PwAff | None, isl.PwAff | None]
_UNKNOWN: Interval = (None, None)


def interval(expr: ir.Expr, at: Frame) -> Interval:
    """The least and greatest value, where they are known: an affine expression has itself for both,
    a clamp, a remainder or a mask of bits bounds even what isl cannot say, and so do quotients by
    numbers, sums and choices of such. What is not known is no more than the type holds.
    """
    try:
        value = affine(expr, at)
    except NotAffine:
        pass
    else:
        return value, value
    match expr:
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX as op, lhs, rhs):
            (low, high), (other_low, other_high) = interval(lhs, at), interval(rhs, at)
            if op is ir.BinaryOp.MIN:
                return _both(isl.PwAff.min, low, other_low), _any(isl.PwAff.min, high, other_high)
            return _any(isl.PwAff.max, low, other_low), _both(isl.PwAff.max, high, other_high)
        case ir.Binary(ir.BinaryOp.ADD | ir.BinaryOp.SUB as op, lhs, rhs) if (
            dtype_of(expr) is INDEX
        ):
            (low, high), (other_low, other_high) = interval(lhs, at), interval(rhs, at)
            if low is None or high is None or other_low is None or other_high is None:
                return _UNKNOWN
            if wraps(expr):
                return _UNKNOWN
            if op is ir.BinaryOp.ADD:
                return low.add(other_low), high.add(other_high)
            return low.sub(other_high), high.sub(other_low)
        case ir.Binary(ir.BinaryOp.FLOORDIV, dividend, ir.Const(int() as number)) if number > 0:
            low, high = (
                end if end is None else end.div(at.constant(number)).floor()
                for end in interval(dividend, at)
            )
            return low, high
        case ir.Binary(ir.BinaryOp.MOD, _, divisor):
            low, high = interval(divisor, at)
            if low is None or not _always(low.pos_set(), at):
                return _UNKNOWN
            return at.constant(0), None if high is None else high.sub(at.constant(1))
        case ir.Binary(ir.BinaryOp.BITAND, _, ir.Const(int() as mask)) | ir.Binary(
            ir.BinaryOp.BITAND, ir.Const(int() as mask), _
        ) if not isinstance(mask, bool) and 0 <= mask <= _LARGEST:
            return at.constant(0), at.constant(mask)
        case ir.Const(int() as number, dtype) if dtype.is_integer:
            exact = at.constant(number)
            return exact, exact if number <= _LARGEST else None
        case ir.Select(_, then, otherwise):
            (low, high), (other_low, other_high) = interval(then, at), interval(otherwise, at)
            return _both(isl.PwAff.min, low, other_low), _both(isl.PwAff.max, high, other_high)
        case ir.Cast(dtype, operand) if dtype.is_integer and dtype_of(operand).is_integer:
            return _converted(dtype, operand, at)
        case _:
            return _UNKNOWN


_LARGEST = 2**63 - 1
"""Of INDEX. No upper end is above it: those in sizes are of exact INDEX arithmetic."""


def _converted(dtype: DType, expr: ir.Expr, at: Frame) -> Interval:
    """The interval of an integer as one of the type: the same, where it lies within that type's."""
    low, high = interval(expr, at)
    source = dtype_of(expr)
    if source.kind is Kind.UNSIGNED or source.bits < 64:
        low = _any(isl.PwAff.max, low, at.constant(_least(source)))
    if source.bits < 64:
        high = _any(isl.PwAff.min, high, at.constant(_most(source)))
    if dtype is INDEX:
        stays = source is not DType.UINT64 or high is not None
    else:
        stays = low is not None and _always(low.ge_set(at.constant(_least(dtype))), at)
        if dtype.bits < 64:
            stays &= high is not None and _always(high.le_set(at.constant(_most(dtype))), at)
    return (low, high) if stays else _UNKNOWN


def _least(dtype: DType) -> int:
    return 0 if dtype.kind is Kind.UNSIGNED else -(1 << (dtype.bits - 1))


def _most(dtype: DType) -> int:
    return (1 << (dtype.bits - (dtype.kind is Kind.SIGNED))) - 1


def _always(where: isl.Set, at: Frame) -> bool:
    """Whether the set has all of the frame's points."""
    known = isl.Set.universe(at.space) if at.known is None else at.known
    return bool(known.is_subset(where))


_Combine = Callable[[isl.PwAff, isl.PwAff], isl.PwAff]


def _both(f: _Combine, a: isl.PwAff | None, b: isl.PwAff | None) -> isl.PwAff | None:
    return None if a is None or b is None else f(a, b)


def _any(f: _Combine, a: isl.PwAff | None, b: isl.PwAff | None) -> isl.PwAff | None:
    return b if a is None else a if b is None else f(a, b)


def region(condition: ir.Expr, at: Frame) -> isl.Set:
    """Where the condition holds. Raises NotAffine."""
    match condition:
        case ir.Const(value, _):
            everywhere = isl.Set.universe(at.space)
            return everywhere if value else isl.Set.empty(at.space)
        case ir.Unary(ir.UnaryOp.NOT, operand):
            return region(operand, at).complement()
        case ir.Binary(ir.BinaryOp.AND, lhs, rhs):
            return region(lhs, at).intersect(region(rhs, at))
        case ir.Binary(ir.BinaryOp.OR, lhs, rhs):
            return region(lhs, at).union(region(rhs, at))
        case ir.Binary(ir.BinaryOp.LT | ir.BinaryOp.LE as op, lhs, rhs):
            return _below(op, lhs, rhs, at)
        case ir.Binary(ir.BinaryOp.GT, lhs, rhs):
            return _below(ir.BinaryOp.LT, rhs, lhs, at)
        case ir.Binary(ir.BinaryOp.GE, lhs, rhs):
            return _below(ir.BinaryOp.LE, rhs, lhs, at)
        case ir.Binary(op, lhs, rhs) if op in ir.COMPARISONS:
            return _comparison(op, affine(lhs, at), affine(rhs, at))
        case _:
            raise NotAffine(condition)


def _below(op: ir.BinaryOp, lhs: ir.Expr, rhs: ir.Expr, at: Frame) -> isl.Set:
    """Where the greatest of some is below the least of others each is below each: one convex piece,
    where the extremes themselves are functions of several.
    """
    low = [affine(e, at) for e in _extreme(ir.BinaryOp.MAX, lhs)]
    high = [affine(e, at) for e in _extreme(ir.BinaryOp.MIN, rhs)]
    pairs = (_comparison(op, a, b) for a in low for b in high)
    return reduce(isl.Set.intersect, pairs)


def _extreme(op: ir.BinaryOp, e: ir.Expr) -> tuple[ir.Expr, ...]:
    """Expressions whose minimum, or maximum, the expression is: sums and quotients keep the order
    of what they are made of.
    """
    other = ir.BinaryOp.MAX if op is ir.BinaryOp.MIN else ir.BinaryOp.MIN
    match e:
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX as found, a, b) if found is op:
            return (*_extreme(op, a), *_extreme(op, b))
        case ir.Binary(ir.BinaryOp.ADD, a, b):
            return _each(e, _extreme(op, a), _extreme(op, b))
        case ir.Binary(ir.BinaryOp.SUB, a, b):
            return _each(e, _extreme(op, a), _extreme(other, b))
        case ir.Binary(ir.BinaryOp.FLOORDIV | ir.BinaryOp.MUL, a, ir.Const(int() as c) as b) if (
            c > 0
        ):
            return _each(e, _extreme(op, a), (b,))
        case _:
            return (e,)


def _each(e: ir.Binary, lhs: Sequence[ir.Expr], rhs: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
    """The expression of each pair of operands."""
    if len(lhs) * len(rhs) == 1:
        return (e,)
    return tuple(replace(e, lhs=a, rhs=b) for a in lhs for b in rhs)


def _comparison(op: ir.BinaryOp, lhs: isl.PwAff, rhs: isl.PwAff) -> isl.Set:
    match op:  # the sign of a difference takes isl half as long as the order of two functions
        case ir.BinaryOp.LT:
            return rhs.sub(lhs).pos_set()
        case ir.BinaryOp.LE:
            return rhs.sub(lhs).nonneg_set()
        case ir.BinaryOp.EQ:
            return lhs.eq_set(rhs)
        case _:
            return lhs.ne_set(rhs)


def tuple_map(functions: tuple[isl.PwAff, ...], at: Frame) -> isl.Map:
    """The map from the frame's points to the tuples of the functions' values."""
    start = isl.Map.from_domain(isl.Set.universe(at.space))
    parts = (isl.Map.from_pw_aff(f) for f in functions)
    return reduce(isl.Map.flat_range_product, parts, start)
