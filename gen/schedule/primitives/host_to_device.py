"""host_to_device: what launches read is copied to the GPU before them."""

from ...ir.nodes import Buffer, Scope
from ...ir.walk import loads
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.copies import copying, from_copy, on_copy
from ..edit.launches import launched
from ..edit.moving import put
from ..edit.new_loops import place
from ..edit.tree import CannotApply
from ..examples import TWICE


class HostToDevice(Primitive):
    """Copies a buffer to memory of the GPU, once, before the first launch that reads it, and lets
    all launches read that.
    """

    buffer: str
    as_: str | None = None

    aliases = ("copy_to_device",)

    def apply(self, state: Scheduled) -> Scheduled:
        old, inside = edit.buffer_named(state.kernel, self.buffer), launched(state.kernel)
        readers = tuple(b for b in inside if any(x.buffer == self.buffer for x in loads(b)))
        if not readers:
            raise CannotApply(f"no launch reads '{self.buffer}'")
        if writer := next((b for b in inside if self.buffer in edit.written(b)), None):
            raise CannotApply(
                f"block '{writer.name}' writes '{self.buffer}' in a launch: set_scope says that"
                " it is the device's"
            )
        name = self.as_ or f"{self.buffer}_device"
        edit.require_free_buffer(state.kernel, name)
        new = Buffer(name, old.dtype, old.shape, Scope.DEVICE, span=old.span)
        copy = copying(state.kernel, name, new, old)
        nest = place(copy, (), frozenset(), {}, edit.names(state.kernel) | {name})
        body = put(edit.tree(state.kernel), None, nest, lambda b: b in readers, after=False)
        body = on_copy(body, readers, self.buffer, name)
        kernel = edit.rebuild(state.kernel, body, new)
        flow = from_copy(state.flow, readers, self.buffer, name)
        return Scheduled(kernel, flow)

    EXAMPLES = (
        Example(
            "The first half on the host, the second on the GPU",
            TWICE,
            "- bind: {loop: y.i, axis: blockIdx.x}\n- host_to_device: {buffer: t}",
        ),
        Example(
            "Nothing runs on the GPU",
            TWICE,
            "- host_to_device: {buffer: t}",
            refused="no launch reads 't'",
        ),
        Example(
            "What a launch writes itself",
            TWICE,
            "- bind: {loop: t.i, axis: blockIdx.x}\n- bind: {loop: y.i, axis: blockIdx.x}\n"
            "- host_to_device: {buffer: t}",
            refused="block 't' writes 't' in a launch: set_scope says that it is the device's",
        ),
    )
