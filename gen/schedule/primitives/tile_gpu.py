"""tile_gpu: tiles are the blocks of a launch, their points its threads."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..examples import SCALE
from .gpu import Gpu
from .tile import Tile


@final
@dataclass(frozen=True)
class TileGpu(Primitive):
    """Tiles a nest of loops and binds the outer parts to blocks, the inner ones to threads.

    Stands for `tile` and `gpu`; `as` names the outer parts, then the inner ones.
    """

    loops: tuple[str, ...]
    sizes: tuple[int, ...]
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "tile_gpu"
    aliases: ClassVar[tuple[str, ...]] = ("gpu_tile",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Tiles of 2 by 4",
            SCALE,
            "- tile_gpu: {loops: [y.i, y.j], sizes: [2, 4]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i_0 in blockIdx.y((m + 1) // 2):
        for y.j_0 in blockIdx.x((n + 3) // 4):
            for y.i_1 in threadIdx.y(2):
                for y.j_1 in threadIdx.x(4):
                    with block(
                        "y",
                        i=spatial(y.i_0 * 2 + y.i_1, m),
                        j=spatial(y.j_0 * 4 + y.j_1, n),
                        where=y.i_0 * 2 + y.i_1 < m and y.j_0 * 4 + y.j_1 < n,
                    ):
                        y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A size is missing",
            SCALE,
            "- tile_gpu: {loops: [y.i, y.j], sizes: [4]}",
            refused="it takes 2 sizes, one a loop",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.loops) > 3:
            return "a launch has three axes"
        return self._tile().check(state)

    def _tile(self) -> Tile:
        return Tile(self.loops, self.sizes, self.as_, span=self.span)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        tile = self._tile()
        return (tile, Gpu(tile.names(), span=self.span))
