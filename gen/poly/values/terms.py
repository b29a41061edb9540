"""Which instances of a reduction add the same term.

Input: a plain block that reduces, and the values that its reads take. Output: the map from its
instances to the one that stands for all those whose term is the same, whatever result they add it
to: of `y[i, j] = sum(x[i, k] for k in range(j + 1))` the term x[i, k] goes into every y[i, j] with
j >= k, so that a partial sum that holds it serves them all.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

import islpy as isl

from ...ir.nodes import IterKind, Update
from ...ir.walk import variables
from ..sets.order import OUT
from ..sets.statement import Access, Statement
from .flow import Contents, Logical, Values


@final
@dataclass(frozen=True)
class SharedTerms:
    """The representatives of each block's instances, each found once."""

    logical: Logical
    _found: dict[str, isl.Map | None] = field(default_factory=dict)

    def of(self, block: str) -> isl.Map | None:
        """From the block's instances to those that stand for their terms; None where each stands
        for itself.

        Two instances add one term where they differ in spatial variables alone that neither the
        value mentions nor its reads' sources depend on. Reduction variables always count: a
        constant that is added n times is n terms.
        """
        if block not in self._found:
            self._found[block] = _representatives(self.logical, block)
        return self._found[block]

    def named(self, block: str, instances: isl.Map) -> isl.Map:
        """A map to instances of the block as one to the terms that they add."""
        representatives = self.of(block)
        if representatives is None:
            return instances
        return instances.apply_range(representatives).coalesce()

    def keys(self, block: str, held: isl.Map) -> isl.Map:
        """From events to the keys of the block whose whole reduction is the terms that they hold.

        held: from events to terms.
        """
        keys = self.logical.keys[block]
        if self.of(block) is None:
            return held.apply_range(keys).coalesce()
        return _equal(held, self.named(block, keys.reverse()))


def _representatives(logical: Logical, block: str) -> isl.Map | None:
    statement = logical.blocks[block]
    unused = _unused(statement)
    if not unused or block not in logical.initialised:
        return None
    instances = logical.keys[block].domain()
    terms = isl.Map.identity(instances.get_space().map_from_set()).intersect_domain(instances)
    for k in reversed(unused):
        terms = terms.project_out(OUT, k, 1)
    if not all(_follows(r, logical.reads[block, r.number], terms) for r in statement.reads):
        return None
    return terms.apply_range(terms.reverse().lexmin()).coalesce()


def _unused(statement: Statement) -> list[int]:
    """Positions of the spatial variables that the block's values do not mention."""
    match statement.block.body:
        case Update(_, _, values) if not statement.opaque:
            used = frozenset[str]().union(*map(variables, values))
        case _:
            return []
    return [
        k
        for k, v in enumerate(statement.block.iters)
        if v.kind is IterKind.SPATIAL and v.name not in used
    ]


def _follows(read: Access, taken: Values, terms: isl.Map) -> bool:
    """Whether the value that a read takes is a function of the term alone."""
    if all(isinstance(value, Contents) for value in taken):
        return True  # what an argument held at the call, at an index that the term fixes
    if read.free:
        return False
    parts = [terms.reverse().apply_range(m) for m in taken.values()]
    domains = [m.domain() for m in parts]
    return all(m.is_single_valued() for m in parts) and _disjoint(domains)


def _disjoint(sets: Iterable[isl.Set]) -> bool:
    seen: list[isl.Set] = []
    for s in sets:
        if any(not s.is_disjoint(other) for other in seen):
            return False
        seen.append(s)
    return True


def _equal(held: isl.Map, whole: isl.Map) -> isl.Map:
    """From the domain of the one to the domain of the other: where both have the same images."""
    sharing = held.apply_range(whole.reverse())
    ours = sharing.domain_map().apply_range(held)
    theirs = sharing.range_map().apply_range(whole)
    unequal = ours.subtract(theirs).domain().union(theirs.subtract(ours).domain())
    return sharing.wrap().subtract(unequal).unwrap().coalesce()
