"""Places of which only bounds are known.

Input: the events of an access, and the bounds of an index that is not affine. Output: the map from
events to the free coordinate that stands for the index. Indices that are quotients and remainders
of one number, as where an axis was cut in several, have one coordinate, which is that number.
"""

from collections import Counter
from collections.abc import Sequence

import islpy as isl

from ...ir.nodes import Binary, BinaryOp, Const, Expr
from .affine import Frame, NotAffine, affine


def within(
    bounds: tuple[isl.PwAff | None, isl.PwAff | None], free: int, coordinate: int, events: isl.Set
) -> isl.Map:
    """From events to their free coordinate, which lies between the bounds that are known."""
    part = isl.Map.universe(_to_number(events.get_space()))
    low, high = (
        b if b is None else isl.Map.from_pw_aff(b).add_dims(isl.dim_type.in_, free) for b in bounds
    )
    if low is not None:
        part = part.intersect(low.apply_range(_order("<=")))
    if high is not None:
        part = part.intersect(high.apply_range(_order(">=")))
    return part.equate(isl.dim_type.in_, coordinate, isl.dim_type.out, 0)


def numbers(indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """What the free coordinates of indices that are not affine stand for: of each index itself, or
    the number that it and another are parts of.
    """
    several = Counter(map(_whole, indices))
    return tuple(n if several[n := _whole(i)] > 1 else i for i in indices)


def _whole(index: Expr) -> Expr:
    match index:
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD, dividend, Const(int(by))) if by > 0:
            return _whole(dividend)
        case _:
            return index


def part(index: Expr, number: Expr, coordinate: int, events: isl.Set) -> isl.PwAff:
    """The index, as a function of the free coordinate that stands for the number."""
    if index == number:
        local = isl.LocalSpace.from_space(events.get_space())
        return isl.PwAff.var_on_domain(local, isl.dim_type.set, coordinate)
    assert isinstance(index, Binary) and isinstance(index.rhs, Const)
    dividend = part(index.lhs, number, coordinate, events)
    by = isl.Val(str(int(index.rhs.value.real)))
    if index.op is BinaryOp.MOD:
        return dividend.mod_val(by)
    return dividend.scale_down_val(by).floor()


def _order(relation: str) -> isl.Map:
    return isl.Map(f"{{ [a] -> [b] : a {relation} b }}")


def _to_number(space: isl.Space) -> isl.Space:
    """The space of maps from a set space to one coordinate."""
    return isl.Map.from_domain(isl.Set.universe(space)).add_dims(isl.dim_type.out, 1).get_space()


def unknown(indices: Sequence[Expr], at: Frame) -> dict[Expr, Expr]:
    """The indices that are not affine, each with the number that a free coordinate stands for."""
    those = [expr for expr in indices if known(expr, at) is None]
    return dict(zip(those, numbers(those), strict=True))


def known(expr: Expr, at: Frame) -> isl.PwAff | None:
    """An affine index; None for another."""
    try:
        return affine(expr, at)
    except NotAffine:
        return None
