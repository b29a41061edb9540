"""A tree as isl sets: the statements that it executes, and the places that they read and write.

Input: a kernel at any stage whose inits are explicit. Output: a `Tree`, one `Statement` a block in
textual order, parametric in the dims. Invariant: a statement's domain is a set over the variables
of the loops around it (`dims`); a fused loop counts as the tuple of its parts. What is not affine
is never dropped: an index becomes a free coordinate over its declared range (a may-access), a
condition that reads arguments is kept in `Statement.opaque`, and anything else is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import assert_never, final

import islpy as isl

from ..ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Const,
    Delinearize,
    Expr,
    If,
    Intent,
    IterVar,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Node,
    Parameter,
    Select,
    Seq,
    Stmt,
    Store,
    Target,
    Var,
)
from ..ir.printer import expr_to_text
from ..ir.walk import TRUE, children, conjuncts, index, loads, targets, variables
from .affine import Frame, NotAffine, affine, frame, region, tuple_map
from .delinearize import Fused, constant_parts, fused
from .witness import Instance, Refused


@final
@dataclass(frozen=True, slots=True)
class Level:
    """A loop around a statement: its variable, or the parts of a fused one in its place."""

    node: int
    loops: tuple[str, ...]
    kinds: tuple[LoopKind, ...]
    dims: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """An argument, or a buffer as one Allocate makes it.

    depth: the number of dims of the loops around the Allocate; their values are the leading
        coordinates of a place, since each entry makes new places. box: the places that there are.
    """

    buffer: Buffer
    depth: int
    parameter: Parameter | None
    box: isl.Set

    @property
    def name(self) -> str:
        return self.buffer.name


@final
@dataclass(frozen=True, slots=True, eq=False)
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

    @property
    def domain(self) -> isl.Set:
        return self.place.domain()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A block where it stands in the tree; copies of one block are several statements.

    path: textual positions and loops, from the root (position 0) down. at: the values of loop and
    iteration variables, over `dims`. instance: from `dims` to iteration variables. origin: from
    `dims` to the instance of the plain block that it computes. opaque: conditions read from
    inputs, under which it runs.
    """

    block: Block
    uid: int
    path: tuple[int | Level, ...]
    dims: tuple[str, ...]
    domain: isl.Set
    at: Frame
    instance: isl.Map
    origin: isl.Map | None
    opaque: tuple[Expr, ...]
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def levels(self) -> tuple[Level, ...]:
        return tuple(item for item in self.path if isinstance(item, Level))

    def describe(self, point: tuple[int, ...]) -> Instance:
        """The instance at a point of `dims`; free coordinates after it are ignored."""
        here = point[: len(self.dims)]
        box = isl.Set.universe(self.domain.get_space())
        for k, value in enumerate(here):
            box = box.fix_val(isl.dim_type.set, k, value)
        values = self.instance.intersect_domain(box).range().sample_point()
        iters = {
            v.name: int(values.get_coordinate_val(isl.dim_type.set, k).to_python())
            for k, v in enumerate(self.block.iters)
        }
        return Instance(self.name, iters, dict(zip(self.dims, here, strict=True)))


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """What a kernel executes. context: what is assumed of the dims."""

    kernel: Kernel
    parameters: isl.Space
    context: isl.Set
    statements: tuple[Statement, ...]
    arguments: dict[str, Storage]

    def end(self, storage: Storage) -> Access:
        """A read of every element of an argument after everything else."""
        axes = tuple(f"axis {k}" for k in range(len(storage.buffer.shape)))
        at = frame(self.parameters, axes)
        identity = tuple_map(tuple(at.values[a] for a in axes), at)
        domain = storage.box.intersect_params(self.context)
        target = Target(storage.name, tuple(Var(a) for a in axes))
        iters = tuple(
            IterVar(a, index(0), e) for a, e in zip(axes, storage.buffer.shape, strict=True)
        )
        nothing = Const(0, storage.buffer.dtype)
        block = Block("the end", iters, target.indices, TRUE, Store(target, nothing))
        statement = Statement(block, -1, (1,), axes, domain, at, identity, None, ())
        return Access(statement, 0, storage, 0, identity.intersect_domain(domain))


@final
@dataclass(frozen=True, slots=True)
class _Trail:
    """What is around a statement: the path, the dims, and the steps that fix the domain, in order:
    conditions, and variables bound to values.
    """

    parameters: isl.Space
    path: tuple[int | Level, ...] = ()
    dims: tuple[str, ...] = ()
    steps: tuple[Expr | tuple[str, Expr], ...] = ()
    storages: tuple[Storage, ...] = ()

    def enter(self, level: Level, *conditions: Expr) -> "_Trail":
        return replace(
            self,
            path=(*self.path, level),
            dims=self.dims + level.dims,
            steps=self.steps + conditions,
        )


