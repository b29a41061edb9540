"""cache_shared_at: the threads of a block copy together what they read."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.launch import Axes
from ...ir.nodes import Const, Loop, LoopKind
from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.launches import axes_around, with_barriers
from ..edit.tree import (
    block_named,
    fresh,
    loop_named,
    loops_around,
    names,
    rebuild,
    tree,
    under,
)
from ..examples import BLUR, TWICE
from .cache_read import CacheRead
from .fuse import Fuse
from .split import Split


@final
@dataclass(frozen=True)
class CacheSharedAt(Primitive):
    """Copies what a block reads from a buffer in one iteration of a loop into shared memory, and
    lets the block read that.

    All threads of the launch copy, neighbours neighbouring elements. The barriers that this needs
    are put there, before and after the copy, and those of the loop's body that they make
    superfluous are gone. Before threads are bound it is a copy as `cache_read` makes it.
    """

    block: str
    buffer: str
    loop: str
    as_: str | None = None

    name: ClassVar[str] = "cache_shared_at"
    aliases: ClassVar[tuple[str, ...]] = ("cache_shared",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "A tile and its two neighbours: six elements by four threads",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_shared_at: {block: y, buffer: t, loop: y.i_0, as: s}",
            after="""\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[n + 2]):
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in blockIdx.x((n + 3) // 4):
            with allocate(s=float32[n + 2] @ shared):
                for s.turn in range(2):
                    for s.x in threadIdx.x(4):
                        with block(
                            "s",
                            d0=spatial(y.i_0 * 4 + (s.turn * 4 + s.x), n + 2),
                            where=y.i_0 * 4 + (s.turn * 4 + s.x) < n + 2 and s.turn * 4 + s.x < 6,
                            origin=None,
                        ):
                            s[d0] = t[d0]
                barrier()
                for y.i_1 in threadIdx.x(4):
                    with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                        y[i] = s[i] + s[i + 1] + s[i + 2]
""",
        ),
        Example(
            "In a loop that is bound to threads",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_shared_at: {block: y, buffer: t, loop: y.i_1}",
            refused="loop 'y.i_1' is in one thread: the threads copy together outside of the loops"
            " that are bound to them",
        ),
        Example(
            "A buffer that the block does not read",
            TWICE,
            "- cache_shared_at: {block: y, buffer: x, loop: y.i}",
            refused="block 'y' does not read 'x'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if reason := self._read().check(state):
            return reason
        loop = loop_named(state.kernel, self.loop)
        around = (*loops_around(tree(state.kernel), loop), loop)
        if any(x.kind.is_thread for x in around):
            return (
                f"loop '{self.loop}' is in one thread: the threads copy together outside of the"
                " loops that are bound to them"
            )
        for axis, extent in self._threads(state).items():
            if not isinstance(extent, Const):
                return f"the number of threads along {axis.value} is not constant"
        return None

    def _read(self) -> CacheRead:
        return CacheRead(self.block, self.buffer, self.loop, "shared", self.as_, span=self.span)

    def _threads(self, state: Scheduled) -> Axes:
        """The axes of the threads that copy, x last."""
        found = axes_around(state.kernel, loop_named(state.kernel, self.loop))
        return {
            kind: found[kind] for kind in reversed(LoopKind) if kind.is_thread and kind in found
        }

    def rewrite(self, state: Scheduled) -> Scheduled:
        threads = self._threads(state)
        copied = self._read().rewrite(state)
        if not threads:
            return copied
        copy = self.as_ or f"{self.buffer}_cache"
        state, top = _shared_out(copied, copy, self.loop, threads)
        body = under(loop_named(state.kernel, self.loop))
        nest = next(s for s in body if isinstance(s, Loop) and s.var == top)
        return with_barriers(state, self.loop, nest)


def _shared_out(state: Scheduled, copy: str, at: str, threads: Axes) -> tuple[Scheduled, str]:
    """The state with the copy's loops as one, whose iterations the threads share out, and the
    outermost loop of the new nest.
    """
    around = loops_around(tree(state.kernel), block_named(state.kernel, copy))
    inside = tuple(x.var for x in around)
    own = inside[inside.index(at) + 1 :]
    flat = fresh(f"{copy}.e", names(state.kernel))
    if len(own) > 1:
        state = Fuse(own, flat).rewrite(state)
    else:
        flat = own[0]
    counts = [int(extent.value.real) for extent in threads.values() if isinstance(extent, Const)]
    taken = names(state.kernel)
    wanted = ("turn", *(axis.value[-1] for axis in threads))
    new = tuple(fresh(f"{copy}.{part}", taken) for part in wanted)
    state = Split(flat, (None, *counts), new).rewrite(state)
    for var, axis in zip(new[1:], threads, strict=True):
        loop = loop_named(state.kernel, var)
        bound = replace(loop, kind=axis, upper=threads[axis])
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), loop, bound))
        state = replace(state, kernel=kernel)
    return state, new[0]
