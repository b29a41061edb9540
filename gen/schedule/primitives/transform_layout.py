"""transform_layout: another order of a temporary's elements in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.algebra import ceildiv, floordiv, index, mod
from ...ir.nodes import Expr
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.layouts import laid_out, relaid
from ..edit.tree import buffer_named
from ..examples import TWICE


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "transform_layout"
    aliases: ClassVar[tuple[str, ...]] = ("reorder_storage",)
    layer: ClassVar[Layer] = Layer.STORAGE
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Every fourth element side by side",
            TWICE,
            "- transform_layout: {buffer: t, axis: 0, factors: [null, 4], order: [1, 0]}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[4, (n + 3) // 4]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i % 4, i // 4] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i % 4, i // 4] + 1.0
""",
        ),
        Example(
            "An argument",
            TWICE,
            "- transform_layout: {buffer: y, axis: 0, factors: [null, 4]}",
            refused="'y' is an argument: its layout is the caller's",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if reason := laid_out(state, self.buffer):
            return reason
        return self.unfit(len(buffer_named(state.kernel, self.buffer).shape))

    def unfit(self, rank: int) -> str | None:
        """Why a buffer with so many axes cannot be laid out like this."""
        if (self.axis is None) is not (not self.factors):
            return "give `axis` and `factors` together"
        if self.axis is None and not self.order:
            return "give `factors`, or an `order`, or both"
        if self.axis is not None:
            if not 0 <= self.axis < rank:
                return f"'{self.buffer}' has {rank} axes: there is no axis {self.axis}"
            if self.factors[0] is not None:
                return "the first of `factors` is null: the outermost axis is as long as is needed"
            if any(f is None or f < 1 for f in self.factors[1:]):
                return "`factors` are positive, all but the first"
            rank += len(self.factors) - 1
        if self.order and sorted(self.order) != list(range(rank)):
            return f"`order` must list the axes 0 to {rank - 1} once each"
        return None

    def rewrite(self, state: Scheduled) -> Scheduled:
        shape = self._shape(buffer_named(state.kernel, self.buffer).shape)
        return relaid(state, self.buffer, shape, self._places)

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


_Parts = tuple[Callable[[Expr, int], Expr], Callable[[Expr, int], Expr]]
