"""store_at: a temporary that lives longer."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.walk import accessed, blocks, loads
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.allocation import home
from ..edit.tree import block_named, buffer_named, is_argument, loop_named, loops_around, tree
from ..examples import STENCIL, TWICE


@final
@dataclass(frozen=True)
class StoreAt(Primitive):
    """Allocates a temporary further out than it need be: once in each iteration of `loop`; without,
    once in the kernel.

    Temporaries live in the innermost loop that they can otherwise. This one keeps its elements
    while the loops further in go on; where they write some of them twice, those cannot be parallel
    any more. Moving the blocks that use it decides anew.
    """

    buffer: str
    loop: str | None = None

    name: ClassVar[str] = "store_at"
    aliases: ClassVar[tuple[str, ...]] = (
        "allocate_at",
        "hoist_storage",
        "store_root",
        "lift_alloc",
    )
    layer: ClassVar[Layer] = Layer.STORAGE
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "One array for all iterations",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}\n- store_at: {buffer: t}",
            after="""\
def stencil(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for y.i in range(n):
            for t.i in range(2):
                with block("t", i=spatial(y.i - 1 + t.i, n), where=0 <= y.i - 1 + t.i):
                    t[i] = x[i] * 2.0
            with block("y", i=spatial(y.i)):
                y[i] = t[max(i - 1, 0)] + t[i]
""",
        ),
        Example(
            "One for the iterations of a tile",
            TWICE,
            "- merge: {loops: [t.i, y.i], as: [y.i]}\n"
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- store_at: {buffer: t, loop: y.i_0}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for y.i_0 in range((n + 3) // 4):
        with allocate(t=float32[n]):
            for y.i_1 in range(4):
                with block("t", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    t[i] = x[i] * 2.0
                with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    y[i] = t[i] + 1.0
""",
        ),
        Example(
            "Iterations that would write the same elements at once",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}\n- parallel: {loop: y.i}\n- store_at: {buffer: t}",
            refused="the proof was refused",
        ),
        Example(
            "It lives there already",
            TWICE,
            "- store_at: {buffer: t}",
            refused="'t' is allocated once in the kernel already",
        ),
        Example(
            "A loop that is not around all that use it",
            TWICE,
            "- store_at: {buffer: t, loop: y.i}",
            refused="loop 'y.i' is not around block 't', which uses 't'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        root, loops = tree(state.kernel), self._outer(state)
        buffer_named(state.kernel, self.buffer)
        if is_argument(state.kernel, self.buffer):
            return f"'{self.buffer}' is an argument: it is not allocated here"
        for block in blocks(root):
            around = {x.var for x in loops_around(root, block)}
            if self.buffer in accessed(block) and self.loop and self.loop not in around:
                return f"loop '{self.loop}' is not around block '{block.name}', which uses " + (
                    f"'{self.buffer}'"
                )
        now = home(state, self.buffer)
        if now is None:
            return f"'{self.buffer}' is allocated once in the kernel already"
        if now in loops:
            return f"'{self.buffer}' is allocated in loop '{now}' already, which is no further in"
        return None

    def _outer(self, state: Scheduled) -> frozenset[str]:
        """The loops down to where it shall live."""
        if self.loop is None:
            return frozenset()
        loop = loop_named(state.kernel, self.loop)
        return frozenset(x.var for x in (*loops_around(tree(state.kernel), loop), loop))

    def rewrite(self, state: Scheduled) -> Scheduled:
        outer, flow = self._outer(state), dict(state.flow)
        for (reader, number), source in state.flow.items():
            load = loads(block_named(state.kernel, reader).body)[number]
            if load.buffer == self.buffer:
                kept = tuple(v for v in source.shared if v in outer)
                flow[reader, number] = replace(source, shared=kept)
        return Scheduled(state.kernel, flow)
