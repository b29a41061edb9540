"""device_to_host: what launches write is copied from the GPU after them."""

from collections.abc import Iterable

from ...ir.nodes import Block, Buffer, Init, Scope
from ...ir.walk import accessed, blocks, loads
from ...poly.certificate import Read, Scheduled, Source
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.copies import copying, on_copy
from ..edit.launches import launched
from ..edit.moving import put
from ..edit.new_loops import place
from ..edit.tree import CannotApply
from ..examples import TWICE


class DeviceToHost(Primitive):
    """Lets launches write a buffer in memory of the GPU, and copies all of it out, once, after the
    last launch that writes it.
    """

    buffer: str
    as_: str | None = None

    aliases = ("copy_to_host",)

    def apply(self, state: Scheduled) -> Scheduled:
        old = edit.buffer_named(state.kernel, self.buffer)
        users = tuple(b for b in launched(state.kernel) if self.buffer in accessed(b))
        writers = tuple(b for b in users if self.buffer in edit.written(b))
        if not writers:
            raise CannotApply(f"no launch writes '{self.buffer}'")
        others = [b for b in blocks(edit.tree(state.kernel)) if not any(b is u for u in users)]
        for name, _ in _reads(state, users, self.buffer, initial=True):
            raise CannotApply(f"block '{name}' reads what '{self.buffer}' holds at the call")
        if other := next((b for b in others if self.buffer in edit.written(b)), None):
            raise CannotApply(
                f"block '{other.name}' writes '{self.buffer}' outside of launches, too"
            )
        copy = self.as_ or f"{self.buffer}_device"
        edit.require_free_buffer(state.kernel, copy)
        new = Buffer(copy, old.dtype, old.shape, Scope.DEVICE, span=old.span)
        out = copying(state.kernel, copy, old, new)
        nest = place(out, (), frozenset(), {}, edit.names(state.kernel) | {copy})
        body = put(edit.tree(state.kernel), None, nest, lambda b: b in writers, after=True)
        body = on_copy(body, users, self.buffer, copy)
        kernel = edit.rebuild(state.kernel, body, new)
        # Who reads outside of launches reads the copy.
        flow = dict(state.flow) | dict.fromkeys(_reads(state, others, self.buffer), Source((copy,)))
        flow[copy, 0] = Source(tuple(b.name for b in writers if not isinstance(b.body, Init)))
        return Scheduled(kernel, flow)

    EXAMPLES = (
        Example(
            "The first half on the GPU, the second on the host",
            TWICE,
            "- bind: {loop: t.i, axis: blockIdx.x}\n- device_to_host: {buffer: t}",
        ),
        Example(
            "Nothing runs on the GPU",
            TWICE,
            "- device_to_host: {buffer: y}",
            refused="no launch writes 'y'",
        ),
    )


def _reads(
    state: Scheduled, among: Iterable[Block], buffer: str, *, initial: bool = False
) -> tuple[Read, ...]:
    """The blocks' reads of a buffer; initial: only those of what it holds at the call."""
    return tuple(
        (block.name, k)
        for block in among
        for k, load in enumerate(loads(block.body))
        if load.buffer == buffer and (state.flow[block.name, k].initial or not initial)
    )
