"""unroll: a loop's iterations written out."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import sub
from ...ir.index.linear import constant
from ...ir.nodes import LoopKind
from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, rebuild, serial, taken_loops, tree
from ..examples import TWICE
from .split import Split


@final
@dataclass(frozen=True)
class Unroll(Primitive):
    """Writes a loop's iterations out one after another: all of them, or `factor` at a time.

    With a factor it stands for a split and an unroll of the inner loop; `as` names the two.
    """

    loop: str
    factor: int | None = None
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "unroll"
    aliases: ClassVar[tuple[str, ...]] = ("tag_unroll_level", "unroll_loop")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Four at a time",
            TWICE,
            "- unroll: {loop: y.i, factor: 4}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            for y.i_1 in unrolled(4):
                with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    y[i] = t[i] + 1.0
""",
        ),
        Example(
            "No factor, and an extent that is not constant",
            TWICE,
            "- unroll: {loop: y.i}",
            refused="the extent of loop 'y.i' is not constant; give a factor",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        if self.factor is None:
            if self.as_ is not None:
                return "`as` needs a factor: nothing is created without one"
            if constant(sub(loop.upper, loop.lower)) is None:
                return f"the extent of loop '{self.loop}' is not constant; give a factor"
            return serial(loop)
        if len(self._names()) != 2:
            return "`as` must give 2 names"
        return serial(loop) or taken_loops(state.kernel, self._names(), {self.loop})

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.loop}_0", f"{self.loop}_1")

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        if self.factor is None:
            return ()
        split = Split(self.loop, (None, self.factor), self._names(), span=self.span)
        return (split, Unroll(self._names()[1], span=self.span))

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        new = replace(loop, kind=LoopKind.UNROLLED)
        return replace(
            state, kernel=rebuild(state.kernel, replace_stmt(tree(state.kernel), loop, new))
        )
