"""stream: a result's stores pass the caches by."""

from dataclasses import replace

from ...ir.nodes import Stmt, Store, Update
from ...ir.walk import loads, targets, walk
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, block_named, is_argument, rebuild, tree, update_blocks
from ..examples import ROW_SUM, SCALE, TWICE


class Stream(Primitive):
    """Lets a block's vector stores go to memory past the caches, where the kernel's arrays are more
    than its share of the last-level cache: which it is, each call finds out.

    The stores wait until they fill whole cache lines, so nothing in the kernel may read what the
    block writes. It needs a loop whose iterations store one whole vector after another along the
    last axis; loops over the rest (a masked tail) store as ever. An inner loop may store into other
    rows at each of its iterations, if it stores whole lines: `transpose` reads its rows from end to
    end, and stores a line into each of as many rows. The result is the same either way.
    """

    block: str

    aliases = ("non_temporal",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        if not isinstance(block.body, Store):
            raise CannotApply(f"block '{self.block}' updates what it has stored")
        buffer = targets(block.body)[0].buffer
        if not is_argument(state.kernel, buffer):
            raise CannotApply(
                f"'{buffer}' is a temporary: what is read again belongs in the caches"
            )
        if buffer in _read(state.kernel.body):
            raise CannotApply(f"'{buffer}' is read: a store that waits would not be seen")
        if any(key == "stream" for key, _ in block.annotations):
            raise CannotApply(f"the stores of block '{self.block}' are streamed already")
        new = replace(block, annotations=(*block.annotations, ("stream", self.span.line)))
        body = update_blocks(tree(state.kernel), lambda b: new if b.name == self.block else b)
        return replace(state, kernel=rebuild(state.kernel, body))

    EXAMPLES = (
        Example(
            "A result that nothing reads; the annotation keeps the line of the step, for errors",
            SCALE,
            "- vectorize: {loop: y.j, width: 4}\n- stream: {block: y}",
        ),
        Example(
            "A temporary",
            TWICE,
            "- stream: {block: t}",
            refused="'t' is a temporary: what is read again belongs in the caches",
        ),
        Example(
            "A sum", ROW_SUM, "- stream: {block: y}", refused="block 'y' updates what it has stored"
        ),
    )


def _read(body: Stmt) -> frozenset[str]:
    """The buffers that blocks below read, or update."""
    updated = (t.buffer for n in walk(body) if isinstance(n, Update) for t in n.targets)
    return frozenset((*(n.buffer for n in loads(body)), *updated))
