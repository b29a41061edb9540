"""barrier_at: a barrier in a loop, at a block."""

from ...ir.nodes import Block, Loop
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.moving import require_around
from ..edit.tree import CannotApply, block_named, containing, loop_named, under
from ..examples import REVERSED, TWICE
from .sync_threads import SyncThreads


class BarrierAt(Primitive):
    """Puts a barrier into a loop's body, before what computes a block there.

    Stands for `sync_threads` before that statement, as Tiramisu's command of that name.
    """

    block: str
    loop: str

    def apply(self, state: Scheduled) -> Steps:
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        require_around(state.kernel, loop, block)
        match under(loop)[containing(under(loop), lambda b: b is block)[0]]:
            case Loop(var):
                return (SyncThreads(loop=var),)
            case Block():
                return (SyncThreads(block=self.block),)
            case _:
                where = f"in no loop of its own in loop '{self.loop}'"
                raise CannotApply(f"block '{self.block}' is {where}")

    EXAMPLES = (
        Example("Before the rows are reversed", REVERSED, "- barrier_at: {block: y, loop: y.i}"),
        Example(
            "A loop that the block is not in",
            TWICE,
            "- barrier_at: {block: t, loop: y.i}",
            refused="loop 'y.i' is not around block 't'",
        ),
    )
