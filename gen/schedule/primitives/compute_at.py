"""compute_at: values computed where they are used."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.nodes import IterKind
from ...ir.walk import blocks, replace_stmt, substitute, targets
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.moving import inside_of, kept_iters, read_region, refuse_move, used_names
from ..edit.new_loops import place, required
from ..edit.reader_loops import inherited
from ..edit.tree import (
    CannotApply,
    block_named,
    containing,
    insert,
    loop_named,
    loops_around,
    prune_shared,
    readers,
    rebuild,
    remove,
    tree,
    under,
    with_body,
)
from ..examples import PAIR, STENCIL, TWICE


@final
@dataclass(frozen=True)
class ComputeAt(Primitive):
    """Moves a block into a loop around all blocks that read from it, before the first of them; each
    iteration computes what they need there, again where iterations overlap.

    The block gets new loops, named after its iteration variables; an axis of which one value is
    needed gets none. A loop over a tile of constant size has that size, and the block a guard, so
    that the loop can be unrolled or vectorized. Where the reader's loops inside are a part of a
    fused loop, the block gets copies of those instead: the box around what they read is whole rows.
    """

    block: str
    loop: str

    name: ClassVar[str] = "compute_at"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "What an iteration needs, computed again where iterations overlap",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}",
            after="""\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with allocate(t=float32[n]):
            for t.i in range(2):
                with block("t", i=spatial(y.i - 1 + t.i, n), where=0 <= y.i - 1 + t.i):
                    t[i] = x[i] * 2.0
            with block("y", i=spatial(y.i)):
                y[i] = t[max(i - 1, 0)] + t[i]
""",
        ),
        Example(
            "A reader outside the loop",
            PAIR,
            "- compute_at: {block: t, loop: y.i}",
            refused="block 'z' reads from block 't' outside loop 'y.i'",
        ),
        Example(
            "Beside a barrier",
            TWICE,
            "- sync_threads: {block: t}\n- compute_at: {block: t, loop: y.i}",
            refused="loop 't.i' around it holds a barrier, too: move it before sync_threads",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        loop = loop_named(state.kernel, self.loop)
        if any(loop is x for x in loops_around(tree(state.kernel), block)):
            return f"loop '{self.loop}' is around block '{block.name}' already"
        inside = {b.name for b in blocks(loop)}
        consumers = dict.fromkeys(reader for reader, _ in readers(state.flow, block.name))
        if not consumers:
            return f"no block reads from block '{block.name}'"
        if outside := [name for name in consumers if name not in inside]:
            where = f"block '{outside[0]}' reads from block '{block.name}' outside loop"
            raise CannotApply(f"{where} '{self.loop}'", _first(state, outside, inside))
        return refuse_move(state, block, loop)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        kept = kept_iters(root, block, loop)
        pairs = zip(block.iters, block.bindings, strict=True)
        known = {v.name: b for v, b in pairs if v.name in kept}
        places = tuple(substitute(i, known) for i in targets(block.body)[0].indices)
        spatial = frozenset(v.name for v in block.iters if v.kind is IterKind.SPATIAL)
        wanted = required(places, read_region(state, block, loop), spatial)
        new = inherited(state, block, loop) or place(
            block, inside_of(root, loop), kept, wanted, used_names(state, block)
        )
        rest = remove(root, block)
        kernel = rebuild(state.kernel, rest)
        loop = loop_named(kernel, self.loop)
        takers = {reader for reader, _ in readers(state.flow, block.name)}
        first = containing(under(loop), lambda b: b.name in takers)[0]
        moved = with_body(loop, insert(under(loop), first, new))
        kernel = rebuild(state.kernel, replace_stmt(rest, loop, moved))
        shared = tuple(x.var for x in (*loops_around(rest, loop), loop))
        flow = {
            read: replace(s, shared=shared) if block.name in s.writers else s
            for read, s in state.flow.items()
        }
        return Scheduled(kernel, prune_shared(kernel, flow))


def _first(state: Scheduled, outside: Sequence[str], inside: set[str]) -> str | None:
    """The step to take before: of the readers outside the loop, and of theirs, one that is read in
    the loop alone. None where one of them is read by nothing, and so stays where it is.
    """
    found, ready = list(outside), None
    for name in found:
        after = {other for other, _ in readers(state.flow, name)}
        if not after:
            return None
        found += sorted(after - inside - set(found))
        ready = ready or (name if after <= inside else None)
    return f"move block '{ready}' there first" if ready else None
