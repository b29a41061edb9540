"""reorder: loops of a perfect nest in another order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Loop
from ...ir.walk import ancestors, replace_stmt
from ...poly.certificate import Scheduled
from ...poly.queries.distances import permutable
from ..base import Example, Layer, Primitive
from ..edit.allocation import hoist
from ..edit.interchange import depends, exchanged, widened
from ..edit.nesting_rules import require_fixed, require_order
from ..edit.points import context, guarded
from ..edit.tree import nest, perfect_nest, ranges_of, rebuild, tree
from ..examples import SCALE, TRIANGLE, TWICE
from .skew import Skew


@final
@dataclass(frozen=True)
class Reorder(Primitive):
    """Puts loops of a perfect nest in the given order, outermost first.

    Loops between them that are not named stay where they are. Where the bounds of a loop depend on
    one that goes inside, it gets bounds that do not; those of the other say the rest, if no guards
    do.
    """

    loops: tuple[str, ...]

    name: ClassVar[str] = "reorder"
    aliases: ClassVar[tuple[str, ...]] = ("interchange", "reorder_loops")
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
            "Bounds that depend on a loop that goes inside: diagonals",
            SCALE,
            "- skew: {loops: [y.i, y.j]}\n- reorder: {loops: [y.j, y.i]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.j in range(n + m - 1):
        for y.i in range(max(0, y.j - n + 1), min(m, y.j + 1)):
            with block("y", i=spatial(y.i, m), j=spatial(y.j - y.i, n)):
                y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A sum whose places depend on the loop around them",
            TRIANGLE,
            "- reorder: {loops: [y.j, y.i]}",
            refused="the init of block 'y' cannot go there: the bounds of the spatial loop 'y.i' "
            "depend on 'y.j'",
        ),
        Example(
            "Bounds that say nothing simple of the loop that goes inside",
            TRIANGLE.replace("y.i + 1)", "max(y.i, 1))").replace("i + 1", "max(i, 1)"),
            "- reorder: {loops: [y.j, y.i]}",
            refused="the bounds of loop 'y.j' depend on 'y.i', which goes inside, by `max(y.i, 1)`",
        ),
        Example(
            "Loops that are not nested",
            TWICE,
            "- reorder: {loops: [y.i, t.i]}",
            refused="loop 't.i' is not directly nested in 'y.i': there must be only loops "
            "between them",
        ),
        Example(
            "A vectorized loop around a parallel one",
            SCALE,
            "- parallel: {loop: y.i}\n- vectorize: {loop: y.j, width: 4}\n"
            "- reorder: {loops: [y.j_1, y.i]}",
            refused="parallel loop 'y.i' would be in vectorized loop 'y.j_1': all lanes of a vector"
            " are on one thread",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.loops) < 2:
            return "it takes at least two loops"
        new = self._new(state)
        require_order(new)
        for loop in new:
            if loop.kind.is_bound:
                require_fixed(state.kernel, loop, "reorder before bind")
        return None

    def _new(self, state: Scheduled) -> tuple[Loop, ...]:
        """The loops in the new order, by exchanges of neighbours. Raises CannotApply."""
        old = perfect_nest(state.kernel, self.loops)
        above = ancestors(tree(state.kernel), old[0])
        known, outside = ranges_of(above), context(state.kernel, above)
        wanted = iter(self.loops)
        order = [next(wanted) if loop.var in self.loops else loop.var for loop in old]
        new = list(old)
        for place, name in enumerate(order):
            found = next(k for k, loop in enumerate(new) if loop.var == name)
            for k in range(found, place, -1):
                outer, inner = new[k - 1], new[k]
                if not depends(outer, inner):
                    new[k - 1 : k + 1] = inner, outer
                    continue
                wide = [*new[: k - 1], *widened(outer, inner), *new[k + 1 :]]
                if guarded(outside, new, wide, old[-1].body):
                    new = wide
                    continue
                around = (*known, *ranges_of(new[: k - 1]))
                new[k - 1 : k + 1] = exchanged(outer, inner, around)
        return tuple(new)

    def remedies(self, state: Scheduled) -> Iterator[tuple[Primitive, ...]]:
        """Skews that make the nest permutable."""
        for skews in skewed(state, self.loops):
            yield (*skews, self)

    def rewrite(self, state: Scheduled) -> Scheduled:
        old = perfect_nest(state.kernel, self.loops)
        new = nest(self._new(state), old[-1].body)
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), old[0], new))
        return Scheduled(kernel, state.flow)


def skewed(state: Scheduled, loops: tuple[str, ...]) -> Iterator[tuple[Skew, ...]]:
    """Skews after which the loops of a perfect nest may be in any order, and be tiled."""
    nest = perfect_nest(hoist(state).kernel, loops)
    found = permutable(state.kernel, tuple(x.var for x in nest))
    if found:
        yield tuple(Skew((outer, inner), factor) for outer, inner, factor in found)
