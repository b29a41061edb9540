"""device_to_host: what launches write is copied from the GPU after them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from ...ir.algebra import TRUE
from ...ir.launch import launches
from ...ir.nodes import Block, Buffer, Init, Load, Scope, Seq, Store, Target
from ...ir.walk import accessed, blocks, loads, map_children, seq
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
class DeviceToHost(Primitive):
    """Lets launches write a buffer in memory of the GPU, and copies all of it out, once, after the
    last launch that writes it.
    """

    buffer: str
    as_: str | None = None

    name: ClassVar[str] = "device_to_host"
    aliases: ClassVar[tuple[str, ...]] = ("copy_to_host",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The first half on the GPU, the second on the host",
            TWICE,
            "- bind: {loop: t.i, axis: blockIdx.x}\n- device_to_host: {buffer: t}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n], t_device=float32[n] @ device):
        for t.i in blockIdx.x(n):
            with block("t", i=spatial(t.i)):
                t_device[i] = x[i] * 2.0
        for t_device.d0 in range(n):
            with block("t_device", d0=spatial(t_device.d0), origin=None):
                t[d0] = t_device[d0]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "Nothing runs on the GPU",
            TWICE,
            "- device_to_host: {buffer: y}",
            refused="no launch writes 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        buffer_named(state.kernel, self.buffer)
        inside = self._users(state)
        if not any(self.buffer in written(b) for b in inside):
            return f"no launch writes '{self.buffer}'"
        for block in inside:
            for k, load in enumerate(loads(block.body)):
                if load.buffer == self.buffer and state.flow[block.name, k].initial:
                    return f"block '{block.name}' reads what '{self.buffer}' holds at the call"
        for block in blocks(tree(state.kernel)):
            if self.buffer in written(block) and not any(block is b for b in inside):
                return f"block '{block.name}' writes '{self.buffer}' outside of launches, too"
        return taken_buffer(state.kernel, self._copy())

    def _copy(self) -> str:
        return self.as_ or f"{self.buffer}_device"

    def _users(self, state: Scheduled) -> tuple[Block, ...]:
        """The blocks in launches that access the buffer."""
        inside = (b for launch in launches(tree(state.kernel)) for b in blocks(launch))
        return tuple(b for b in inside if self.buffer in accessed(b))

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, users = tree(state.kernel), self._users(state)
        old = buffer_named(state.kernel, self.buffer)
        new = Buffer(self._copy(), old.dtype, old.shape, Scope.DEVICE, span=old.span)
        copy = copying(state.kernel, replace(old, name=new.name), new)
        assert isinstance(copy.body, Store) and isinstance(copy.body.target, Target)
        out = replace(copy.body, target=replace(copy.body.target, buffer=self.buffer))
        copy = replace(copy, body=out, predicate=TRUE)
        nest = place(copy, (), frozenset(), {}, names(state.kernel) | {new.name})
        items = root.body if isinstance(root, Seq) else (root,)
        writers = [b for b in users if self.buffer in written(b)]
        last = containing(items, lambda b: any(b is w for w in writers))[-1]
        moved = update_blocks(root, lambda b: self._moved(b) if any(b is u for u in users) else b)
        items = moved.body if isinstance(moved, Seq) else (moved,)
        body = seq(insert(items, last + 1, nest))
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), new))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state, users, writers)))

    def _moved(self, block: Block) -> Block:
        """The block on the GPU's buffer."""

        def go(n: Any) -> Any:
            found = map_children(n, go)
            if isinstance(found, Load | Target) and found.buffer == self.buffer:
                return replace(found, buffer=self._copy())
            return found

        return replace(block, body=go(block.body))

    def _flow(self, state: Scheduled, users: tuple[Block, ...], writers: list[Block]) -> Flow:
        """Who reads outside of launches reads the copy."""
        result = dict(state.flow)
        makers = tuple(b.name for b in writers if not isinstance(b.body, Init))
        for block in blocks(tree(state.kernel)):
            if any(block is u for u in users):
                continue
            for k, load in enumerate(loads(block.body)):
                if load.buffer == self.buffer:
                    result[block.name, k] = Source((self._copy(),))
        result[self._copy(), 0] = Source(makers)
        return result
