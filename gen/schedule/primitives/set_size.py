"""set_size: how large a temporary is."""

from ...ir.nodes import Expr
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import declared, extent, require_temporary
from ..edit.tree import CannotApply, buffer_named
from ..examples import CHAIN, TWICE
from ..formula import formulas, sizes


class SetSize(Primitive):
    """States the extents of a temporary, over sizes and integers; no access may fall outside, which
    the proof finds out for all sizes.

    A temporary has the extents of the spec, and in the end those of what is used of it. With stated
    ones it keeps these: rows of a length that is wanted, or no more than what is known to be used.
    Tiramisu's set_size.
    """

    buffer: str
    sizes: tuple[int | str, ...]

    aliases = ("set_sizes",)

    def apply(self, state: Scheduled) -> Scheduled:
        require_temporary(state, self.buffer)
        rank = len(buffer_named(state.kernel, self.buffer).shape)
        if len(self.sizes) != rank:
            raise CannotApply(f"'{self.buffer}' has {rank} axes, not {len(self.sizes)}")
        self._shape(state)
        return declared(state, self.buffer, shape=self._shape(state), fixed=True)

    def _shape(self, state: Scheduled) -> tuple[Expr, ...]:
        known = sizes(state.kernel)
        each = [formulas(str(size), (), known) for size in self.sizes]
        if wrong := next((s for s, e in zip(self.sizes, each, strict=True) if len(e) != 1), None):
            raise CannotApply(f"'{wrong}' is not one size")
        return tuple(extent(size) for (size,) in each)

    EXAMPLES = (
        Example("Room for eight elements more", TWICE, "- set_size: {buffer: t, sizes: [n + 8]}"),
        Example(
            "One place too few",
            CHAIN,
            "- set_size: {buffer: t, sizes: [n]}",
            refused="the proof was refused: t[i=0] writes 't' outside its bounds, at [0]",
        ),
        Example(
            "An axis that does not exist",
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
