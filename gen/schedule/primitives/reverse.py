"""reverse: a loop from its last iteration to its first."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.algebra import add, sub
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, renumbered, unfused
from ..examples import SCALE, STENCIL, TRIANGLE


@final
@dataclass(frozen=True)
class Reverse(Primitive):
    """Runs a loop's iterations in the opposite order.

    The prover decides whether what one iteration takes from another is still there in time.
    """

    loop: str

    name: ClassVar[str] = "reverse"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "The last row first",
            SCALE,
            "- reverse: {loop: y.i}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(m - 1 - y.i, m), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
""",
        ),
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

    def check(self, state: Scheduled) -> str | None:
        return unfused(loop_named(state.kernel, self.loop))

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        mirrored = sub(add(loop.lower, sub(loop.upper, 1)), Var(loop.var))
        return renumbered(state, loop, loop.lower, loop.upper, mirrored)
