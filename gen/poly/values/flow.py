"""The spec's flow: the value that each read of the plain schedule takes.

Input: a plain kernel. Output: for each numbered read the `Values` that its instances take, as exact
maps; `plain_flow` says the same as a certificate. A value is named by what computes it in the plain
schedule, whatever tree it is asked of: the instance of a block, a whole reduction, the contents of
an argument at the call, or a combiner's identity.

The maps are last writes, by difference of relations: no isl dataflow analysis takes part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never, final

import islpy as isl

from ...ir.inits import explicit_inits
from ...ir.nodes import AnyCombiner, Init, Intent, IterKind, Kernel, Store, Update
from ...ir.walk import blocks
from ..certificate import Flow, Source
from ..sets.extract import Tree, extract
from ..sets.order import IN, OUT, Relations, agreeing, common, turns
from ..sets.places import Places
from ..sets.statement import Access, Statement
from ..witness import Refused, Sample, Witness, partner, sample


@final
@dataclass(frozen=True, slots=True)
class Computed:
    """What a plain block computes into its k-th target. Coordinates: the key of the instance, which
    is its iteration variables, without the reduction variables of a reduction.
    """

    block: str
    target: int


@final
@dataclass(frozen=True, slots=True)
class Contents:
    """What an argument holds at the call. Coordinates: the element."""

    argument: str


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a combiner: the value of an empty reduction. No coordinates."""

    combiner: AnyCombiner
    target: int


Value = Computed | Contents | Identity
Values = Mapping[Value, isl.Map]


def through(instances: isl.Map, values: Values) -> dict[Value, isl.Map]:
    """The values after a map of instances."""
    found = {v: instances.apply_range(m).coalesce() for v, m in values.items()}
    return {v: m for v, m in found.items() if not m.is_empty()}


def merged(*parts: Values) -> dict[Value, isl.Map]:
    result: dict[Value, isl.Map] = {}
    for part in parts:
        for value, m in part.items():
            result[value] = result[value].union(m).coalesce() if value in result else m
    return result


@final
@dataclass(frozen=True, slots=True)
class Logical:
    """The plain schedule's values.

    blocks: each block's one statement. keys: from a block's instances to keys. reads: from the
    instances of a block (and a read's free coordinates) to values. bases: of an Update that does
    not initialise, from keys to the values before it, by target. finals: from elements to values.
    """

    relations: Relations
    blocks: Mapping[str, Statement]
    keys: Mapping[str, isl.Map]
    initialised: frozenset[str]
    reads: Mapping[tuple[str, int], Values]
    writers: Mapping[tuple[str, int], Mapping[Access, isl.Map]]
    bases: Mapping[Computed, Values]
    finals: Mapping[str, Values]

    def is_reduction(self, block: str) -> bool:
        """Whether several instances make one value, or one that an init starts."""
        body = self.blocks[block].block
        reduces = any(v.kind is IterKind.REDUCTION for v in body.iters)
        return isinstance(body.body, Update) and (reduces or block in self.initialised)


def logical_flow(plain: Kernel) -> Logical:
    """The exact flow of a plain kernel; a workbench keeps it.

    Raises Refused where the flow is not a function of the instance that isl can say.
    """
    tree = extract(explicit_inits(plain))
    relations = Relations(tree)
    initialised = frozenset(b.name for b in blocks(plain.body) if b.initialises)
    plain_blocks = {s.name: s for s in tree.statements if s.block.origin}
    keys = {name: _keys(s) for name, s in plain_blocks.items()}
    logical = Logical(relations, plain_blocks, keys, initialised, {}, {}, {}, {})
    reads, writers, bases = {}, {}, {}
    for name, s in plain_blocks.items():
        for read in s.reads:
            last = _last_writes(read, logical)
            writers[name, read.number] = last
            reads[name, read.number] = through(events_of(read), _values(read, last, logical))
        if isinstance(s.block.body, Update) and name not in initialised:
            for w in s.writes:
                bases[Computed(name, w.number)] = _base(w, logical)
    finals = {
        p.buffer.name: _final(tree.end(tree.arguments[p.buffer.name]), logical)
        for p in plain.parameters
        if p.intent is not Intent.IN
    }
    return Logical(relations, plain_blocks, keys, initialised, reads, writers, bases, finals)


def plain_flow(kernel: Kernel) -> Flow:
    """The certificate of the plain schedule itself: what every recipe starts from.

    Raises Refused as `logical_flow` does.
    """
    return flow_of(logical_flow(kernel))


