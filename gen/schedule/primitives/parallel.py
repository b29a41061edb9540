"""parallel: a loop's iterations may run at once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.nodes import LoopKind
from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ...poly.queries.distances import free
from ..base import Example, Layer, Primitive
from ..edit.nesting_rules import unfit
from ..edit.tree import loop_named, rebuild, tree
from ..examples import ROTATED, ROW_SUM, SCALE
from ..wavefronts import band, wavefronts


@final
@dataclass(frozen=True)
class Parallel(Primitive):
    """Runs a loop's iterations on the machine's threads; none may depend on another."""

    loop: str

    name: ClassVar[str] = "parallel"
    aliases: ClassVar[tuple[str, ...]] = ("parallelize", "tag_parallel_level", "parallelize_loop")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Rows on threads",
            ROW_SUM,
            "- parallel: {loop: y.i}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in parallel(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
""",
        ),
        Example(
            "Terms of one sum",
            ROW_SUM,
            "- parallel: {loop: y.j}",
            refused="the proof was refused: parallel loop 'y.j' has a race: y[i=0, j=0] "
            "writes 'y' and y[i=0, j=1] writes it in another iteration",
        ),
        Example(
            "A loop in a vectorized one",
            SCALE,
            "- vectorize: {loop: y.i, width: 4}\n- parallel: {loop: y.j}",
            refused="parallel loop 'y.j' would be in vectorized loop 'y.i_1': all lanes of a"
            " vector are on one thread",
        ),
        Example(
            "A loop in a launch",
            ROTATED,
            "- parallel: {loop: y.k}",
            refused="parallel loop 'y.k' would be in blockIdx.x loop 'y.i': a launch has only the"
            " threads of its axes",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        return unfit(tree(state.kernel), loop, LoopKind.PARALLEL)

    def remedies(self, state: Scheduled) -> Iterator[tuple[Primitive, ...]]:
        """Another loop of the nest, or a wavefront."""
        nest = band(state, self.loop)
        for loop in free(state.kernel, nest):
            yield (replace(self, loop=loop),)
        for steps, inner in wavefronts(state, nest, self.loop):
            yield (*steps, replace(self, loop=self.loop if self.loop in inner else inner[0]))

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        new = replace(loop, kind=LoopKind.PARALLEL)
        return replace(
            state, kernel=rebuild(state.kernel, replace_stmt(tree(state.kernel), loop, new))
        )
