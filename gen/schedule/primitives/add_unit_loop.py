"""add_unit_loop: a loop that runs once."""

from ...ir.algebra import index
from ...ir.nodes import Stmt
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import (
    CannotApply,
    block_named,
    loop_named,
    nest,
    replaced,
    require_free_loops,
    serial_loop,
)
from ..examples import SHARE


class AddUnitLoop(Primitive):
    """Puts a loop of one iteration around a block, or around a loop, for steps that need a loop;
    `as` names it.
    """

    block: str | None = None
    loop: str | None = None
    as_: tuple[str, ...] | None = None

    aliases = ("add_loop",)

    def apply(self, state: Scheduled) -> Scheduled:
        if (self.loop is None) == (self.block is None):
            raise CannotApply("give either `loop` or `block`")
        inner = self._inner(state)
        if len(self._names()) != 1:
            raise CannotApply("`as` must give 1 name")
        require_free_loops(state.kernel, self._names())
        new = nest((serial_loop(self._names()[0], index(0), index(1)),), inner)
        return replaced(state, inner, new)

    def _inner(self, state: Scheduled) -> Stmt:
        if self.block is not None:
            return block_named(state.kernel, self.block)
        assert self.loop is not None
        return loop_named(state.kernel, self.loop)

    def _names(self) -> tuple[str, ...]:
        """By default it is named after the block, or the loop."""
        return self.as_ or (f"{self.block}.unit" if self.block else f"{self.loop}_unit",)

    EXAMPLES = (
        Example("Around one value", SHARE, "- add_unit_loop: {block: t, as: [t.one]}"),
        Example(
            "Around a loop, so that one thread runs all of it",
            SHARE,
            "- add_unit_loop: {loop: y.i, as: [y.one]}\n- bind: {loop: y.one, axis: threadIdx.x}",
        ),
        Example(
            "Neither a block nor a loop",
            SHARE,
            "- add_unit_loop: {as: [t.one]}",
            refused="give either `loop` or `block`",
        ),
        Example(
            "A name that is taken",
            SHARE,
            "- add_unit_loop: {block: t, as: [y.i]}",
            refused="the name 'y.i' is taken; give another one with `as`",
        ),
    )
