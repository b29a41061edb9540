"""gpu: loops become the blocks and threads of a launch."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply, loop_named, perfect_nest, require_serial
from ..examples import SCALE
from .bind import AXES, Bind


class Gpu(Primitive):
    """Binds the first half of the loops to blocks and the second half to threads; the last of each
    half is along x, the one before along y.

    Stands for a `bind` a loop, as Tiramisu's command of that name.
    """

    loops: tuple[str, ...]

    def apply(self, state: Scheduled) -> Steps:
        if len(self.loops) not in (2, 4, 6):
            reason = "it takes 2, 4 or 6 loops: those of the blocks, then those of the threads"
            raise CannotApply(reason)
        nest = [x.var for x in perfect_nest(state.kernel, self.loops) if x.var in self.loops]
        if tuple(nest) != self.loops:
            raise CannotApply(f"the loops, from outside in, are {', '.join(nest)}")
        for name in self.loops:
            require_serial(loop_named(state.kernel, name))
        half = len(self.loops) // 2
        axes = (*reversed(AXES[:half]), *reversed(AXES[3 : 3 + half]))
        return tuple(map(Bind, axes, self.loops))

    EXAMPLES = (
        Example(
            "Blocks of rows, a thread a column",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- gpu: {loops: [y.j_0, y.j_1]}",
        ),
        Example(
            "Three loops",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- gpu: {loops: [y.i, y.j_0, y.j_1]}",
            refused="it takes 2, 4 or 6 loops: those of the blocks, then those of the threads",
        ),
    )
