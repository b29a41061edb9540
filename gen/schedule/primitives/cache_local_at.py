"""cache_local_at: each thread copies what it reads."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.launches import axes_around
from ..edit.tree import loop_named, loops_around, tree
from ..examples import BLUR, TWICE
from .cache_read import CacheRead


@final
@dataclass(frozen=True)
class CacheLocalAt(Primitive):
    """Copies what a block reads from a buffer in one iteration of a loop into memory that each
    thread has for itself, and lets the block read that.

    Stands for a `cache_read` of local scope. A loop in one thread needs no barrier.
    """

    block: str
    buffer: str
    loop: str
    as_: str | None = None

    name: ClassVar[str] = "cache_local_at"
    aliases: ClassVar[tuple[str, ...]] = ("cache_local",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Each thread has the three elements that it adds",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_local_at: {block: y, buffer: t, loop: y.i_1, as: s}",
            after="""\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[n + 2]):
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in blockIdx.x((n + 3) // 4):
            for y.i_1 in threadIdx.x(4):
                with allocate(s=float32[n + 2] @ local):
                    for s.d0 in range(3):
                        with block(
                            "s",
                            d0=spatial(y.i_0 * 4 + y.i_1 + s.d0, n + 2),
                            where=y.i_0 * 4 + y.i_1 + s.d0 < n + 2,
                            origin=None,
                        ):
                            s[d0] = t[d0]
                    with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                        y[i] = s[i] + s[i + 1] + s[i + 2]
""",
        ),
        Example(
            "A loop that several threads run",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_local_at: {block: y, buffer: t, loop: y.i_0}",
            refused="loop 'y.i_0' is not in one thread: no loop bound to threadIdx.x is around it",
        ),
        Example(
            "A buffer that the block does not read",
            TWICE,
            "- cache_local_at: {block: y, buffer: x, loop: y.i}",
            refused="block 'y' does not read 'x'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if reason := self._read().check(state):
            return reason
        loop = loop_named(state.kernel, self.loop)
        bound = {x.kind for x in (*loops_around(tree(state.kernel), loop), loop)}
        for axis in axes_around(state.kernel, loop):
            if axis.is_thread and axis not in bound:
                return (
                    f"loop '{self.loop}' is not in one thread: no loop bound to {axis.value} is"
                    " around it"
                )
        return None

    def _read(self) -> CacheRead:
        return CacheRead(self.block, self.buffer, self.loop, "local", self.as_, span=self.span)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        return (self._read(),)
