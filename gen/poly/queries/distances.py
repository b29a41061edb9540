"""How far apart the iterations are that depend on each other, and what can be done about it.

Input: a tree, and loops of a perfect nest. Output: the set of distance vectors, exact where
accesses are affine, and skews after which no distance is negative, or after which one loop carries
them all (Lamport 1974, Wolfe 1986). A refused step gets its hint from here; a hint is tried before
it is given, and the prover takes nothing from this module.
"""

from collections.abc import Callable, Iterator
from itertools import product

import islpy as isl

from ...ir.nodes import Kernel, Update
from ..sets.extract import extract
from ..sets.order import IN, OUT, Relations
from ..sets.statement import Access, Statement

SET, PARAM = isl.dim_type.set, isl.dim_type.param
LARGEST = 4  # factor of a skew that is tried

Skews = tuple[tuple[str, str, int], ...]
"""Outer loop, inner loop, factor: in the order in which to skew."""


def distances(kernel: Kernel, loops: tuple[str, ...], *, terms: bool) -> isl.Set:
    """The differences, loop by loop, between an iteration and a later one that touch one place,
    of which one writes it, in one iteration of all loops further out.

    loops: of a perfect nest, outermost first. terms: whether terms of one reduction count.
    """
    found = extract(kernel)
    relations = Relations(found)
    inside = [s for s in found.statements if set(loops) <= set(s.dims)]
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(loops))
    result = isl.Set.empty(space)
    for first, second in product(inside, inside):
        for x, y in _conflicts(first, second, terms):
            pairs = relations.meet(x, y).intersect(relations.before(x, y))
            result = result.union(_differences(pairs, first, second, loops))
    return result.subtract(isl.Set.from_point(isl.Point.zero(space))).coalesce()


def _conflicts(first: Statement, second: Statement, terms: bool) -> Iterator[tuple[Access, Access]]:
    for x, y in product((*first.writes, *first.reads), (*second.writes, *second.reads)):
        adding = first is second and isinstance(first.block.body, Update) and x is y
        writes = x in first.writes or y in second.writes
        if x.storage is y.storage and writes and (terms or not adding):
            yield x, y


def _differences(
    pairs: isl.Map, first: Statement, second: Statement, loops: tuple[str, ...]
) -> isl.Set:
    outer = first.dims.index(loops[0])
    for k in range(outer):
        pairs = pairs.equate(IN, k, OUT, k)
    pairs = _only(_only(pairs, IN, first, loops), OUT, second, loops)
    result = pairs.deltas()
    return result.project_out(PARAM, 0, result.dim(PARAM))


def _only(pairs: isl.Map, side: isl.dim_type, s: Statement, loops: tuple[str, ...]) -> isl.Map:
    """The map with no other coordinates on a side than those of the loops."""
    free = range(len(s.dims), pairs.dim(side))
    others = [k for k, name in enumerate(s.dims) if name not in loops]
    for k in sorted((*others, *free), reverse=True):
        pairs = pairs.project_out(side, k, 1)
    return pairs


# ---------------------------------------------------------------- skews


def permutable(kernel: Kernel, loops: tuple[str, ...]) -> Skews | None:
    """Skews after which no distance is negative in any of the loops: they may be in any order, and
    be tiled. None where no small factors do.
    """
    found: list[tuple[str, str, int]] = []
    left = distances(kernel, loops, terms=False)
    for k in range(1, len(loops)):
        factors = _factors(left, k, lambda d, at: d.upper_bound_val(SET, at, -1))
        if factors is None:
            return None
        left = _skewed(left, k, factors)
        found += _steps(loops, k, factors)
    return tuple(found)


def wavefront(kernel: Kernel, loops: tuple[str, ...]) -> Skews | None:
    """Skews of the innermost of the loops after which it carries every distance, so that all others
    are parallel inside of it. None where no small factors do.
    """
    found, last = distances(kernel, loops, terms=True), len(loops) - 1
    factors = _factors(found, last, lambda d, at: d.upper_bound_val(SET, at, 0))
    return None if factors is None else _steps(loops, last, factors)


def free(kernel: Kernel, loops: tuple[str, ...]) -> tuple[str, ...]:
    """The loops that carry nothing: those whose iterations may run at once as they are."""
    result = []
    for k, loop in enumerate(loops):
        inner = distances(kernel, loops[k:], terms=True)
        if inner.is_subset(inner.fix_val(SET, 0, 0)):
            result.append(loop)
    return tuple(result)


def _factors(
    found: isl.Set, k: int, wrong: Callable[[isl.Set, int], isl.Set]
) -> tuple[int, ...] | None:
    """The smallest factors of the loops before the k-th that leave no distance wrong in it."""
    choices = sorted(product(range(LARGEST + 1), repeat=k), key=lambda fs: (sum(fs), fs[::-1]))
    fit = (fs for fs in choices if wrong(_skewed(found, k, fs), k).is_empty())
    return next(fit, None)


def _skewed(found: isl.Set, k: int, factors: tuple[int, ...]) -> isl.Set:
    """The distances after the k-th loop has got multiples of those before it."""
    size = found.dim(SET)
    space = isl.Space.alloc(isl.DEFAULT_CONTEXT, 0, size, size)
    rows = isl.MultiAff.identity(space)
    row = rows.get_at(k)
    for i, factor in enumerate(factors):
        row = row.set_coefficient_val(IN, i, factor)
    return found.apply(isl.Map.from_multi_aff(rows.set_at(k, row)))


def _steps(loops: tuple[str, ...], k: int, factors: tuple[int, ...]) -> Skews:
    return tuple((loops[i], loops[k], f) for i, f in enumerate(factors) if f)


# ---------------------------------------------------------------- shifts


def lag(kernel: Kernel, first: str, second: str) -> int | None:
    """How many iterations later the second of two sibling loops must run, if one loop runs both, so
    that nothing that it touches is touched too early; None where no number is enough.
    """
    found = extract(kernel)
    relations = Relations(found)
    result = 0
    for a, b in product(found.statements, found.statements):
        if first not in a.dims or second not in b.dims:
            continue
        for x, y in _conflicts(a, b, terms=True):
            pairs = relations.meet(x, y)
            for k in range(a.dims.index(first)):
                pairs = pairs.equate(IN, k, OUT, k)
            pairs = _only(_only(pairs, IN, a, (first,)), OUT, b, (second,))
            least = pairs.deltas()
            least = least.project_out(PARAM, 0, least.dim(PARAM))
            if least.is_empty():
                continue
            bound = least.dim_min_val(0)
            if not bound.is_int():
                return None
            result = max(result, -int(bound.to_python()))
    return result
