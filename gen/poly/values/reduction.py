"""Reductions by contribution: which terms the value that a read takes holds.

Input: an execution, the plain schedule's values, and a read of a place that updates or joins write.
Output: the value, proved: since what last overwrote the place, the updates before the read add
exactly the terms of the spec's reduction, each once, to what the spec starts from; a join adds the
terms that its partial holds. Combiners commute, so the order of the updates is free.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never, final

import islpy as isl

from ...ir.nodes import AnyCombiner, Binary, Init, Store, Update
from ..certificate import Source
from ..sets.order import OUT
from ..sets.statement import Access
from ..witness import Refused, Sample, Witness, images, partner, sample
from .flow import (
    Computed,
    Contents,
    Identity,
    Logical,
    Value,
    Values,
    contents,
    element,
    merged,
    through,
)
from .last_writes import Writers, domain, settled
from .padding import require_live
from .roles import COMBINING, Execution, Role, in_a_circle
from .terms import SharedTerms

Terms = Mapping[Computed, isl.Map]  # from a read's events to the instances whose terms it takes


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """What a place holds: terms on top of a base value."""

    terms: Terms
    base: Values

    def at(self, events: isl.Set) -> "Sum":
        """At some of the events."""
        terms = {v: m.intersect_domain(events) for v, m in self.terms.items()}
        base = {v: m.intersect_domain(events) for v, m in self.base.items()}
        return Sum(
            {v: m for v, m in terms.items() if not m.is_empty()},
            {v: m for v, m in base.items() if not m.is_empty()},
        )


@final
@dataclass(frozen=True, slots=True)
class Reductions:
    """shared: which terms are one. stored: what a write that is no reduction stores. held: what
    each update or join adds, once found. copying: the copies and joins that are being followed.
    """

    run: Execution
    logical: Logical
    shared: SharedTerms
    stored: Callable[[Access], Values]
    held: dict[Access, Terms]
    copying: tuple[Access, ...] = ()

    def values(
        self, read: Access, part: isl.Set, source: Source | None, wanted: Values | None
    ) -> Values:
        """What the events in `part` take, as a whole value. Raises Refused where it is not one."""
        got = self.holds(read, part, source)
        if wanted is None:
            return self._guessed(read, part, got)
        result = {v: m.intersect_domain(part) for v, m in wanted.items()}
        result = {v: m for v, m in result.items() if not m.is_empty()}
        self._compare(read, result, got)
        return result

    def _guessed(self, read: Access, part: isl.Set, got: Sum) -> Values:
        """What a copy takes. Each value that it may be has to be all that is there by itself: the
        terms of two results are neither of them.
        """
        result: dict[Value, isl.Map] = {}
        rest, refusal = part, None
        for value, m in self._guess(part, got).items():
            here = m.domain()
            try:
                self._compare(read, {value: m}, got.at(here))
            except Refused as refused:
                refusal = refusal or refused
                continue
            alone = isinstance(value, Computed) and self.shared.of(value.block) is None
            if alone and not m.is_single_valued():
                several = m.subtract(m.lexmin()).domain()
                what = "what {} copies from '{}' holds the terms of several results"
                raise _wrong(read, several, what)
            result[value] = m
            rest = rest.subtract(here)
        if refusal is not None and not rest.is_empty():
            raise refusal
        return result

    def joined(self, write: Access) -> None:
        """Refuses a join that takes anything else than partial results of its combiner."""
        if self.run.role(write) is Role.UNION:
            self._union(write)
        else:
            self._held(write)

    def holds(self, read: Access, part: isl.Set, source: Source | None) -> Sum:
        """What the place holds before the events in `part`, of a read or of an update."""
        starts = self._starts(read, part)
        reached = self._reached(read, part, starts, source)
        terms: dict[Computed, isl.Map] = {}
        base: Values = {}
        for w, m in starts.items():
            start = self._start(w)
            base = merged(base, through(m, start.base))
            self._add(read, terms, m, start.terms)
        for w, m in reached.items():
            self._add(read, terms, m, self._held(w))
        rest = part.subtract(domain(starts, isl.Set.empty(part.get_space())))
        if not rest.is_empty():
            base = merged(base, contents(read, rest))
        padding = part.subtract(domain(base, isl.Set.empty(part.get_space())))
        if not padding.is_empty():
            raise _wrong(read, padding, "the reduction that {} reads from '{}' starts from padding")
        return Sum(terms, base)

    def _add(self, read: Access, terms: dict[Computed, isl.Map], m: isl.Map, held: Terms) -> None:
        """Adds what the events of one writer hold. Refuses a term that is there already."""
        for value, own in held.items():
            self._require_once(read, m, own, value)
            added = m.apply_range(own).coalesce()
            if value in terms:
                twice = terms[value].intersect(added)
                if not twice.is_empty():
                    raise _twice(read, value, twice)
                added = terms[value].union(added).coalesce()
            terms[value] = added

    def _starts(self, read: Access, part: isl.Set) -> Writers:
        """The write that the place was last overwritten by, for events where there is one."""
        relations = self.run.relations
        stores = (w for w in relations.writes(read.storage) if not self.run.adds(w))
        earlier = {w: relations.earlier(read, w).intersect_domain(part) for w in stores}
        return settled(relations, read, {w: m for w, m in earlier.items() if not m.is_empty()})

    def _start(self, write: Access) -> Sum:
        """What a write that is no update puts there; a copy may put a partial reduction there."""
        body = write.statement.block.body
        if isinstance(body, Init):
            nowhere = isl.Map.from_domain(write.domain)
            return Sum({}, {Identity(body.combiner, write.number): nowhere})
        reads = write.statement.reads
        if self.run.role(write) is Role.UNION:
            return self._union(write)
        if self.run.role(write) is Role.COPY and len(reads) == 1:
            source = self.run.source(reads[0])
            if any(self.run.reduces(w) for w in self.run.writers(reads[0], source)):
                return self._following(write).holds(reads[0], reads[0].domain, source)
        return Sum({}, self.stored(write))

    def _union(self, write: Access) -> Sum:
        """Two partials combined, which must share no term."""
        body = write.statement.block.body
        assert isinstance(body, Store) and isinstance(body.value, Binary)
        start = Identity(COMBINING[body.value.op], write.number)
        here = isl.Map.identity(write.domain.get_space().map_from_set())
        inside = self._following(write)
        terms: dict[Computed, isl.Map] = {}
        for partial in write.statement.reads:
            held = inside._partial(write, partial, start)
            self._add(partial, terms, here, held)
        return Sum(terms, {start: isl.Map.from_domain(write.domain)})

    def _following(self, write: Access) -> "Reductions":
        """Where what a write takes is followed. Refuses what takes what it made itself."""
        if write in self.copying:
            raise in_a_circle(write)
        return replace(self, copying=(*self.copying, write))

    def _reached(
        self, read: Access, part: isl.Set, starts: Writers, source: Source | None
    ) -> Writers:
        """The updates and joins between the start and the read."""
        relations = self.run.relations
        unstarted = part.subtract(domain(starts, isl.Set.empty(part.get_space())))
        result = {}
        for w in relations.writes(read.storage):
            if not self.run.adds(w):
                continue
            earlier = relations.earlier(read, w).intersect_domain(part)
            if earlier.is_empty():
                continue
            found = earlier.intersect_domain(unstarted)
            for start, m in starts.items():
                after = m.apply_range(relations.earlier(w, start).reverse())
                found = found.union(earlier.intersect(after))
            found = found.coalesce()
            if found.is_empty():
                continue
            if source and w.statement.name not in source.writers:
                raise self._unnamed(read, w, found)
            require_live(read, w, found, self.run.surplus_of(w))
            result[w] = found
        return result

    def _unnamed(self, read: Access, writer: Access, found: isl.Map) -> Refused:
        case = sample(found.domain())
        reader = read.statement.describe(case)
        adder = writer.statement.describe(case, partner(found, case))
        return Refused(
            f"{reader} reads '{read.storage.name}', to which {adder} adds, a block that its source"
            " does not name",
            Witness(case.sizes, (reader, adder), read.storage.name, element(read, case)),
            read.statement.block.span,
        )

    def _held(self, write: Access) -> Terms:
        """The terms that an update or join adds, by its events."""
        if write not in self.held:
            self.held[write] = self._added(write)
        return self.held[write]

    def _added(self, write: Access) -> Terms:
        statement, body = write.statement, write.statement.block.body
        assert isinstance(body, Update)
        if statement.block.origin:
            assert statement.origin
            value = Computed(statement.block.origin.block, write.number)
            instances = statement.origin.add_dims(isl.dim_type.in_, write.free)
            return {value: self.shared.named(value.block, instances)}
        inside = self._following(write)
        joined = [
            inside._partial(write, p, Identity(body.combiner, p.number)) for p in statement.reads
        ]
        if not all(_same_terms(terms, joined[0]) for terms in joined):
            raise Refused(
                f"block '{statement.name}' joins parts of different partials in one tuple",
                span=statement.block.span,
            )
        return joined[write.number]

    def _partial(self, write: Access, partial: Access, start: Identity) -> Terms:
        """The terms of a partial that a join takes, which must be all that there is on `start`."""
        statement = write.statement
        held = self.holds(partial, partial.domain, self.run.source(partial))
        if any(v != start for v in held.base):
            raise Refused(
                f"block '{statement.name}' joins a partial of '{partial.storage.name}' that does"
                f" not start from the identity of {start.combiner.value}",
                span=statement.block.span,
            )
        if any(self._combiner(value) != start.combiner for value in held.terms):
            raise Refused(
                f"block '{statement.name}' combines a partial of '{partial.storage.name}' by"
                f" {start.combiner.value}, which does not make it",
                span=statement.block.span,
            )
        return held.terms

    def _combiner(self, value: Computed) -> AnyCombiner:
        body = self.logical.blocks[value.block].block.body
        assert isinstance(body, Update)
        return body.combiner

    def _require_once(self, read: Access, m: isl.Map, held: isl.Map, value: Computed) -> None:
        """Refuses where one read takes one term from two instances of a writer."""
        if held.is_injective():
            return
        pairs = m.reverse().range_product(held).reverse()
        if pairs.is_single_valued():
            return
        two = pairs.apply_range(_different(pairs)).intersect(pairs)
        raise _twice(read, value, two.domain().unwrap())

    def _guess(self, part: isl.Set, got: Sum) -> Values:
        """The value that a copy takes: the reduction whose terms these are, or the start."""
        result: dict[Value, isl.Map] = {}
        rest = part
        for value, m in got.terms.items():
            found = self.shared.keys(value.block, m)
            result[value] = found
            rest = rest.subtract(found.domain())
        return merged(result, {v: m.intersect_domain(rest) for v, m in got.base.items()})

    def _compare(self, read: Access, wanted: Values, got: Sum) -> None:
        """Refuses unless the sum holds exactly the terms of the wanted values, on their base."""
        expected = self._expected(read, wanted, frozenset())
        if len({self._combiner(value) for value in expected.terms}) > 1:
            raise Refused(
                f"'{read.storage.name}' is reduced by several combiners, whose order the proof does"
                " not follow",
                span=read.statement.block.span,
            )
        for value in (*expected.terms, *got.terms):
            ours = expected.terms.get(value)
            theirs = got.terms.get(value)
            if ours is None or (theirs is not None and not theirs.is_subset(ours)):
                assert theirs is not None
                extra = theirs if ours is None else theirs.subtract(ours)
                raise _term(read, value, extra, "holds {} as well")
            if theirs is None or not ours.is_subset(theirs):
                lost = ours if theirs is None else ours.subtract(theirs)
                if not lost.is_empty():
                    raise _term(read, value, lost, "lacks {}")
        for start, m in got.base.items():
            wrong = m.subtract(expected.base[start]) if start in expected.base else m
            if not wrong.is_empty():
                raise wrong_base(read, start, wrong)

    def _expected(self, read: Access, wanted: Values, seen: frozenset[str]) -> Sum:
        """The terms and the base of whole values, as the plain schedule has them."""
        terms: dict[Computed, isl.Map] = {}
        base: dict[Value, isl.Map] = {}
        for value, m in wanted.items():
            if not isinstance(value, Computed) or not self.logical.is_reduction(value.block):
                base = merged(base, {value: m})
                continue
            if value.block in seen:
                raise Refused(
                    f"the reduction '{value.block}' starts from what it computed itself, which the"
                    " proof does not follow",
                    span=read.statement.block.span,
                )
            instances = m.apply_range(self.logical.keys[value.block].reverse()).coalesce()
            terms[value] = self.shared.named(value.block, instances)
            start: Values
            body = self.logical.blocks[value.block].block.body
            if value.block in self.logical.initialised:
                assert isinstance(body, Update)
                nowhere = m.project_out(OUT, 0, m.dim(OUT))
                start = {Identity(body.combiner, value.target): nowhere}
            else:
                start = through(m, self.logical.bases[value])
            inner = self._expected(read, start, seen | {value.block})
            terms |= inner.terms
            base = merged(base, inner.base)
        return Sum(terms, base)


def _wrong(read: Access, events: isl.Set, what: str) -> Refused:
    """A read at one of the events; `what` has places for the reader and the buffer."""
    case = sample(events)
    reader, name = read.statement.describe(case), read.storage.name
    return Refused(
        what.format(reader, name),
        Witness(case.sizes, (reader,), name, element(read, case)),
        read.statement.block.span,
    )


def _same_terms(a: Terms, b: Terms) -> bool:
    """Whether two targets of a tuple hold the terms of the same instances."""
    ours = {value.block: m for value, m in a.items()}
    theirs = {value.block: m for value, m in b.items()}
    return ours.keys() == theirs.keys() and all(m.is_equal(theirs[k]) for k, m in ours.items())


def _different(pairs: isl.Map) -> isl.Map:
    points = pairs.range()
    all_pairs = isl.Map.from_domain_and_range(points, points)
    return all_pairs.subtract(isl.Map.identity(all_pairs.get_space()))


def _twice(read: Access, value: Computed, found: isl.Map) -> Refused:
    return _term(read, value, found, "holds {} twice")


def _term(read: Access, value: Computed, found: isl.Map, what: str) -> Refused:
    """A read whose reduction does not hold what it should."""
    case = sample(found.domain())
    term = f"the term {named(value, partner(found, case))}"
    place = element(read, case)
    name = read.storage.name
    reader = read.statement.describe(case)
    return Refused(
        f"what {reader} reads from '{name}' {what.format(term)}",
        Witness(case.sizes, (reader,), name, place),
        read.statement.block.span,
    )


def wrong_base(read: Access, value: Value, wrong: isl.Map) -> Refused:
    case = sample(wrong.domain())
    reader = read.statement.describe(case)
    start = named(value, partner(wrong, case))
    return Refused(
        f"the reduction that {reader} reads from '{read.storage.name}' starts from {start}",
        Witness(case.sizes, (reader,), read.storage.name, element(read, case)),
        read.statement.block.span,
    )


def named(value: Value, coordinates: tuple[int, ...]) -> str:
    """A value in words."""
    match value:
        case Computed(block, _):
            return f"{block}{list(coordinates)}"
        case Contents(argument):
            return f"{argument}{list(coordinates)} as it was at the call"
        case Identity(combiner, _):
            return f"the identity of {combiner.value}"
        case _:
            assert_never(value)


def needed(wanted: Values, case: Sample) -> str | None:
    """The value that an event must take, in words."""
    for value, m in wanted.items():
        if coordinates := images(m, case):
            return named(value, coordinates[0])
    return None