def flow_of(logical: Logical) -> Flow:
    """The same values as a certificate."""
    tree = logical.relations.tree
    result: dict[tuple[str, int], Source] = {}
    for (name, number), last in logical.writers.items():
        writers = {w.statement.name: w for w in last if w.statement.block.origin}
        initial = any(isinstance(v, Contents) for v in logical.reads[name, number])
        read = logical.blocks[name].reads[number]
        shared = () if initial else _shared(tree, read, last)
        result[name, number] = Source(tuple(writers), initial, shared)
    return result


def _shared(tree: Tree, read: Access, last: Mapping[Access, isl.Map]) -> tuple[str, ...]:
    """The loops that each read is in the same iteration of as what it reads."""
    levels = [common(read.statement, w.statement) for w in last]
    result: list[str] = []
    for level in levels[0] if levels else ():
        same = all(
            level in others and m.is_subset(agreeing(tree.parameters, read, w, level.loops))
            for others, (w, m) in zip(levels, last.items(), strict=True)
        )
        result += level.loops if same else ()
    return tuple(result)


# ---------------------------------------------------------------- one block


def _keys(statement: Statement) -> isl.Map:
    """From a plain block's instances to the keys of what they compute."""
    instances = statement.instance.intersect_domain(statement.domain)
    if not instances.is_injective():
        raise Refused(
            f"block '{statement.name}' runs one instance twice", span=statement.block.span
        )
    result = isl.Map.identity(instances.range().get_space().map_from_set())
    for k, v in reversed(list(enumerate(statement.block.iters))):
        if v.kind is IterKind.REDUCTION and isinstance(statement.block.body, Update):
            result = result.project_out(OUT, k, 1)
    return result.intersect_domain(instances.range()).coalesce()


def instances_of(access: Access) -> isl.Map:
    """From an access's events to its block's instances."""
    statement = access.statement
    return statement.instance.intersect_domain(statement.domain).add_dims(IN, access.free)


def events_of(access: Access) -> isl.Map:
    """From a block's instances, followed by free coordinates, to an access's events."""
    statement = access.statement
    instances = statement.instance.intersect_domain(statement.domain).reverse()
    return with_free(instances, access.free).intersect_range(access.domain)


def with_free(instances: isl.Map, free: int) -> isl.Map:
    """The map with the same free coordinates after both sides."""
    inputs, outputs = instances.dim(IN), instances.dim(OUT)
    result = instances.add_dims(IN, free).add_dims(OUT, free)
    for k in range(free):
        result = result.equate(IN, inputs + k, OUT, outputs + k)
    return result


def key_of(write: Access, logical: Logical) -> isl.Map:
    """From a plain write's events to keys."""
    return instances_of(write).apply_range(logical.keys[write.statement.name])


# ---------------------------------------------------------------- last writes


def _last_writes(read: Access, logical: Logical, own: bool = True) -> dict[Access, isl.Map]:
    """For each write, the map from the read's events to those of its events that make the value
    read: the last write, or all updates of a reduction that reach it. With `own` False, the
    read's own reduction counts as not there: the value before it.
    """
    seen = _seen(read, logical, own)
    places = Places(seen)
    result = {}
    for w, earlier in seen.items():
        for later in places.near(w):
            overwritten = logical.relations.earlier(later, w)
            if _accumulates(later) and later is w:
                overwritten = overwritten.subtract(_same_key(w, logical))
            earlier = earlier.subtract(seen[later].apply_range(overwritten))
            if earlier.is_empty():
                break
        else:
            result[w] = earlier.coalesce()
    return {w: result[w] for w in logical.relations.writes(read.storage) if w in result}


def _seen(read: Access, logical: Logical, own: bool) -> dict[Access, isl.Map]:
    """The writes to the place before the read, latest first, as far back as some of its events may
    see: a statement that overwrites another is not asked about what came before that one, too.
    """
    relations = logical.relations
    seen: dict[Access, isl.Map] = {}
    hiding: dict[Access, int] = {}  # what came since `rest` was asked for
    rest = read.domain
    for same, writes in turns(read.statement, relations.near(read)):
        new = [w for w in writes if w not in seen]
        if new:
            for w, dims in hiding.items():
                if _is_whole(w, dims, logical):
                    rest = rest.subtract(_agreeing(seen[w], dims).domain())
            hiding = {}
            if rest.is_empty():
                break
        for w in new:
            earlier = relations.earlier(read, w)
            if not own and w.statement is read.statement:
                earlier = earlier.subtract(_same_key(w, logical))
            seen[w] = earlier
        hiding |= dict.fromkeys(writes, same)
    return {w: earlier for w, earlier in seen.items() if not earlier.is_empty()}


