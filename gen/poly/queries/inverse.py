"""Which point of a domain an affine map takes to a place.

Input: a kernel, a domain as iteration variables, index expressions over them, and the box of the
places, as iteration variables, too. Output: each variable of the domain as an expression over those
of the box. It suggests: the prover checks what is made of it.
"""

from collections.abc import Sequence

import islpy as isl

from ...ir.algebra import add, conjunction, floordiv, index, less, mod, mul, sub
from ...ir.nodes import Binary, BinaryOp, Expr, IterVar, Kernel, Var
from ..sets.affine import NotAffine, affine, frame, region, tuple_map
from ..sets.extract import parameters_of


class NoInverse(Exception):
    """Why there is none."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def inverse(
    kernel: Kernel, domain: Sequence[IterVar], indices: Sequence[Expr], box: Sequence[IterVar]
) -> tuple[Expr, ...]:
    """The variables of the domain at a place in the box.

    Raises NoInverse where two points have one place, places between those of points are of none,
    or isl cannot say one of the expressions.
    """
    at = frame(parameters_of(kernel), tuple(v.name for v in domain))
    try:
        m = tuple_map(tuple(affine(e, at) for e in indices), at)
        m = m.intersect_domain(region(_within(domain), at))
    except NotAffine:
        raise NoInverse("an index, or a bound of the domain, is not affine") from None
    if not m.is_injective():
        raise NoInverse("two instances have one place in the new space")
    back = isl.PwMultiAff.from_map(m.reverse()).gist(m.range())
    names = {v.name for v in domain}
    sizes = tuple(name for name in at.values if name not in names)
    places = tuple(v.name for v in box)
    result = tuple(_expression(back.get_pw_aff(k), sizes, places) for k in range(len(domain)))
    there = frame(parameters_of(kernel), places)
    inside = region(_within(box), there)
    there = there.bind({v.name: affine(e, there) for v, e in zip(domain, result, strict=True)})
    if not inside.intersect(region(_within(domain), there)).is_subset(m.range()):
        raise NoInverse("the new space has places between those of the instances")
    return result


def _within(domain: Sequence[IterVar]) -> Expr:
    """That the variables are within their bounds."""
    lower = (Binary(BinaryOp.LE, v.lower, Var(v.name)) for v in domain)
    upper = (less(Var(v.name), v.upper) for v in domain)
    return conjunction(*lower, *upper)


def _expression(value: isl.PwAff, sizes: tuple[str, ...], places: tuple[str, ...]) -> Expr:
    pieces = value.get_pieces()
    if len(pieces) != 1:
        raise NoInverse("the way back is not the same everywhere")
    return _sum(pieces[0][1], sizes, places)


def _sum(aff: isl.Aff, sizes: tuple[str, ...], places: tuple[str, ...]) -> Expr:
    """An isl function as an expression: terms, floors of terms, and a divisor around all."""
    divisor = aff.get_denominator_val().to_python()

    def times(value: isl.Val) -> int:
        return int(value.mul(aff.get_denominator_val()).to_python())

    result: Expr = index(times(aff.get_constant_val()))
    kinds = ((isl.dim_type.in_, places), (isl.dim_type.param, sizes))
    for kind, names in kinds:
        for k, name in enumerate(names):
            result = add(result, mul(Var(name), times(aff.get_coefficient_val(kind, k))))
    for k in range(aff.dim(isl.dim_type.div)):
        by = times(aff.get_coefficient_val(isl.dim_type.div, k))
        if not by:
            continue
        inner = aff.get_div(k)
        below = int(inner.get_denominator_val().to_python())
        whole = _sum(inner.scale_val(inner.get_denominator_val()), sizes, places)
        if by % below:
            result = add(result, mul(floordiv(whole, below), by))
        else:  # what is taken off a sum leaves a remainder
            result = add(result, mul(sub(whole, mod(whole, below)), by // below))
    return floordiv(result, int(divisor))
