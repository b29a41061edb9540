"""When the iterations of loops run, as a map in isl's notation says it.

Input: the loops around blocks with their bounds and guards, and a map from the values of each
block's loops to coordinates of time. Output: `Timed` parts, from which `code` makes loops. Nothing
here is trusted by the proof, which reads the new tree by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import islpy as isl

from ...ir.algebra import conjunction, conjuncts
from ...ir.nodes import Expr
from ..sets.affine import NotAffine, frame, region

Piece = isl.Map  # of the map: from the loops of one block to coordinates
Known = isl.Set  # of dims and variables, which are its parameters

IN, OUT, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param


@final
@dataclass(frozen=True, slots=True)
class Timed:
    """A block: the loops around it that are ordered anew, the points of those at which it runs, and
    the time of each point.
    """

    block: str
    loops: tuple[str, ...]
    domain: isl.Set
    time: isl.Map

    @property
    def coordinates(self) -> int:
        return int(self.time.dim(OUT))


def read_map(text: str, parameters: Iterable[str]) -> dict[str, list[isl.Map]] | None:
    """The pieces of a map by the block that they are of; None where it is no affine map."""
    declared = ", ".join(parameters)
    whole = text if text.lstrip().startswith("[") or not declared else f"[{declared}] -> {text}"
    try:
        pieces = isl.UnionMap(whole).get_map_list()
    except isl.Error:
        return None
    result: dict[str, list[isl.Map]] = {}
    for k in range(pieces.n_map()):
        piece = pieces.get_at(k)
        name = str(piece.get_tuple_name(IN))
        result.setdefault(name, []).append(piece.reset_tuple_id(IN).reset_tuple_id(OUT))
    return result


def loops_taken(piece: isl.Map) -> int:
    """How many loops a piece gives times to."""
    return int(piece.dim(IN))


def known(parameters: Iterable[str], conditions: Iterable[Expr]) -> isl.Set:
    """What is known of dims and of loops further out; what is not affine is left out."""
    names = tuple(parameters)
    space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(names))
    for k, name in enumerate(names):
        space = space.set_dim_name(PARAM, k, name)
    at = frame(space, ())
    result = isl.Set.universe(at.space)
    for condition in conditions:
        try:
            result = result.intersect(region(condition, at))
        except NotAffine:
            continue
    return result.params()


def timed(
    context: isl.Set,
    block: str,
    bounds: Mapping[str, tuple[Expr, Expr]],
    guard: Expr,
    piece: isl.Map,
) -> tuple[Timed, Expr]:
    """The part, and the conditions of the guard that are not affine, which are no part of it.

    bounds: the conditions that each loop's bounds are, outermost first. Raises NotAffine where one
    of these is not.
    """
    at = frame(context.get_space(), tuple(bounds))
    domain = isl.Set.universe(at.space).intersect_params(context)
    for both in bounds.values():
        for condition in both:
            domain = domain.intersect(region(condition, at))
    left = []
    for condition in conjuncts(guard):
        try:
            domain = domain.intersect(region(condition, at))
        except NotAffine:
            left.append(condition)
    return Timed(block, tuple(bounds), domain.coalesce(), piece), conjunction(*left)


def includes(
    context: Known,
    variables: Iterable[str],
    wanted: Iterable[Expr],
    conditions: Iterable[Expr],
    guard: Expr,
) -> bool:
    """Whether the wanted conditions hold wherever the others do and the guard does.

    Raises NotAffine for conditions that are not affine; the guard may have some.
    """
    at = frame(context.get_space(), tuple(variables))
    found = isl.Set.universe(at.space).intersect_params(context)
    for condition in conditions:
        found = found.intersect(region(condition, at))
    for condition in conjuncts(guard):
        try:
            found = found.intersect(region(condition, at))
        except NotAffine:
            continue
    return all(bool(found.is_subset(region(condition, at))) for condition in wanted)


def complaint(parts: tuple[Timed, ...]) -> str | None:
    """Why the map is no schedule: an iteration must have one time, which no other has."""
    first, taken = parts[0], None
    for part in parts:
        if part.coordinates != first.coordinates:
            return (
                f"the map has {part.coordinates} coordinates for block '{part.block}' and"
                f" {first.coordinates} for '{first.block}'; fill up with 0"
            )
        if not part.domain.is_subset(part.time.domain()):
            return f"the map gives some iterations of block '{part.block}' no time"
        here = part.time.intersect_domain(part.domain)
        if not here.is_single_valued():
            return f"the map gives some iterations of block '{part.block}' several times"
        if not here.is_injective():
            return f"the map is not injective: it gives two iterations of '{part.block}' one time"
        if taken is not None and not taken.is_disjoint(here.range()):
            return (
                f"the map is not injective: it gives block '{part.block}' times that another block"
                " has"
            )
        taken = here.range() if taken is None else taken.union(here.range())
    return None


def agree(a: Timed, b: Timed, shared: Iterable[str], coordinate: int) -> bool:
    """Whether iterations of two blocks that agree on the shared loops agree on a coordinate."""
    pairs = isl.Map.from_domain_and_range(a.domain, b.domain)
    for loop in sorted(set(shared) & set(a.loops) & set(b.loops)):
        pairs = pairs.equate(IN, a.loops.index(loop), OUT, b.loops.index(loop))
    times = pairs.apply_domain(a.time).apply_range(b.time)
    return bool(times.is_subset(times.equate(IN, coordinate, OUT, coordinate)))
