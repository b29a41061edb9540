"""barrier_at: a barrier in a loop, at a block."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Block, Loop
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import block_named, containing, loop_named, loops_around, tree, under
from ..examples import REVERSED, TWICE
from .sync_threads import SyncThreads


@final
@dataclass(frozen=True)
class BarrierAt(Primitive):
    """Puts a barrier into a loop's body, before what computes a block there.

    Stands for `sync_threads` before that statement, as Tiramisu's command of that name.
    """

    block: str
    loop: str

    name: ClassVar[str] = "barrier_at"
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Before the rows are reversed",
            REVERSED,
            "- barrier_at: {block: y, loop: y.i}",
            after="""\
def reversed_rows(m, x: float32[m, 4], y: Out[float32[m, 4]]):
    for y.i in range(m):
        with allocate(t=float32[m, 4]):
            for t.j in range(4):
                with block("t", i=spatial(y.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * 2.0
            barrier()
            for y.j in range(4):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, 3 - j]
""",
        ),
        Example(
            "A loop that the block is not in",
            TWICE,
            "- barrier_at: {block: t, loop: y.i}",
            refused="loop 'y.i' is not around block 't'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        if not any(loop is x for x in loops_around(tree(state.kernel), block)):
            return f"loop '{self.loop}' is not around block '{self.block}'"
        if not isinstance(self._at(state), Loop | Block):
            return f"block '{self.block}' is in no loop of its own in loop '{self.loop}'"
        return None

    def _at(self, state: Scheduled) -> object:
        """The statement of the loop's body that holds the block."""
        body = under(loop_named(state.kernel, self.loop))
        return body[containing(body, lambda b: b.name == self.block)[0]]

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        match self._at(state):
            case Loop(var):
                return (SyncThreads(loop=var, span=self.span),)
            case _:
                return (SyncThreads(block=self.block, span=self.span),)
