"""reindex: a block's own view of a buffer."""

from dataclasses import replace
from typing import Literal

from ...ir import nodes as ir
from ...ir.algebra import conjunction, sub
from ...ir.index.bounds import LoopRange, highest, lowest, normal
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import loads, targets, variables, walk
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.copies import from_copy, through_copy, using
from ..edit.layouts import extent
from ..edit.moving import put
from ..edit.new_loops import place
from ..edit.tree import CannotApply
from ..examples import BLUR, SPREAD, TURNED, TWICE


class Reindex(Primitive):
    """Lets a block read from, or write to, a copy of a buffer whose indices are the block's
    iteration variables: those that the indices have been made of, in the block's order.

    So whatever the buffer looks like, a product of matrices reads `a[i, k]`, and a convolution the
    patches of its input: the copy is where im2col, a transposed operand or a stride goes. All is
    copied before everything that stands around the block, or, where it writes, after. TVM's
    reindex.
    """

    block: str
    buffer: str
    scope: Literal["auto", "heap", "stack", "register"] = "auto"
    as_: str | None = None

    def _place(self, block: ir.Block) -> tuple[ir.Expr, ...]:
        """The one place where the block accesses the buffer. Raises CannotApply."""
        accesses: tuple[ir.Load | ir.Destination, ...] = (*loads(block.body), *targets(block.body))
        places = tuple(dict.fromkeys(a.indices for a in accesses if a.buffer == self.buffer))
        if not places:
            raise CannotApply(f"block '{block.name}' neither reads nor writes '{self.buffer}'")
        if len(places) > 1:
            shown = ", ".join(f"`{', '.join(map(expr_to_text, p))}`" for p in places[:2])
            raise CannotApply(
                f"block '{block.name}' reads '{self.buffer}' at several places: {shown}, ..."
            )
        if any(isinstance(n, ir.Load) for i in places[0] for n in walk(i)):
            raise CannotApply(f"where block '{block.name}' reads '{self.buffer}' depends on data")
        if self.buffer in edit.written(block):
            if any(x.buffer == self.buffer for x in loads(block.body)):
                raise CannotApply(f"block '{block.name}' reads '{self.buffer}', too")
            if isinstance(block.body, ir.Init):
                raise CannotApply(f"block '{block.name}' is the init of a reduction")
            if isinstance(block.body, ir.Update) and not block.initialises:
                raise CannotApply(f"block '{block.name}' adds to what is in '{self.buffer}'")
        return places[0]

    def _axes(self, block: ir.Block) -> tuple[ir.IterVar, ...]:
        """The iteration variables that the place is made of, over boxes."""
        used = variables(ir.Destination("", self._place(block)))
        ranges = tuple(LoopRange(v.name, v.lower, sub(v.upper, 1)) for v in block.iters)
        axes: list[ir.IterVar] = []
        for k, v in enumerate(block.iters):
            if v.name not in used:
                continue
            low, high = lowest(v.lower, ranges[:k]), highest(v.upper, ranges[:k])
            if low is None or high is None:
                raise CannotApply(f"nothing bounds '{v.name}' of block '{block.name}'")
            axes.append(ir.IterVar(v.name, normal(low), normal(high)))
        return tuple(axes)

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        old = edit.buffer_named(state.kernel, self.buffer)
        there, axes = self._place(block), self._axes(block)
        name = self.as_ or f"{self.buffer}_reindex"
        edit.require_free_buffer(state.kernel, name)
        shape, scope = tuple(extent(v.upper) for v in axes), ir.Scope(self.scope)
        copy = ir.Buffer(name, old.dtype, shape, scope, span=old.span)
        writes = self.buffer in edit.written(block)
        here = tuple(ir.Var(v.name) for v in axes)
        at = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
        own = frozenset(name for v in axes for name in variables(at[v.name]))
        others = frozenset(name for b in block.bindings for name in variables(b)) - own
        to, from_ = ((old, there), (copy, here))[:: 1 if writes else -1]
        moving = ir.Block(
            name,
            axes,
            tuple(at[v.name] for v in axes),
            conjunction(*edit.without_loops(block.predicate, others)),
            ir.Store(
                ir.Destination(to[0].name, to[1]), ir.Load(from_[0].name, from_[1], old.dtype)
            ),
            span=block.span,
        )
        new = place(moving, (), frozenset(), {}, edit.names(state.kernel) | {name})
        body = put(edit.tree(state.kernel), None, new, lambda b: b is block, after=writes)
        mine = using(block, self.buffer, lambda x: replace(x, buffer=name, indices=here))
        body = edit.update_blocks(body, lambda b: mine if b is block else b)
        kernel = edit.rebuild(state.kernel, body, copy)
        if writes:
            flow = through_copy(state, block, self.buffer, name)
        else:
            flow = from_copy(state.flow, (block,), self.buffer, name)
        return Scheduled(kernel, flow)

    EXAMPLES = (
        Example("A transposed operand", TURNED, "- reindex: {block: y, buffer: x}"),
        Example(
            "A result written to every other place",
            SPREAD,
            "- reindex: {block: y, buffer: y, as: near}",
        ),
        Example(
            "Reads at several places",
            BLUR,
            "- reindex: {block: y, buffer: t}",
            refused="block 'y' reads 't' at several places: `i`, `i + 1`, ...",
        ),
        Example(
            "A buffer that the block does not use",
            TWICE,
            "- reindex: {block: y, buffer: x}",
            refused="block 'y' neither reads nor writes 'x'",
        ),
    )
