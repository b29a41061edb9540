"""rfactor: a reduction by way of partial results."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, assert_never, final

from ...ir.algebra import add, conjunction, index
from ...ir.index.bounds import Range, highest, lowest
from ...ir.inits import explicit_init
from ...ir.nodes import (
    Block,
    Buffer,
    Delinearize,
    Expr,
    IterKind,
    IterVar,
    Kernel,
    Load,
    Loop,
    Stmt,
    Target,
    Update,
    Var,
)
from ...ir.walk import ancestors, replace_stmt, seq, substitute, targets, variables
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    block_named,
    buffer_named,
    feeding,
    fresh,
    index_of,
    local_name,
    loop_named,
    names,
    nest,
    prune_shared,
    ranges_of,
    rebuild,
    reduction_loops,
    scope_of,
    serial_loop,
    spatial_loops,
    taken_buffer,
    taken_loops,
    temporaries,
    tree,
    without_loops,
)
from ..examples import ROW_SUM, TRIANGLE


@final
@dataclass(frozen=True)
class Rfactor(Primitive):
    """Factors loops out of a reduction: a new block reduces into one partial result for each of
    their iterations, and the old one, after it, joins the partials.

    The partials' buffer has an axis more for each of the loops. `as` names the new block and its
    buffer, then, where they are wanted, the loops of the join.
    """

    block: str
    loop: str | None = None
    loops: tuple[str, ...] = ()
    as_: str | tuple[str, ...] | None = None

    name: ClassVar[str] = "rfactor"
    aliases: ClassVar[tuple[str, ...]] = ("factorize_reduction",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Four partials a row, whatever n is",
            ROW_SUM,
            "- split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_1}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        with allocate(y_rf=float32[m, 4]):
            for y.j_0 in range((n + 3) // 4):
                for y.j_1 in range(4):
                    with block(
                        "y_rf",
                        i=spatial(y.i),
                        j_0=reduction(y.j_0),
                        j_1=spatial(y.j_1),
                        where=y.j_0 * 4 + y.j_1 < n,
                        initialises=True,
                        origin=y[i, j_0 * 4 + j_1],
                    ):
                        y_rf[i, j_1] = combine.sum(y_rf[i, j_1], x[i, j_0 * 4 + j_1])
            for y.r0 in range(4):
                with block("y", i=spatial(y.i), r0=reduction(y.r0), initialises=True, origin=None):
                    y[i] = combine.sum(y[i], y_rf[i, r0])
""",
        ),
        Example(
            "A triangle: as many partials as a row has terms",
            TRIANGLE,
            "- rfactor: {block: y, loop: y.j}",
            after="""\
def triangle(n, x: float32[n, n], y: Out[float32[n]]):
    for y.i in range(n):
        with allocate(y_rf=float32[n, n]):
            for y.j in range(y.i + 1):
                with block("y_rf.init", i=spatial(y.i), j=spatial(y.j, i + 1), origin=None):
                    y_rf[i, j] = identity.sum
                with block("y_rf", i=spatial(y.i), j=spatial(y.j, i + 1), origin=y[i, j]):
                    y_rf[i, j] = combine.sum(y_rf[i, j], x[i, j])
            for y.r0 in range(y.i + 1):
                with block(
                    "y",
                    i=spatial(y.i),
                    r0=reduction(y.r0, n),
                    initialises=True,
                    origin=None,
                ):
                    y[i] = combine.sum(y[i], y_rf[i, r0])
""",
        ),
        Example(
            "A spatial loop",
            ROW_SUM,
            "- rfactor: {block: y, loop: y.i}",
            refused="loop 'y.i' is not a reduction loop of block 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        if bool(self.loops) == (self.loop is not None):
            return "give either `loop` or `loops`"
        if not isinstance(block.body, Update):
            return f"block '{block.name}' is not a reduction"
        around = ancestors(tree(state.kernel), block)
        for name in self._loops():
            loop = loop_named(state.kernel, name)
            if not any(s is loop for s in around):
                return f"loop '{name}' is not around block '{block.name}'"
            fused = name in feeding(reduction_loops(block) | spatial_loops(block), around)
            if fused and name not in reduction_loops(block) | spatial_loops(block):
                return f"loop '{name}' is fused; factor its parts before fusing them"
            if name not in reduction_loops(block):
                return f"loop '{name}' is not a reduction loop of block '{block.name}'"
            if name in spatial_loops(block):
                return f"loop '{name}' is also a spatial loop of block '{block.name}'"
            if loop.lower != index(0):
                return f"loop '{name}' does not start at 0; split it first"
        for r in ranges_of(around):
            if highest(r.upper, ranges_of(around)) is None:
                return f"the extent of loop '{r.var}' has no bound over the kernel's dims"
        if len(set(self._loops())) < len(self._loops()):
            return "a loop is named twice"
        given = self._given()
        if len(given) not in (0, 1, 1 + len(self._loops())):
            return f"`as` must give 1 name, or {1 + len(self._loops())} with the join's loops"
        return taken_buffer(state.kernel, self.partial()) or taken_loops(state.kernel, given[1:])

    def _loops(self) -> tuple[str, ...]:
        return self.loops or ((self.loop,) if self.loop else ())

    def _given(self) -> tuple[str, ...]:
        return (self.as_,) if isinstance(self.as_, str) else self.as_ or ()

    def partial(self) -> str:
        """The name of the block of the partials."""
        return self._given()[0] if self._given() else f"{self.block}_rf"

    def buffers(self, kernel: Kernel) -> tuple[str, ...]:
        """The partials' buffers: named as the block is, or where there are several, after the
        buffers that they are partials of.
        """
        old = targets(block_named(kernel, self.block).body)
        if len(old) == 1:
            return (self.partial(),)
        return tuple(fresh(f"{t.buffer}_rf", names(kernel)) for t in old)

    def join_loops(self, taken_: frozenset[str]) -> tuple[str, ...]:
        """The names of the loops over the partials, outermost first."""
        found = list(self._given()[1:])
        for k in range(len(found), len(self._loops())):
            found.append(fresh(f"{self.block}.r{k}", {*taken_, *found}))
        return tuple(found)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        block = block_named(state.kernel, self.block)
        around = ancestors(root, block)
        reduction = feeding(reduction_loops(block), around)
        first = next(k for k, s in enumerate(around) if _bound(s) & reduction)
        outer, inside = around[:first], around[first:]
        partial = self._partial_block(state, around)
        join = self._join(state, block, around, inside)
        nest = replace_stmt(inside[0], block, partial)
        body = replace_stmt(root, inside[0], seq((nest, join)))
        buffers = (*temporaries(state.kernel), *self._new_buffers(state, block, around))
        kernel = rebuild(state.kernel, body, buffers)
        if all(v.kind is IterKind.SPATIAL for v in partial.iters):
            # One term a partial: no loop is left that an init of its own could stand before.
            kernel = explicit_init(kernel, partial.name)
        shared = tuple(s.var for s in outer if isinstance(s, Loop))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state.flow, block, shared)))

    def _flow(self, flow: Flow, block: Block, shared: tuple[str, ...]) -> Flow:
        """The partial reads what the reduction read; the join reads the partials."""
        name = self.partial()
        result = {
            ((name, n) if reader == block.name else (reader, n)): source
            for (reader, n), source in flow.items()
        }
        for k in range(len(targets(block.body))):
            result[block.name, k] = Source((name,), shared=shared)
        return result

    def _new_buffers(
        self, state: Scheduled, block: Block, around: tuple[Stmt, ...]
    ) -> tuple[Buffer, ...]:
        found = (loop_named(state.kernel, name) for name in self._loops())
        extents = tuple(_hull(loop.upper, around) for loop in found)
        olds = (buffer_named(state.kernel, t.buffer) for t in targets(block.body))
        return tuple(
            Buffer(name, old.dtype, (*old.shape, *extents), span=old.span)
            for name, old in zip(self.buffers(state.kernel), olds, strict=True)
        )

    def _partial_block(self, state: Scheduled, around: tuple[Stmt, ...]) -> Block:
        """The reduction into partials: the factored loops are spatial, and what is left of the
        bindings that used them is a reduction over the loops themselves.
        """
        block = block_named(state.kernel, self.block)
        assert isinstance(block.body, Update)
        pairs = tuple(zip(block.iters, block.bindings, strict=True))
        wanted = set(self._loops())
        kept = [(v, b) for v, b in pairs if not variables(b) & wanted]
        touched = [(v, b) for v, b in pairs if variables(b) & wanted]
        needed = {name for _, b in touched for name in variables(b)}
        ranges = ranges_of(around)
        local: dict[str, Expr] = {b.name: Var(v.name) for v, b in kept if isinstance(b, Var)}
        for k, r in enumerate(ranges):
            if r.var in needed and r.var not in local:
                kind = IterKind.SPATIAL if r.var in wanted else IterKind.REDUCTION
                name = local_name(state.kernel, index_of(r.var), (v.name for v, _ in kept))
                kept.append((_iteration_variable(name, r, kind, local, ranges[:k]), Var(r.var)))
                local[r.var] = Var(name)
        values = {v.name: substitute(b, local) for v, b in touched}
        lanes = tuple(local[name] for name in self._loops())
        places = tuple(
            Target(name, (*t.indices, *lanes))
            for name, t in zip(self.buffers(state.kernel), block.body.targets, strict=True)
        )
        terms = tuple(substitute(v, values) for v in block.body.values)
        return replace(
            block,
            name=self.partial(),
            iters=tuple(v for v, _ in kept),
            bindings=tuple(b for _, b in kept),
            body=replace(block.body, targets=places, values=terms),
            initialises=True,
            origin=substitute(block.origin, values) if block.origin else None,
        )

    def _join(
        self, state: Scheduled, block: Block, around: tuple[Stmt, ...], inside: tuple[Stmt, ...]
    ) -> Stmt:
        """The reduction over the partials, in copies of the spatial loops of the nest."""
        assert isinstance(block.body, Update)
        used = {*names(state.kernel), self.partial(), *self._given()}
        joins = self.join_loops(frozenset(used))
        used.update(joins)
        found = [loop_named(state.kernel, name) for name in self._loops()]
        renamed: dict[str, Expr] = {
            old.var: Var(new) for old, new in zip(found, joins, strict=True)
        }
        copies, spatial = [], spatial_loops(block)
        for s in inside:
            match s:
                case Loop() | Delinearize() if _bound(s) & spatial:
                    for var in scope_of((s,)):
                        renamed[var] = Var(fresh(f"{block.name}.{index_of(var)}", used))
                        used.add(f"{block.name}.{index_of(var)}")
                    copies.append(s)
                case _:
                    pass
        dropped = frozenset(scope_of(inside)) - set(renamed)
        iters = [v.name for v in block.iters]
        lanes = tuple(
            (
                IterVar(
                    local_name(state.kernel, index_of(j), iters),
                    index(0),
                    _hull(f.upper, around),
                    IterKind.REDUCTION,
                ),
                Var(j),
            )
            for j, f in zip(joins, found, strict=True)
        )
        pairs = zip(block.iters, block.bindings, strict=True)
        own = tuple((v, substitute(b, renamed)) for v, b in pairs if v.kind is IterKind.SPATIAL)
        kept = conjunction(*without_loops(block.predicate, dropped))
        join = replace(
            block,
            iters=tuple(v for v, _ in (*own, *lanes)),
            bindings=tuple(b for _, b in (*own, *lanes)),
            predicate=substitute(kept, renamed),
            body=self._joining(state, block, tuple(Var(v.name) for v, _ in lanes)),
            origin=None,
            annotations=(),
        )
        loops = (
            serial_loop(j, f.lower, substitute(f.upper, renamed))
            for j, f in zip(joins, found, strict=True)
        )
        return _copies(copies, renamed, nest(loops, join))

    def _joining(self, state: Scheduled, block: Block, lanes: tuple[Expr, ...]) -> Update:
        assert isinstance(block.body, Update)
        values = tuple(
            Load(name, (*t.indices, *lanes), buffer_named(state.kernel, t.buffer).dtype)
            for name, t in zip(self.buffers(state.kernel), block.body.targets, strict=True)
        )
        return replace(block.body, values=values)


