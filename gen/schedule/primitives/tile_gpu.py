"""tile_gpu: tiles are the blocks of a launch, their points its threads."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply
from ..examples import SCALE
from .gpu import Gpu
from .tile import Tile


class TileGpu(Primitive):
    """Tiles a nest of loops and binds the outer parts to blocks, the inner ones to threads.

    Stands for `tile` and `gpu`; `as` names the outer parts, then the inner ones.
    """

    loops: tuple[str, ...]
    sizes: tuple[int, ...]
    as_: tuple[str, ...] | None = None

    aliases = ("gpu_tile",)

    def apply(self, state: Scheduled) -> Steps:
        if len(self.loops) > 3:
            raise CannotApply("a launch has three axes")
        tile = Tile(self.loops, self.sizes, self.as_)
        return tile, Gpu(tile.names())

    EXAMPLES = (
        Example("Tiles of 2 by 4", SCALE, "- tile_gpu: {loops: [y.i, y.j], sizes: [2, 4]}"),
        Example(
            "A size is missing",
            SCALE,
            "- tile_gpu: {loops: [y.i, y.j], sizes: [4]}",
            refused="it takes 2 sizes, one a loop",
        ),
    )
