"""How much a kernel does at given sizes: which instances run, and which elements they touch.

Input: a plain or a lowered tree, and numbers for its dims and integer scalars. Output: counts by
block and by buffer. No proof depends on them; where an index is read from an array, all elements
that it may mean are touched.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import final

import islpy as isl

from ...ir.inits import explicit_inits
from ...ir.nodes import Buffer, Kernel, LoopKind
from ..sets.extract import extract
from ..sets.statement import Access, Statement, Storage

_TOGETHER = (LoopKind.UNROLLED, LoopKind.VECTORIZED)


@final
@dataclass(frozen=True, slots=True)
class Moves:
    """Of an argument, or of a buffer as one Allocate makes it, in elements. distinct: each once.
    each: once for each iteration of the loops around that are not unrolled or vectorized, as code
    has it that keeps in registers what it can.
    """

    buffer: Buffer
    distinct: int
    each: int


@final
@dataclass(frozen=True, slots=True)
class Amount:
    """instances: by block, in textual order, of the kernel with its inits written out."""

    instances: tuple[tuple[str, int], ...]
    read: tuple[Moves, ...]
    written: tuple[Moves, ...]


def amount(kernel: Kernel, sizes: Mapping[str, int]) -> Amount:
    """Raises Refused for what isl cannot say, and KeyError where a size has no number."""
    tree = extract(explicit_inits(kernel))
    sizes = {**{p.name: 0 for p in kernel.phases}, **sizes}
    ran = tuple((s.name, _count(s.domain, sizes)) for s in tree.statements)
    reads = [a for s in tree.statements for a in (*s.guards, *s.reads)]
    writes = [a for s in tree.statements for a in s.writes]
    return Amount(ran, tuple(_moves(reads, sizes)), tuple(_moves(writes, sizes)))


def _moves(accesses: Iterable[Access], sizes: Mapping[str, int]) -> Iterator[Moves]:
    by_storage: dict[Storage, list[Access]] = {}
    for access in accesses:
        by_storage.setdefault(access.storage, []).append(access)
    for storage, own in by_storage.items():
        places = reduce(isl.Set.union, (a.place.range() for a in own))
        each = sum(_count(_together(a).wrap(), sizes) for a in own)
        yield Moves(storage.buffer, _count(places, sizes), each)


def _together(access: Access) -> isl.Map:
    """From an iteration of the loops that are neither unrolled nor vectorized to places."""
    place = access.place
    for first, many in reversed([*_dims_together(access.statement)]):
        place = place.project_out(isl.dim_type.in_, first, many)
    return place


def _dims_together(statement: Statement) -> Iterator[tuple[int, int]]:
    """Of each loop that runs as one, its first dim and how many it has."""
    first = 0
    for level in statement.levels:
        if any(kind in _TOGETHER for kind in level.kinds):
            yield first, len(level.dims)
        first += len(level.dims)


def _count(points: isl.Set, sizes: Mapping[str, int]) -> int:
    param = isl.dim_type.param
    for k in range(points.dim(param)):
        points = points.fix_val(param, k, sizes[str(points.get_dim_name(param, k))])
    whole = points.project_out(param, 0, points.dim(param))
    return int(whole.make_disjoint().count_val().to_python())
