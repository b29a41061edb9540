"""peel: the first iterations of a loop, or its last, in a loop of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import add, index, sub
from ...ir.index.bounds import larger, smaller
from ...ir.nodes import Block, Expr, Loop, Stmt, Var
from ...ir.walk import ancestors, blocks, loops, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    fresh,
    loop_named,
    names,
    prune_shared,
    ranges_of,
    rebuild,
    reduction_loops,
    taken_loops,
    tree,
    unfused,
    unshared,
    update_stmts,
)
from ..examples import ROW_SUM, STENCIL


@final
@dataclass(frozen=True)
class Peel(Primitive):
    """Cuts a loop in two that run one after the other: its first `at` iterations and the rest, or
    where `at` is negative its last `-at` and what is before.

    `as` names the two loops. The blocks of the first part get names of their own, so that each part
    can be scheduled its own way; a guard or a bound that one part never meets is gone after
    lowering.
    """

    loop: str
    at: int
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "peel"
    aliases: ClassVar[tuple[str, ...]] = ("partition", "loop_partition", "cut_loop")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The element without a left neighbour by itself",
            STENCIL,
            "- peel: {loop: y.i, at: 1, as: [y.first, y.i]}",
            after="""\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.first in range(min(1, n)):
            with block("y_2", i=spatial(y.first, n), origin=y[i]):
                y[i] = t[max(i - 1, 0)] + t[i]
        for y.i in range(min(1, n), n):
            with block("y", i=spatial(y.i, n)):
                y[i] = t[max(i - 1, 0)] + t[i]
""",
        ),
        Example(
            "A loop of a reduction, whose init would run twice",
            ROW_SUM,
            "- peel: {loop: y.j, at: 4}",
            refused="loop 'y.j' is one of the reduction 'y': decompose_reduction first",
        ),
        Example(
            "No iterations",
            ROW_SUM,
            "- peel: {loop: y.i, at: 0}",
            refused="`at` of 0 leaves the loop as it is",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        if self.at == 0:
            return "`at` of 0 leaves the loop as it is"
        for block in blocks(loop):
            if block.initialises and self.loop in reduction_loops(block):
                return (
                    f"loop '{self.loop}' is one of the reduction '{block.name}': "
                    "decompose_reduction first"
                )
        if len(self._names()) != 2:
            return "`as` must give 2 names"
        return unfused(loop) or taken_loops(state.kernel, self._names(), {self.loop})

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.loop}_0", f"{self.loop}_1")

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, loop = tree(state.kernel), loop_named(state.kernel, self.loop)
        first, rest = self._names()
        new = self._new_names(state, loop)
        cut = self._cut(loop, root)
        head = substitute(_renamed(loop.body, new), {loop.var: Var(first)})
        tail = substitute(loop.body, {loop.var: Var(rest)})
        parts = (
            replace(loop, var=first, upper=cut, body=head),
            replace(loop, var=rest, lower=cut, body=tail),
        )
        kernel = rebuild(state.kernel, replace_stmt(root, loop, seq(parts)))
        inside = frozenset(b.name for b in blocks(loop))
        flow = _flow(unshared(state, loop, cut), loop.var, inside, new, (first, rest))
        return Scheduled(kernel, prune_shared(kernel, flow))

    def _new_names(self, state: Scheduled, loop: Loop) -> dict[str, str]:
        """Of the blocks and inner loops of the first part."""
        used, new = set(names(state.kernel)), {}
        inner = (x.var for x in loops(loop) if x is not loop)
        for name in (*(b.name for b in blocks(loop)), *inner):
            new[name] = fresh(name, used)
            used.add(new[name])
        return new

    def _cut(self, loop: Loop, root: Stmt) -> Expr:
        """Where the second part begins, never outside of the loop."""
        around = ranges_of(ancestors(root, loop))
        if self.at > 0:
            return smaller(add(loop.lower, self.at), loop.upper, around)
        return larger(sub(loop.upper, index(-self.at)), loop.lower, around)


def _renamed(body: Stmt, new: Mapping[str, str]) -> Stmt:
    def go(s: Stmt) -> Stmt:
        match s:
            case Block():
                return replace(s, name=new[s.name])
            case Loop():
                body = substitute(s.body, {s.var: Var(new[s.var])})
                return replace(s, var=new[s.var], body=body)
            case _:
                return s

    return update_stmts(body, go)


def _flow(
    flow: Flow,
    loop: str,
    inside: frozenset[str],
    new: Mapping[str, str],
    parts: tuple[str, str],
) -> Flow:
    """Each part takes from itself what was taken in one iteration, and from both what was not."""
    first, rest = parts

    def taken(source: Source, part: str, names_: Mapping[str, str]) -> Source:
        if loop in source.shared:
            writers = tuple(names_.get(w, w) for w in source.writers)
            shared = tuple(part if s == loop else names_.get(s, s) for s in source.shared)
            return replace(source, writers=writers, shared=shared)
        both = (x for w in source.writers for x in ((new[w], w) if w in inside else (w,)))
        return replace(source, writers=tuple(both))

    found: dict[tuple[str, int], Source] = {}
    for (reader, number), source in flow.items():
        found[reader, number] = taken(source, rest, {})
        if reader in inside:
            found[new[reader], number] = taken(source, first, new)
    return found
