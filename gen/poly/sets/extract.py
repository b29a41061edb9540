"""A tree as isl sets: the statements that it executes, in textual order.

Input: a kernel at any stage whose inits are explicit. Output: a `Tree`, parametric in the dims.
Invariant: a fused loop counts as the tuple of its parts, and a buffer allocated inside loops is one
place for each of their iterations.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import assert_never, final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import TRUE, conjuncts, index
from ...ir.exchanges import Exchange, exchange
from ...ir.launch import axes, owners
from ...ir.text.print_expr import expr_to_text
from ...ir.types import INDEX
from ..witness import Refused
from .affine import NotAffine, affine, frame, region, tuple_map
from .delinearize import Fused, constant_parts, fused
from .statement import (
    Access,
    AtLeast,
    Guarded,
    Launch,
    LoopLevel,
    Statement,
    Storage,
    Surroundings,
    statement,
)
from .tiles import Tiles, tiles

_NOTHING = ir.Block("a barrier", (), (), TRUE, ir.Init(ir.Combiner.SUM, ()))


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """What a kernel executes. context: what is assumed of the dims. barriers, transfers: as
    statements that touch nothing.
    """

    kernel: ir.Kernel
    parameters: isl.Space
    context: isl.Set
    statements: tuple[Statement, ...]
    arguments: dict[str, Storage]
    barriers: tuple[Statement, ...] = ()
    transfers: tuple[tuple[ir.Transfer, Statement], ...] = ()

    def end(self, storage: Storage) -> Access:
        """The caller's read of every element of an argument, after everything else."""
        axes = tuple(f"axis {k}" for k in range(len(storage.buffer.shape)))
        at = frame(self.parameters, axes)
        identity = tuple_map(tuple(at.values[a] for a in axes), at)
        domain = storage.box.intersect_params(self.context)
        target = ir.Destination(storage.name, tuple(ir.Var(a) for a in axes))
        iters = tuple(
            ir.IterVar(a, index(0), e) for a, e in zip(axes, storage.buffer.shape, strict=True)
        )
        nothing = ir.Const(0, storage.buffer.dtype)
        block = ir.Block("the caller", iters, target.indices, TRUE, ir.Store(target, nothing))
        uid = -1 - list(self.arguments).index(storage.name)
        statement = Statement(block, uid, (1,), axes, domain, at, identity, None, ())
        return Access(statement, 0, storage, 0, identity.intersect_domain(domain))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A node where it stands in a tree, before isl is told. uid: that of its statement."""

    node: ir.Block | ir.Barrier | ir.Transfer
    around: Surroundings
    uid: int

    @property
    def block(self) -> ir.Block:
        """The node as a block that touches nothing, if it is none."""
        match self.node:
            case ir.Block():
                return self.node
            case ir.Barrier():
                return _NOTHING
            case ir.Transfer(message):
                name = f"the {type(self.node).__name__.lower()} of '{message}'"
                return replace(_NOTHING, name=name)

    def statement(self) -> Statement:
        """Raises Refused for what isl cannot say."""
        return statement(self.block, self.around, self.uid)


@final
@dataclass(frozen=True, slots=True)
class Outline:
    """A tree before any isl: all that stands in it, in textual order."""

    empty: Tree
    placed: tuple[Placed, ...]

    @property
    def blocks(self) -> tuple[Placed, ...]:
        return tuple(s for s in self.placed if isinstance(s.node, ir.Block))

    @property
    def has_parts(self) -> bool:
        """Whether a proof is made of parts (`poly.decisions`) alone. No part has what threads of a
        launch, and ranks that send, do to each other.
        """
        return not any(s.around.launch or isinstance(s.node, ir.Transfer) for s in self.placed)

    def tree(self, chosen: Container[int] | None = None) -> Tree:
        """The tree with the chosen of its statements, by default all, and all of its barriers and
        transfers.

        Raises Refused for what isl cannot say.
        """
        found = tuple(
            (s.node, s.statement())
            for s in self.placed
            if chosen is None or s.uid in chosen or not isinstance(s.node, ir.Block)
        )
        return replace(
            self.empty,
            statements=tuple(s for node, s in found if isinstance(node, ir.Block)),
            barriers=tuple(s for node, s in found if isinstance(node, ir.Barrier)),
            transfers=tuple((node, s) for node, s in found if isinstance(node, ir.Transfer)),
        )


def extract(kernel: ir.Kernel) -> Tree:
    """The statements of a kernel whose inits are explicit. Raises Refused for what isl cannot
    say.
    """
    return outline(kernel).tree()


def outline(kernel: ir.Kernel, assumptions: tuple[ir.Expr, ...] = ()) -> Outline:
    """As `extract`, but for the statements' sets.

    assumptions: over dims, on top of the kernel's own.
    """
    parameters = parameters_of(kernel)
    context = isl.Set.universe(parameters.set_from_params())
    for k, _ in enumerate(kernel.dims):
        context = context.lower_bound_val(isl.dim_type.param, k, 0)
    for phase in kernel.phases:
        k = parameters.find_dim_by_name(isl.dim_type.param, phase.name)
        context = context.lower_bound_val(isl.dim_type.param, k, 0)
        context = context.upper_bound_val(isl.dim_type.param, k, phase.size - 1)
    nowhere = frame(parameters, ())
    for part in (p for a in (*kernel.assumptions, *assumptions) for p in conjuncts(a)):
        # What isl cannot say is left out: the proof then assumes less.
        try:
            context = context.intersect(region(part, nowhere))
        except NotAffine:
            continue
    arguments = {p.buffer.name: _storage(p.buffer, (), parameters, p) for p in kernel.parameters}
    tree = Tree(kernel, parameters, context.params(), (), arguments)
    start = Surroundings(parameters, context.params(), (0,), storages=tuple(arguments.values()))
    visited = enumerate(_visit(kernel.body, start, count()))
    return Outline(tree, tuple(Placed(node, around, k) for k, (node, around) in visited))


def _allocated(buffer: ir.Buffer, around: Surroundings, body: ir.Stmt) -> Storage:
    """A buffer as an Allocate makes it."""
    levels = [item for item in around.path if isinstance(item, LoopLevel)]
    if buffer.scope is ir.Scope.MESSAGE:
        return _message(buffer, around, exchange(body, buffer.name))
    if buffer.scope is ir.Scope.RANK and not any(
        ir.LoopKind.DISTRIBUTED in x.kinds for x in levels
    ):
        found = _storage(buffer, (*around.dims, "rank"), around.parameters)
        outside = tuple(range(len(around.dims)))
        return replace(found, kept=outside, owners=(ir.LoopKind.DISTRIBUTED,))
    bound = frozenset(kind for level in levels for kind in level.kinds)
    launch = around.launch
    axes = owners(buffer, launch.axes, frozenset(launch.axes) - bound) if launch else None
    if launch is None or axes is None:
        return _storage(buffer, around.dims, around.parameters)
    kept: list[int] = []
    entries: list[int] = []
    depth = 0
    for level in levels:
        here = range(depth, depth + len(level.dims))
        bound_here = {kind for kind in level.kinds if kind.is_bound}
        depth += len(level.dims)
        if bound_here and len(level.kinds) > 1 and not set(level.kinds) <= axes:
            raise Refused(
                f"'{buffer.name}' is allocated in fused loop '{level.loops[0]}': the proof"
                " does not know which of its iterations share one memory",
                span=buffer.span,
            )
        kept += [] if bound_here - axes else here
        entries += here if here.start >= launch.outside and not bound_here else ()
    rest = tuple(axis for axis in launch.axes if axis in axes - bound)
    dims = tuple(around.dims[k] for k in kept)
    found = _storage(buffer, (*dims, *(axis.value for axis in rest)), around.parameters)
    return replace(found, kept=tuple(kept), owners=rest, entries=tuple(entries))


def _message(buffer: ir.Buffer, around: Surroundings, found: Exchange) -> Storage:
    """A message: another one in each iteration of the loops in which it is sent."""
    for loop in found.around:
        if fused(loop) or tiles(loop):
            raise Refused(
                f"'{buffer.name}' is sent in loop '{loop.var}', of whose iterations the proof does"
                " not say which ranks they are",
                span=found.send.span,
            )
    dims = (*around.dims, *(loop.var for loop in found.around))
    kept = tuple(k for k, dim in enumerate(dims) if dim != found.ranks.var)
    names = (*(dims[k] for k in kept), "sender", "receiver")
    way = found.send.to, found.receive.source
    return replace(_storage(buffer, names, around.parameters), kept=kept, way=way)


def _storage(
    buffer: ir.Buffer,
    dims: tuple[str, ...],
    parameters: isl.Space,
    parameter: ir.Parameter | None = None,
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
    return Storage(buffer, tuple(range(len(dims))), parameter, box)


def parameters_of(kernel: ir.Kernel) -> isl.Space:
    """The space of a kernel's sizes."""
    scalars = (s.name for s in kernel.scalars if s.dtype is INDEX)
    names = (*kernel.dims, *scalars, *(p.name for p in kernel.phases))
    space = isl.Space.params_alloc(isl.DEFAULT_CONTEXT, len(names))
    for k, name in enumerate(names):
        space = space.set_dim_name(isl.dim_type.param, k, name)
    return space


