"""decompose_reduction: a reduction's init as a block of its own."""

from dataclasses import replace

from ...errors import ScheduleError
from ...ir.inits import explicit_init
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, block_named, loop_named, rebuild, require_free, tree
from ..examples import ROW_SUM, TWICE


class DecomposeReduction(Primitive):
    """Writes a reduction's init out as a block of its own, right before a loop around it."""

    block: str
    loop: str
    as_: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        block_named(state.kernel, self.block)
        loop_named(state.kernel, self.loop)
        require_free(state.kernel, (self._init(),))
        try:
            kernel = explicit_init(state.kernel, self.block, self.loop, self._init())
        except ScheduleError as error:
            raise CannotApply(error.message) from None
        return replace(state, kernel=rebuild(kernel, tree(kernel)))

    def _init(self) -> str:
        return self.as_ or f"{self.block}.init"

    EXAMPLES = (
        Example("All of the init first", ROW_SUM, "- decompose_reduction: {block: y, loop: y.i}"),
        Example(
            "A block that reduces nothing",
            TWICE,
            "- decompose_reduction: {block: y, loop: y.i}",
            refused="block 'y' has no init of its own",
        ),
    )
