"""The value that each executed read takes, checked against its certificate.

Input: an execution and the plain schedule's values. Output: for a read, the `Values` of its events,
proved: the writer writes that very place, runs before, and nothing overwrites the place between.
Copies are composed away: what is read from a copy is what the copy's own read takes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import assert_never, final

import islpy as isl

from ...ir.nodes import LoopKind
from ..certificate import Source
from ..decisions import Decision
from ..sets.coverage import covered
from ..sets.order import agreeing
from ..sets.statement import Access, Statement
from ..witness import Refused, Sample, Witness, partner, sample
from .flow import Computed, Contents, Identity, Logical, Values, contents, element, merged, through
from .last_writes import Writers, between, settled
from .reduction import Reductions, Terms, needed
from .roles import Execution, Role, in_a_circle
from .terms import SharedTerms
from .tuples import check_tuple


@final
@dataclass(frozen=True)
class Taken:
    """Answers for one execution. shared: which terms are one; copies: what each copy stores, once
    found; held: what each update or join adds; asked: the copies that are being followed.
    """

    run: Execution
    logical: Logical
    shared: SharedTerms
    copies: dict[Access, Values] = field(default_factory=dict)
    held: dict[Access, Terms] = field(default_factory=dict)
    asked: list[Access] = field(default_factory=list)

    def within(self, part: Decision) -> "Taken":
        """Answers for a part, which has all that its copies copy."""
        return replace(self, run=self.run.within(part))

    def values(self, read: Access, source: Source | None, wanted: Values | None) -> Values:
        """What the read takes. source: None where nothing states it, at the end of the kernel.

        wanted: the values that it must take, where they are known: they tell which of several
        instances that write the place is meant. Raises Refused where the certificate is wrong.
        """
        writers = self.run.writers(read, source)
        shared = source.shared if source else ()
        stores = self._stores(read, writers, shared, wanted)
        valued = [_valued(m, self.stored(w)) for w, m in stores.items()]
        if wanted is not None and covered(read.domain, valued):
            return wanted  # `_stores` keeps no others
        # What stores put there that is no value, padding and surplus, copies may copy.
        rest = _without(read.domain, stores.values() if wanted is None else valued)
        got = merged(*(through(m, self.stored(w)) for w, m in stores.items() if wanted is None))
        if any(map(self.run.reduces, writers)):
            part = rest if wanted is None else _reductions(rest, wanted, self.logical)
            if not part.is_empty():
                got = merged(got, self._reductions.values(read, part, source, wanted))
                rest = rest.subtract(part)
        if not rest.is_empty() and (source is None or source.initial):
            initial = self._initial(read, rest, wanted)
            got = merged(got, initial)
            rest = _without(rest, initial.values())
        if not rest.is_empty():
            raise self._missing(read, rest, wanted)
        return got if wanted is None else wanted

    def together(self, update: Statement) -> None:
        """Refuses an update of a tuple whose parts hold different terms, whatever is read of it."""
        check_tuple(update, self._reductions)

    def joined(self, write: Access) -> None:
        """Refuses a join of what is no partial result, whether or not anything reads the join."""
        self._reductions.joined(write)

    @property
    def _reductions(self) -> Reductions:
        return Reductions(self.run, self.logical, self.shared, self.stored, self.held)

    def stored(self, write: Access) -> Values:
        """What a write that is no reduction stores, by its events; nothing for padding."""
        statement = write.statement
        if self.run.role(write) is Role.VALUE:
            assert statement.block.origin and statement.origin
            block = statement.block.origin.block
            keys = statement.origin.apply_range(self.logical.keys[block])
            return {Computed(block, write.number): keys}
        if write in self.copies:
            return self.copies[write]
        if write in self.asked:
            raise in_a_circle(write)
        self.asked.append(write)
        parts = [self.values(r, self.run.source(r), None) for r in statement.reads]
        self.copies[write] = merged(*parts)
        self.asked.pop()
        return self.copies[write]

    def _stores(
        self,
        read: Access,
        writers: tuple[Access, ...],
        shared: tuple[str, ...],
        wanted: Values | None,
    ) -> Writers:
        """The store whose value each event takes, where it is a store's or a copy's. Checked."""
        relations = self.run.relations
        found: dict[Access, isl.Map] = {}
        for w in writers:
            if self.run.role(w) not in (Role.VALUE, Role.COPY):
                continue
            pairs = relations.meet(read, w)
            if shared:
                pairs = pairs.intersect(agreeing(relations.tree.parameters, read, w, shared))
            if wanted is None:
                pairs = pairs.intersect(relations.before(w, read).reverse())
            else:
                pairs = pairs.intersect(_right(pairs, wanted, self.stored(w)))
            if not pairs.is_empty():
                found[w] = pairs.coalesce()
        found = settled(relations, read, found)
        for w, m in found.items():
            self._require_before(read, w, m)
            for x, overwritten in between(relations, read, w, m):
                raise _overwritten(read, w, m, x, overwritten)
        return found

    def _require_before(self, read: Access, writer: Access, m: isl.Map) -> None:
        late = m.subtract(self.run.relations.before(writer, read).reverse())
        if late.is_empty():
            return
        case = sample(late.domain())
        reader = read.statement.describe(case)
        maker = writer.statement.describe(case, partner(late, case))
        raise Refused(
            f"{reader} reads '{read.storage.name}' before {maker} computes it",
            Witness(case.sizes, (reader, maker), read.storage.name, element(read, case)),
            read.statement.block.span,
        )

    def _initial(self, read: Access, rest: isl.Set, wanted: Values | None) -> Values:
        """The events that read what an argument held at the call."""
        if wanted is not None:
            value = Contents(read.storage.name)
            if value not in wanted:
                return {}
            rest = rest.intersect(wanted[value].intersect(read.place).domain())
            if rest.is_empty():
                return {}
        relations = self.run.relations
        for x in relations.near(read):
            before = relations.earlier(read, x).intersect_domain(rest)
            if before.is_empty():
                continue
            case = sample(before.domain())
            reader = read.statement.describe(case)
            spoiler = x.statement.describe(case, partner(before, case))
            raise Refused(
                f"{reader} reads what '{read.storage.name}' held at the call, but {spoiler} writes"
                " it before",
                Witness(case.sizes, (reader, spoiler), read.storage.name, element(read, case)),
                read.statement.block.span,
            )
        return contents(read, rest)

    def _missing(self, read: Access, rest: isl.Set, wanted: Values | None) -> Refused:
        """No write that the certificate names gives what these events must take."""
        case = sample(rest)
        reader = read.statement.describe(case)
        place, name = element(read, case), read.storage.name
        needs = needed(wanted or {}, case)
        if read.statement.uid < 0:
            reason = f"element {list(place)} of '{name}' must end as {needs}, and does not"
        else:
            what = f"needs {needs} from '{name}'" if needs else f"copies from '{name}'"
            reason = f"{reader} {what}, but {_lacking(read, case)}"
        return Refused(
            reason, Witness(case.sizes, (reader,), name, place), read.statement.block.span
        )


def _lacking(read: Access, case: Sample) -> str:
    """Why what a read needs is not there; of ranks, which one has not seen to it."""
    storage, place = read.storage, partner(read.place, case)
    if storage.way:
        sender, receiver = place[len(storage.kept) : storage.depth]
        return f"rank {sender} does not send it to rank {receiver}"
    if LoopKind.DISTRIBUTED in storage.owners:
        return f"rank {place[storage.depth - 1]} has neither computed nor received it"
    return "its source does not put it there"


def _overwritten(
    read: Access, writer: Access, m: isl.Map, other: Access, found: isl.Map
) -> Refused:
    case = sample(found.domain())
    reader = read.statement.describe(case)
    maker = writer.statement.describe(case, partner(m, case))
    spoiler = other.statement.describe(case, partner(found, case))
    place = element(read, case)
    name = read.storage.name
    return Refused(
        f"{reader} reads '{name}', which {maker} computes, but {spoiler} overwrites it in between",
        Witness(case.sizes, (reader, maker, spoiler), name, place),
        read.statement.block.span,
    )


def _valued(m: isl.Map, values: Values) -> isl.Map:
    """The pairs of a map into the events of `values` that have one there."""
    valued = isl.Set.empty(m.get_space().range())
    for value in values.values():
        valued = valued.union(value.domain())
    return m.intersect_range(valued)


def _without(events: isl.Set, maps: Iterable[isl.Map]) -> isl.Set:
    for m in maps:
        events = events.subtract(m.domain())
    return events.coalesce()


def _reductions(rest: isl.Set, wanted: Values, logical: Logical) -> isl.Set:
    """The events that must take a reduction."""
    result = isl.Set.empty(rest.get_space())
    for value, m in wanted.items():
        match value:
            case Computed(block, _) if not logical.is_reduction(block):
                pass
            case Contents():
                pass
            case Computed() | Identity():
                result = result.union(m.domain())
            case _:
                assert_never(value)
    return rest.intersect(result).coalesce()


def _right(pairs: isl.Map, wanted: Values, stored: Values) -> isl.Map:
    """The pairs of a read and a write of the value that it must take."""
    result = isl.Map.empty(pairs.get_space())
    for value, m in wanted.items():
        if value in stored:
            result = result.union(m.apply_range(stored[value].reverse()))
    return result
