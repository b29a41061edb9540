"""storage_align: rows of a temporary a chosen distance apart."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.nodes import Alignment
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.layouts import declared, not_an_argument
from ..edit.tree import buffer_named
from ..examples import ROW_SQUARES, TWICE


@final
@dataclass(frozen=True)
class StorageAlign(Primitive):
    """Makes the stride of an axis of a temporary, in elements, `offset` modulo `factor`.

    The next axis gets as many places more as that needs, which nothing uses. So rows begin with
    lines of the caches (`factor: 16` of float32), or, with an offset, are not a power of two apart,
    which would put a column into few sets of a cache or few banks of shared memory. An axis counts
    from the end where it is below 0. Of an axis that has more than one inside, the stride can only
    be a multiple of `factor`. TVM's storage_align.
    """

    buffer: str
    axis: int
    factor: int
    offset: int = 0

    name: ClassVar[str] = "storage_align"
    aliases: ClassVar[tuple[str, ...]] = ("buffer_dim_align", "align_storage")
    layer: ClassVar[Layer] = Layer.STORAGE
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Rows an odd number of eights apart",
            ROW_SQUARES,
            "- storage_align: {buffer: t, axis: 0, factor: 16, offset: 8}",
            after="""\
def row_squares(m, n, x: float32[m, n], y: Out[float32[m]]):
    with allocate(t=float32[m, n] @ align(0, 16, 8)):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * x[i, j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], t[i, j])
""",
        ),
        Example(
            "The axis whose elements lie side by side",
            ROW_SQUARES,
            "- storage_align: {buffer: t, axis: 1, factor: 16}",
            refused="axis 1 of 't' is its last, whose stride is 1",
        ),
        Example(
            "An offset that is a whole factor",
            ROW_SQUARES,
            "- storage_align: {buffer: t, axis: 0, factor: 16, offset: 16}",
            refused="offset 16 is not between 0 and factor 16",
        ),
        Example(
            "An argument",
            TWICE,
            "- storage_align: {buffer: y, axis: 0, factor: 16}",
            refused="'y' is an argument: its layout is the caller's",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if reason := not_an_argument(state, self.buffer):
            return reason
        buffer = buffer_named(state.kernel, self.buffer)
        rank = len(buffer.shape)
        if not -rank <= self.axis < rank:
            return f"'{self.buffer}' has {rank} axes: there is no axis {self.axis}"
        axis = self.axis % rank
        if axis == rank - 1:
            return f"axis {self.axis} of '{self.buffer}' is its last, whose stride is 1"
        if self.factor < 1:
            return f"factor {self.factor} is not positive"
        if not 0 <= self.offset < self.factor:
            return f"offset {self.offset} is not between 0 and factor {self.factor}"
        if self.offset and axis < rank - 2:
            return (
                f"several axes of '{self.buffer}' lie inside axis {self.axis}: its stride can "
                "only be a multiple"
            )
        if any(a.axis == axis for a in buffer.aligned):
            return f"axis {self.axis} of '{self.buffer}' is aligned already"
        return None

    def rewrite(self, state: Scheduled) -> Scheduled:
        buffer = buffer_named(state.kernel, self.buffer)
        new = Alignment(self.axis % len(buffer.shape), self.factor, self.offset)
        return declared(state, self.buffer, aligned=(*buffer.aligned, new))
