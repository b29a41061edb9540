"""Last writes of an executed tree: which of several writes a read sees, and what spoils one.

Input: for one read, maps from its events to those of writes to the same place. Output: the maps
settled to the last write before the read, and the write, if any, that comes between.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import islpy as isl

from ..sets.order import Relations
from ..sets.places import Places
from ..sets.statement import Access

Key = TypeVar("Key")
Writers = Mapping[Access, isl.Map]  # from a read's events to those of each write


def settled(relations: Relations, read: Access, writers: Writers) -> dict[Access, isl.Map]:
    """The writers as a function: where several are left, the last before the read."""
    if _is_function(writers):
        return dict(writers)
    earlier = {w: m.intersect(relations.before(w, read).reverse()) for w, m in writers.items()}
    places, result = Places(earlier), {}
    for w, m in earlier.items():
        for later in places.near(w):
            m = m.subtract(earlier[later].apply_range(relations.earlier(later, w)))
        if not m.is_empty():
            result[w] = m.coalesce()
    return result


def _is_function(writers: Writers) -> bool:
    domains: isl.Set | None = None
    for m in writers.values():
        if not m.is_single_valued():
            return False
        here = m.domain()
        if domains is not None and not domains.is_disjoint(here):
            return False
        domains = here if domains is None else domains.union(here)
    return True


def between(
    relations: Relations, read: Access, writer: Access, m: isl.Map
) -> Iterator[tuple[Access, isl.Map]]:
    """Writes to the place after the writer's and before the read: for each access, the map from
    the read's events, where it is not empty. The map `m` is the writer as a function.
    """
    for x in relations.near(writer):
        after = m.apply_range(relations.earlier(x, writer).reverse())
        found = after.intersect(relations.earlier(read, x))
        if not found.is_empty():
            yield x, found


def domain(maps: Mapping[Key, isl.Map], nothing: isl.Set) -> isl.Set:
    """The union of the maps' domains. nothing: the empty set of their space."""
    result = nothing
    for m in maps.values():
        result = result.union(m.domain())
    return result
