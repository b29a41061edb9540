"""unroll: a loop's iterations written out."""

from dataclasses import replace

from ...ir.algebra import sub
from ...ir.index.linear import constant
from ...ir.nodes import LoopKind
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.nesting_rules import fixing
from ..edit.tree import CannotApply, loop_named, replaced, require_free_loops, require_serial
from ..examples import TWICE
from .split import Split


class Unroll(Primitive):
    """Writes a loop's iterations out one after another: all of them, or `factor` at a time.

    With a factor it stands for a split and an unroll of the inner loop; `as` names the two. Without
    one the loop's extent is a number: a size is one in a variant whose `when` says which.
    """

    loop: str
    factor: int | None = None
    as_: tuple[str, ...] | None = None

    aliases = ("tag_unroll_level", "unroll_loop")

    def apply(self, state: Scheduled) -> Scheduled | Steps:
        loop = loop_named(state.kernel, self.loop)
        if self.factor is None:
            if self.as_ is not None:
                raise CannotApply("`as` needs a factor: nothing is created without one")
            extent = sub(loop.upper, loop.lower)
            if constant(extent) is None:
                reason = f"the extent of loop '{self.loop}' is not constant; give a factor"
                raise CannotApply(reason, fixing(state.kernel, extent))
            require_serial(loop)
            return replaced(state, loop, replace(loop, kind=LoopKind.UNROLLED))
        new = self.as_ or (f"{self.loop}_0", f"{self.loop}_1")
        if len(new) != 2:
            raise CannotApply("`as` must give 2 names")
        require_serial(loop)
        require_free_loops(state.kernel, new, {self.loop})
        return Split(self.loop, (None, self.factor), new), Unroll(new[1])

    EXAMPLES = (
        Example("Four at a time", TWICE, "- unroll: {loop: y.i, factor: 4}"),
        Example(
            "No factor, and an extent that is not constant",
            TWICE,
            "- unroll: {loop: y.i}",
            refused="the extent of loop 'y.i' is not constant; give a factor",
        ),
    )
