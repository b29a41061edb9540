"""add_unit_loop: a loop that runs once."""

from ...ir.algebra import index
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, block_named, nest, replaced, require_free_loops, serial_loop
from ..examples import SHARE


class AddUnitLoop(Primitive):
    """Puts a loop of one iteration around a block, for steps that need a loop; `as` names it."""

    block: str
    as_: tuple[str, ...] | None = None

    aliases = ("add_loop",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        if len(self._names()) != 1:
            raise CannotApply("`as` must give 1 name")
        require_free_loops(state.kernel, self._names())
        new = nest((serial_loop(self._names()[0], index(0), index(1)),), block)
        return replaced(state, block, new)

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.block}.unit",)

    EXAMPLES = (
        Example("Around one value", SHARE, "- add_unit_loop: {block: t, as: [t.one]}"),
        Example(
            "A name that is taken",
            SHARE,
            "- add_unit_loop: {block: t, as: [y.i]}",
            refused="the name 'y.i' is taken; give another one with `as`",
        ),
    )