def extract(kernel: Kernel, assumptions: tuple[Expr, ...] = ()) -> Tree:
    """The statements of a kernel whose inits are explicit.

    assumptions: over dims, on top of the kernel's own. Raises Refused for what isl cannot say.
    """
    parameters = _parameters(kernel)
    context = isl.Set.universe(parameters.set_from_params())
    for k, _ in enumerate(kernel.dims):
        context = context.lower_bound_val(isl.dim_type.param, k, 0)
    nowhere = frame(parameters, ())
    for assumption in (*kernel.assumptions, *assumptions):
        # What isl cannot say is left out: the proof then assumes less.
        try:
            context = context.intersect(region(assumption, nowhere))
        except NotAffine:
            continue
    arguments = {p.buffer.name: _storage(p.buffer, (), parameters, p) for p in kernel.parameters}
    tree = Tree(kernel, parameters, context.params(), (), arguments)
    start = _Trail(parameters, (0,), storages=tuple(arguments.values()))
    visited = enumerate(_visit(kernel.body, start, count()))
    return replace(
        tree, statements=tuple(_statement(tree, block, trail, k) for k, (block, trail) in visited)
    )


def _storage(
    buffer: Buffer, dims: tuple[str, ...], parameters: isl.Space, parameter: Parameter | None = None
) -> Storage:
    rank = len(buffer.shape)
    places = frame(parameters, (*dims, *(f"index {k}" for k in range(rank))))
    box = isl.Set.universe(places.space)
    for k, extent in enumerate(buffer.shape):
        try:
            inside = places.values[f"index {k}"].lt_set(affine(extent, places))
        except NotAffine as e:
            raise Refused(
                f"the shape of '{buffer.name}' has `{expr_to_text(e.expr)}`, which is not affine",
                span=buffer.span,
            ) from e
        box = box.intersect(inside).lower_bound_val(isl.dim_type.set, len(dims) + k, 0)
    return Storage(buffer, len(dims), parameter, box)


def _parameters(kernel: Kernel) -> isl.Space:
    names = (*kernel.dims, *(s.name for s in kernel.scalars if s.dtype.is_integer))
    space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(names))
    for k, name in enumerate(names):
        space = space.set_dim_name(isl.dim_type.param, k, name)
    return space


# ---------------------------------------------------------------- walking the tree


def _visit(stmt: Stmt, trail: _Trail, uid: Iterator[int]) -> Iterator[tuple[Block, _Trail]]:
    match stmt:
        case Block():
            yield stmt, trail
        case Seq(body):
            for k, s in enumerate(body):
                yield from _visit(s, replace(trail, path=(*trail.path, k)), uid)
        case If(condition, body):
            yield from _visit(body, replace(trail, steps=(*trail.steps, condition)), uid)
        case Allocate(buffers, body):
            made = tuple(_storage(b, trail.dims, trail.parameters) for b in buffers)
            yield from _visit(body, replace(trail, storages=trail.storages + made), uid)
        case Loop():
            yield from _visit_loop(stmt, trail, uid)
        case Delinearize():
            inner = replace(trail, steps=trail.steps + constant_parts(stmt))
            yield from _visit(stmt.body, inner, uid)
        case _:
            assert_never(stmt)


def _visit_loop(loop: Loop, trail: _Trail, uid: Iterator[int]) -> Iterator[tuple[Block, _Trail]]:
    nest = fused(loop)
    if isinstance(nest, Fused):
        level = Level(next(uid), nest.loops, nest.kinds, nest.vars)
        conditions = [
            c
            for var, extent in zip(nest.vars, nest.extents, strict=True)
            for c in _between(var, None, extent)
        ]
        yield from _visit(nest.body, trail.enter(level, *conditions), uid)
        return
    level = Level(next(uid), (loop.var,), (loop.kind,), (loop.var,))
    bounds = _between(loop.var, loop.lower, loop.upper)
    yield from _visit(loop.body, trail.enter(level, *bounds), uid)


def _between(var: str, lower: Expr | None, upper: Expr) -> tuple[Expr, Expr]:
    return (
        Binary(BinaryOp.GE, Var(var), lower or index(0)),
        Binary(BinaryOp.LT, Var(var), upper),
    )


# ---------------------------------------------------------------- one statement


