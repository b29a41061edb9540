"""skew: an inner loop counts further with each iteration of an outer one."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.algebra import add, mul, sub
from ...ir.index.bounds import normal
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import perfect_nest, renumbered, unfused
from ..examples import SCALE


@final
@dataclass(frozen=True)
class Skew(Primitive):
    """Adds `factor` times the first loop's variable to that of the second, which is inside it.

    By itself it changes nothing that runs. Where iterations depend on their neighbours in both
    loops, those of a diagonal do not depend on each other: skew, reorder, and the inner loop is
    parallel (Wolfe 1986).
    """

    loops: tuple[str, ...]
    factor: int = 1

    name: ClassVar[str] = "skew"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Diagonals",
            SCALE,
            "- skew: {loops: [y.i, y.j]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(y.i, n + y.i):
            with block("y", i=spatial(y.i), j=spatial(y.j - y.i, n)):
                y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "An outer loop by an inner one",
            SCALE,
            "- skew: {loops: [y.j, y.i]}",
            refused="loop 'y.i' is not inside 'y.j'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.loops) != 2:
            return "it takes two loops"
        if self.factor == 0:
            return "a factor of 0 changes nothing"
        nest = perfect_nest(state.kernel, self.loops)
        outer, inner = self.loops
        if nest[0].var != outer:
            return f"loop '{inner}' is not inside '{outer}'"
        return unfused(nest[0]) or unfused(nest[-1])

    def rewrite(self, state: Scheduled) -> Scheduled:
        outer, inner = self.loops
        loop = perfect_nest(state.kernel, self.loops)[-1]
        offset = mul(Var(outer), self.factor)
        lower, upper = normal(add(loop.lower, offset)), normal(add(loop.upper, offset))
        return renumbered(state, loop, lower, upper, normal(sub(Var(inner), offset)))
