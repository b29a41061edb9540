"""Races of a launch: what its threads do to memory in an order that nothing fixes.

Input: a tree. Output: the conflicts: two instances in one launch that meet at a place, of which one
writes, in two blocks, or in two threads of a block with no barrier between. An instance in no loop
of some axis runs in the first place on it, as `ir.launch` has it. In a fused loop of symbolic
extents any two iterations count as two threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import islpy as isl

from ...ir.inits import explicit_inits
from ...ir.nodes import Barrier, Kernel, LoopKind
from ..sets.extract import Tree, outline
from ..sets.order import IN, OUT, Relations, ordered, space
from ..sets.statement import Access, Launch, LoopLevel, Statement, Storage
from ..witness import Instance, Refused, Sample, Witness, partner, sample


@final
@dataclass(frozen=True, slots=True)
class Conflict:
    """A write and another access that meet in two threads. pairs: from events of `first` to
    those of `second`; blocks: whether they are in two blocks, which no barrier orders.
    """

    first: Access
    second: Access
    pairs: isl.Map
    blocks: bool


def check_threads(tree: Tree, relations: Relations) -> None:
    """Raises Refused for two threads of a launch that meet at a place without a barrier between."""
    for conflict in conflicts(tree, relations):
        raise _refused(conflict)


def spare_barriers(kernel: Kernel, tried: frozenset[int]) -> frozenset[int]:
    """Those of the tried barriers, by their number in the text, that order nothing which the others
    leave open; earlier ones are tried first. None where threads of their launches race whatever
    barriers there are.
    """
    whole = outline(explicit_inits(kernel))
    barriers = [s for s in whole.placed if isinstance(s.node, Barrier)]
    launches = [b.around.launch for k, b in enumerate(barriers) if k in tried]
    tree = whole.tree({s.uid for s in whole.blocks if s.around.launch in launches})
    found = list(_unordered(tree, Relations(tree)))
    between = _Between(tree)
    if any(c.blocks or not _left(between, c, tree.barriers).is_empty() for c in found):
        return frozenset()
    spare: set[int] = set()
    for k in sorted(tried):
        without = {*spare, k}
        others = tuple(b for n, b in enumerate(tree.barriers) if n not in without)
        if all(_left(between, c, others).is_empty() for c in found):
            spare.add(k)
    return frozenset(spare)


def conflicts(tree: Tree, relations: Relations) -> Iterator[Conflict]:
    between = _Between(tree)
    for conflict in _unordered(tree, relations):
        left = _open(between, conflict)
        if not left.is_empty():
            yield replace(conflict, pairs=left.coalesce())


def in_two_threads(tree: Tree, relations: Relations, a: Access, b: Access) -> bool:
    """Whether two threads of a launch meet, one in a and one in b, with no barrier between."""
    launch = a.statement.launch
    if launch is None or launch != b.statement.launch:
        return False
    found, between = _pairs(tree, relations, a, b, launch), _Between(tree)
    return any(not _open(between, conflict).is_empty() for conflict in found)


def _open(between: "_Between", conflict: Conflict) -> isl.Map:
    """The pairs of a conflict that nothing orders."""
    if conflict.blocks:
        return conflict.pairs
    return _left(between, conflict, between.tree.barriers)


def _unordered(tree: Tree, relations: Relations) -> Iterator[Conflict]:
    """What would be conflicts if there were no barriers."""
    places = {s: _reads(s) for s in tree.statements}
    for k, s in enumerate(tree.statements):
        for other in tree.statements[k:]:
            if s.launch is None or s.launch != other.launch:
                continue
            for a in (*s.writes, *places[s]):
                for b in (*other.writes, *places[other]):
                    if a.storage is not b.storage or _is_own(a.storage, s, s.launch):
                        continue
                    if a in s.writes or b in other.writes:
                        yield from _pairs(tree, relations, a, b, s.launch)


def _reads(s: Statement) -> tuple[Access, ...]:
    """Those of a statement, one of those at the same places: `(x[i] - y[j]) ** 2` reads twice."""
    found: list[Access] = []
    for read in s.reads:
        alike = (r for r in found if r.storage is read.storage and r.free == read.free)
        if not any(r.place.plain_is_equal(read.place) for r in alike):
            found.append(read)
    return tuple(found)


def _is_own(storage: Storage, s: Statement, launch: Launch) -> bool:
    """Whether each thread has a buffer of its own, so that no two meet there: all axes tell its
    places apart. s: a statement that accesses it.
    """
    loops = (s.on(axis) for axis in launch.axes if axis not in storage.owners)
    return all(on and not on[0].is_fused and on[1] in storage.kept for on in loops)


def _pairs(
    tree: Tree, relations: Relations, a: Access, b: Access, launch: Launch
) -> Iterator[Conflict]:
    here = relations.meet(a, b).union(_overlap(tree, a, b))
    for k in range(launch.outside):
        here = here.equate(IN, k, OUT, k)
    if here.is_empty():
        return
    together = here
    for axis in launch.kinds(threads=False):
        together = together.intersect(_alike(here.get_space(), axis, a.statement, b.statement))
    apart = here.subtract(together)
    if not apart.is_empty():
        yield Conflict(a, b, apart, blocks=True)
    one = together
    for axis in launch.kinds(threads=True):
        one = one.intersect(_alike(here.get_space(), axis, a.statement, b.statement))
    apart = together.subtract(one)
    if not apart.is_empty():
        yield Conflict(a, b, apart, blocks=False)


def _left(between: "_Between", conflict: Conflict, barriers: tuple[Statement, ...]) -> isl.Map:
    """The pairs of two threads that no barrier is between."""
    a, b, left = conflict.first, conflict.second, conflict.pairs
    for barrier in barriers:
        if left.is_empty():
            break
        mine = barrier.launch is not None and barrier.launch == a.statement.launch
        if mine and not barrier.opaque:
            left = left.subtract(between.separated(a, barrier, b))
            left = left.subtract(between.separated(b, barrier, a).reverse())
    return left


def _overlap(tree: Tree, a: Access, b: Access) -> isl.Map:
    """{a's events -> b's events : in two entries of the Allocate of a buffer}, whose memory is one.
    Which elements share places is for lowering to choose, so any do.
    """
    storage, into = a.storage, space(tree.parameters, a, b)
    if not storage.entries:
        return isl.Map.empty(into)
    result = isl.Map.universe(into).intersect_domain(a.domain).intersect_range(b.domain)
    for axis in storage.owners:
        result = result.intersect(_alike(into, axis, a.statement, b.statement))
    one = result
    for k in storage.kept:
        one = one.equate(IN, k, OUT, k)
        if k not in storage.entries:
            result = result.equate(IN, k, OUT, k)
    return result.subtract(one)


def _alike(into: isl.Space, axis: LoopKind, a: Statement, b: Statement) -> isl.Map:
    """{a's events -> b's events : both at one place on an axis}"""
    result = isl.Map.universe(into)
    x, y = a.on(axis), b.on(axis)
    if x is not None and y is not None:
        if x[0].is_fused or y[0].is_fused:
            return _equal(result, x, y)
        return result.equate(IN, x[1], OUT, y[1])
    for found, side in ((x, IN), (y, OUT)):
        if found is not None and found[0].is_fused:
            return isl.Map.empty(into)
        if found is not None:
            result = result.fix_val(side, found[1], 0)
    return result


def _equal(result: isl.Map, x: tuple[LoopLevel, int], y: tuple[LoopLevel, int]) -> isl.Map:
    """In one iteration of a fused loop, if both are in that loop; else nothing is known."""
    (level, first), (other, second) = x, y
    if level != other:
        return isl.Map.empty(result.get_space())
    for k in range(len(level.dims)):
        result = result.equate(IN, first + k, OUT, second + k)
    return result


@final
class _Between:
    """What barriers of a tree are between, each asked once for all that two statements access."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: dict[tuple[int, int, int, int, int], isl.Map] = {}

    def separated(self, a: Access, barrier: Statement, b: Access) -> isl.Map:
        """{a's events -> b's events : the barrier is between them}, in one block of one launch."""
        key = (a.statement.uid, a.free, barrier.uid, b.statement.uid, b.free)
        if key not in self._known:
            self._known[key] = self._separated(a, barrier, b)
        return self._known[key]

    def _separated(self, a: Access, barrier: Statement, b: Access) -> isl.Map:
        before = _around(self.tree, a, barrier)
        after = _around(self.tree, b, barrier)
        if before is None or after is None:
            return isl.Map.empty(space(self.tree.parameters, a, b))
        ends = ordered(barrier, b.statement, after.reverse().get_space())
        first = before.intersect(ordered(a.statement, barrier, before.get_space()))
        return first.apply_range(after.reverse().intersect(ends))


