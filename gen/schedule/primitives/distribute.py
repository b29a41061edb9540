"""distribute: a loop's iterations run on ranks."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.nodes import LoopKind
from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.nesting_rules import unfit
from ..edit.tree import loop_named, rebuild, tree
from ..examples import ROW_SUM


@final
@dataclass(frozen=True)
class Distribute(Primitive):
    """Runs each iteration of a loop on a rank of its own; none may depend on another.

    Temporaries inside the loop are the rank's own. What several such loops hand each other lies in
    memory that all ranks see, until `send` gives each rank a buffer of its own, and messages. A
    rank runs the iteration of its number in each of the loops, and a loop ends for all at once.
    """

    loop: str

    name: ClassVar[str] = "distribute"
    aliases: ClassVar[tuple[str, ...]] = ("tag_distribute_level",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "A rank for every four rows, a thread for each",
            ROW_SUM,
            "- split: {loop: y.i, factors: [null, 4]}\n- distribute: {loop: y.i_0}\n"
            "- parallel: {loop: y.i_1}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i_0 in distributed((m + 3) // 4):
        for y.i_1 in parallel(4):
            for y.j in range(n):
                with block(
                    "y",
                    i=spatial(y.i_0 * 4 + y.i_1, m),
                    j=reduction(y.j),
                    where=y.i_0 * 4 + y.i_1 < m,
                    initialises=True,
                ):
                    y[i] = combine.sum(y[i], x[i, j])
""",
        ),
        Example(
            "Terms of one sum",
            ROW_SUM,
            "- distribute: {loop: y.j}",
            refused="the proof was refused: distributed loop 'y.j' has a race: y[i=0, j=0] "
            "writes 'y' and y[i=0, j=1] writes it in another iteration",
        ),
        Example(
            "Ranks within a rank",
            ROW_SUM,
            "- split: {loop: y.i, factors: [null, 4]}\n- distribute: {loop: y.i_0}\n"
            "- distribute: {loop: y.i_1}",
            refused="distributed loop 'y.i_1' would be in distributed loop 'y.i_0': a rank has no"
            " ranks of its own",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        return unfit(tree(state.kernel), loop, LoopKind.DISTRIBUTED)

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        new = replace(loop, kind=LoopKind.DISTRIBUTED)
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), loop, new))
        return replace(state, kernel=kernel)
