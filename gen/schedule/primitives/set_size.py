"""set_size: how large a temporary is."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Expr
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.layouts import declared, extent, not_an_argument
from ..edit.tree import CannotApply, buffer_named
from ..examples import CHAIN, TWICE
from ..formula import formulas, sizes


@final
@dataclass(frozen=True)
class SetSize(Primitive):
    """States the extents of a temporary, over sizes and integers; no access may fall outside, which
    the proof finds out for all sizes.

    A temporary has the extents of the spec, and in the end those of what is used of it. With stated
    ones it keeps these: rows of a length that is wanted, or no more than what is known to be used.
    Tiramisu's set_size.
    """

    buffer: str
    sizes: tuple[int | str, ...]

    name: ClassVar[str] = "set_size"
    aliases: ClassVar[tuple[str, ...]] = ("set_sizes",)
    layer: ClassVar[Layer] = Layer.STORAGE
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Room for eight elements more",
            TWICE,
            "- set_size: {buffer: t, sizes: [n + 8]}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n + 8] @ fixed):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "One place too few",
            CHAIN,
            "- set_size: {buffer: t, sizes: [n]}",
            refused="the proof was refused: t[i=0] writes 't' outside its bounds, at [0]",
        ),
        Example(
            "An axis that there is not",
            TWICE,
            "- set_size: {buffer: t, sizes: [n, 8]}",
            refused="'t' has 1 axes, not 2",
        ),
        Example(
            "An argument",
            TWICE,
            "- set_size: {buffer: y, sizes: [n]}",
            refused="'y' is an argument: its layout is the caller's",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if reason := not_an_argument(state, self.buffer):
            return reason
        rank = len(buffer_named(state.kernel, self.buffer).shape)
        if len(self.sizes) != rank:
            return f"'{self.buffer}' has {rank} axes, not {len(self.sizes)}"
        self._shape(state)
        return None

    def _shape(self, state: Scheduled) -> tuple[Expr, ...]:
        known = sizes(state.kernel)
        each = [formulas(str(size), (), known) for size in self.sizes]
        if wrong := next((s for s, e in zip(self.sizes, each, strict=True) if len(e) != 1), None):
            raise CannotApply(f"'{wrong}' is not one size")
        return tuple(extent(size) for (size,) in each)

    def rewrite(self, state: Scheduled) -> Scheduled:
        return declared(state, self.buffer, shape=self._shape(state), fixed=True)