def _statement(tree: Tree, block: Block, trail: _Trail, uid: int) -> Statement:
    at = frame(tree.parameters, trail.dims)
    domain = isl.Set.universe(at.space).intersect_params(tree.context)
    opaque: list[Expr] = []
    for step in (*trail.steps, block.predicate):
        if isinstance(step, tuple):
            at = at.bind({step[0]: _affine(step[1], at, block)})
            continue
        for condition in conjuncts(step):
            try:
                domain = domain.intersect(region(condition, at))
            except NotAffine:
                _require_readable(condition, block, tree)
                opaque.append(condition)
    pairs = zip(block.iters, block.bindings, strict=True)
    at = at.bind({v.name: _affine(binding, at, block) for v, binding in pairs})
    instance = tuple_map(tuple(at.values[v.name] for v in block.iters), at)
    origin = None
    if block.origin:
        origin = tuple_map(tuple(_affine(e, at, block) for e in block.origin.at), at)
        origin = origin.intersect_domain(domain)
    domain = domain.coalesce()
    result = Statement(
        block, uid, trail.path, trail.dims, domain, at, instance, origin, tuple(opaque)
    )
    storages = {s.name: s for s in trail.storages}
    result.reads.extend(_reads(result, block.body, domain, storages))
    for k, target in enumerate(targets(block.body)):
        result.writes.append(_access(result, k, storages[target.buffer], target.indices, domain))
    return result


def _affine(expr: Expr, at: Frame, block: Block) -> isl.PwAff:
    try:
        return affine(expr, at)
    except NotAffine as e:
        raise Refused(
            f"block '{block.name}' depends on `{expr_to_text(e.expr)}`, which is not affine",
            span=block.span,
        ) from e


def _require_readable(condition: Expr, block: Block, tree: Tree) -> None:
    """Only what inputs say may be left opaque: it is the same whenever it is asked."""
    inputs = {p.buffer.name for p in tree.kernel.parameters if p.intent is Intent.IN}
    read = loads(condition)
    if not read or any(x.buffer not in inputs for x in read):
        raise Refused(
            f"block '{block.name}' runs where `{expr_to_text(condition)}`, which is neither affine"
            " nor a condition on inputs",
            span=block.span,
        )


def _reads(
    statement: Statement,
    node: Node,
    domain: isl.Set,
    storages: Mapping[str, Storage],
    first: int = 0,
) -> Iterator[Access]:
    """The reads below a node, numbered from `first` in textual order, where they are evaluated."""
    if isinstance(node, Load):
        storage = storages[node.buffer]
        yield _access(statement, first, storage, node.indices, domain)
        first += 1
    for position, child in enumerate(children(node)):
        where = domain
        if isinstance(node, Select) and position > 0:
            where = _side(node, position == 1, statement.at, domain)
        yield from _reads(statement, child, where, storages, first)
        first += len(loads(child))


def _side(select: Select, then: bool, at: Frame, domain: isl.Set) -> isl.Set:
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
    indices: tuple[Expr, ...],
    domain: isl.Set,
) -> Access:
    at, depth = statement.at, len(statement.dims)
    outer = tuple(at.values[name] for name in statement.dims[: storage.depth])
    known = [_known(expr, at) for expr in indices]
    free = sum(value is None for value in known)
    events = domain.add_dims(isl.dim_type.set, free)
    place = isl.Map.from_domain(events)
    unused = iter(range(depth, depth + free))
    for value in (*outer, *known):
        if value is None:
            part = isl.Map.universe(_to_number(events.get_space()))
            part = part.equate(isl.dim_type.in_, next(unused), isl.dim_type.out, 0)
        else:
            part = isl.Map.from_pw_aff(value).add_dims(isl.dim_type.in_, free)
        place = place.flat_range_product(part)
    for k, value in enumerate(known, storage.depth):
        if value is None or _data_dependent(value, statement):
            place = place.intersect_range(_within(storage, k))
    return Access(statement, number, storage, free, place)


def _known(expr: Expr, at: Frame) -> isl.PwAff | None:
    try:
        return affine(expr, at)
    except NotAffine:
        return None


def _to_number(space: isl.Space) -> isl.Space:
    """The space of maps from a set space to one coordinate."""
    return isl.Map.from_domain(isl.Set.universe(space)).add_dims(isl.dim_type.out, 1).get_space()


def _data_dependent(value: isl.PwAff, statement: Statement) -> bool:
    """Whether an index uses a loop whose bounds inputs hold: those say that it is in range."""
    used = frozenset[str]().union(*map(variables, statement.opaque))
    dims = enumerate(statement.dims)
    return any(d in used and value.involves_dims(isl.dim_type.in_, k, 1) for k, d in dims)


def _within(storage: Storage, coordinate: int) -> isl.Set:
    """The places whose one coordinate is in its declared range."""
    count = storage.box.dim(isl.dim_type.set)
    one = storage.box.project_out(isl.dim_type.set, coordinate + 1, count - coordinate - 1)
    one = one.project_out(isl.dim_type.set, storage.depth, coordinate - storage.depth)
    one = one.insert_dims(isl.dim_type.set, storage.depth, coordinate - storage.depth)
    return one.add_dims(isl.dim_type.set, count - coordinate - 1)
