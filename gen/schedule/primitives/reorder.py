"""reorder: loops of a perfect nest in another order."""

from collections.abc import Iterator

from ...ir.nodes import Loop, Stmt
from ...ir.walk import ancestors, blocks
from ...poly.certificate import Scheduled
from ...poly.queries.distances import permutable
from ..base import Example, Primitive, Steps
from ..edit.allocation import hoist
from ..edit.interchange import bounds_in, depends, exchanged, widened
from ..edit.nesting_rules import require_fixed, require_order
from ..edit.points import context, guarded
from ..edit.tree import (
    CannotApply,
    nest,
    perfect_nest,
    ranges_of,
    reduction_loops,
    replaced,
    spatial_loops,
    tree,
)
from ..edit.tree import guarded as having
from ..examples import SCALE, TRIANGLE, TWICE, UPPER
from .skew import Skew


class Reorder(Primitive):
    """Puts loops of a perfect nest in the given order, outermost first.

    Loops between them that are not named stay where they are. Where the bounds of a loop depend on
    one that goes inside, it gets bounds that do not; those of the other say the rest, if no guards
    do. Where they are over the terms and over the places of a sum that has an init, guards say it.
    """

    loops: tuple[str, ...]

    aliases = ("interchange", "reorder_loops")

    def apply(self, state: Scheduled) -> Scheduled:
        if len(self.loops) < 2:
            raise CannotApply("it takes at least two loops")
        new, body = self._new(state)
        require_order(new)
        old = perfect_nest(state.kernel, self.loops)
        above = ancestors(tree(state.kernel), old[0])
        require_fixed(state.kernel, (*above, *new), "reorder before bind")
        return replaced(state, old[0], nest(new, body))

    def _new(self, state: Scheduled) -> tuple[tuple[Loop, ...], Stmt]:
        """The loops in the new order, by exchanges of neighbours, and what is inside of them.
        Raises CannotApply.
        """
        old = perfect_nest(state.kernel, self.loops)
        above = ancestors(tree(state.kernel), old[0])
        known, outside = ranges_of(above), context(state.kernel, above)
        wanted = iter(self.loops)
        order = [next(wanted) if loop.var in self.loops else loop.var for loop in old]
        new, body = list(old), old[-1].body
        for place, name in enumerate(order):
            found = next(k for k, loop in enumerate(new) if loop.var == name)
            for k in range(found, place, -1):
                outer, inner = new[k - 1], new[k]
                if not depends(outer, inner):
                    new[k - 1 : k + 1] = inner, outer
                    continue
                wide = [*new[: k - 1], *widened(outer, inner), *new[k + 1 :]]
                if guarded(outside, new, wide, body):
                    new = wide
                    continue
                if _places_of_sum(outer, inner, body):
                    body = having(body, *bounds_in(outer, inner))
                    new = wide
                    continue
                around = (*known, *ranges_of(new[: k - 1]))
                new[k - 1 : k + 1] = exchanged(outer, inner, around)
        return tuple(new), body

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """Skews that make the nest permutable."""
        for skews in skewed(state, self.loops):
            yield (*skews, self)

    EXAMPLES = (
        Example("Columns outside rows", SCALE, "- reorder: {loops: [y.j, y.i]}"),
        Example(
            "Bounds that depend on a loop that goes inside: diagonals",
            SCALE,
            "- skew: {loops: [y.i, y.j]}\n- reorder: {loops: [y.j, y.i]}",
        ),
        Example(
            "Terms that end where the result says: a guard",
            TRIANGLE,
            "- reorder: {loops: [y.j, y.i]}",
        ),
        Example(
            "Bounds that say nothing simple of the loop that goes inside",
            UPPER.replace("(y.i, n)", "(min(y.i, n - 1), n)").replace("j, i, n", "j, n"),
            "- reorder: {loops: [y.j, y.i]}",
            refused="the bounds of loop 'y.j' depend on 'y.i', which goes inside, by "
            "`min(y.i, n - 1)`",
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


def _places_of_sum(outer: Loop, inner: Loop, body: Stmt) -> bool:
    """Whether the loops are over the places and over the terms of a sum that has an init: this runs
    over the same places whatever the term, so guards have to say which of them take it.
    """
    return any(
        block.initialises
        and outer.var in spatial_loops(block)
        and inner.var in reduction_loops(block)
        for block in blocks(body)
    )


def skewed(state: Scheduled, loops: tuple[str, ...]) -> Iterator[tuple[Skew, ...]]:
    """Skews after which the loops of a perfect nest may be in any order, and be tiled."""
    nest = perfect_nest(hoist(state).kernel, loops)
    found = permutable(state.kernel, tuple(x.var for x in nest))
    if found:
        yield tuple(Skew((outer, inner), factor) for outer, inner, factor in found)
