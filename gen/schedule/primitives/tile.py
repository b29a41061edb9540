"""tile: nested loops cut into blocks."""

from collections.abc import Iterator

from ...ir.walk import variables
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply, perfect_nest, require_free_loops, require_serial
from ..examples import SCALE
from .reorder import Reorder, skewed
from .split import Split


class Tile(Primitive):
    """Splits each loop by its size and puts the outer parts around the inner ones.

    Loops that are skewed, or of a triangle, may be tiled: tiles line up, those at the edges are cut
    off. Sizes may be given at run time, as factors of `split` may. Stands for a split a loop and a
    reorder; `as` names the outer parts, then the inner ones.
    """

    loops: tuple[str, ...]
    sizes: tuple[int | str, ...]
    as_: tuple[str, ...] | None = None

    def apply(self, state: Scheduled) -> Steps:
        count, new = len(self.loops), self.names()
        if len(self.sizes) != count:
            raise CannotApply(f"it takes {count} sizes, one a loop")
        if count < 2:
            raise CannotApply("it takes at least two loops")
        nested = perfect_nest(state.kernel, self.loops)
        for loop in nested:
            if loop.var in self.loops:
                require_serial(loop)
        if len(new) != 2 * count:
            raise CannotApply(f"`as` must give {2 * count} names")
        require_free_loops(state.kernel, new, self.loops)
        slanted = {x.var for x in nested if any("." in name for name in variables(x.lower))}
        splits = (
            Split(loop, (None, size), (new[k], new[count + k]), loop in slanted)
            for k, (loop, size) in enumerate(zip(self.loops, self.sizes, strict=True))
        )
        return (*splits, Reorder(new))

    def names(self) -> tuple[str, ...]:
        """The names of the new loops: the outer parts, then the inner ones."""
        return self.as_ or tuple(f"{loop}_{k}" for k in (0, 1) for loop in self.loops)

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """Skews that make the nest permutable."""
        for skews in skewed(state, self.loops):
            yield (*skews, self)

    EXAMPLES = (
        Example("Tiles of 4 by 8", SCALE, "- tile: {loops: [y.i, y.j], sizes: [4, 8]}"),
        Example(
            "A size is missing",
            SCALE,
            "- tile: {loops: [y.i, y.j], sizes: [4]}",
            refused="it takes 2 sizes, one a loop",
        ),
    )
