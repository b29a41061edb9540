"""reorder: loops of a perfect nest in another order."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.walk import replace_stmt, variables
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit import nest, perfect_nest, rebuild, tree
from ..examples import SCALE, TRIANGLE, TWICE


@final
@dataclass(frozen=True)
class Reorder(Primitive):
    """Puts loops of a perfect nest in the given order, outermost first.

    Loops between them that are not named stay where they are.
    """

    loops: tuple[str, ...]

    name: ClassVar[str] = "reorder"
    aliases: ClassVar[tuple[str, ...]] = ("interchange",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Columns outside rows",
            SCALE,
            "- reorder: {loops: [y.j, y.i]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.j in range(n):
        for y.i in range(m):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "Bounds that depend on a loop that would be inside",
            TRIANGLE,
            "- reorder: {loops: [y.j, y.i]}",
            refused="the bounds of loop 'y.j' depend on 'y.i', which goes inside",
        ),
        Example(
            "Loops that are not nested",
            TWICE,
            "- reorder: {loops: [y.i, t.i]}",
            refused="loop 't.i' is not directly nested in 'y.i': there must be only loops "
            "between them",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.loops) < 2:
            return "it takes at least two loops"
        old = perfect_nest(state.kernel, self.loops)
        inside = [loop.var for loop in old]
        for name in self._order(inside):
            inside.remove(name)
            loop = next(x for x in old if x.var == name)
            used = (variables(loop.lower) | variables(loop.upper)) & set(inside)
            if used:
                return f"the bounds of loop '{name}' depend on '{min(used)}', which goes inside"
        return None

    def _order(self, old: list[str]) -> list[str]:
        wanted = iter(self.loops)
        return [next(wanted) if var in self.loops else var for var in old]

    def rewrite(self, state: Scheduled) -> Scheduled:
        old = perfect_nest(state.kernel, self.loops)
        by_name = {loop.var: loop for loop in old}
        order = self._order([loop.var for loop in old])
        new = nest((by_name[name] for name in order), old[-1].body)
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), old[0], new))
        return Scheduled(kernel, state.flow)
