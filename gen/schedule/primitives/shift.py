"""shift: a loop's variable counts from elsewhere."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.algebra import add, sub
from ...ir.index.bounds import normal
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, renumbered, unfused
from ..examples import TWICE


@final
@dataclass(frozen=True)
class Shift(Primitive):
    """Adds `by` to a loop's variable; each iteration does what it did before.

    By itself it changes nothing that runs. It aligns loops that are merged then: an iteration of
    one may so run beside a later iteration of the other.
    """

    loop: str
    by: int

    name: ClassVar[str] = "shift"
    aliases: ClassVar[tuple[str, ...]] = ("shift_loop",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Two later",
            TWICE,
            "- shift: {loop: y.i, by: 2}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(2, n + 2):
            with block("y", i=spatial(y.i - 2, n)):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "A loop that is parallel already",
            TWICE,
            "- parallel: {loop: y.i}\n- shift: {loop: y.i, by: 2}",
            refused="loop 'y.i' is parallel already",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        return unfused(loop_named(state.kernel, self.loop))

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        lower, upper = normal(add(loop.lower, self.by)), normal(add(loop.upper, self.by))
        return renumbered(state, loop, lower, upper, normal(sub(Var(loop.var), self.by)))
