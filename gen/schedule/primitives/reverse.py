"""reverse: a loop from its last iteration to its first."""

from ...ir.algebra import add, sub
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import loop_named, renumbered, require_unfused
from ..examples import SCALE, STENCIL, TRIANGLE


class Reverse(Primitive):
    """Runs a loop's iterations in the opposite order.

    The prover decides whether what one iteration takes from another is still there in time.
    """

    loop: str

    def apply(self, state: Scheduled) -> Scheduled:
        require_unfused(loop_named(state.kernel, self.loop))
        loop = loop_named(state.kernel, self.loop)
        mirrored = sub(add(loop.lower, sub(loop.upper, 1)), Var(loop.var))
        return renumbered(state, loop, loop.lower, loop.upper, mirrored)

    EXAMPLES = (
        Example("The last row first", SCALE, "- reverse: {loop: y.i}"),
        Example(
            "A value that is not made yet",
            STENCIL,
            "- merge: {loops: [t.i, y.i], as: [z.i]}\n- reverse: {loop: z.i}",
            refused="the proof was refused",
        ),
        Example(
            "A reduction's loop whose end depends on the row",
            TRIANGLE,
            "- reverse: {loop: y.j}",
            refused="'y.i' carries both spatial and reduction variables of block 'y': decompose the"
            " reduction first",
        ),
    )
