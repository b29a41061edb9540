"""compute_inline: values computed inside the expressions that use them."""

from ...ir.nodes import Store
from ...ir.walk import blocks, replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.inlining import in_consumer, inline_reads, unnamed
from ..edit.tree import CannotApply
from ..examples import RUNNING, SHARE, STENCIL, TWICE


class ComputeInline(Primitive):
    """Replaces every read of a block's values by the block's expression, and drops the block.

    The place that the block writes names its iteration variables, each once, but for those of loops
    around the readers, too, as of a loop over steps in time: there its values are read in the
    iteration that writes them.
    """

    block: str

    aliases = ("inline",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        if not isinstance(block.body, Store):
            raise CannotApply(f"block '{block.name}' is a reduction: it has no single expression")
        buffer = block.body.target.buffer
        if edit.is_argument(state.kernel, buffer):
            raise CannotApply(f"block '{block.name}' writes the argument '{buffer}'")
        unnamed(block)  # refuses what names no instance
        for reader, number in edit.readers(state.flow, block.name):
            if reader == block.name:
                raise CannotApply(f"block '{block.name}' reads values of its own")
            source = state.flow[reader, number]
            if source.writers != (block.name,) or source.initial:
                raise CannotApply(f"block '{reader}' reads '{buffer}' from other blocks, too")
        others = [b.name for b in blocks(edit.tree(state.kernel)) if buffer in edit.written(b)]
        if others != [block.name]:
            raise CannotApply(f"'{buffer}' is written by {len(others)} blocks")
        flow = {read: s for read, s in state.flow.items() if read[0] != block.name}
        whole = edit.tree(state.kernel)
        rest = edit.remove(whole, block)
        for reader in dict.fromkeys(name for name, _ in edit.readers(state.flow, block.name)):
            consumer = edit.block_named(state.kernel, reader)
            shared = in_consumer(whole, block, consumer)
            new, sources = inline_reads(consumer, block, state.flow, shared)
            rest = replace_stmt(rest, consumer, new)
            flow = {read: s for read, s in flow.items() if read[0] != reader}
            flow.update({(reader, k): s for k, s in enumerate(sources)})
        kernel = edit.rebuild(state.kernel, rest)
        return Scheduled(kernel, flow)

    EXAMPLES = (
        Example("The temporary is gone", STENCIL, "- compute_inline: {block: t}"),
        Example(
            "A reduction",
            SHARE,
            "- compute_inline: {block: t}",
            refused="block 't' is a reduction: it has no single expression",
        ),
        Example(
            "A recurrence",
            RUNNING,
            "- compute_inline: {block: t}",
            refused="block 't' reads values of its own",
        ),
        Example(
            "An output",
            TWICE,
            "- compute_inline: {block: y}",
            refused="block 'y' writes the argument 'y'",
        ),
    )
