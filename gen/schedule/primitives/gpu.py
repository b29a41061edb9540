"""gpu: loops become the blocks and threads of a launch."""

from dataclasses import dataclass
from typing import ClassVar, Literal, cast, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, perfect_nest, serial
from ..examples import SCALE
from .bind import Axis, Bind


@final
@dataclass(frozen=True)
class Gpu(Primitive):
    """Binds the first half of the loops to blocks and the second half to threads; the last of each
    half is along x, the one before along y.

    Stands for a `bind` a loop, as Tiramisu's command of that name.
    """

    loops: tuple[str, ...]

    name: ClassVar[str] = "gpu"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Blocks of rows, a thread a column",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- gpu: {loops: [y.j_0, y.j_1]}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in blockIdx.x((n + 3) // 4):
            for y.j_1 in threadIdx.x(4):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j_0 * 4 + y.j_1, n),
                    where=y.j_0 * 4 + y.j_1 < n,
                ):
                    y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "Three loops",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- gpu: {loops: [y.i, y.j_0, y.j_1]}",
            refused="it takes 2, 4 or 6 loops: those of the blocks, then those of the threads",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if len(self.loops) not in (2, 4, 6):
            return "it takes 2, 4 or 6 loops: those of the blocks, then those of the threads"
        nest = [x.var for x in perfect_nest(state.kernel, self.loops) if x.var in self.loops]
        if tuple(nest) != self.loops:
            return f"the loops, from outside in, are {', '.join(nest)}"
        return next((r for x in self.loops if (r := serial(loop_named(state.kernel, x)))), None)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        half = len(self.loops) // 2
        kinds: tuple[Literal["blockIdx", "threadIdx"], ...] = ("blockIdx", "threadIdx")
        axes = [f"{kind}.{axis}" for kind in kinds for axis in "zyx"[3 - half :]]
        pairs = zip(self.loops, axes, strict=True)
        return tuple(Bind(cast(Axis, axis), loop, span=self.span) for loop, axis in pairs)
