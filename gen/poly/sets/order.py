"""Which instance runs before which, and which accesses meet.

Input: statements and accesses of one tree. Output: maps between their instances, or between the
events of accesses (an instance and its free coordinates). Two instances are ordered by the loops
that both are in, and then by textual position: the maps are unions of at most one piece a common
loop, which is the lexicographic order of a 2d+1 schedule without its padding.

Threads run in lockstep: the loops that are bound to them count last. That is one of the orders that
barriers leave open, since all threads of a block reach a barrier together; `barriers` refuses what
depends on which. So do ranks, of which no two touch one place: a message is sent before it is
received in the text, and `messages` sees to it that both ranks come to that.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import islpy as isl

from .extract import Tree
from .places import Places
from .statement import Access, LoopLevel, Statement, Storage

IN, OUT = isl.dim_type.in_, isl.dim_type.out


class Relations:
    """The relations of one tree, each computed once."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._whole: frozenset[str] | None = None
        self._before: dict[tuple[int, int, int, int], isl.Map] = {}
        self._meet: dict[tuple[Access, Access], isl.Map] = {}
        self._earlier: dict[tuple[Access, Access], isl.Map] = {}
        self._places: dict[Storage, Places] = {}

    def before(self, a: Access, b: Access) -> isl.Map:
        """{a's events -> b's events : a's instance runs before b's}"""
        key = (a.statement.uid, a.free, b.statement.uid, b.free)
        if key not in self._before:
            into = space(self.tree.parameters, a, b)
            self._before[key] = ordered(a.statement, b.statement, into)
        return self._before[key]

    def meet(self, a: Access, b: Access) -> isl.Map:
        """{a's events -> b's events : both at one place}, for accesses to one storage."""
        if (a, b) not in self._meet:
            if (b, a) in self._meet:
                self._meet[a, b] = self._meet[b, a].reverse()
            else:
                meet = a.place.apply_range(b.place.reverse())
                # Without the equalities, isl has been seen to crash in coalesce.
                self._meet[a, b] = meet.detect_equalities().coalesce()
        return self._meet[a, b]

    def earlier(self, e: Access, w: Access) -> isl.Map:
        """{e's events -> w's events at the same place that run before}"""
        if (e, w) not in self._earlier:
            before = self.before(w, e).reverse()
            found = before if before.is_empty() else self.meet(e, w).intersect(before).coalesce()
            self._earlier[e, w] = found
        return self._earlier[e, w]

    def within(self, tree: Tree, whole: frozenset[str]) -> "Relations":
        """The relations of a part of the tree, which has all writes to the buffers in `whole`."""
        part = Relations(tree)
        part._whole = whole
        part._before, part._meet, part._earlier = self._before, self._meet, self._earlier
        return part

    def writes(self, storage: Storage) -> tuple[Access, ...]:
        """All writes to a buffer. Raises LookupError where a part may not have them all."""
        if self._whole is not None and storage.name not in self._whole:
            raise LookupError(f"a part of the proof asks for the writes to '{storage.name}'")
        return self._writes.get(storage, ())

    def near(self, access: Access) -> Sequence[Access]:
        """The writes that may meet an access. Raises LookupError as `writes` does."""
        storage = access.storage
        if storage not in self._places:
            self._places[storage] = Places(self.writes(storage))
        return self._places[storage].near(access)

    @cached_property
    def _writes(self) -> dict[Storage, tuple[Access, ...]]:
        result: dict[Storage, tuple[Access, ...]] = {}
        for s in self.tree.statements:
            for w in s.writes:
                result[w.storage] = (*result.get(w.storage, ()), w)
        return result


def space(parameters: isl.Space, a: Access, b: Access) -> isl.Space:
    """The space of maps from events of a to events of b."""
    inputs = len(a.statement.dims) + a.free
    outputs = len(b.statement.dims) + b.free
    return parameters.add_dims(IN, inputs).add_dims(OUT, outputs)