def _accumulates(write: Access) -> bool:
    """Whether its instances of one key do not overwrite each other."""
    statement = write.statement
    return bool(statement.block.origin) and isinstance(statement.block.body, Update)


def _is_whole(write: Access, same: int, logical: Logical) -> bool:
    """Whether instances that make one value all agree in so many dims."""
    if not _accumulates(write) or same == 0:
        return True
    keys = _same_key(write, logical)
    return bool(keys.is_subset(_agreeing(keys, same)))


def _agreeing(m: isl.Map, same: int) -> isl.Map:
    """The pairs whose first coordinates, so many, are the same."""
    for k in range(same):
        m = m.equate(IN, k, OUT, k)
    return m


def _same_key(write: Access, logical: Logical) -> isl.Map:
    keys = key_of(write, logical)
    return keys.apply_range(keys.reverse())


def _values(read: Access, last: Mapping[Access, isl.Map], logical: Logical) -> Values:
    result: dict[Value, isl.Map] = {}
    rest = read.domain
    for w, m in last.items():
        if w.free:
            raise Refused(
                f"block '{w.statement.name}' writes '{w.storage.name}' at places that depend on"
                " data, so what it holds afterwards cannot be known",
                span=w.statement.block.span,
            )
        rest = rest.subtract(m.domain())
        value, found = _value(read, w, m, logical)
        result = merged(result, {value: found})
    if rest.is_empty():
        return result
    return merged(result, contents(read, rest))


def contents(read: Access, rest: isl.Set) -> Values:
    """The reads in `rest` as reads of what the argument holds at the call."""
    parameter = read.storage.parameter
    if parameter is None or parameter.intent is Intent.OUT:
        unwritten = sample(rest)
        instance = read.statement.describe(unwritten)
        raise Refused(
            f"{instance} reads '{read.storage.name}' before it is written",
            Witness(unwritten.sizes, (instance,), read.storage.name, element(read, unwritten)),
            read.statement.block.span,
        )
    return {Contents(read.storage.name): read.place.intersect_domain(rest)}


def element(access: Access, case: Sample) -> tuple[int, ...]:
    """The indices of the place that an event concerns."""
    return partner(access.place, case)[access.storage.depth :]


def _value(
    read: Access, write: Access, reached: isl.Map, logical: Logical
) -> tuple[Value, isl.Map]:
    match write.statement.block.body:
        case Init(combiner, _):
            return Identity(combiner, write.number), _nowhere(reached)
        case Store() | Update():
            name = write.statement.name
            keys = key_of(write, logical)
            found = reached.apply_range(keys)
            cut = found.apply_range(keys.reverse()).subtract(reached)
            if not cut.is_empty():
                case_ = sample(cut.wrap())
                at = read.statement.describe(case_)
                raise Refused(
                    f"{at} reads '{read.storage.name}' between the updates of block '{name}'",
                    Witness(case_.sizes, (at,), read.storage.name, element(read, case_)),
                    read.statement.block.span,
                )
            return Computed(name, write.number), found.coalesce()
        case _ as body:
            assert_never(body)


def _nowhere(m: isl.Map) -> isl.Map:
    """The map to the one point of the space without coordinates."""
    return m.project_out(OUT, 0, m.dim(OUT))


def _base(write: Access, logical: Logical) -> Values:
    """From keys to the value that the updates of that key start from."""
    before = _last_writes(write, logical, own=False)
    values = through(key_of(write, logical).reverse(), _values(write, before, logical))
    domains = isl.Set.empty(logical.keys[write.statement.name].range().get_space())
    for m in values.values():
        if not m.is_single_valued() or not domains.is_disjoint(m.domain()):
            raise Refused(
                f"the updates of block '{write.statement.name}' do not all add to one value",
                span=write.statement.block.span,
            )
        domains = domains.union(m.domain())
    return values


def _final(end: Access, logical: Logical) -> Values:
    last = _last_writes(end, logical)
    rest = end.domain
    for m in last.values():
        rest = rest.subtract(m.domain())
    parameter = end.storage.parameter
    if parameter and parameter.intent is Intent.OUT and not rest.is_empty():
        missing = sample(rest)
        raise Refused(
            f"the spec leaves element {list(missing.point)} of '{end.storage.name}' unwritten",
            Witness(missing.sizes, (), end.storage.name, missing.point),
            parameter.span,
        )
    return _values(end, last, logical)
