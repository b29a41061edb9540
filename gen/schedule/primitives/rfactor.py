"""rfactor: a reduction by way of partial results."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...ir import nodes as ir
from ...ir.algebra import add, conjunction, conjuncts, index, less
from ...ir.index.bounds import LoopRange, at_most, highest, lowest
from ...ir.inits import explicit_init
from ...ir.walk import ancestors, replace_stmt, seq, substitute, targets, variables
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import BELOW, ROW_SUM, TRIANGLE


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

    aliases = ("factorize_reduction",)

    def _require(self, state: Scheduled) -> None:
        """Refuses what the step cannot do."""
        block = edit.block_named(state.kernel, self.block)
        if bool(self.loops) == (self.loop is not None):
            raise CannotApply("give either `loop` or `loops`")
        if not isinstance(block.body, ir.Update):
            raise CannotApply(f"block '{block.name}' is not a reduction")
        around = ancestors(edit.tree(state.kernel), block)
        for name in self._loops():
            loop = edit.loop_named(state.kernel, name)
            if not any(s is loop for s in around):
                raise CannotApply(f"loop '{name}' is not around block '{block.name}'")
            fused = name in _feeding(
                edit.reduction_loops(block) | edit.spatial_loops(block), around
            )
            if fused and name not in edit.reduction_loops(block) | edit.spatial_loops(block):
                raise CannotApply(f"loop '{name}' is fused; factor its parts before fusing them")
            if name not in edit.reduction_loops(block):
                raise CannotApply(f"loop '{name}' is not a reduction loop of block '{block.name}'")
            if name in edit.spatial_loops(block):
                raise CannotApply(f"loop '{name}' is also a spatial loop of block '{block.name}'")
            if not at_most(index(0), loop.lower, edit.ranges_of(around)):
                raise CannotApply(f"loop '{name}' may start below 0; split it first")
        for r in edit.ranges_of(around):
            if highest(r.upper, edit.ranges_of(around)) is None:
                raise CannotApply(
                    f"the extent of loop '{r.var}' has no bound over the kernel's dims"
                )
        if len(set(self._loops())) < len(self._loops()):
            raise CannotApply("a loop is named twice")
        given = self._given()
        if len(given) not in (0, 1, 1 + len(self._loops())):
            raise CannotApply(
                f"`as` must give 1 name, or {1 + len(self._loops())} with the join's loops"
            )
        edit.require_free_buffer(state.kernel, self.partial())
        edit.require_free_loops(state.kernel, given[1:])

    def _loops(self) -> tuple[str, ...]:
        return self.loops or ((self.loop,) if self.loop else ())

    def _given(self) -> tuple[str, ...]:
        return (self.as_,) if isinstance(self.as_, str) else self.as_ or ()

    def partial(self) -> str:
        """The name of the block of the partials."""
        return self._given()[0] if self._given() else f"{self.block}_rf"

    def buffers(self, kernel: ir.Kernel) -> tuple[str, ...]:
        """The partials' buffers: named as the block is, or where there are several, after the
        buffers that they are partials of.
        """
        old = targets(edit.block_named(kernel, self.block).body)
        if len(old) == 1:
            return (self.partial(),)
        return tuple(edit.fresh(f"{t.buffer}_rf", edit.names(kernel)) for t in old)

    def join_loops(self, taken_: frozenset[str]) -> tuple[str, ...]:
        """The names of the loops over the partials, outermost first."""
        found = list(self._given()[1:])
        for k in range(len(found), len(self._loops())):
            found.append(edit.fresh(f"{self.block}.r{k}", {*taken_, *found}))
        return tuple(found)

    def apply(self, state: Scheduled) -> Scheduled:
        self._require(state)
        root = edit.tree(state.kernel)
        block = edit.block_named(state.kernel, self.block)
        around = ancestors(root, block)
        reduction = _feeding(edit.reduction_loops(block), around)
        first = next(k for k, s in enumerate(around) if _bound(s) & reduction)
        outer, inside = around[:first], around[first:]
        partial = self._partial_block(state, around)
        join = self._join(state, block, around, inside)
        nest = replace_stmt(inside[0], block, partial)
        body = replace_stmt(root, inside[0], seq((nest, join)))
        buffers = self._new_buffers(state, block, around)
        kernel = edit.rebuild(state.kernel, body, *buffers)
        if all(v.kind is ir.IterKind.SPATIAL for v in partial.iters):
            # One term a partial: no loop is left that an init of its own could stand before.
            kernel = explicit_init(kernel, partial.name)
        shared = tuple(s.var for s in outer if isinstance(s, ir.Loop))
        return Scheduled(kernel, self._flow(state.flow, block, shared))

    def _flow(self, flow: Flow, block: ir.Block, shared: tuple[str, ...]) -> Flow:
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
        self, state: Scheduled, block: ir.Block, around: tuple[ir.Stmt, ...]
    ) -> tuple[ir.Buffer, ...]:
        found = (edit.loop_named(state.kernel, name) for name in self._loops())
        extents = tuple(_hull(loop.upper, around) for loop in found)
        olds = (edit.buffer_named(state.kernel, t.buffer) for t in targets(block.body))
        return tuple(
            ir.Buffer(name, old.dtype, (*old.shape, *extents), span=old.span)
            for name, old in zip(self.buffers(state.kernel), olds, strict=True)
        )

    def _partial_block(self, state: Scheduled, around: tuple[ir.Stmt, ...]) -> ir.Block:
        """The reduction into partials: the factored loops are spatial, and what is left of the
        bindings that used them is a reduction over the loops themselves.
        """
        block = edit.block_named(state.kernel, self.block)
        assert isinstance(block.body, ir.Update)
        pairs = tuple(zip(block.iters, block.bindings, strict=True))
        wanted = set(self._loops())
        kept = [(v, b) for v, b in pairs if not variables(b) & wanted]
        touched = [(v, b) for v, b in pairs if variables(b) & wanted]
        needed = {name for _, b in touched for name in variables(b)}
        ranges = edit.ranges_of(around)
        local: dict[str, ir.Expr] = {
            b.name: ir.Var(v.name) for v, b in kept if isinstance(b, ir.Var)
        }
        for k, r in enumerate(ranges):
            if r.var in needed and r.var not in local:
                kind = ir.IterKind.SPATIAL if r.var in wanted else ir.IterKind.REDUCTION
                name = edit.local_name(
                    state.kernel, edit.index_of(r.var), (v.name for v, _ in kept)
                )
                kept.append((_iteration_variable(name, r, kind, local, ranges[:k]), ir.Var(r.var)))
                local[r.var] = ir.Var(name)
        values = {v.name: substitute(b, local) for v, b in touched}
        lanes = tuple(local[name] for name in self._loops())
        places = tuple(
            ir.Destination(name, (*t.indices, *lanes))
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
        self,
        state: Scheduled,
        block: ir.Block,
        around: tuple[ir.Stmt, ...],
        inside: tuple[ir.Stmt, ...],
    ) -> ir.Stmt:
        """The reduction over the partials, in copies of the spatial loops of the nest."""
        assert isinstance(block.body, ir.Update)
        used = {*edit.names(state.kernel), self.partial(), *self._given()}
        joins = self.join_loops(frozenset(used))
        used.update(joins)
        found = [edit.loop_named(state.kernel, name) for name in self._loops()]
        renamed: dict[str, ir.Expr] = {
            old.var: ir.Var(new) for old, new in zip(found, joins, strict=True)
        }
        copies, spatial = [], edit.spatial_loops(block)
        for s in inside:
            match s:
                case ir.Loop() | ir.Delinearize() if _bound(s) & spatial:
                    for var in edit.scope_of((s,)):
                        renamed[var] = ir.Var(
                            edit.fresh(f"{block.name}.{edit.index_of(var)}", used)
                        )
                        used.add(f"{block.name}.{edit.index_of(var)}")
                    copies.append(s)
                case _:
                    pass
        iters = [v.name for v in block.iters]
        lanes = tuple(
            (
                ir.IterVar(
                    edit.local_name(state.kernel, edit.index_of(j), iters),
                    index(0),
                    _hull(f.upper, around),
                    ir.IterKind.REDUCTION,
                ),
                ir.Var(j),
            )
            for j, f in zip(joins, found, strict=True)
        )
        pairs = zip(block.iters, block.bindings, strict=True)
        own = tuple((v, substitute(b, renamed)) for v, b in pairs if v.kind is ir.IterKind.SPATIAL)
        dropped = frozenset(edit.scope_of(inside)) - set(renamed)
        kept = edit.without_loops(block.predicate, dropped)
        join = replace(
            block,
            iters=tuple(v for v, _ in (*own, *lanes)),
            bindings=tuple(b for _, b in (*own, *lanes)),
            predicate=substitute(conjunction(*kept, *self._some_term(block, inside)), renamed),
            body=self._joining(state, block, tuple(ir.Var(v.name) for v, _ in lanes)),
            origin=None,
            annotations=(),
        )
        loops = (
            edit.serial_loop(j, substitute(f.lower, renamed), substitute(f.upper, renamed))
            for j, f in zip(joins, found, strict=True)
        )
        return _copies(copies, renamed, edit.nest(loops, join))

    def _some_term(self, block: ir.Block, inside: tuple[ir.Stmt, ...]) -> list[ir.Expr]:
        """That the reduction has a term, its first: what has none is left as it is, since 0.0 added
        to -0.0 is another number. Nothing where it initialises.
        """
        if block.initialises:
            return []
        summed = edit.reduction_loops(block)
        own = [s for s in inside if isinstance(s, ir.Loop) and s.var in summed]
        first = {loop.var: loop.lower for loop in own}
        asked = [p for p in conjuncts(block.predicate) if variables(p) & first.keys()]
        told = frozenset().union(*map(variables, asked))
        asked += [less(x.lower, x.upper) for x in own if x.var not in {*told, *self._loops()}]
        return [substitute(part, first) for part in asked]

    def _joining(self, state: Scheduled, block: ir.Block, lanes: tuple[ir.Expr, ...]) -> ir.Update:
        assert isinstance(block.body, ir.Update)
        values = tuple(
            ir.Load(name, (*t.indices, *lanes), edit.buffer_named(state.kernel, t.buffer).dtype)
            for name, t in zip(self.buffers(state.kernel), block.body.targets, strict=True)
        )
        return replace(block.body, values=values)

    EXAMPLES = (
        Example(
            "Four partials a row, whatever n is",
            ROW_SUM,
            "- split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_1}",
        ),
        Example(
            "A triangle: as many partials as a row has terms",
            TRIANGLE,
            "- rfactor: {block: y, loop: y.j}",
        ),
        Example(
            "A sum that adds to what is there, where there are terms",
            BELOW,
            "- split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_1}",
        ),
        Example(
            "A spatial loop",
            ROW_SUM,
            "- rfactor: {block: y, loop: y.i}",
            refused="loop 'y.i' is not a reduction loop of block 'y'",
        ),
    )


def _iteration_variable(
    name: str,
    r: LoopRange,
    kind: ir.IterKind,
    local: Mapping[str, ir.Expr],
    outer: tuple[LoopRange, ...],
) -> ir.IterVar:
    """One that is bound to a loop: over its range, in the block's own variables where it can be."""
    lower, upper = substitute(r.lower, local), substitute(add(r.upper, 1), local)
    foreign = {x.var for x in outer}
    if variables(lower) & foreign:
        lower = lowest(r.lower, outer) or index(0)
    if variables(upper) & foreign:
        found = highest(add(r.upper, 1), outer)
        assert found is not None, "checked"
        upper = found
    return ir.IterVar(name, lower, upper, kind)


