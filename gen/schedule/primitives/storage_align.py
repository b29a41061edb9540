"""storage_align: rows of a temporary a chosen distance apart."""

from ...ir.nodes import Alignment
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import declared, require_temporary
from ..edit.tree import CannotApply, buffer_named
from ..examples import ROW_SQUARES, TWICE


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

    aliases = ("buffer_dim_align", "align_storage")

    def apply(self, state: Scheduled) -> Scheduled:
        require_temporary(state, self.buffer)
        buffer = buffer_named(state.kernel, self.buffer)
        rank = len(buffer.shape)
        if not -rank <= self.axis < rank:
            raise CannotApply(f"'{self.buffer}' has {rank} axes: there is no axis {self.axis}")
        axis = self.axis % rank
        if axis == rank - 1:
            raise CannotApply(f"axis {self.axis} of '{self.buffer}' is its last, whose stride is 1")
        if self.factor < 1:
            raise CannotApply(f"factor {self.factor} is not positive")
        if not 0 <= self.offset < self.factor:
            raise CannotApply(f"offset {self.offset} is not between 0 and factor {self.factor}")
        if self.offset and axis < rank - 2:
            raise CannotApply(
                f"several axes of '{self.buffer}' lie inside axis {self.axis}: its stride can "
                "only be a multiple"
            )
        if any(a.axis == axis for a in buffer.aligned):
            raise CannotApply(f"axis {self.axis} of '{self.buffer}' is aligned already")
        new = Alignment(self.axis % len(buffer.shape), self.factor, self.offset)
        return declared(state, self.buffer, aligned=(*buffer.aligned, new))

    EXAMPLES = (
        Example(
            "Rows an odd number of eights apart",
            ROW_SQUARES,
            "- storage_align: {buffer: t, axis: 0, factor: 16, offset: 8}",
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
