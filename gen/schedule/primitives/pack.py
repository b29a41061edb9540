"""pack: a copy in tiles."""

from typing import Literal

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply, buffer_named, local_name
from ..examples import ROW_SUM, TURNED, TWICE
from .cache_read import CacheRead
from .parallel import Parallel
from .transform_layout import TransformLayout


class Pack(Primitive):
    """Lets a block read from a copy whose elements lie in tiles, in the order in which they are
    used: what a fast product of matrices does with its operands.

    Stands for cache_read, with or without `at`, then transform_layout with `axis`, `factors` and
    `order` on the copy, whose edge is padded to whole tiles, and, with `parallel`, for threads
    that share the copying along that axis of the buffer. The copy's loops are `copy.d0`, `copy.d1`
    and so on, for later steps.
    """

    block: str
    buffer: str
    axis: int | None = None
    factors: tuple[int | None, ...] = ()
    order: tuple[int, ...] = ()
    at: str | None = None
    parallel: int | None = None
    scope: Literal["auto", "heap", "stack", "register"] = "auto"
    as_: str | None = None

    def apply(self, state: Scheduled) -> Steps:
        rank = len(buffer_named(state.kernel, self.buffer).shape)
        if self.parallel is not None and not 0 <= self.parallel < rank:
            raise CannotApply(f"'{self.buffer}' has {rank} axes: there is no axis {self.parallel}")
        copy = self.as_ or f"{self.buffer}_packed"
        laid_out = TransformLayout(copy, self.axis, self.factors, self.order)
        laid_out.require_axes(rank)
        steps = (CacheRead(self.block, self.buffer, self.at, self.scope, copy), laid_out)
        if self.parallel is None:
            return steps
        index = local_name(state.kernel, f"d{self.parallel}", ())
        return (*steps, Parallel(f"{copy}.{index}"))

    EXAMPLES = (
        Example(
            "Columns in fours, packed by all threads",
            TURNED,
            "- pack: {block: y, buffer: x, axis: 1, factors: [null, 4], order: [1, 0, 2], "
            "parallel: 0}",
        ),
        Example(
            "An axis that does not exist",
            TWICE,
            "- pack: {block: y, buffer: t, axis: 1, factors: [null, 4]}",
            refused="'t_packed' has 1 axes: there is no axis 1",
        ),
        Example(
            "A buffer that the block does not read",
            ROW_SUM,
            "- pack: {block: y, buffer: y, axis: 0, factors: [null, 4]}",
            refused="block 'y' does not read 'y'",
        ),
    )
