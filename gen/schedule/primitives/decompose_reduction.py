"""decompose_reduction: a reduction's init as a block of its own."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...errors import ScheduleError
from ...ir.inits import explicit_init
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import CannotApply, block_named, loop_named, rebuild, taken, tree
from ..examples import ROW_SUM, TWICE


@final
@dataclass(frozen=True)
class DecomposeReduction(Primitive):
    """Writes a reduction's init out as a block of its own, right before a loop around it."""

    block: str
    loop: str
    as_: str | None = None

    name: ClassVar[str] = "decompose_reduction"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "All of the init first",
            ROW_SUM,
            "- decompose_reduction: {block: y, loop: y.i}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.init.i in range(m):
        with block("y.init", i=spatial(y.init.i), origin=None):
            y[i] = identity.sum
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j)):
                y[i] = combine.sum(y[i], x[i, j])
""",
        ),
        Example(
            "A block that reduces nothing",
            TWICE,
            "- decompose_reduction: {block: y, loop: y.i}",
            refused="block 'y' has no init of its own",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block_named(state.kernel, self.block)
        loop_named(state.kernel, self.loop)
        return taken(state.kernel, (self._init(),))

    def _init(self) -> str:
        return self.as_ or f"{self.block}.init"

    def rewrite(self, state: Scheduled) -> Scheduled:
        try:
            kernel = explicit_init(state.kernel, self.block, self.loop, self._init())
        except ScheduleError as error:
            raise CannotApply(error.message) from None
        return replace(state, kernel=rebuild(kernel, tree(kernel)))
