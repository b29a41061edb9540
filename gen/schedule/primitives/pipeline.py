"""pipeline: a loop's first stage runs one iteration ahead."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import add, less
from ...ir.nodes import Barrier, Block, Delinearize, Expr, Loop, Stmt, Var
from ...ir.walk import blocks, loops, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.launches import axes_around, without_needless
from ..edit.tree import (
    block_named,
    fresh,
    guarded,
    loop_named,
    names,
    prune_shared,
    rebuild,
    tree,
    under,
    update_stmts,
    with_body,
)
from ..examples import ROTATED, TWICE


@final
@dataclass(frozen=True)
class Pipeline(Primitive):
    """Runs the named blocks of a loop's body one iteration ahead of the rest, so that what they
    fetch is on its way while the rest computes.

    What stands for the first iteration runs before the loop, with names of its own; the last
    iteration runs nothing ahead (`peel` it off for a loop without that guard). What the blocks hand
    to the rest needs the room of two iterations: `double_buffer` it first. Barriers of the loop's
    body are as many as are needed.
    """

    loop: str
    blocks: tuple[str, ...]

    name: ClassVar[str] = "pipeline"
    aliases: ClassVar[tuple[str, ...]] = ("software_pipeline",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The next row is fetched while this one is written",
            ROTATED,
            "- double_buffer: {buffer: t, loop: y.k}\n- pipeline: {loop: y.k, blocks: [t]}",
            after="""\
def rotated(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):
    for y.i in blockIdx.x(m):
        with allocate(t=float32[2, m, 1, 4] @ shared):
            for t.j_2 in threadIdx.x(4):
                with block(
                    "t_2",
                    i=spatial(y.i),
                    k=spatial(0, n),
                    j=spatial(t.j_2),
                    where=0 < n,
                    origin=t[i, k, j],
                ):
                    t[k % 2, i, 0, j] = x[i, k, j] * 2.0
            for y.k in range(n):
                barrier()
                for t.j in threadIdx.x(4):
                    with block(
                        "t",
                        i=spatial(y.i),
                        k=spatial(y.k + 1, n),
                        j=spatial(t.j),
                        where=y.k + 1 < n,
                    ):
                        t[k % 2, i, 0, j] = x[i, k, j] * 2.0
                for y.j in threadIdx.x(4):
                    with block("y", i=spatial(y.i), k=spatial(y.k), j=spatial(y.j)):
                        y[i, k, j] = t[k % 2, i, 0, 3 - j]
""",
        ),
        Example(
            "Two iterations ahead, with room for two",
            ROTATED,
            "- double_buffer: {buffer: t, loop: y.k}\n- pipeline: {loop: y.k, blocks: [t]}\n"
            "- pipeline: {loop: y.k, blocks: [t]}",
            refused="overwrites it in between",
        ),
        Example(
            "All that the loop does",
            TWICE,
            "- pipeline: {loop: y.i, blocks: [y]}",
            refused="nothing is left in loop 'y.i' to run ahead of",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        if not self.blocks:
            return "name the blocks that run ahead"
        if loop.kind.value not in ("serial", "unrolled"):
            return f"loop '{self.loop}' is {loop.kind.value}: its iterations have no order"
        if isinstance(loop.body, Delinearize):
            return f"loop '{self.loop}' is fused"
        for name in self.blocks:
            block = block_named(state.kernel, name)
            if block not in blocks(loop):
                return f"loop '{self.loop}' is not around block '{name}'"
            if block.initialises:
                return f"block '{name}' owns an init: decompose_reduction first"
        for s in under(loop):
            inside = [b.name for b in blocks(s)]
            if set(inside) & set(self.blocks) and not set(inside) <= set(self.blocks):
                other = next(b for b in inside if b not in self.blocks)
                return f"block '{other}' is in one statement with a block that runs ahead"
        if all(self._ahead(s) or isinstance(s, Barrier) for s in under(loop)):
            return f"nothing is left in loop '{self.loop}' to run ahead of"
        return None

    def _ahead(self, s: Stmt) -> bool:
        return any(b.name in self.blocks for b in blocks(s))

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        stage = tuple(s for s in under(loop) if self._ahead(s))
        new = self._new_names(state, stage)
        first = seq(tuple(_at(_renamed(s, new), loop, loop.lower) for s in stage))
        following = add(Var(loop.var), 1)
        body = tuple(_at(s, loop, following) if self._ahead(s) else s for s in under(loop))
        if axes_around(state.kernel, loop):
            body = (Barrier(), *body)
        steady = with_body(loop, (seq(body),))
        root = replace_stmt(tree(state.kernel), loop, seq((first, steady)))
        kernel = rebuild(state.kernel, root)
        flow = self._flow(state.flow, new)
        return without_needless(Scheduled(kernel, prune_shared(kernel, flow)), self.loop)

    def _new_names(self, state: Scheduled, stage: tuple[Stmt, ...]) -> dict[str, str]:
        """Of the blocks and loops that run before the loop."""
        used, new = set(names(state.kernel)), {}
        for s in stage:
            for name in (*(b.name for b in blocks(s)), *(x.var for x in loops(s)), *_parts(s)):
                new[name] = fresh(name, used)
                used.add(new[name])
        return new

    def _flow(self, flow: Flow, new: Mapping[str, str]) -> Flow:
        """What the rest takes from the stage comes from both its places, and from the iteration
        before.
        """
        stage = set(self.blocks)
        found: dict[tuple[str, int], Source] = {}
        for (reader, number), source in flow.items():
            crosses = (reader in stage) != bool(stage & set(source.writers))
            shared = tuple(v for v in source.shared if not crosses or v != self.loop)
            if reader in stage:
                writers = tuple(new.get(w, w) for w in source.writers)
                there = tuple(new.get(v, v) for v in shared)
                found[new[reader], number] = replace(source, writers=writers, shared=there)
                found[reader, number] = replace(source, shared=shared)
                continue
            both = (x for w in source.writers for x in ((new[w], w) if w in stage else (w,)))
            found[reader, number] = replace(source, writers=tuple(both), shared=shared)
        return found


def _at(s: Stmt, loop: Loop, value: Expr) -> Stmt:
    """A statement of the loop's body for another iteration, where there is one."""
    return guarded(substitute(s, {loop.var: value}), less(value, loop.upper))


def _parts(s: Stmt) -> tuple[str, ...]:
    """The variables that delinearizations bind."""
    found: list[str] = []

    def go(x: Stmt) -> Stmt:
        found.extend(x.vars if isinstance(x, Delinearize) else ())
        return x

    update_stmts(s, go)
    return tuple(found)


def _renamed(s: Stmt, new: Mapping[str, str]) -> Stmt:
    """A copy of the statement under other names."""

    def go(x: Stmt) -> Stmt:
        match x:
            case Block():
                return replace(x, name=new[x.name])
            case Loop():
                body = substitute(x.body, {x.var: Var(new[x.var])})
                return replace(x, var=new[x.var], body=body)
            case Delinearize():
                body = substitute(x.body, {v: Var(new[v]) for v in x.vars})
                return replace(x, vars=tuple(new[v] for v in x.vars), body=body)
            case _:
                return x

    return update_stmts(s, go)
