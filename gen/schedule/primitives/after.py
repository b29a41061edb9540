"""after: a block behind another."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.placement import beside
from ..examples import PAIR, TWICE


class After(Primitive):
    """Puts a block with its loops right behind another block's: with `loop`, in each iteration of
    that loop around the other one; without, behind all loops around it.

    The loops down to `loop` have to run over the same iterations as the block's own, which they
    then stand for. Other statements stay where they are.
    """

    block: str
    other: str
    loop: str | None = None

    aliases = ("fuse_after", "compute_with")

    def apply(self, state: Scheduled) -> Scheduled:
        return beside(state, self.block, self.other, self.loop, after=True)

    EXAMPLES = (
        Example("In the same iteration", PAIR, "- after: {block: z, other: t, loop: t.i}"),
        Example("Once the other one is done", PAIR, "- after: {block: z, other: t}"),
        Example(
            "A value that is computed too late then",
            TWICE,
            "- after: {block: t, other: y}",
            refused="the proof was refused: y[i=0] reads 't' before t[i=0] computes it",
        ),
        Example(
            "A loop that is not around the other block",
            TWICE,
            "- after: {block: y, other: t, loop: y.i}",
            refused="loop 'y.i' is not around block 't'",
        ),
    )
