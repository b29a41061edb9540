"""store_in: where a block stores what it computes."""

from ...ir.algebra import add, index, sub
from ...ir.index.bounds import LoopRange, highest, normal
from ...ir.index.linear import linear
from ...ir.nodes import Block, Expr, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import substitute, targets, variables
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.layouts import extent, relaid, require_free_layout
from ..edit.tree import CannotApply, block_named, buffer_named, written
from ..examples import CHAIN, ROW_SQUARES, TWICE
from ..formula import formulas, sizes


class StoreIn(Primitive):
    """Stores each value of a block at the place that `indices` gives, in the block's iteration
    variables: `"j, i"` is the transpose, `"i % 2, j"` keeps two rows, `"j // 8, i, j % 8"` columns
    in groups of eight, `"i + j, j"` diagonals.

    Tiramisu's store_in. A map in isl's notation is taken, too: `"{ t[i, j] -> [i mod 2, j] }"`.
    The temporary is as large as the largest indices need. Two values may share a place if no live
    one is overwritten, which the proof finds out for all sizes. `buffer` says which, where the
    block stores tuples.
    """

    block: str
    indices: str
    buffer: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        if self.buffer is not None and self.buffer not in written(block):
            raise CannotApply(f"block '{self.block}' does not write '{self.buffer}'")
        if self.buffer is None and len(targets(block.body)) > 1:
            raise CannotApply(f"block '{self.block}' writes several buffers: say which by `buffer`")
        buffer = self._buffer(block)
        require_free_layout(state, buffer)
        self._shape(state, self._places(state, block), self._values(block))
        places, values = self._places(state, block), self._values(block)

        def moved(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            at = {name: sub(indices[axis], ahead) for name, (axis, ahead) in values.items()}
            return tuple(substitute(place, at) for place in places)

        shape = self._shape(state, places, values)
        return relaid(state, self._buffer(block), shape, moved)

    def _buffer(self, block: Block) -> str:
        return self.buffer or targets(block.body)[0].buffer

    def _places(self, state: Scheduled, block: Block) -> tuple[Expr, ...]:
        return formulas(self.indices, tuple(v.name for v in block.iters), sizes(state.kernel))

    def _values(self, block: Block) -> dict[str, tuple[int, int]]:
        """For each iteration variable that indexes the buffer the axis, and what it is ahead."""
        target = next(t for t in targets(block.body) if t.buffer == self._buffer(block))
        found: dict[str, tuple[int, int]] = {}
        for axis, place in enumerate(target.indices):
            form = linear(place)
            match [*form.terms.items()]:
                case [(Var(name), 1)] if name not in found:
                    found[name] = axis, form.constant
                case _:
                    raise CannotApply(
                        f"axis {axis} of '{target.buffer}' is at `{expr_to_text(place)}`: "
                        f"an iteration variable of block '{self.block}' alone is needed there",
                        "transform_layout changes one axis",
                    )
        return found

    def _shape(
        self, state: Scheduled, places: tuple[Expr, ...], values: dict[str, tuple[int, int]]
    ) -> tuple[Expr, ...]:
        buffer = buffer_named(state.kernel, self._buffer(block_named(state.kernel, self.block)))
        known = {*values, *sizes(state.kernel)}
        ranges = [
            LoopRange(name, index(-ahead), sub(buffer.shape[axis], 1 + ahead))
            for name, (axis, ahead) in values.items()
        ]
        shape = []
        for place in places:
            if unknown := sorted(variables(place) - known):
                raise CannotApply(f"'{unknown[0]}' does not index '{buffer.name}'")
            last = highest(place, ranges)
            if last is None:
                raise CannotApply(f"nothing bounds `{expr_to_text(place)}`")
            shape.append(extent(normal(add(last, 1))))
        return tuple(shape)

    EXAMPLES = (
        Example("Columns together", ROW_SQUARES, '- store_in: {block: t, indices: "j, i"}'),
        Example(
            "Two values, by a map in isl's notation",
            CHAIN,
            "- shift: {loop: y.i, by: 1}\n"
            "- merge: {loops: [t.i, y.i]}\n"
            '- store_in: {block: t, indices: "{ t[i] -> [i mod 2] }"}',
        ),
        Example(
            "All rows in one, while all are live",
            ROW_SQUARES,
            '- store_in: {block: t, indices: "j"}',
            refused="overwrites it in between",
        ),
        Example(
            "A place below 0",
            TWICE,
            '- store_in: {block: t, indices: "i - 1"}',
            refused="t[i=0] writes 't' outside its bounds, at [-1]",
        ),
        Example(
            "An argument",
            TWICE,
            '- store_in: {block: y, indices: "i % 2"}',
            refused="'y' is an argument: its layout is the caller's",
        ),
    )
