"""double_buffer: two buffers in turn."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from ...ir import nodes as ir
from ...ir.algebra import add, index, mod, mul, sub
from ...ir.index.bounds import highest, lowest, normal, sides
from ...ir.index.linear import linear
from ...ir.walk import accessed, blocks, map_children, targets
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.launches import without_needless
from ..edit.moving import between, inside_of
from ..edit.new_loops import Interval, Region, touched, union
from ..edit.tree import CannotApply
from ..examples import ROTATED, TWICE


class DoubleBuffer(Primitive):
    """Gives a temporary that each iteration of a loop fills anew the room of two, which the
    iterations use in turn.

    So one iteration may be filling it while another still reads: barriers of the loop's body that
    only kept those apart are gone, and `pipeline` can fill it an iteration ahead. Where what the
    iterations hold moves along an axis, places are counted from where it begins.
    """

    buffer: str
    loop: str

    aliases = ("ring_buffer",)

    def apply(self, state: Scheduled) -> Scheduled:
        buffer, loop = (
            edit.buffer_named(state.kernel, self.buffer),
            edit.loop_named(state.kernel, self.loop),
        )
        if buffer.scope is ir.Scope.GLOBAL:
            raise CannotApply(f"'{self.buffer}' is an argument")
        if loop.kind.is_bound:
            raise CannotApply(
                f"loop '{self.loop}' is {loop.kind.value}: its iterations have no order"
            )
        if isinstance(loop.body, ir.Delinearize):
            raise CannotApply(f"loop '{self.loop}' is fused")
        inside = {b.name for b in blocks(loop)}
        for block in blocks(edit.tree(state.kernel)):
            if self.buffer in accessed(block) and block.name not in inside:
                raise CannotApply(
                    f"block '{block.name}' uses '{self.buffer}' outside of loop '{self.loop}'"
                )
        for block in blocks(loop):
            if self.buffer in edit.written(block) and loop.var in edit.reduction_loops(block):
                reason = f"block '{block.name}' adds to '{self.buffer}' over loop '{self.loop}'"
                raise CannotApply(reason)
        moves = self._moves(state, loop)

        def go(block: ir.Block) -> ir.Block:
            return self._in_turn(state, loop, block, moves) if self._uses(block) else block

        body = edit.update_blocks(edit.tree(state.kernel), go)
        buffers = tuple(
            self._doubled(b, moves) if b.name == self.buffer else b
            for b in edit.temporaries(state.kernel)
        )
        flow = dict(state.flow)
        for writer in (b.name for b in blocks(loop) if self.buffer in edit.written(b)):
            for read in edit.readers(state.flow, writer):
                shared = tuple(v for v in flow[read].shared if v != self.loop)
                flow[read] = replace(flow[read], shared=shared)
        return without_needless(
            Scheduled(edit.rebuild(state.kernel, body, buffers=buffers), flow), self.loop
        )

    def _uses(self, block: ir.Block) -> bool:
        return self.buffer in accessed(block)

    def _moves(self, state: Scheduled, loop: ir.Loop) -> Mapping[int, Interval]:
        """The axes along which the iterations fill places of their own: from where, to where."""
        around = inside_of(edit.tree(state.kernel), loop)
        ranges = edit.ranges_of(around)
        found: list[Region] = []
        for block in blocks(loop):
            for target in targets(block.body):
                if target.buffer == self.buffer:
                    inside = between(loop, block)
                    found.append(touched(block, target.indices, inside, ranges))
        if not found:
            raise CannotApply(f"nothing in loop '{self.loop}' fills '{self.buffer}'")
        region = reduce(lambda a, b: union(a, b, ranges), found)
        moving = ((k, _constant_size(i, self.loop)) for k, i in enumerate(region) if i is not None)
        return {k: interval for k, interval in moving if interval is not None}

    def _doubled(self, buffer: ir.Buffer, moves: Mapping[int, Interval]) -> ir.Buffer:
        def extent(axis: int, old: ir.Expr) -> ir.Expr:
            if axis not in moves:
                return old
            return normal(add(sub(moves[axis].upper, moves[axis].lower), 1))

        shape = tuple(extent(k, e) for k, e in enumerate(buffer.shape))
        aligned = tuple(replace(a, axis=a.axis + 1) for a in buffer.aligned)
        return replace(buffer, shape=(index(2), *shape), aligned=aligned)

    def _in_turn(
        self, state: Scheduled, loop: ir.Loop, block: ir.Block, moves: Mapping[int, Interval]
    ) -> ir.Block:
        """The block on the buffer whose turn it is."""
        block, name = _naming(state, loop, block)

        def place(axis: int, old: ir.Expr) -> ir.Expr:
            if axis not in moves:
                return old
            begin = linear(moves[axis].lower)
            step = begin.coefficient(loop.var)
            return normal(sub(old, add(mul(ir.Var(name), step), begin.constant)))

        def go(node: Any) -> Any:
            new = map_children(node, go)
            if isinstance(new, ir.Load | ir.Destination) and new.buffer == self.buffer:
                places = tuple(place(k, i) for k, i in enumerate(new.indices))
                return replace(new, indices=(mod(ir.Var(name), 2), *places))
            return new

        return replace(block, body=go(block.body))

    EXAMPLES = (
        Example(
            "One barrier an iteration in place of two",
            ROTATED,
            "- double_buffer: {buffer: t, loop: y.k}",
        ),
        Example(
            "A loop that is not around all that uses the buffer",
            TWICE,
            "- double_buffer: {buffer: t, loop: y.i}",
            refused="block 't' uses 't' outside of loop 'y.i'",
        ),
    )


def _naming(state: Scheduled, loop: ir.Loop, block: ir.Block) -> tuple[ir.Block, str]:
    """The block with an iteration variable that is the loop's, and its name."""
    for v, binding in zip(block.iters, block.bindings, strict=True):
        if binding == ir.Var(loop.var):
            return block, v.name
    around = edit.ranges_of(inside_of(edit.tree(state.kernel), loop))
    low, high = lowest(ir.Var(loop.var), around), highest(ir.Var(loop.var), around)
    if low is None or high is None:
        raise CannotApply(f"nothing bounds loop '{loop.var}' over the kernel's dims")
    kind = ir.IterKind.REDUCTION if loop.var in edit.reduction_loops(block) else ir.IterKind.SPATIAL
    name = edit.local_name(state.kernel, edit.index_of(loop.var), (v.name for v in block.iters))
    turn = ir.IterVar(name, normal(low), normal(add(high, 1)), kind)
    bindings = (*block.bindings, ir.Var(loop.var))
    return replace(block, iters=(*block.iters, turn), bindings=bindings), name


def _constant_size(interval: Interval, loop: str) -> Interval | None:
    """An interval that begins at a multiple of the loop's variable, plus a constant, and has a
    constant size; None where it is not one.
    """
    for first in sides(ir.BinaryOp.MAX, normal(interval.lower)):
        for last in sides(ir.BinaryOp.MIN, normal(interval.upper)):
            begin, size = linear(first), linear(sub(last, first))
            if set(begin.terms) == {ir.Var(loop)} and not size.terms:
                return Interval(first, last)
    return None
