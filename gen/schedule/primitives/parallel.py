"""parallel: a loop's iterations may run at once."""

from collections.abc import Iterator
from dataclasses import replace

from ...ir.nodes import LoopKind
from ...poly.certificate import Scheduled
from ...poly.queries.distances import free
from ..base import Example, Primitive, Steps
from ..edit.nesting_rules import marked
from ..examples import ROTATED, ROW_SUM, SCALE
from ..wavefronts import band, wavefronts


class Parallel(Primitive):
    """Runs a loop's iterations on the machine's threads; none may depend on another."""

    loop: str

    aliases = ("parallelize", "tag_parallel_level", "parallelize_loop")

    def apply(self, state: Scheduled) -> Scheduled:
        return marked(state, self.loop, LoopKind.PARALLEL)

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """Another loop of the nest, or a wavefront."""
        nest = band(state, self.loop)
        for loop in free(state.kernel, nest):
            yield (replace(self, loop=loop),)
        for steps, inner in wavefronts(state, nest, self.loop):
            yield (*steps, replace(self, loop=self.loop if self.loop in inner else inner[0]))

    EXAMPLES = (
        Example("Rows on threads", ROW_SUM, "- parallel: {loop: y.i}"),
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