def common(a: Statement, b: Statement) -> tuple[LoopLevel, ...]:
    """The loops that both are in, outermost first."""
    result: list[LoopLevel] = []
    for x, y in zip(a.path, b.path, strict=False):
        if x != y:
            break
        if isinstance(x, LoopLevel):
            result.append(x)
    return tuple(result)


def ordered(a: Statement, b: Statement, into: isl.Space) -> isl.Map:
    """{a's instances -> b's instances : the first runs before the second}, in a space of maps whose
    tuples begin with the instances.
    """
    equal = isl.Map.universe(into)
    result = isl.Map.empty(into)
    depth, threads = 0, []
    for x, y in zip(a.path, b.path, strict=False):
        if isinstance(x, int) and isinstance(y, int):
            if x != y:
                return result.union(equal) if x < y else result
        elif isinstance(x, LoopLevel) and isinstance(y, LoopLevel):
            if x.in_lockstep and y.in_lockstep:
                threads.append(depth)
                depth += 1
                continue
            for _ in x.dims:
                result = result.union(equal.order_lt(IN, depth, OUT, depth))
                equal = equal.equate(IN, depth, OUT, depth)
                depth += 1
    for k in threads:
        result = result.union(equal.order_lt(IN, k, OUT, k))
        equal = equal.equate(IN, k, OUT, k)
    return result


def turns(e: Statement, writes: Sequence[Access]) -> Iterator[tuple[int, list[Access]]]:
    """The writes by when they run before an instance of `e`, the latest first: what runs in one
    turn runs after all that runs in the next. Each turn comes with the number of dims, outermost
    first, in which its instances agree with that of `e`. A write in a loop around `e` may have
    several turns. Within a turn they are in textual order, the last first.
    """
    if any(level.in_lockstep for level in e.levels):
        yield 0, list(reversed(writes))  # the text does not tell their order
        return
    same = sum(len(level.dims) for level in e.levels)
    for depth, item in reversed(list(enumerate(e.path))):
        here = [w for w in writes if w.statement.path[:depth] == e.path[:depth]]
        if isinstance(item, LoopLevel):
            same -= len(item.dims)
            yield same, [w for w in reversed(here) if w.statement.path[depth] == item]
            continue
        places: dict[tuple[int, ...], list[Access]] = {}
        for w in reversed(here):
            places.setdefault(_place(w.statement.path[depth:]), []).append(w)
        for place in sorted(places, reverse=True):
            if place[0] < item:
                yield same, places[place]


def _place(path: Sequence[int | LoopLevel]) -> tuple[int, ...]:
    """The textual positions down to the first loop."""
    result: list[int] = []
    for item in path:
        if isinstance(item, LoopLevel):
            break
        result.append(item)
    return tuple(result)


def agreeing(parameters: isl.Space, a: Access, b: Access, loops: tuple[str, ...]) -> isl.Map:
    """{a's events -> b's events : both in the same iteration of those of `loops` around both}"""
    result = isl.Map.universe(space(parameters, a, b))
    inner = {level.loops: k for level, k in _offsets(b.statement)}
    for level, k in _offsets(a.statement):
        if level.loops in inner and set(level.loops) <= set(loops):
            for part in range(len(level.dims)):
                result = result.equate(IN, k + part, OUT, inner[level.loops] + part)
    return result


def unordered(parameters: isl.Space, a: Access, b: Access) -> Iterator[isl.Map]:
    """From events of a to those of b in a later iteration of one parallel or vectorized loop."""
    equal = isl.Map.universe(space(parameters, a, b))
    depth = 0
    for level in common(a.statement, b.statement):
        unordered = any(kind.is_unordered for kind in level.kinds)
        for k in range(depth, depth + len(level.dims)):
            if unordered:
                yield equal.order_lt(IN, k, OUT, k)
            equal = equal.equate(IN, k, OUT, k)
        depth += len(level.dims)


def _offsets(statement: Statement) -> list[tuple[LoopLevel, int]]:
    result, depth = [], 0
    for level in statement.levels:
        result.append((level, depth))
        depth += len(level.dims)
    return result
