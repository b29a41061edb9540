"""between: a block behind one and ahead of another."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply
from ..examples import PAIR
from .after import After


class Between(Primitive):
    """Puts three blocks one behind the other: `first`, the block, `last`; with `loop`, in each
    iteration of that loop around the first one.

    Stands for two steps `after`; where the two share loops of other depths, write those.
    """

    block: str
    first: str
    last: str
    loop: str | None = None

    def apply(self, state: Scheduled) -> Steps:
        if self.first == self.last:
            raise CannotApply(f"block '{self.first}' cannot be both first and last")
        return After(self.block, self.first, self.loop), After(self.last, self.block, self.loop)

    EXAMPLES = (
        Example(
            "All three in one loop", PAIR, "- between: {block: z, first: t, last: y, loop: t.i}"
        ),
        Example(
            "One block twice",
            PAIR,
            "- between: {block: z, first: y, last: y}",
            refused="block 'y' cannot be both first and last",
        ),
    )
