"""add_unit_loop: a loop that runs once."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.algebra import index
from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import block_named, nest, rebuild, serial_loop, taken_loops, tree
from ..examples import SHARE


@final
@dataclass(frozen=True)
class AddUnitLoop(Primitive):
    """Puts a loop of one iteration around a block, for steps that need a loop; `as` names it."""

    block: str
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "add_unit_loop"
    aliases: ClassVar[tuple[str, ...]] = ("add_loop",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Around one value",
            SHARE,
            "- add_unit_loop: {block: t, as: [t.one]}",
            after="""\
def share(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[()]):
        for t.i in range(n):
            for t.one in range(1):
                with block("t", i=reduction(t.i), initialises=True):
                    t[()] = combine.sum(t[()], x[i])
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = x[i] / t[()]
""",
        ),
        Example(
            "A name that is taken",
            SHARE,
            "- add_unit_loop: {block: t, as: [y.i]}",
            refused="the name 'y.i' is taken; give another one with `as`",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block_named(state.kernel, self.block)
        if len(self._names()) != 1:
            return "`as` must give 1 name"
        return taken_loops(state.kernel, self._names())

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.block}.unit",)

    def rewrite(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        new = nest((serial_loop(self._names()[0], index(0), index(1)),), block)
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), block, new))
        return Scheduled(kernel, state.flow)