def _bound(stmt: ir.Stmt) -> frozenset[str]:
    return frozenset(edit.scope_of((stmt,)))


def _hull(upper: ir.Expr, inside: tuple[ir.Stmt, ...]) -> ir.Expr:
    found = highest(upper, edit.ranges_of(inside))
    assert found is not None, "checked"
    return found


def _copies(
    around: list[ir.Loop | ir.Delinearize], renamed: Mapping[str, ir.Expr], body: ir.Stmt
) -> ir.Stmt:
    """Serial copies of the loops, under their new names."""
    for s in reversed(around):
        new = [renamed[v] for v in edit.scope_of((s,))]
        fresh_names = tuple(v.name for v in new if isinstance(v, ir.Var))
        match s:
            case ir.Loop(_, lower, upper):
                bounds = substitute(lower, renamed), substitute(upper, renamed)
                body = replace(edit.serial_loop(fresh_names[0], *bounds), body=body)
            case ir.Delinearize(_, extents, value):
                parts = tuple(substitute(e, renamed) for e in extents)
                body = ir.Delinearize(fresh_names, parts, substitute(value, renamed), body)
            case _:
                assert_never(s)
    return body


def _feeding(names_: frozenset[str], around: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The variables, and those of fused loops that they are parts of."""
    for s in reversed(around):
        if isinstance(s, ir.Delinearize) and names_ & set(s.vars):
            names_ |= variables(s.value)
    return names_
