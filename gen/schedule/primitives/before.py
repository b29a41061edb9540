"""before: a block ahead of another."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.placement import beside
from ..examples import PAIR, TWICE


class Before(Primitive):
    """Puts a block with its loops right ahead of another block's, as `after` does behind it: with
    `loop`, in each iteration of that loop around the other one; without, ahead of all its loops.
    """

    block: str
    other: str
    loop: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        return beside(state, self.block, self.other, self.loop, after=False)

    EXAMPLES = (
        Example(
            "In the same iteration; the temporary moves into it",
            TWICE,
            "- before: {block: t, other: y, loop: y.i}",
        ),
        Example(
            "A value that is not computed yet",
            PAIR,
            "- before: {block: y, other: t}",
            refused="the proof was refused: y[i=0] reads 't' before t[i=0] computes it",
        ),
        Example(
            "Itself",
            TWICE,
            "- before: {block: y, other: y}",
            refused="block 'y' cannot stand beside itself",
        ),
    )
