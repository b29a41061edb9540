"""One block where it stands in a tree: its domain, and the places that it reads and writes.

Input: a block, the loops around it and the conditions that it runs under. Output: a `Statement`,
whose domain is a set over the variables of those loops (`dims`). What is not affine is never
dropped: an index becomes a free coordinate between the bounds that a clamp gives it (a may-access),
a condition that reads inputs is kept in `Statement.opaque`, and anything else is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import conjuncts
from ...ir.launch import Axes
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import children, loads, targets
from ..witness import Instance, Refused, Sample, Witness, partner, sample
from .affine import Frame, NotAffine, affine, frame, interval, region, tuple_map
from .unknown_places import known, part, unknown, within


@final
@dataclass(frozen=True, slots=True)
class LoopLevel:
    """A loop around a statement: its variable, or the parts of a fused one in its place.

    turned: of which nest it is that runs in parts of a symbolic size, and so in another order.
    """

    node: int
    loops: tuple[str, ...]
    kinds: tuple[ir.LoopKind, ...]
    dims: tuple[str, ...]
    turned: int | None = None

    @property
    def is_fused(self) -> bool:
        return self.dims != self.loops

    @property
    def is_thread(self) -> bool:
        """Whether its iterations are the threads along an axis."""
        return not self.is_fused and self.kinds[0].is_thread

    @property
    def in_lockstep(self) -> bool:
        """Whether its iterations are threads or ranks."""
        return self.is_thread or (not self.is_fused and self.kinds[0] is ir.LoopKind.DISTRIBUTED)


@final
@dataclass(frozen=True, slots=True)
class Launch:
    """The launch around a statement. node: which one. outside: the number of dims around it."""

    node: int
    outside: int
    axes: Axes

    def kinds(self, *, threads: bool) -> tuple[ir.LoopKind, ...]:
        return tuple(kind for kind in self.axes if kind.is_thread is threads)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """An argument, or a buffer as one Allocate makes it.

    kept: which dims of the loops around the Allocate are the leading coordinates of a place: all,
        since each entry makes new places, but for those of threads that share the buffer.
    owners: axes of the launch that no loop around the Allocate is bound to, but along which there
        are several such buffers; the place of an access on them is a coordinate, too. Of a rank's
        memory the ranks.
    way: of a message, the rank that it is sent to and the one that it is received from. Each time
        that it is sent it is a new one, and its coordinates are the sender and the receiver, too.
    entries: of a buffer that threads share, the dims of loops that enter its Allocate again and
        again; the memory is the same, so that what one iteration holds overlaps what another did.
    box: the places that there are.
    """

    buffer: ir.Buffer
    kept: tuple[int, ...]
    parameter: ir.Parameter | None
    box: isl.Set
    owners: tuple[ir.LoopKind, ...] = ()
    entries: tuple[int, ...] = ()
    way: tuple[ir.Expr, ir.Expr] | None = None

    @property
    def depth(self) -> int:
        """The number of leading coordinates."""
        return len(self.kept) + len(self.owners) + (2 if self.way else 0)

    @property
    def name(self) -> str:
        return self.buffer.name


@final
@dataclass(frozen=True, eq=False)
class Access:
    """A numbered read or a numbered write (of a target) of a statement.

    free: the number of free coordinates that follow the statement's own in an event of this access,
        one for each index that is not affine. place: from events to places.
    """

    statement: "Statement"
    number: int
    storage: Storage
    free: int
    place: isl.Map

    @cached_property
    def domain(self) -> isl.Set:
        return self.place.domain()

    @cached_property
    def fixed(self) -> Mapping[int, int]:
        """The coordinates of its place that are one number in all events, and which."""
        out = isl.dim_type.out
        values = enumerate(
            self.place.plain_get_val_if_fixed(out, k) for k in range(self.place.dim(out))
        )
        return {k: value.to_python() for k, value in values if value.is_int()}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A block where it stands in the tree; copies of one block are several statements.

    path: textual positions and loops, from the root (position 0) down. at: the values of loop and
    iteration variables, over `dims`. instance: from `dims` to iteration variables. origin: from
    `dims` to the instance of the plain block that it computes. opaque: conditions read from
    inputs, under which it runs; guards: the reads in those.
    """

    block: ir.Block
    uid: int
    path: tuple[int | LoopLevel, ...]
    dims: tuple[str, ...]
    domain: isl.Set
    at: Frame
    instance: isl.Map
    origin: isl.Map | None
    opaque: tuple[ir.Expr, ...]
    launch: Launch | None = None
    guards: list[Access] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def levels(self) -> tuple[LoopLevel, ...]:
        return tuple(item for item in self.path if isinstance(item, LoopLevel))

    def on(self, axis: ir.LoopKind) -> tuple[LoopLevel, int] | None:
        """The loop around that is bound to an axis, and which of `dims` is its first."""
        depth = 0
        for level in self.levels:
            if axis in level.kinds:
                return level, depth
            depth += len(level.dims)
        return None

    def describe(self, case: Sample, point: tuple[int, ...] | None = None) -> Instance:
        """The instance at a point of `dims`, the case's own if none is given; free coordinates
        after it are ignored.
        """
        if self.uid < 0:
            return Instance(self.name, {}, {})  # the caller, who is not in the tree
        here = (case.point if point is None else point)[: len(self.dims)]
        values = partner(self.instance, Sample(case.sizes, here))
        iters = dict(zip((v.name for v in self.block.iters), values, strict=True))
        return Instance(self.name, iters, dict(zip(self.dims, here, strict=True)))


