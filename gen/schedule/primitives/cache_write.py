"""cache_write: a block writes to a buffer of its own, which is then copied out."""

from dataclasses import replace
from typing import Literal

from ...ir import nodes as ir
from ...ir.algebra import conjunction
from ...ir.walk import ancestors, blocks, targets, variables
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.copies import through_copy
from ..edit.moving import between, inside_of, put, require_around
from ..edit.new_loops import place, required, touched
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, TWICE

_OF_STORES = "stream"  # the mark of who stores into the argument, which the copy does from now on


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

    aliases = ("buffer_at",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        if self.buffer is not None and self.buffer not in edit.written(block):
            raise CannotApply(f"block '{block.name}' does not write '{self.buffer}'")
        if isinstance(block.body, ir.Init):
            raise CannotApply(f"block '{block.name}' is the init of a reduction")
        adds = isinstance(block.body, ir.Update) and not block.initialises
        if adds and not self._inits(state, block):
            raise CannotApply(f"block '{block.name}' adds to what is in '{self._old(block)}'")
        loop = None if self.at is None else edit.loop_named(state.kernel, self.at)
        if loop is not None:
            require_around(state.kernel, loop, block)
            if self.at in edit.reduction_loops(block):
                raise CannotApply(
                    f"the values of block '{block.name}' are not complete in loop '{self.at}'"
                )
        edit.require_free_buffer(state.kernel, self._copy(block))
        root = edit.tree(state.kernel)
        old = edit.buffer_named(state.kernel, self._old(block))
        cache = replace(old, name=self._copy(block), scope=ir.Scope(self.scope))
        around = inside_of(root, loop) if loop else ()
        new = self._copying(state, block, cache, loop, around)
        body = put(root, loop, new, lambda b: b is block, after=True)
        writing = (block, *self._inits(state, block))
        body = edit.update_blocks(
            body, lambda b: self._writing(b, block) if any(b is w for w in writing) else b
        )
        kernel = edit.rebuild(state.kernel, body, cache)
        shared = tuple(x.var for x in around if isinstance(x, ir.Loop))
        flow = through_copy(state, block, old.name, cache.name, shared)
        return Scheduled(kernel, flow)

    def _inits(self, state: Scheduled, block: ir.Block) -> tuple[ir.Block, ...]:
        """The inits of a reduction that has been decomposed: they write where it does."""
        all_ = blocks(edit.tree(state.kernel))
        old = self._old(block)
        return tuple(b for b in all_ if isinstance(b.body, ir.Init) and old in edit.written(b))

    def _old(self, block: ir.Block) -> str:
        return self.buffer or targets(block.body)[0].buffer

    def _copy(self, block: ir.Block) -> str:
        return self.as_ or f"{self._old(block)}_cache"

    def _writing(self, block: ir.Block, of: ir.Block) -> ir.Block:
        """The block, or the init of it, with the new buffer in place of the old one."""

        def go(target: ir.Destination) -> ir.Destination:
            return (
                replace(target, buffer=self._copy(of)) if target.buffer == self._old(of) else target
            )

        match block.body:
            case ir.Store(target, _):
                notes = tuple(note for note in block.annotations if note[0] != _OF_STORES)
                body = replace(block.body, target=go(target))
                return replace(block, body=body, annotations=notes)
            case body:
                return replace(block, body=replace(body, targets=tuple(map(go, body.targets))))

    def _copying(
        self,
        state: Scheduled,
        block: ir.Block,
        cache: ir.Buffer,
        loop: ir.Loop | None,
        around: tuple[ir.Stmt, ...],
    ) -> ir.Stmt:
        """The block that copies out, in loops of its own, over what the block wrote."""
        target = next(t for t in targets(block.body) if t.buffer == self._old(block))
        pairs = [
            (v, b)
            for v, b in zip(block.iters, block.bindings, strict=True)
            if v.kind is ir.IterKind.SPATIAL
        ]
        copy = ir.Block(
            cache.name,
            tuple(v for v, _ in pairs),
            tuple(b for _, b in pairs),
            conjunction(*edit.without_loops(block.predicate, edit.reduction_loops(block))),
            ir.Store(target, ir.Load(cache.name, target.indices, cache.dtype)),
            annotations=tuple(note for note in block.annotations if note[0] == _OF_STORES),
            span=block.span,
        )
        in_scope = {*edit.scope_of(around)}
        kept = frozenset(
            v.name for v, b in pairs if {n for n in variables(b) if "." in n} <= in_scope
        )
        inside = between(loop, block) if loop else ancestors(edit.tree(state.kernel), block)
        iters = frozenset(v.name for v, _ in pairs)
        wanted = required(
            target.indices, touched(block, target.indices, inside, edit.ranges_of(around)), iters
        )
        used = edit.names(state.kernel) | {cache.name}
        return place(copy, around, kept, wanted if loop else {}, used)

    EXAMPLES = (
        Example(
            "A tile, then its copy",
            TWICE,
            "- split: {loop: y.i, factors: [null, 4]}\n- cache_write: {block: y, at: y.i_0}",
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
