"""simple_compute_at: a block into loops that run as its own do."""

from ...ir.nodes import Stmt
from ...ir.walk import loads
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.moving import require_outside
from ..edit.placement import moved
from ..edit.tree import block_named, containing, loop_named
from ..examples import PAIR, STENCIL


class SimpleComputeAt(Primitive):
    """Moves a block into a loop that, with the loops around it, runs over the same iterations as
    the block's own outer loops; nothing is computed again, and no reader is needed.

    It goes first in the loop's body, or after the last block there that it reads from. `compute_at`
    makes new loops for what is read instead; `after` and `before` say the place.
    """

    block: str
    loop: str

    def apply(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        require_outside(state, block, loop_named(state.kernel, self.loop))
        sources = (state.flow[block.name, n] for n in range(len(loads(block.body))))
        producers = {writer for source in sources for writer in source.writers}

        def place(statements: tuple[Stmt, ...]) -> int:
            return max(containing(statements, lambda b: b.name in producers), default=-1) + 1

        return moved(state, block, self.loop, place)

    EXAMPLES = (
        Example(
            "Neither block reads from the other",
            PAIR,
            "- simple_compute_at: {block: z, loop: y.i}",
        ),
        Example(
            "Loops that run over other iterations",
            PAIR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- simple_compute_at: {block: z, loop: y.i_0}",
            refused="loop 'z.i' of range(0, n) runs over other iterations than loop 'y.i_0' of "
            "range(0, (n + 3) // 4)",
        ),
        Example(
            "A value that a later iteration needs: only compute_at computes it again",
            STENCIL.replace("i - 1, 0", "n - 1 - i, 0"),
            "- simple_compute_at: {block: t, loop: y.i}",
            refused="the proof was refused: y[i=0] reads 't' before t[i=1] computes it",
        ),
    )
