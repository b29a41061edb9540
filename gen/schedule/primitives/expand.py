"""expand: a temporary's elements kept for all iterations of loops."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...ir.algebra import index, sub
from ...ir.index.bounds import highest, lowest
from ...ir.index.linear import Linear, constant, linear, tidy
from ...ir.nodes import Block, Destination, Expr, Load, Loop, Node, Var
from ...ir.walk import accessed, loads, map_children
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.layouts import declared, extent, require_free_layout
from ..edit.tree import CannotApply
from ..examples import SUMS, TRIANGLE_SUMS


class Expand(Primitive):
    """Gives a temporary an axis for each of `loops`, in front of its own, so each iteration has its
    own elements.

    What the statements in a loop hand each other through the same few elements keeps them together;
    after this `fission` can take them apart. The loops are around all blocks that use the
    temporary and run as far as sizes say (scalar expansion, Padua and Wolfe 1986). Of a loop that
    `reversed` runs downwards, the first elements are the first iteration's.
    """

    buffer: str
    loops: tuple[str, ...]

    aliases = ("expand_dim", "scalar_expansion", "array_expansion")

    def apply(self, state: Scheduled) -> Scheduled:
        require_free_layout(state, self.buffer)
        if not self.loops or len({*self.loops}) < len(self.loops):
            raise CannotApply("`loops` names each loop once, one at least")
        root = edit.tree(state.kernel)
        around = [edit.loop_named(state.kernel, name) for name in self.loops]
        ranges = [_range(loop, edit.loops_around(root, loop)) for loop in around]

        def expanded(block: Block) -> Block:
            if self.buffer not in accessed(block):
                return block
            within = {loop.var for loop in edit.loops_around(root, block)}
            own = [self._own(block, name, within) for name in self.loops]
            pairs = zip(own, ranges, strict=True)
            places = tuple((at - linear(first)).expr() for at, (first, _) in pairs)

            def go(node: Node) -> Node:
                new = map_children(node, go)
                if isinstance(new, Load | Destination) and new.buffer == self.buffer:
                    return replace(new, indices=(*places, *new.indices))
                return new

            return replace(block, body=map_children(block.body, go))

        kernel = edit.rebuild(state.kernel, edit.update_blocks(root, expanded))
        shape = (*(size for _, size in ranges), *edit.buffer_named(kernel, self.buffer).shape)
        return declared(replace(state, kernel=kernel), self.buffer, shape=shape)

    def _own(self, block: Block, loop: str, within: Collection[str]) -> Linear:
        """The loop's variable, by the iteration variable of the block that says which it is."""
        if loop not in within:
            raise CannotApply(
                f"loop '{loop}' is not around block '{block.name}', which uses '{self.buffer}'"
            )
        for v, binding in zip(block.iters, block.bindings, strict=True):
            form = linear(binding)
            sign, rest = form.coefficient(loop), form.without(Var(loop))
            if sign in {1, -1} and not rest.variables() & {*within}:
                return (linear(Var(v.name)) - rest) * sign
        reason = f"block '{block.name}' has no iteration variable that says loop '{loop}' alone"
        raise CannotApply(reason, "expand before loops are split or fused")

    EXAMPLES = (
        Example(
            "Sums that wait for the next loop",
            SUMS,
            "- expand: {buffer: s, loops: [s.i]}\n- fission: {loop: s.i}",
        ),
        Example(
            "A triangle: as many as its longest row has",
            TRIANGLE_SUMS,
            "- expand: {buffer: s, loops: [s.i, s.j]}",
        ),
        Example(
            "After the loop was split",
            SUMS,
            "- split: {loop: s.i, factors: [null, 4]}\n- expand: {buffer: s, loops: [s.i_0]}",
            refused="has no iteration variable that says loop 's.i_0' alone",
        ),
        Example(
            "An argument",
            SUMS,
            "- expand: {buffer: y, loops: [s.i]}",
            refused="'y' is an argument: its layout is the caller's",
        ),
        Example(
            "A loop that is not around all that use it",
            SUMS,
            "- expand: {buffer: s, loops: [s.k]}",
            refused="loop 's.k' is not around block 'y', which uses 's'",
        ),
    )


def _range(loop: Loop, outer: Iterable[Loop]) -> tuple[Expr, Expr]:
    """The first value of the loop's variable, whatever those of the loops further out, and how many
    there are from there on, both of sizes alone. A first one that is a number counts as 0, so that
    places are the variable itself.
    """
    ranges = edit.ranges_of(outer)
    first, end = lowest(loop.lower, ranges), highest(loop.upper, ranges)
    if first is None or end is None or loads(first) or loads(end):
        raise CannotApply(f"loop '{loop.var}' runs as far as data says, not sizes")
    known = constant(first)
    first = index(0) if known is not None and known >= 0 else first
    return first, extent(tidy(sub(end, first)))
