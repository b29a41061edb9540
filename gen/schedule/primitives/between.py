"""between: a block behind one and ahead of another."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.placement import refuse_order
from ..edit.tree import block_named
from ..examples import PAIR
from .after import After


@final
@dataclass(frozen=True)
class Between(Primitive):
    """Puts three blocks one behind the other: `first`, the block, `last`; with `loop`, in each
    iteration of that loop around the first one.

    Stands for two steps `after`; where the two share loops of other depths, write those.
    """

    block: str
    first: str
    last: str
    loop: str | None = None

    name: ClassVar[str] = "between"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "All three in one loop",
            PAIR,
            "- between: {block: z, first: t, last: y, loop: t.i}",
            after="""\
def pair(n, x: float32[n], y: Out[float32[n]], z: Out[float32[n]]):
    for t.i in range(n):
        with allocate(t=float32[n]):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
            with block("z", i=spatial(t.i)):
                z[i] = t[i] - 1.0
            with block("y", i=spatial(t.i)):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "One block twice",
            PAIR,
            "- between: {block: z, first: y, last: y}",
            refused="block 'y' cannot be both first and last",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if self.first == self.last:
            return f"block '{self.first}' cannot be both first and last"
        block_named(state.kernel, self.last)
        return refuse_order(state, self.block, self.first, self.loop)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        return (
            After(self.block, self.first, self.loop, span=self.span),
            After(self.last, self.block, self.loop, span=self.span),
        )
