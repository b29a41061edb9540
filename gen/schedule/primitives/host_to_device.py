"""host_to_device: what launches read is copied to the GPU before them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from ...ir.launch import launches
from ...ir.nodes import Block, Buffer, Load, Scope, Seq
from ...ir.walk import blocks, loads, map_children, seq
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.new_loops import place
from ..edit.tree import (
    buffer_named,
    containing,
    insert,
    names,
    prune_shared,
    rebuild,
    taken_buffer,
    temporaries,
    tree,
    update_blocks,
    written,
)
from ..examples import TWICE
from .cache_read import copying


@final
@dataclass(frozen=True)
class HostToDevice(Primitive):
    """Copies a buffer to memory of the GPU, once, before the first launch that reads it, and lets
    all launches read that.
    """

    buffer: str
    as_: str | None = None

    name: ClassVar[str] = "host_to_device"
    aliases: ClassVar[tuple[str, ...]] = ("copy_to_device",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The first half on the host, the second on the GPU",
            TWICE,
            "- bind: {loop: y.i, axis: blockIdx.x}\n- host_to_device: {buffer: t}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n], t_device=float32[n] @ device):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for t_device.d0 in range(n):
            with block("t_device", d0=spatial(t_device.d0), origin=None):
                t_device[d0] = t[d0]
        for y.i in blockIdx.x(n):
            with block("y", i=spatial(y.i)):
                y[i] = t_device[i] + 1.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        buffer_named(state.kernel, self.buffer)
        if not self._readers(state):
            return f"no launch reads '{self.buffer}'"
        for block in _launched(state):
            if self.buffer in written(block):
                return (
                    f"block '{block.name}' writes '{self.buffer}' in a launch: set_scope says that"
                    " it is the device's"
                )
        return taken_buffer(state.kernel, self._copy())

    def _copy(self) -> str:
        return self.as_ or f"{self.buffer}_device"

    def _readers(self, state: Scheduled) -> tuple[Block, ...]:
        return tuple(b for b in _launched(state) if any(x.buffer == self.buffer for x in loads(b)))

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, readers = tree(state.kernel), self._readers(state)
        old = buffer_named(state.kernel, self.buffer)
        new = Buffer(self._copy(), old.dtype, old.shape, Scope.DEVICE, span=old.span)
        copy = copying(state.kernel, new, old)
        used = names(state.kernel) | {new.name}
        nest = place(copy, (), frozenset(), {}, used)
        items = root.body if isinstance(root, Seq) else (root,)
        first = containing(items, lambda b: any(b is r for r in readers))[0]
        body = update_blocks(
            seq(insert(items, first, nest)),
            lambda b: self._reading(b) if any(b is r for r in readers) else b,
        )
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), new))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state.flow, readers)))

    def _reading(self, block: Block) -> Block:
        def go(n: Any) -> Any:
            found = map_children(n, go)
            if isinstance(found, Load) and found.buffer == self.buffer:
                return replace(found, buffer=self._copy())
            return found

        return replace(block, body=go(block.body))

    def _flow(self, flow: Flow, readers: tuple[Block, ...]) -> Flow:
        result, sources = dict(flow), []
        for block in readers:
            for k, load in enumerate(loads(block.body)):
                if load.buffer == self.buffer:
                    sources.append(flow[block.name, k])
                    result[block.name, k] = Source((self._copy(),))
        writers = dict.fromkeys(w for s in sources for w in s.writers)
        result[self._copy(), 0] = Source(tuple(writers), any(s.initial for s in sources))
        return result


def _launched(state: Scheduled) -> tuple[Block, ...]:
    """The blocks that run in launches."""
    return tuple(b for launch in launches(tree(state.kernel)) for b in blocks(launch))