def _around(tree: Tree, a: Access, barrier: Statement) -> isl.Map | None:
    """{a's events -> a barrier's instances in its block}; None where that cannot be said. Which
    thread it is that is at the barrier is no matter: all are.
    """
    launch = barrier.launch
    assert launch is not None
    dims = len(a.statement.dims) + a.free
    result = isl.Map.universe(
        tree.parameters.add_dims(IN, dims).add_dims(OUT, len(barrier.dims))
    ).intersect_range(barrier.domain)
    for k in range(launch.outside):
        result = result.equate(IN, k, OUT, k)
    for axis in launch.kinds(threads=False):
        mine, its = a.statement.on(axis), barrier.on(axis)
        if its is None:
            continue  # it is one of every block
        if its[0].is_fused:
            if mine is None or mine[0] != its[0]:
                return None
            result = _equal(result, mine, its)
        elif mine is None:
            result = result.fix_val(OUT, its[1], 0)
        elif mine[0].is_fused:
            return None
        else:
            result = result.equate(IN, mine[1], OUT, its[1])
    return result


# ---------------------------------------------------------------- saying so


def _refused(conflict: Conflict) -> Refused:
    a, b = conflict.first, conflict.second
    case = sample(conflict.pairs.domain())
    ends = a.statement, b.statement
    points = case.point, partner(conflict.pairs, case)
    if a not in a.statement.writes:  # the write is named first
        a, b, ends, points = b, a, ends[::-1], points[::-1]
    writer, other = (s.describe(case, p) for s, p in zip(ends, points, strict=True))
    verb = "writes" if b in b.statement.writes else "reads"
    name = a.storage.name
    where = "another block" if conflict.blocks else "another thread, with no barrier between"
    places = [partner(x.place, Sample(case.sizes, p)) for x, p in zip((a, b), points, strict=True)]
    one = "" if places[0] == places[1] else f"; '{name}' is in the same memory in all iterations"
    place = places[0][a.storage.depth :]
    return Refused(
        f"threads have a race: {writer} writes '{name}' and {other} {verb} it in {where}{one}",
        Witness(case.sizes, (writer, other), name, place),
        ends[0].block.span,
        None if conflict.blocks else _hint(*ends, writer, other),
    )


def _hint(a: Statement, b: Statement, one: Instance, two: Instance) -> str | None:
    """Where a barrier would be between two instances; None where none can be."""
    carried: tuple[LoopLevel, Statement] | None = None
    for k, (x, y) in enumerate(zip(a.path, b.path, strict=False)):
        if isinstance(x, LoopLevel) and not x.is_thread and carried is None:
            mine, its = ([i.loops[v] for v in x.dims] for i in (one, two))
            if mine != its:
                carried = x, (a if mine < its else b)
        if x == y:
            continue
        if carried is None and isinstance(x, int) and isinstance(y, int):
            later = b if x < y else a
            return f"a barrier orders them: `sync_threads: {{{_named(later, k)}, where: before}}`"
        break
    if carried is None:
        return None
    level, first = carried
    k = first.path.index(level) + 1
    return f"a barrier orders them: `sync_threads: {{{_named(first, k)}, where: after}}`"


def _named(s: Statement, k: int) -> str:
    """The statement at a position of a path, or below it, as an argument of a step."""
    rest = [item for item in s.path[k:] if isinstance(item, LoopLevel)]
    return f"loop: {rest[0].loops[0]}" if rest else f"block: {s.name}"
