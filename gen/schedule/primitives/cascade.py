"""cascade: a long reduction by way of blocks, and blocks of blocks."""

from collections.abc import Iterator
from itertools import takewhile

from ...ir.nodes import Block, Const, Kernel, Loop, LoopKind, Scope, Update, Var
from ...ir.walk import targets
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import ROW_SUM
from .reverse_compute_at import ReverseComputeAt
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .unroll import Unroll
from .vectorize import Vectorize


class Cascade(Primitive):
    """Reduces a loop's terms in blocks of a fixed length, the blocks' results in blocks again, and
    so on, the last of `lengths` innermost: a sum's rounding error grows with the sum of the
    lengths, in place of their product.

    Stands for a split and, for each length, an rfactor whose join goes on in the loop. The partial
    results are in registers where those of the block are, and what is unrolled or vectorized in
    the loop is so in the joins. (Superblocks: Castaldo, Whaley and Chronopoulos, Reducing
    floating point error in dot product using the superblock family of algorithms, 2008.)
    """

    block: str
    loop: str
    lengths: tuple[int, ...]

    aliases = ("cascade_sum", "superblock")

    def apply(self, state: Scheduled) -> Steps:
        block, loop = (
            edit.block_named(state.kernel, self.block),
            edit.loop_named(state.kernel, self.loop),
        )
        if not isinstance(block.body, Update) or loop.var not in edit.reduction_loops(block):
            raise CannotApply(f"loop '{self.loop}' is not a reduction loop of block '{self.block}'")
        if not self.lengths or min(self.lengths) < 2:
            raise CannotApply("give `lengths` of 2 or more")
        used = set(edit.names(state.kernel))

        def new(name: str) -> str:
            found = edit.fresh(name, used)
            used.add(found)
            return found

        inner = tuple(_inner(edit.loop_named(state.kernel, self.loop), block))
        outer = tuple(_outer(state.kernel, self.loop, block))
        olds = tuple(t.buffer for t in targets(block.body))
        scopes = {edit.buffer_named(state.kernel, buffer).scope for buffer in olds}
        parts = tuple(new(f"{self.loop}_{k}") for k in range(len(self.lengths) + 1))
        steps: list[Primitive] = [Split(self.loop, (None, *self.lengths), parts)]
        name = self.block
        for part in parts[:-1]:
            partial = new(f"{self.block}_part")
            olds = (partial,) if len(olds) == 1 else tuple(new(f"{old}_rf") for old in olds)
            steps.append(Rfactor(name, loops=(*outer, part), as_=(partial,)))
            outer = ()  # they are spatial to the partials
            if scopes == {Scope.REGISTER}:
                steps += (SetScope(buffer, "register") for buffer in olds)
            steps.append(ReverseComputeAt(name, part))
            for iterator, kind, width in inner:
                var = new(f"{name}.{iterator}")
                match kind:
                    case LoopKind.UNROLLED:
                        steps.append(Unroll(var))
                    case LoopKind.VECTORIZED:
                        steps.append(Vectorize(var, width))
            name = partial
        return tuple(steps)

    EXAMPLES = (
        Example(
            "Rows in blocks of 32 terms", ROW_SUM, "- cascade: {block: y, loop: y.j, lengths: [32]}"
        ),
        Example(
            "Blocks of vectors",
            ROW_SUM,
            "- vectorize: {loop: y.j, width: 4}\n"
            "- cascade: {block: y_rf, loop: y.j_0, lengths: [8]}",
        ),
        Example(
            "A loop over rows",
            ROW_SUM,
            "- cascade: {block: y, loop: y.i, lengths: [32]}",
            refused="loop 'y.i' is not a reduction loop of block 'y'",
        ),
        Example(
            "No length",
            ROW_SUM,
            "- cascade: {block: y, loop: y.j, lengths: []}",
            refused="give `lengths` of 2 or more",
        ),
    )


def _outer(kernel: Kernel, loop: str, block: Block) -> Iterator[str]:
    """The block's reduction loops around the loop: the partials are of one iteration of each."""
    reduced = edit.reduction_loops(block)
    around = (own.var for own in edit.loops_around(kernel.body, block))
    return (own for own in takewhile(lambda own: own != loop, around) if own in reduced)


def _inner(loop: Loop, block: Block) -> Iterator[tuple[str, LoopKind, int]]:
    """Of what is unrolled or vectorized in the loop: iteration variable, kind and extent."""
    for own in edit.loops_around(loop.body, block):
        for iterator, binding in zip(block.iters, block.bindings, strict=True):
            if binding == Var(own.var) and isinstance(own.upper, Const):
                yield iterator.name, own.kind, int(own.upper.value.real)
