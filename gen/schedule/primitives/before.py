"""before: a block ahead of another."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.placement import moved, refuse_order
from ..edit.tree import block_named, containing
from ..examples import PAIR, TWICE


@final
@dataclass(frozen=True)
class Before(Primitive):
    """Puts a block with its loops right ahead of another block's, as `after` does behind it: with
    `loop`, in each iteration of that loop around the other one; without, ahead of all its loops.
    """

    block: str
    other: str
    loop: str | None = None

    name: ClassVar[str] = "before"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "In the same iteration; the temporary moves into it",
            TWICE,
            "- before: {block: t, other: y, loop: y.i}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with allocate(t=float32[n]):
            with block("t", i=spatial(y.i)):
                t[i] = x[i] * 2.0
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        return refuse_order(state, self.block, self.other, self.loop)

    def rewrite(self, state: Scheduled) -> Scheduled:
        def place(statements: tuple[Stmt, ...]) -> int:
            return containing(statements, lambda b: b.name == self.other)[0]

        return moved(state, block_named(state.kernel, self.block), self.loop, place)
