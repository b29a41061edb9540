"""tile: nested loops cut into blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.walk import variables
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import perfect_nest, serial, taken_loops
from ..examples import SCALE
from .reorder import Reorder, skewed
from .split import Split


@final
@dataclass(frozen=True)
class Tile(Primitive):
    """Splits each loop by its size and puts the outer parts around the inner ones.

    Loops that are skewed, or of a triangle, may be tiled: tiles line up, those at the edges are cut
    off. Sizes may be given at run time, as factors of `split` may. Stands for a split a loop and a
    reorder; `as` names the outer parts, then the inner ones.
    """

    loops: tuple[str, ...]
    sizes: tuple[int | str, ...]
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "tile"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Tiles of 4 by 8",
            SCALE,
            "- tile: {loops: [y.i, y.j], sizes: [4, 8]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i_0 in range((m + 3) // 4):
        for y.j_0 in range((n + 7) // 8):
            for y.i_1 in range(4):
                for y.j_1 in range(8):
                    with block(
                        "y",
                        i=spatial(y.i_0 * 4 + y.i_1, m),
                        j=spatial(y.j_0 * 8 + y.j_1, n),
                        where=y.i_0 * 4 + y.i_1 < m and y.j_0 * 8 + y.j_1 < n,
                    ):
                        y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A size is missing",
            SCALE,
            "- tile: {loops: [y.i, y.j], sizes: [4]}",
            refused="it takes 2 sizes, one a loop",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.sizes) != len(self.loops):
            return f"it takes {len(self.loops)} sizes, one a loop"
        if len(self.loops) < 2:
            return "it takes at least two loops"
        for loop in perfect_nest(state.kernel, self.loops):
            if loop.var in self.loops and (reason := serial(loop)):
                return reason
        if len(self.names()) != 2 * len(self.loops):
            return f"`as` must give {2 * len(self.loops)} names"
        return taken_loops(state.kernel, self.names(), self.loops)

    def names(self) -> tuple[str, ...]:
        """The names of the new loops: the outer parts, then the inner ones."""
        return self.as_ or tuple(f"{loop}_{k}" for k in (0, 1) for loop in self.loops)

    def remedies(self, state: Scheduled) -> Iterator[tuple[Primitive, ...]]:
        """Skews that make the nest permutable."""
        for skews in skewed(state, self.loops):
            yield (*skews, self)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        count, new = len(self.loops), self.names()
        slanted = {
            loop.var
            for loop in perfect_nest(state.kernel, self.loops)
            if any("." in name for name in variables(loop.lower))
        }
        splits = (
            Split(loop, (None, size), (new[k], new[count + k]), loop in slanted, span=self.span)
            for k, (loop, size) in enumerate(zip(self.loops, self.sizes, strict=True))
        )
        return (*splits, Reorder(new, span=self.span))
