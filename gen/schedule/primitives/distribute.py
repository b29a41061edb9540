"""distribute: a loop's iterations run on ranks."""

from ...ir.nodes import LoopKind
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.nesting_rules import marked
from ..examples import ROW_SUM


class Distribute(Primitive):
    """Runs each iteration of a loop on a rank of its own; none may depend on another.

    Temporaries inside the loop are the rank's own. What several such loops hand each other lies in
    memory that all ranks see, until `send` gives each rank a buffer of its own, and messages. A
    rank runs the iteration of its number in each of the loops, and a loop ends for all at once.
    """

    loop: str

    aliases = ("tag_distribute_level",)

    def apply(self, state: Scheduled) -> Scheduled:
        return marked(state, self.loop, LoopKind.DISTRIBUTED)

    EXAMPLES = (
        Example(
            "A rank for every four rows, a thread for each",
            ROW_SUM,
            "- split: {loop: y.i, factors: [null, 4]}\n- distribute: {loop: y.i_0}\n"
            "- parallel: {loop: y.i_1}",
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
