"""cache_local_at: each thread copies what it reads."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.launches import axes_around
from ..edit.tree import CannotApply, loop_named, loops_around, tree
from ..examples import BLUR, TWICE
from .cache_read import CacheRead


class CacheLocalAt(Primitive):
    """Copies what a block reads from a buffer in one iteration of a loop into memory that each
    thread has for itself, and lets the block read that.

    Stands for a `cache_read` of local scope. A loop in one thread needs no barrier.
    """

    block: str
    buffer: str
    loop: str
    as_: str | None = None

    aliases = ("cache_local",)

    def apply(self, state: Scheduled) -> Steps:
        loop = loop_named(state.kernel, self.loop)
        bound = {x.kind for x in (*loops_around(tree(state.kernel), loop), loop)}
        for axis in axes_around(state.kernel, loop):
            if axis.is_thread and axis not in bound:
                raise CannotApply(
                    f"loop '{self.loop}' is not in one thread: no loop bound to {axis.value} is"
                    " around it"
                )
        return (CacheRead(self.block, self.buffer, self.loop, "local", self.as_),)

    EXAMPLES = (
        Example(
            "Each thread has the three elements that it adds",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_local_at: {block: y, buffer: t, loop: y.i_1, as: s}",
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