@final
@dataclass(frozen=True, slots=True)
class AtLeast:
    """Of an extent 0, since a product hides two negative ones; of a size given at run time 1."""

    value: ir.Expr
    least: int
    what: str
    of: str


@final
@dataclass(frozen=True, slots=True)
class Guarded:
    """A condition that the guards of the blocks inside must imply."""

    condition: ir.Expr


Step = ir.Expr | tuple[str, ir.Expr] | AtLeast | Guarded


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a statement: the path, the dims, and the steps that fix the domain, in order:
    conditions, variables bound to values, and extents that are required not to be negative.
    """

    parameters: isl.Space
    context: isl.Set
    path: tuple[int | LoopLevel, ...]
    dims: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    storages: tuple[Storage, ...] = ()
    launch: Launch | None = None

    def enter(self, level: LoopLevel, *conditions: Step) -> "Surroundings":
        return replace(
            self,
            path=(*self.path, level),
            dims=self.dims + level.dims,
            steps=self.steps + conditions,
        )


def statement(block: ir.Block, around: Surroundings, uid: int) -> Statement:
    """The block as a statement. Raises Refused for what isl cannot say."""
    at = frame(around.parameters, around.dims)
    domain = isl.Set.universe(at.space).intersect_params(around.context)
    opaque: list[tuple[ir.Expr, isl.Set]] = []
    guarded: list[ir.Expr] = []
    for step in (*around.steps, block.predicate):
        at = replace(at, known=opaque[0][1] if opaque else domain)
        match step:
            case (name, value):
                at = at.bind({name: _affine(value, at, block)})
            case AtLeast():
                _require_least(step, at, domain, block)
            case Guarded(condition):
                guarded.append(condition)
            case _:
                for condition in conjuncts(step):
                    try:
                        domain = domain.intersect(region(condition, at))
                    except NotAffine:
                        _require_readable(condition, block, around)
                        opaque.append((condition, domain))
    domain = domain.coalesce()
    at = replace(at, known=opaque[0][1] if opaque else domain)  # where guards are read, too
    for condition in guarded:
        _require_guard(condition, at, domain, block)
    pairs = zip(block.iters, block.bindings, strict=True)
    at = at.bind({v.name: _affine(binding, at, block) for v, binding in pairs})
    instance = tuple_map(tuple(at.values[v.name] for v in block.iters), at)
    origin = None
    if block.origin:
        origin = tuple_map(tuple(_affine(e, at, block) for e in block.origin.at), at)
        origin = origin.intersect_domain(domain)
    conditions = tuple(c for c, _ in opaque)
    path, dims, launch = around.path, around.dims, around.launch
    result = Statement(block, uid, path, dims, domain, at, instance, origin, conditions, launch)
    storages = {s.name: s for s in around.storages}
    for condition, where in opaque:
        result.guards.extend(reads_of(result, condition, where, storages))
    result.reads.extend(reads_of(result, block.body, domain, storages))
    for k, target in enumerate(targets(block.body)):
        storage = storages[target.buffer]
        result.writes.append(_access(result, k, storage, target.indices, domain, writes=True))
    return result


def _affine(expr: ir.Expr, at: Frame, block: ir.Block) -> isl.PwAff:
    try:
        return affine(expr, at)
    except NotAffine as e:
        raise Refused(
            f"block '{block.name}' depends on `{expr_to_text(e.expr)}`, which is not affine",
            span=block.span,
        ) from e


def _require_least(needed: AtLeast, at: Frame, domain: isl.Set, block: ir.Block) -> None:
    above = _affine(needed.value, at, block).sub(at.constant(needed.least))
    wrong = domain.subtract(above.nonneg_set())
    if not wrong.is_empty():
        raise Refused(
            f"the {needed.what} `{expr_to_text(needed.value)}` of {needed.of} around block"
            f" '{block.name}' may be {f'less than {needed.least}' if needed.least else 'negative'}",
            Witness(sample(wrong).sizes),
            block.span,
        )


def _require_guard(condition: ir.Expr, at: Frame, domain: isl.Set, block: ir.Block) -> None:
    try:
        within = domain.is_subset(region(condition, at))
    except NotAffine:
        within = False
    if not within:
        raise Refused(
            f"block '{block.name}' runs past the end of a loop that is cut into parts, where not"
            f" `{expr_to_text(condition)}`",
            span=block.span,
        )


def _require_readable(condition: ir.Expr, block: ir.Block, around: Surroundings) -> None:
    """Only what inputs say may be left opaque: it is the same whenever it is asked."""
    parameters = (s.parameter for s in around.storages)
    inputs = {p.buffer.name for p in parameters if p and p.intent is ir.Intent.IN}
    read = loads(condition)
    if not read or any(x.buffer not in inputs for x in read):
        raise Refused(
            f"block '{block.name}' runs where `{expr_to_text(condition)}`, which is neither affine"
            " nor a condition on inputs",
            span=block.span,
            hint=None
            if read
            else "say it as a value, `y[i] = a if ... else b`, or in the condition of a reduction;"
            " or fix what it divides by with `when`",
        )


def reads_of(
    statement: Statement,
    node: ir.Node,
    domain: isl.Set,
    storages: Mapping[str, Storage],
    first: int = 0,
) -> Iterator[Access]:
    """The reads below a node, numbered from `first` in textual order, where they are evaluated."""
    if isinstance(node, ir.Load):
        storage = storages[node.buffer]
        yield _access(statement, first, storage, node.indices, domain)
        first += 1
    for position, child in enumerate(children(node)):
        where = domain
        if isinstance(node, ir.Select) and position > 0:
            where = _side(node, position == 1, statement.at, domain)
        yield from reads_of(statement, child, where, storages, first)
        first += len(loads(child))


def _side(select: ir.Select, then: bool, at: Frame, domain: isl.Set) -> isl.Set:
    """Where a side of a Select is evaluated; the domain where the condition is not affine."""
    try:
        holds = region(select.condition, at)
    except NotAffine:
        return domain
    return domain.intersect(holds) if then else domain.subtract(holds)


def _access(
    statement: Statement,
    number: int,
    storage: Storage,
    indices: tuple[ir.Expr, ...],
    domain: isl.Set,
    *,
    writes: bool = False,
) -> Access:
    at, depth = statement.at, len(statement.dims)
    outer = tuple(at.values[statement.dims[k]] for k in storage.kept)
    outer += tuple(_on(axis, statement, storage) for axis in storage.owners)
    if storage.way:
        rank = _on(ir.LoopKind.DISTRIBUTED, statement, storage)
        to, source = (_affine(peer, at, statement.block) for peer in storage.way)
        outer += (rank, to) if writes else (source, rank)
    values = [known(expr, at) for expr in indices]
    stand = unknown(indices, at)
    free = len(set(stand.values()))
    events = domain.add_dims(isl.dim_type.set, free)
    place = isl.Map.from_domain(isl.Set.universe(events.get_space()))
    coordinates = {n: depth + k for k, n in enumerate(dict.fromkeys(stand.values()))}
    held = {n: within(interval(n, at), free, k, events) for n, k in coordinates.items()}
    for expr, value in zip((None,) * len(outer) + indices, (*outer, *values), strict=True):
        if value is not None:
            axis = isl.Map.from_pw_aff(value).add_dims(isl.dim_type.in_, free)
        else:
            assert expr is not None
            n = stand[expr]
            axis = held[n]
            if expr != n:
                events = events.intersect(axis.domain())
                axis = isl.Map.from_pw_aff(part(expr, n, coordinates[n], events))
        place = place.flat_range_product(axis)
    # The events last: each product would go through all of their constraints.
    return Access(statement, number, storage, free, place.intersect_domain(events))


def _on(axis: ir.LoopKind, statement: Statement, storage: Storage) -> isl.PwAff:
    """A statement's place on an axis of its launch, in which no loop may be bound to the axis."""
    found = statement.on(axis)
    if found is None:
        return statement.at.constant(0)
    level, _ = found
    if level.is_fused:
        raise Refused(
            f"block '{statement.name}' accesses '{storage.name}', which each {axis.value} has for"
            f" itself, in fused loop '{level.loops[0]}': the proof does not know which of them an"
            " iteration runs on",
            span=statement.block.span,
        )
    return statement.at.values[level.dims[0]]
