"""compute_inline: values computed inside the expressions that use them."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Store
from ...ir.walk import blocks, replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.inlining import inline_reads, plain_indices
from ..edit.tree import (
    block_named,
    is_argument,
    prune_shared,
    readers,
    rebuild,
    remove,
    tree,
    written,
)
from ..examples import SHARE, STENCIL, TWICE


@final
@dataclass(frozen=True)
class ComputeInline(Primitive):
    """Replaces every read of a block's values by the block's expression, and drops the block."""

    block: str

    name: ClassVar[str] = "compute_inline"
    aliases: ClassVar[tuple[str, ...]] = ("inline",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The temporary is gone",
            STENCIL,
            "- compute_inline: {block: t}",
            after="""\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[max(i - 1, 0)] * 2.0 + x[i] * 2.0
""",
        ),
        Example(
            "A reduction",
            SHARE,
            "- compute_inline: {block: t}",
            refused="block 't' is a reduction: it has no single expression",
        ),
        Example(
            "An output",
            TWICE,
            "- compute_inline: {block: y}",
            refused="block 'y' writes the argument 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        if not isinstance(block.body, Store):
            return f"block '{block.name}' is a reduction: it has no single expression"
        buffer = block.body.target.buffer
        if is_argument(state.kernel, buffer):
            return f"block '{block.name}' writes the argument '{buffer}'"
        if reason := plain_indices(block):
            return reason
        for reader, number in readers(state.flow, block.name):
            source = state.flow[reader, number]
            if source.writers != (block.name,) or source.initial:
                return f"block '{reader}' reads '{buffer}' from other blocks, too"
        others = [b.name for b in blocks(tree(state.kernel)) if buffer in written(b)]
        if others != [block.name]:
            return f"'{buffer}' is written by {len(others)} blocks"
        return None

    def rewrite(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        flow = {read: s for read, s in state.flow.items() if read[0] != block.name}
        rest = remove(tree(state.kernel), block)
        for reader in dict.fromkeys(name for name, _ in readers(state.flow, block.name)):
            consumer = block_named(state.kernel, reader)
            new, sources = inline_reads(consumer, block, state.flow)
            rest = replace_stmt(rest, consumer, new)
            flow = {read: s for read, s in flow.items() if read[0] != reader}
            flow.update({(reader, k): s for k, s in enumerate(sources)})
        kernel = rebuild(state.kernel, rest)
        return Scheduled(kernel, prune_shared(kernel, flow))
