"""shift: a loop's variable counts from elsewhere."""

from ...ir.algebra import add, sub
from ...ir.index.bounds import normal
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import loop_named, renumbered, require_unfused
from ..examples import TWICE


class Shift(Primitive):
    """Adds `by` to a loop's variable; each iteration does what it did before.

    By itself it changes nothing that runs. It aligns loops that are merged then: an iteration of
    one may so run beside a later iteration of the other.
    """

    loop: str
    by: int

    aliases = ("shift_loop",)

    def apply(self, state: Scheduled) -> Scheduled:
        require_unfused(loop_named(state.kernel, self.loop))
        loop = loop_named(state.kernel, self.loop)
        lower, upper = normal(add(loop.lower, self.by)), normal(add(loop.upper, self.by))
        return renumbered(state, loop, lower, upper, normal(sub(Var(loop.var), self.by)))

    EXAMPLES = (
        Example("Two later", TWICE, "- shift: {loop: y.i, by: 2}"),
        Example(
            "A loop that is parallel already",
            TWICE,
            "- parallel: {loop: y.i}\n- shift: {loop: y.i, by: 2}",
            refused="loop 'y.i' is parallel already",
        ),
    )
