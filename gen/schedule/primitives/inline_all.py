"""inline_all: every value that can be, computed inside the expressions that use it."""

from ...ir.nodes import Block
from ...ir.walk import blocks, loads
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply, block_named, loops_around, readers, tree, written
from ..examples import SHARE, STENCIL
from .compute_inline import ComputeInline

CHAIN = """\
def chain(n, x: float32[n], y: Out[float32[n]]):
    with allocate(a=float32[n], b=float32[n], t=float32[()]):
        for a.i in range(n):
            with block("a", i=spatial(a.i)):
                a[i] = x[i] * 2.0
        for b.i in range(n):
            with block("b", i=spatial(b.i)):
                b[i] = a[i] + 1.0
        for t.i in range(n):
            with block("t", i=reduction(t.i), initialises=True):
                t[()] = combine.sum(t[()], b[i])
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = b[i] / t[()]
"""


class InlineAll(Primitive):
    """Replaces every read of a temporary that has an expression of its own by that expression.

    Stands for a compute_inline of each block that stores one expression in a temporary, where what
    it reads does not change before its values are used. `keep` names blocks that stay: what is used
    twice is computed twice otherwise.
    """

    keep: tuple[str, ...] = ()

    aliases = ("try_inline_contiguous_spatial", "auto_inline")

    def apply(self, state: Scheduled) -> Steps:
        for name in self.keep:
            block_named(state.kernel, name)
        steps = (
            ComputeInline(block.name)
            for block in blocks(tree(state.kernel))
            if block.name not in self.keep and readers(state.flow, block.name)
            if _lasts(state, block)
        )
        found = tuple(step for step in steps if _applies(step, state))
        if not found:
            raise CannotApply("there is no block that could be inlined")
        return found

    EXAMPLES = (
        Example("What is left are the reduction and the output", CHAIN, "- inline_all: {}"),
        Example("All but one", CHAIN, "- inline_all: {keep: [b]}"),
        Example(
            "A reduction and an output",
            SHARE,
            "- inline_all: {}",
            refused="there is no block that could be inlined",
        ),
        Example(
            "A block that is not there",
            STENCIL,
            "- inline_all: {keep: [s]}",
            refused="there is no block 's'",
        ),
    )


def _applies(step: ComputeInline, state: Scheduled) -> bool:
    try:
        step.apply(state)
    except CannotApply:
        return False
    return True


def _lasts(state: Scheduled, block: Block) -> bool:
    """Whether nothing overwrites what the block reads, so that it can be read later instead."""
    root = tree(state.kernel)
    before, mine = True, {x.var for x in loops_around(root, block)}
    writers: dict[str, list[tuple[bool, set[str]]]] = {}
    for b in blocks(root):
        before = before and b is not block
        again = mine & {x.var for x in loops_around(root, b)}
        for buffer in written(b):
            writers.setdefault(buffer, []).append((before, again))
    return all(
        before_ and again <= set(state.flow[block.name, n].shared)
        for n, load in enumerate(loads(block.body))
        for before_, again in writers.get(load.buffer, ())
    )
