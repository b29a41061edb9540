"""transform_layout: another order of a temporary's elements in memory."""

from collections.abc import Callable

from ...ir.algebra import ceildiv, floordiv, index, mod
from ...ir.nodes import Expr
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import relaid, require_free_layout
from ..edit.tree import CannotApply, buffer_named
from ..examples import TWICE


class TransformLayout(Primitive):
    """Splits an axis of a temporary into several, or gives its axes another order, or both.

    `factors` are the extents of the new axes, from the outermost, which is `null`: as many as are
    needed. `order` lists the axes, numbered after the split, as they are to lie in memory. All
    accesses follow. So values that are used together lie together, whatever the shape: a block of
    columns [m, n] as [n / 16][m][16] has no rows that are a power of two apart.
    """

    buffer: str
    axis: int | None = None
    factors: tuple[int | None, ...] = ()
    order: tuple[int, ...] = ()

    aliases = ("reorder_storage",)

    def apply(self, state: Scheduled) -> Scheduled:
        require_free_layout(state, self.buffer)
        old = buffer_named(state.kernel, self.buffer).shape
        self.require_axes(len(old))
        return relaid(state, self.buffer, self._shape(old), self._places)

    def require_axes(self, rank: int) -> None:
        """Refuses a buffer with so many axes."""
        if (self.axis is None) is not (not self.factors):
            raise CannotApply("give `axis` and `factors` together")
        if self.axis is None and not self.order:
            raise CannotApply("give `factors`, or an `order`, or both")
        if self.axis is not None:
            if not 0 <= self.axis < rank:
                raise CannotApply(f"'{self.buffer}' has {rank} axes: there is no axis {self.axis}")
            if self.factors[0] is not None:
                reason = (
                    "the first of `factors` is null: the outermost axis is as long as is needed"
                )
                raise CannotApply(reason)
            if any(f is None or f < 1 for f in self.factors[1:]):
                raise CannotApply("`factors` are positive, all but the first")
            rank += len(self.factors) - 1
        if self.order and sorted(self.order) != list(range(rank)):
            raise CannotApply(f"`order` must list the axes 0 to {rank - 1} once each")

    def _shape(self, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The extents in memory; what does not divide is rounded up."""
        return self._arranged(shape, (ceildiv, lambda _, factor: index(factor)))

    def _places(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return self._arranged(indices, (floordiv, mod))

    def _arranged(self, axes: tuple[Expr, ...], parts: "_Parts") -> tuple[Expr, ...]:
        """The axes after the split, in their order. parts: how what is outside a factor comes from
        an axis, and what is within.
        """
        quotient, within = parts
        new = list(axes)
        if self.axis is not None:
            outer, inner = axes[self.axis], list[Expr]()
            for factor in reversed(self.factors[1:]):
                assert factor is not None, "checked"
                inner.insert(0, within(outer, factor))
                outer = quotient(outer, factor)
            new[self.axis : self.axis + 1] = [outer, *inner]
        return tuple(new[k] for k in self.order or range(len(new)))

    EXAMPLES = (
        Example(
            "Every fourth element side by side",
            TWICE,
            "- transform_layout: {buffer: t, axis: 0, factors: [null, 4], order: [1, 0]}",
        ),
        Example(
            "An argument",
            TWICE,
            "- transform_layout: {buffer: y, axis: 0, factors: [null, 4]}",
            refused="'y' is an argument: its layout is the caller's",
        ),
    )


_Parts = tuple[Callable[[Expr, int], Expr], Callable[[Expr, int], Expr]]
