"""What ranks need of each other: the elements that one computes and another reads.

Input: a kernel whose temporaries are at the root, a buffer, and a distributed loop that reads it.
Output: for a way between ranks the elements to hand over: what the sender has computed and the
receiver needs, as in Tiramisu; that has it not, since no two ranks compute one element. For a
primitive; the proof does not trust it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

import islpy as isl

from ...ir.algebra import less
from ...ir.inits import explicit_inits
from ...ir.nodes import Binary, BinaryOp, Expr, Kernel, Loop, LoopKind, Var
from ..sets.affine import NotAffine, affine, frame, region, tuple_map
from ..sets.extract import extract, parameters_of
from ..sets.statement import Access, LoopLevel
from .times import IN, PARAM, Timed

Way = isl.Map  # from the loops outside of the distributed one, and a rank, to those and another
Elements = isl.Map  # from the loops outside of the distributed one, and a rank, to elements


@final
@dataclass(frozen=True, slots=True)
class Halo:
    """outside: the variables of the loops around. ranks: of the loop, behind these. owned, needed:
    from those to elements.
    """

    outside: tuple[str, ...]
    ranks: isl.Set
    owned: isl.Map
    needed: isl.Map

    def along(self, distance: int) -> Way:
        """From each rank to the one that many further."""
        names = ", ".join(f"o{k}" for k in range(len(self.outside)))
        outer = f"{names}, " if names else ""
        return isl.Map(f"{{ [{outer}r] -> [{outer}r + {distance}] }}")

    def around(self, peer: Expr, kernel: Kernel, loop: Loop) -> Way | None:
        """From each rank of the loop to the one that the expression says, unless it is the same;
        None where that is not affine.
        """
        at = frame(parameters_of(kernel), (*self.outside, loop.var))
        rank = Var(loop.var)
        first, last = Binary(BinaryOp.LE, loop.lower, rank), less(rank, loop.upper)
        try:
            inside = region(first, at).intersect(region(last, at))
            to = affine(peer, replace(at, known=inside))
        except NotAffine:
            return None
        outer = tuple(at.values[name] for name in self.outside)
        others = inside.intersect(to.ne_set(at.values[loop.var]))
        return tuple_map((*outer, to), at).intersect_domain(others)

    def sent(self, way: Way) -> Elements:
        """By each rank to the one that the way leads to."""
        return self.received(way).apply_domain(way.reverse())

    def received(self, way: Way) -> Elements:
        """By each rank from the one that the way leads from."""
        return self.needed.intersect(self.owned.apply_domain(way)).coalesce()

    def timed(self, block: str, loops: tuple[str, ...], rank: str, elements: isl.Map) -> Timed:
        """A block over the elements of one rank, in their order; the rank is a parameter."""
        count = int(elements.dim(PARAM))
        here = elements.move_dims(PARAM, count, IN, 0, len(self.outside) + 1)
        for k, name in enumerate((*self.outside, rank)):
            here = here.set_dim_name(PARAM, count + k, name)
        domain = here.range()
        return Timed(block, loops, domain, isl.Map.identity(domain.get_space().map_from_set()))


def halo(kernel: Kernel, buffer: str, loop: Loop) -> Halo | str:
    """What the ranks have computed, and what they need in the loop and after it; a block's name if
    it accesses the buffer in no distributed loop, or in one that is fused or cut.
    """
    statements = extract(explicit_inits(kernel)).statements
    readers = [s for s in statements if any(loop.var in x.loops for x in s.levels)]
    path = next(iter(readers)).path
    depth = next(k for k, x in enumerate(path) if isinstance(x, LoopLevel) and loop.var in x.loops)
    outside = tuple(x for x in path[:depth] if isinstance(x, LoopLevel))
    first = min(s.uid for s in readers)
    writes = [w for s in statements for w in s.writes if w.storage.name == buffer]
    reads = [r for s in statements if s.uid >= first for r in s.reads if r.storage.name == buffer]
    for access in (*writes, *reads):
        found = access.statement.on(LoopKind.DISTRIBUTED)
        if found is None or found[0].is_fused:
            return access.statement.name
    dims = tuple(dim for level in outside for dim in level.dims)
    ranks = reduce(isl.Set.union, (_first(s.domain, len(dims) + 1) for s in readers))
    return Halo(dims, ranks, _of_ranks(writes, outside), _of_ranks(reads, outside))


def _first(points: isl.Set, count: int) -> isl.Set:
    """The first coordinates of points."""
    rest = int(points.dim(isl.dim_type.set)) - count
    return points.project_out(isl.dim_type.set, count, rest)


def _of_ranks(accesses: Iterable[Access], outside: tuple[LoopLevel, ...]) -> isl.Map:
    """From the loops outside and a rank to the elements that it touches."""
    return reduce(isl.Map.union, [_of_rank(access, outside) for access in accesses]).coalesce()


def _of_rank(access: Access, outside: tuple[LoopLevel, ...]) -> isl.Map:
    statement = access.statement
    found = statement.on(LoopKind.DISTRIBUTED)
    assert found is not None
    levels, wanted = statement.levels, sum(len(level.dims) for level in outside)
    kept = 0
    for mine, its in zip(levels, outside, strict=False):
        if mine != its:
            break
        kept += len(mine.dims)
    result = access.place
    for k in reversed(range(int(result.dim(IN)))):
        if k >= kept and k != found[1]:
            result = result.project_out(IN, k, 1)
    return result.insert_dims(IN, kept, wanted - kept)
