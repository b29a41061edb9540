"""cache_write: a block writes to a buffer of its own, which is then copied out."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from ...ir.algebra import conjunction
from ...ir.nodes import (
    Block,
    Buffer,
    Init,
    IterKind,
    Load,
    Loop,
    Scope,
    Seq,
    Stmt,
    Store,
    Target,
    Update,
)
from ...ir.walk import ancestors, blocks, loads, replace_stmt, seq, targets, variables
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.moving import between, inside_of
from ..edit.new_loops import place, required, touched
from ..edit.tree import (
    block_named,
    buffer_named,
    containing,
    insert,
    loop_named,
    loops_around,
    names,
    prune_shared,
    ranges_of,
    rebuild,
    reduction_loops,
    scope_of,
    taken_buffer,
    temporaries,
    tree,
    under,
    update_blocks,
    with_body,
    without_loops,
    written,
)
from ..examples import ROW_SUM, TWICE

_OF_STORES = "stream"  # the mark of who stores into the argument, which the copy does from now on


@final
@dataclass(frozen=True)
class CacheWrite(Primitive):
    """Lets a block write to a new buffer, and copies that to where the block wrote before.

    With `at`, each iteration of that loop copies what the block wrote in it; without, all is
    copied once, after everything that stands around the block.
    """

    block: str
    buffer: str | None = None
    at: str | None = None
    scope: Literal["auto", "heap", "stack", "register", "shared", "local", "device"] = "auto"
    as_: str | None = None

    name: ClassVar[str] = "cache_write"
    aliases: ClassVar[tuple[str, ...]] = ("buffer_at",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "A tile, then its copy",
            TWICE,
            "- split: {loop: y.i, factors: [null, 4]}\n- cache_write: {block: y, at: y.i_0}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            with allocate(y_cache=float32[n]):
                for y.i_1 in range(4):
                    with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                        y_cache[i] = t[i] + 1.0
                for y_cache.i in range(4):
                    with block(
                        "y_cache",
                        i=spatial(y.i_0 * 4 + y_cache.i, n),
                        where=y.i_0 * 4 + y_cache.i < n,
                        origin=None,
                    ):
                        y[i] = y_cache[i]
""",
        ),
        Example(
            "Inside its own reduction",
            ROW_SUM,
            "- cache_write: {block: y, at: y.j}",
            refused="the values of block 'y' are not complete in loop 'y.j'",
        ),
        Example(
            "Registers of threads that end before they are copied out",
            TWICE,
            "- bind: {loop: y.i, axis: threadIdx.x}\n- cache_write: {block: y, scope: register}",
            refused="'y_cache' is register memory, which ends with the launch of loop 'y.i', and"
            " block 'y_cache' uses it outside",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        if self.buffer is not None and self.buffer not in written(block):
            return f"block '{block.name}' does not write '{self.buffer}'"
        if isinstance(block.body, Init):
            return f"block '{block.name}' is the init of a reduction"
        adds = isinstance(block.body, Update) and not block.initialises
        if adds and not self._inits(state, block):
            return f"block '{block.name}' adds to what is in '{self._old(block)}'"
        if self.at is not None:
            loop = loop_named(state.kernel, self.at)
            if not any(loop is x for x in loops_around(tree(state.kernel), block)):
                return f"loop '{self.at}' is not around block '{block.name}'"
            if self.at in reduction_loops(block):
                return f"the values of block '{block.name}' are not complete in loop '{self.at}'"
        return taken_buffer(state.kernel, self._copy(block))

    def _inits(self, state: Scheduled, block: Block) -> tuple[Block, ...]:
        """The inits of a reduction that has been decomposed: they write where it does."""
        all_ = blocks(tree(state.kernel))
        old = self._old(block)
        return tuple(b for b in all_ if isinstance(b.body, Init) and old in written(b))

    def _old(self, block: Block) -> str:
        return self.buffer or targets(block.body)[0].buffer

    def _copy(self, block: Block) -> str:
        return self.as_ or f"{self._old(block)}_cache"

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, block = tree(state.kernel), block_named(state.kernel, self.block)
        old = buffer_named(state.kernel, self._old(block))
        cache = replace(old, name=self._copy(block), scope=Scope(self.scope))
        loop = loop_named(state.kernel, self.at) if self.at else None
        around = inside_of(root, loop) if loop else ()
        new = self._copying(state, block, cache, loop, around)
        if loop is None:
            items = root.body if isinstance(root, Seq) else (root,)
            last = containing(items, lambda b: b is block)[-1]
            body = seq(insert(items, last + 1, new))
        else:
            last = containing(under(loop), lambda b: b is block)[-1]
            body = replace_stmt(root, loop, with_body(loop, insert(under(loop), last + 1, new)))
        writing = (block, *self._inits(state, block))
        body = update_blocks(
            body, lambda b: self._writing(b, block) if any(b is w for w in writing) else b
        )
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), cache))
        shared = tuple(x.var for x in around if isinstance(x, Loop))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state, block, shared)))

    def _writing(self, block: Block, of: Block) -> Block:
        """The block, or the init of it, with the new buffer in place of the old one."""

        def go(target: Target) -> Target:
            return (
                replace(target, buffer=self._copy(of)) if target.buffer == self._old(of) else target
            )

        match block.body:
            case Store(target, _):
                notes = tuple(note for note in block.annotations if note[0] != _OF_STORES)
                body = replace(block.body, target=go(target))
                return replace(block, body=body, annotations=notes)
            case body:
                return replace(block, body=replace(body, targets=tuple(map(go, body.targets))))

    def _copying(
        self,
        state: Scheduled,
        block: Block,
        cache: Buffer,
        loop: Loop | None,
        around: tuple[Stmt, ...],
    ) -> Stmt:
        """The block that copies out, in loops of its own, over what the block wrote."""
        target = next(t for t in targets(block.body) if t.buffer == self._old(block))
        pairs = [
            (v, b)
            for v, b in zip(block.iters, block.bindings, strict=True)
            if v.kind is IterKind.SPATIAL
        ]
        copy = Block(
            cache.name,
            tuple(v for v, _ in pairs),
            tuple(b for _, b in pairs),
            conjunction(*without_loops(block.predicate, reduction_loops(block))),
            Store(target, Load(cache.name, target.indices, cache.dtype)),
            annotations=tuple(note for note in block.annotations if note[0] == _OF_STORES),
            span=block.span,
        )
        in_scope = {*scope_of(around)}
        kept = frozenset(
            v.name for v, b in pairs if {n for n in variables(b) if "." in n} <= in_scope
        )
        inside = between(loop, block) if loop else ancestors(tree(state.kernel), block)
        iters = frozenset(v.name for v, _ in pairs)
        wanted = required(
            target.indices, touched(block, target.indices, inside, ranges_of(around)), iters
        )
        used = names(state.kernel) | {cache.name}
        return place(copy, around, kept, wanted if loop else {}, used)

    def _flow(self, state: Scheduled, block: Block, shared: tuple[str, ...]) -> Flow:
        copy = self._copy(block)
        result: dict[tuple[str, int], Source] = {(copy, 0): Source((block.name,), shared=shared)}
        for (reader, number), source in state.flow.items():
            load = loads(block_named(state.kernel, reader).body)[number]
            if load.buffer == self._old(block):
                writers = tuple(copy if w == block.name else w for w in source.writers)
                source = replace(source, writers=writers)
            result[reader, number] = source
        return result