def _iteration_variable(
    name: str, r: Range, kind: IterKind, local: Mapping[str, Expr], outer: tuple[Range, ...]
) -> IterVar:
    """One that is bound to a loop: over its range, in the block's own variables where it can be."""
    lower, upper = substitute(r.lower, local), substitute(add(r.upper, 1), local)
    foreign = {x.var for x in outer}
    if variables(lower) & foreign:
        lower = lowest(r.lower, outer) or index(0)
    if variables(upper) & foreign:
        found = highest(add(r.upper, 1), outer)
        assert found is not None, "checked"
        upper = found
    return IterVar(name, lower, upper, kind)


def _bound(stmt: Stmt) -> frozenset[str]:
    return frozenset(scope_of((stmt,)))


def _hull(upper: Expr, inside: tuple[Stmt, ...]) -> Expr:
    found = highest(upper, ranges_of(inside))
    assert found is not None, "checked"
    return found


def _copies(around: list[Loop | Delinearize], renamed: Mapping[str, Expr], body: Stmt) -> Stmt:
    """Serial copies of the loops, under their new names."""
    for s in reversed(around):
        new = [renamed[v] for v in scope_of((s,))]
        fresh_names = tuple(v.name for v in new if isinstance(v, Var))
        match s:
            case Loop(_, lower, upper):
                bounds = substitute(lower, renamed), substitute(upper, renamed)
                body = replace(serial_loop(fresh_names[0], *bounds), body=body)
            case Delinearize(_, extents, value):
                parts = tuple(substitute(e, renamed) for e in extents)
                body = Delinearize(fresh_names, parts, substitute(value, renamed), body)
            case _:
                assert_never(s)
    return body
