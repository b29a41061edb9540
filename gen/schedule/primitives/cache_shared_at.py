"""cache_shared_at: the threads of a block copy together what they read."""

from dataclasses import replace

from ...ir.launch import Axes
from ...ir.nodes import Const, Loop, LoopKind
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.launches import axes_around, with_barriers
from ..edit.tree import CannotApply
from ..examples import BLUR, TWICE
from .add_unit_loop import AddUnitLoop
from .cache_read import CacheRead
from .fuse import Fuse
from .split import Split


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

    aliases = ("cache_shared",)

    def apply(self, state: Scheduled) -> Scheduled:
        read = CacheRead(self.block, self.buffer, self.loop, "shared", self.as_)
        copied = read.apply(state)
        loop = edit.loop_named(state.kernel, self.loop)
        if any(x.kind.is_thread for x in (*edit.loops_around(edit.tree(state.kernel), loop), loop)):
            raise CannotApply(
                f"loop '{self.loop}' is in one thread: the threads copy together outside of the"
                " loops that are bound to them"
            )
        around = axes_around(state.kernel, loop)  # of the threads, x last
        threads = {k: around[k] for k in reversed(LoopKind) if k.is_thread and k in around}
        for axis, extent in threads.items():
            if not isinstance(extent, Const):
                raise CannotApply(f"the number of threads along {axis.value} is not constant")
        if not threads:
            return copied
        state, top = _shared_out(copied, read.copy(), self.loop, threads)
        body = edit.under(edit.loop_named(state.kernel, self.loop))
        nest = next(s for s in body if isinstance(s, Loop) and s.var == top)
        return with_barriers(state, self.loop, nest)

    EXAMPLES = (
        Example(
            "A tile and its two neighbours: six elements by four threads",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- gpu: {loops: [y.i_0, y.i_1]}\n"
            "- cache_shared_at: {block: y, buffer: t, loop: y.i_0, as: s}",
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


def _shared_out(state: Scheduled, copy: str, at: str, threads: Axes) -> tuple[Scheduled, str]:
    """The state with the copy's loops as one, whose iterations the threads share out, and the
    outermost loop of the new nest.
    """
    around = edit.loops_around(edit.tree(state.kernel), edit.block_named(state.kernel, copy))
    inside = tuple(x.var for x in around)
    own = inside[inside.index(at) + 1 :]
    flat = edit.fresh(f"{copy}.e", edit.names(state.kernel))
    if len(own) == 1:
        flat = own[0]
    elif own:
        state = Fuse(own, flat).apply(state)
    else:  # one element
        state = AddUnitLoop(copy, as_=(flat,)).apply(state)
    counts = [int(extent.value.real) for extent in threads.values() if isinstance(extent, Const)]
    taken = edit.names(state.kernel)
    wanted = ("turn", *(axis.value[-1] for axis in threads))
    new = tuple(edit.fresh(f"{copy}.{part}", taken) for part in wanted)
    state = Split(flat, (None, *counts), new).apply(state)
    for var, axis in zip(new[1:], threads, strict=True):
        loop = edit.loop_named(state.kernel, var)
        state = edit.replaced(state, loop, replace(loop, kind=axis, upper=threads[axis]))
    return state, new[0]