# ---------------------------------------------------------------- walking the tree


def _visit(
    stmt: ir.Stmt, around: Surroundings, uid: Iterator[int]
) -> Iterator[tuple[ir.Block | ir.Barrier | ir.Transfer, Surroundings]]:
    match stmt:
        case ir.Block():
            yield stmt, around
        case ir.Barrier() | ir.Transfer():
            yield stmt, around
        case ir.Seq(body):
            for k, s in enumerate(body):
                yield from _visit(s, replace(around, path=(*around.path, k)), uid)
        case ir.If(condition, body):
            yield from _visit(body, replace(around, steps=(*around.steps, condition)), uid)
        case ir.Allocate(buffers, body):
            made = tuple(_allocated(b, around, body) for b in buffers)
            yield from _visit(body, replace(around, storages=around.storages + made), uid)
        case ir.Loop():
            yield from _visit_loop(stmt, around, uid)
        case ir.Leave():
            raise AssertionError("finishing makes it, after all proofs")
        case ir.Delinearize():
            inner = replace(around, steps=around.steps + constant_parts(stmt))
            yield from _visit(stmt.body, inner, uid)
        case _:
            assert_never(stmt)


def _visit_loop(
    loop: ir.Loop, around: Surroundings, uid: Iterator[int]
) -> Iterator[tuple[ir.Block | ir.Barrier | ir.Transfer, Surroundings]]:
    nest = fused(loop)
    if loop.kind.is_bound and around.launch is None:
        launch = Launch(next(uid), len(around.dims), axes(loop))
        around = replace(around, launch=launch)
    if isinstance(nest, Fused):
        level = LoopLevel(next(uid), nest.loops, nest.kinds, nest.vars)
        required = [AtLeast(extent, 0, "extent", "a fused loop") for extent in nest.extents]
        conditions = [
            c
            for var, extent in zip(nest.vars, nest.extents, strict=True)
            for c in _between(var, None, extent)
        ]
        yield from _visit(nest.body, around.enter(level, *required, *conditions), uid)
        return
    if cut := tiles(loop):
        yield from _visit_tiles(cut, around, uid)
        return
    level = LoopLevel(next(uid), (loop.var,), (loop.kind,), (loop.var,))
    bounds = _between(loop.var, loop.lower, loop.upper)
    yield from _visit(loop.body, around.enter(level, *bounds), uid)


def _visit_tiles(
    cut: Tiles, around: Surroundings, uid: Iterator[int]
) -> Iterator[tuple[ir.Block | ir.Barrier | ir.Transfer, Surroundings]]:
    turned = next(uid) if cut.turned else None
    for u in cut.loops:
        level = LoopLevel(next(uid), u.loops, u.kinds, (u.var,), turned)
        above, below = _between(u.var, u.lower, u.upper)
        size = (AtLeast(u.size, 1, "size", "parts"),) if u.size else ()
        around = around.enter(level, *size, above, Guarded(below) if u.guarded else below)
    yield from _visit(cut.body, around, uid)


def _between(var: str, lower: ir.Expr | None, upper: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    return (
        ir.Binary(ir.BinaryOp.GE, ir.Var(var), lower or index(0)),
        ir.Binary(ir.BinaryOp.LT, ir.Var(var), upper),
    )
