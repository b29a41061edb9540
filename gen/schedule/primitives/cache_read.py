"""cache_read: a block reads from a copy."""

from dataclasses import replace
from typing import Literal

from ...ir.nodes import Buffer, Load, Loop, Scope
from ...ir.walk import loads
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.copies import copying, folding, from_copy, using
from ..edit.moving import inside_of, put, region_of, require_around
from ..edit.new_loops import place
from ..edit.tree import CannotApply
from ..examples import SCALE, STENCIL, TWICE


class CacheRead(Primitive):
    """Copies what a block reads from a buffer into a new one, and lets the block read that.

    With `at`, each iteration of that loop copies what the block reads in it; without, the whole
    buffer is copied once, before everything that stands around the block.
    """

    block: str
    buffer: str
    at: str | None = None
    scope: Literal["auto", "heap", "stack", "register", "shared", "local", "device"] = "auto"
    as_: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        old = edit.buffer_named(state.kernel, self.buffer)
        if not any(x.buffer == self.buffer for x in loads(block.body)):
            raise CannotApply(f"block '{block.name}' does not read '{self.buffer}'")
        loop = None if self.at is None else edit.loop_named(state.kernel, self.at)
        if loop is not None:
            require_around(state.kernel, loop, block)
        edit.require_free_buffer(state.kernel, self.copy())
        folded, copy = folding(block, self.buffer), self.copy()
        shape, scope = folded.shape(old.shape), Scope(self.scope)
        cache = Buffer(copy, old.dtype, shape, scope, span=old.span)
        root, moving = edit.tree(state.kernel), copying(state.kernel, copy, cache, old, folded)
        around = inside_of(root, loop) if loop else ()
        wanted = {}  # what the block reads of each axis in one iteration of the loop
        if loop is not None:
            pairs = zip(moving.iters, region_of(state, block, self.buffer, loop), strict=True)
            wanted = {v.name: interval for v, interval in pairs if interval}
        new = place(moving, around, frozenset(), wanted, edit.names(state.kernel) | {copy})
        body = put(root, loop, new, lambda b: b is block, after=False)
        reading = using(
            block,
            self.buffer,
            lambda x: replace(folded.meant(x), buffer=copy) if isinstance(x, Load) else x,
        )
        body = edit.update_blocks(body, lambda b: reading if b is block else b)
        kernel = edit.rebuild(state.kernel, body, cache)
        shared = tuple(x.var for x in around if isinstance(x, Loop))
        flow = from_copy(state.flow, (block,), self.buffer, copy, shared)
        return Scheduled(kernel, flow)

    def copy(self) -> str:
        """The name of the copy, its buffer and its block."""
        return self.as_ or f"{self.buffer}_cache"

    EXAMPLES = (
        Example(
            "What one iteration reads",
            STENCIL,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- cache_read: {block: y, buffer: t, at: y.i_0}",
        ),
        Example(
            "A buffer that the block does not read",
            TWICE,
            "- cache_read: {block: y, buffer: x}",
            refused="block 'y' does not read 'x'",
        ),
        Example(
            "Memory of the GPU that the host would compute with",
            TWICE,
            "- cache_read: {block: y, buffer: t, scope: device}",
            refused="block 'y' would compute with 't_cache' outside of a launch, and the host only"
            " copies device memory",
        ),
        Example(
            "Memory that threads share, filled outside of their launch",
            SCALE,
            "- bind: {loop: y.i, axis: threadIdx.x}\n"
            "- cache_read: {block: y, buffer: x, scope: shared}",
            refused="'x_cache' is shared memory, which ends with the launch of loop 'y.i', and"
            " block 'x_cache' uses it outside",
        ),
    )
