"""pack: a copy in tiles."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import buffer_named, local_name
from ..examples import ROW_SUM, TURNED, TWICE
from .cache_read import CacheRead
from .parallel import Parallel
from .transform_layout import TransformLayout


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "pack"
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Columns in fours, packed by all threads",
            TURNED,
            "- pack: {block: y, buffer: x, axis: 1, factors: [null, 4], order: [1, 0, 2], "
            "parallel: 0}",
            after="""\
def turned(m, n, x: float32[n, m], y: Out[float32[m]]):
    with allocate(x_packed=float32[(m + 3) // 4, n, 4]):
        for x_packed.d0 in parallel(n):
            for x_packed.d1 in range(m):
                with block(
                    "x_packed",
                    d0=spatial(x_packed.d0),
                    d1=spatial(x_packed.d1),
                    origin=None,
                ):
                    x_packed[d1 // 4, d0, d1 % 4] = x[d0, d1]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], x_packed[i // 4, j, i % 4])
""",
        ),
        Example(
            "An axis that there is not",
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

    def check(self, state: Scheduled) -> str | None:
        rank = len(buffer_named(state.kernel, self.buffer).shape)
        if self.parallel is not None and not 0 <= self.parallel < rank:
            return f"'{self.buffer}' has {rank} axes: there is no axis {self.parallel}"
        return self._copied().check(state) or self._laid_out().unfit(rank)

    def _copy(self) -> str:
        return self.as_ or f"{self.buffer}_packed"

    def _copied(self) -> CacheRead:
        return CacheRead(self.block, self.buffer, self.at, self.scope, self._copy(), span=self.span)

    def _laid_out(self) -> TransformLayout:
        return TransformLayout(self._copy(), self.axis, self.factors, self.order, span=self.span)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        steps = (self._copied(), self._laid_out())
        if self.parallel is None:
            return steps
        index = local_name(state.kernel, f"d{self.parallel}", ())
        return (*steps, Parallel(f"{self._copy()}.{index}", span=self.span))
