"""after: a block behind another."""

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
class After(Primitive):
    """Puts a block with its loops right behind another block's: with `loop`, in each iteration of
    that loop around the other one; without, behind all loops around it.

    The loops down to `loop` have to run over the same iterations as the block's own, which they
    then stand for. Other statements stay where they are.
    """

    block: str
    other: str
    loop: str | None = None

    name: ClassVar[str] = "after"
    aliases: ClassVar[tuple[str, ...]] = ("fuse_after", "compute_with")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "In the same iteration",
            PAIR,
            "- after: {block: z, other: t, loop: t.i}",
            after="""\
def pair(n, x: float32[n], y: Out[float32[n]], z: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
            with block("z", i=spatial(t.i)):
                z[i] = t[i] - 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "Once the other one is done",
            PAIR,
            "- after: {block: z, other: t}",
            after="""\
def pair(n, x: float32[n], y: Out[float32[n]], z: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for z.i in range(n):
            with block("z", i=spatial(z.i)):
                z[i] = t[i] - 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
""",
        ),
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

    def check(self, state: Scheduled) -> str | None:
        return refuse_order(state, self.block, self.other, self.loop)

    def rewrite(self, state: Scheduled) -> Scheduled:
        def place(statements: tuple[Stmt, ...]) -> int:
            return containing(statements, lambda b: b.name == self.other)[0] + 1

        return moved(state, block_named(state.kernel, self.block), self.loop, place)
