"""fold_storage: a temporary that keeps the last few places of an axis."""

from ...ir.algebra import index, mod
from ...ir.nodes import Expr
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import relaid, require_free_layout
from ..edit.tree import CannotApply, buffer_named
from ..examples import CHAIN, TWICE


class FoldStorage(Primitive):
    """Stores an axis of a temporary modulo a factor, so that what lies `factor` places apart shares
    its memory: a line buffer, where a loop computes lines and uses the last few of them.

    Halide's fold_storage. It is legal where every value is used for the last time before one that
    shares its place is stored, which the proof finds out for all sizes: the two blocks have to run
    in one loop, by `shift` and `merge`, or by `compute_at`.
    """

    buffer: str
    axis: int
    factor: int

    aliases = ("storage_fold",)

    def apply(self, state: Scheduled) -> Scheduled:
        if self.factor < 1:
            raise CannotApply(f"factor {self.factor} is not positive")
        rank = len(buffer_named(state.kernel, self.buffer).shape)
        if not 0 <= self.axis < rank:
            raise CannotApply(f"'{self.buffer}' has {rank} axes: there is no axis {self.axis}")
        require_free_layout(state, self.buffer)
        shape = buffer_named(state.kernel, self.buffer).shape

        def along(axes: tuple[Expr, ...], value: Expr) -> tuple[Expr, ...]:
            return (*axes[: self.axis], value, *axes[self.axis + 1 :])

        return relaid(
            state,
            self.buffer,
            along(shape, index(self.factor)),
            lambda places: along(places, mod(places[self.axis], self.factor)),
        )

    EXAMPLES = (
        Example(
            "A consumer one iteration behind needs two values",
            CHAIN,
            "- shift: {loop: y.i, by: 1}\n"
            "- merge: {loops: [t.i, y.i]}\n"
            "- fold_storage: {buffer: t, axis: 0, factor: 2}",
        ),
        Example(
            "One place too few",
            CHAIN,
            "- shift: {loop: y.i, by: 1}\n"
            "- merge: {loops: [t.i, y.i]}\n"
            "- fold_storage: {buffer: t, axis: 0, factor: 1}",
            refused="the proof was refused: y[i=0] reads 't', which t[i=0] computes, but t[i=1] "
            "overwrites it in between",
        ),
        Example(
            "All values live at once",
            TWICE,
            "- fold_storage: {buffer: t, axis: 0, factor: 4}",
            refused="overwrites it in between",
        ),
        Example(
            "An argument",
            TWICE,
            "- fold_storage: {buffer: y, axis: 0, factor: 4}",
            refused="'y' is an argument: its layout is the caller's",
        ),
    )
