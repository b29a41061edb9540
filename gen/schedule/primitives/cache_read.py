"""cache_read: a block reads from a copy."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from ...ir.algebra import TRUE, index
from ...ir.nodes import (
    Block,
    Buffer,
    IterVar,
    Kernel,
    Load,
    Loop,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    Target,
    Var,
)
from ...ir.walk import loads, map_children, replace_stmt, seq
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.folding import Folding, folding
from ..edit.moving import inside_of, region_of
from ..edit.new_loops import Interval, place
from ..edit.tree import (
    block_named,
    buffer_named,
    containing,
    insert,
    local_name,
    loop_named,
    loops_around,
    names,
    prune_shared,
    rebuild,
    taken_buffer,
    temporaries,
    tree,
    under,
    update_blocks,
    with_body,
)
from ..examples import SCALE, STENCIL, TWICE


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "cache_read"
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "What one iteration reads",
            STENCIL,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- cache_read: {block: y, buffer: t, at: y.i_0}",
            after="""\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            with allocate(t_cache=float32[n]):
                for t_cache.d0 in range(5):
                    with block(
                        "t_cache",
                        d0=spatial(y.i_0 * 4 - 1 + t_cache.d0, n),
                        where=0 <= y.i_0 * 4 - 1 + t_cache.d0 and y.i_0 * 4 - 1 + t_cache.d0 < n,
                        origin=None,
                    ):
                        t_cache[d0] = t[d0]
                for y.i_1 in range(4):
                    with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                        y[i] = t_cache[max(i - 1, 0)] + t_cache[i]
""",
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

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        buffer_named(state.kernel, self.buffer)
        if not any(x.buffer == self.buffer for x in loads(block.body)):
            return f"block '{block.name}' does not read '{self.buffer}'"
        if self.at is not None:
            loop = loop_named(state.kernel, self.at)
            if not any(loop is x for x in loops_around(tree(state.kernel), block)):
                return f"loop '{self.at}' is not around block '{block.name}'"
        return taken_buffer(state.kernel, self._copy())

    def _copy(self) -> str:
        return self.as_ or f"{self.buffer}_cache"

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, block = tree(state.kernel), block_named(state.kernel, self.block)
        old = buffer_named(state.kernel, self.buffer)
        folded = folding(block, self.buffer)
        shape, scope = folded.shape(old.shape), Scope(self.scope)
        cache = Buffer(self._copy(), old.dtype, shape, scope, span=old.span)
        copy = copying(state.kernel, cache, old, folded)
        used = names(state.kernel) | {cache.name}
        around: tuple[Stmt, ...] = ()
        if self.at is None:
            items = root.body if isinstance(root, Seq) else (root,)
            new = place(copy, (), frozenset(), {}, used)
            body = seq(insert(items, containing(items, lambda b: b is block)[0], new))
        else:
            loop = loop_named(state.kernel, self.at)
            around = inside_of(root, loop)
            wanted = self._wanted(state, block, copy)
            new = place(copy, around, frozenset(), wanted, used)
            first = containing(under(loop), lambda b: b is block)[0]
            body = replace_stmt(root, loop, with_body(loop, insert(under(loop), first, new)))
        body = update_blocks(body, lambda b: self._reading(b) if b is block else b)
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), cache))
        shared = tuple(x.var for x in around if isinstance(x, Loop))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state.flow, block, shared)))

    def _wanted(self, state: Scheduled, block: Block, copy: Block) -> dict[str, Interval]:
        """What the block reads of each axis in one iteration of the loop."""
        assert self.at is not None
        region = region_of(state, block, self.buffer, loop_named(state.kernel, self.at))
        pairs = zip(copy.iters, region, strict=True)
        return {v.name: interval for v, interval in pairs if interval}

    def _reading(self, block: Block) -> Block:
        """The block with its reads of the buffer from the copy."""
        folded = folding(block, self.buffer)

        def go(n: Node) -> Node:
            new = map_children(n, go)
            if isinstance(new, Load) and new.buffer == self.buffer:
                return replace(folded.meant(new), buffer=self._copy())
            return new

        return map_children(block, lambda n: go(n) if n is block.body else n)

    def _flow(self, flow: Flow, block: Block, shared: tuple[str, ...]) -> Flow:
        result = dict(flow)
        sources = []
        for k, load in enumerate(loads(block.body)):
            if load.buffer == self.buffer:
                sources.append(flow[block.name, k])
                result[block.name, k] = Source((self._copy(),), shared=shared)
        writers = dict.fromkeys(w for s in sources for w in s.writers)
        common = set(sources[0].shared).intersection(*(s.shared for s in sources))
        result[self._copy(), 0] = Source(
            tuple(writers),
            any(s.initial for s in sources),
            tuple(v for v in sources[0].shared if v in common),
        )
        return result


def copying(kernel: Kernel, cache: Buffer, old: Buffer, folded: Folding | None = None) -> Block:
    """A block that copies the whole buffer, not yet in loops. folded: how the old one lies."""
    iters = tuple(
        IterVar(local_name(kernel, f"d{k}", ()), index(0), extent)
        for k, extent in enumerate(cache.shape)
    )
    place_ = tuple(Var(v.name) for v in iters)
    from_ = folded.places(place_) if folded else place_
    body = Store(Target(cache.name, place_), Load(old.name, from_, old.dtype))
    return Block(cache.name, iters, place_, TRUE, body)
