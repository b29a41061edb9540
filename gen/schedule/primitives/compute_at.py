"""compute_at: values computed where they are used."""

from collections.abc import Sequence
from dataclasses import replace

from ...ir.nodes import IterKind
from ...ir.walk import blocks, substitute, targets
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.moving import (
    inside_of,
    kept_iters,
    put,
    read_region,
    require_movable,
    require_outside,
    used_names,
)
from ..edit.new_loops import place, required
from ..edit.reader_loops import inherited
from ..edit.tree import CannotApply
from ..examples import PAIR, STENCIL, TWICE


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

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        loop = edit.loop_named(state.kernel, self.loop)
        require_outside(state, block, loop)
        inside = {b.name for b in blocks(loop)}
        consumers = dict.fromkeys(reader for reader, _ in edit.readers(state.flow, block.name))
        if not consumers:
            raise CannotApply(f"no block reads from block '{block.name}'")
        if outside := [name for name in consumers if name not in inside]:
            where = f"block '{outside[0]}' reads from block '{block.name}' outside loop"
            raise CannotApply(f"{where} '{self.loop}'", _first(state, outside, inside))
        require_movable(state, block, loop)
        root = edit.tree(state.kernel)
        kept = kept_iters(root, block, loop)
        pairs = zip(block.iters, block.bindings, strict=True)
        known = {v.name: b for v, b in pairs if v.name in kept}
        places = tuple(substitute(i, known) for i in targets(block.body)[0].indices)
        spatial = frozenset(v.name for v in block.iters if v.kind is IterKind.SPATIAL)
        wanted = required(places, read_region(state, block, loop), spatial)
        new = inherited(state, block, loop) or place(
            block, inside_of(root, loop), kept, wanted, used_names(state, block)
        )
        rest = edit.remove(root, block)
        loop = edit.loop_named(edit.rebuild(state.kernel, rest), self.loop)
        body = put(rest, loop, new, lambda b: b.name in consumers, after=False)
        kernel = edit.rebuild(state.kernel, body)
        shared = tuple(x.var for x in (*edit.loops_around(rest, loop), loop))
        flow = {
            read: replace(s, shared=shared) if block.name in s.writers else s
            for read, s in state.flow.items()
        }
        return Scheduled(kernel, flow)

    EXAMPLES = (
        Example(
            "What an iteration needs, computed again where iterations overlap",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}",
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


def _first(state: Scheduled, outside: Sequence[str], inside: set[str]) -> str | None:
    """The step to take before: of the readers outside the loop, and of theirs, one that is read in
    the loop alone. None where one of them is read by nothing, and so stays where it is.
    """
    found, ready = list(outside), None
    for name in found:
        after = {other for other, _ in edit.readers(state.flow, name)}
        if not after:
            return None
        found += sorted(after - inside - set(found))
        ready = ready or (name if after <= inside else None)
    return f"move block '{ready}' there first" if ready else None
