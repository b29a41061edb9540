"""cascade: a long reduction by way of blocks, and blocks of blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar, final

from ...ir.nodes import Block, Const, Kernel, Loop, LoopKind, Scope, Update, Var
from ...ir.walk import targets
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    block_named,
    buffer_named,
    fresh,
    loop_named,
    loops_around,
    names,
    reduction_loops,
)
from ..examples import ROW_SUM
from .reverse_compute_at import ReverseComputeAt
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .unroll import Unroll
from .vectorize import Vectorize


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "cascade"
    aliases: ClassVar[tuple[str, ...]] = ("cascade_sum", "superblock")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Rows in blocks of 32 terms",
            ROW_SUM,
            "- cascade: {block: y, loop: y.j, lengths: [32]}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.j_0 in range((n + 31) // 32):
            with allocate(y_part=float32[m, (n + 31) // 32]):
                for y.j_1 in range(32):
                    with block(
                        "y_part",
                        i=spatial(y.i),
                        j_0=spatial(y.j_0),
                        j_1=reduction(y.j_1),
                        where=y.j_0 * 32 + y.j_1 < n,
                        initialises=True,
                        origin=y[i, j_0 * 32 + j_1],
                    ):
                        y_part[i, j_0] = combine.sum(y_part[i, j_0], x[i, j_0 * 32 + j_1])
                with block("y", i=spatial(y.i), r0=reduction(y.j_0), initialises=True, origin=None):
                    y[i] = combine.sum(y[i], y_part[i, r0])
""",
        ),
        Example(
            "Blocks of vectors",
            ROW_SUM,
            "- vectorize: {loop: y.j, width: 4}\n"
            "- cascade: {block: y_rf, loop: y.j_0, lengths: [8]}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        with allocate(y_rf=float32[m, 4] @ register):
            for y.j_0_0 in range(((n + 3) // 4 + 7) // 8):
                with allocate(y_rf_part=float32[m, 4, ((n + 3) // 4 + 7) // 8] @ register):
                    for y.j_0_1 in range(8):
                        for y.j_1 in vectorized(4):
                            with block(
                                "y_rf_part",
                                i=spatial(y.i),
                                j_1=spatial(y.j_1),
                                j_0_0=spatial(y.j_0_0),
                                j_0_1=reduction(y.j_0_1),
                                where=(y.j_0_0 * 8 + y.j_0_1) * 4 + y.j_1 < n and y.j_0_0 * 8 + y.j_0_1 < (n + 3) // 4,
                                initialises=True,
                                origin=y[i, (j_0_0 * 8 + j_0_1) * 4 + j_1],
                            ):
                                y_rf_part[i, j_1, j_0_0] = combine.sum(y_rf_part[i, j_1, j_0_0], x[i, (j_0_0 * 8 + j_0_1) * 4 + j_1])
                    for y_rf.j_1 in vectorized(4):
                        with block(
                            "y_rf",
                            i=spatial(y.i),
                            j_1=spatial(y_rf.j_1),
                            r0=reduction(y.j_0_0),
                            initialises=True,
                            origin=None,
                        ):
                            y_rf[i, j_1] = combine.sum(y_rf[i, j_1], y_rf_part[i, j_1, r0])
            for y.r0 in vectorized(4):
                with block("y", i=spatial(y.i), r0=reduction(y.r0), initialises=True, origin=None):
                    y[i] = combine.sum(y[i], y_rf[i, r0])
""",  # noqa: E501
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

    def check(self, state: Scheduled) -> str | None:
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        if not isinstance(block.body, Update) or loop.var not in reduction_loops(block):
            return f"loop '{self.loop}' is not a reduction loop of block '{self.block}'"
        if not self.lengths or min(self.lengths) < 2:
            return "give `lengths` of 2 or more"
        return None

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        used = set(names(state.kernel))

        def new(name: str) -> str:
            found = fresh(name, used)
            used.add(found)
            return found

        block = block_named(state.kernel, self.block)
        inner = tuple(_inner(loop_named(state.kernel, self.loop), block))
        outer = tuple(_outer(state.kernel, self.loop, block))
        olds = tuple(t.buffer for t in targets(block.body))
        scopes = {buffer_named(state.kernel, buffer).scope for buffer in olds}
        parts = tuple(new(f"{self.loop}_{k}") for k in range(len(self.lengths) + 1))
        steps: list[Primitive] = [Split(self.loop, (None, *self.lengths), parts, span=self.span)]
        name = self.block
        for part in parts[:-1]:
            partial = new(f"{self.block}_part")
            olds = (partial,) if len(olds) == 1 else tuple(new(f"{old}_rf") for old in olds)
            steps.append(Rfactor(name, loops=(*outer, part), as_=(partial,), span=self.span))
            outer = ()  # they are spatial to the partials
            if scopes == {Scope.REGISTER}:
                steps += (SetScope(buffer, "register", span=self.span) for buffer in olds)
            steps.append(ReverseComputeAt(name, part, span=self.span))
            for iterator, kind, width in inner:
                var = new(f"{name}.{iterator}")
                match kind:
                    case LoopKind.UNROLLED:
                        steps.append(Unroll(var, span=self.span))
                    case LoopKind.VECTORIZED:
                        steps.append(Vectorize(var, width, span=self.span))
            name = partial
        return tuple(steps)


def _outer(kernel: Kernel, loop: str, block: Block) -> Iterator[str]:
    """The block's reduction loops around the loop: the partials are of one iteration of each."""
    reduced = reduction_loops(block)
    around = (own.var for own in loops_around(kernel.body, block))
    return (own for own in takewhile(lambda own: own != loop, around) if own in reduced)


def _inner(loop: Loop, block: Block) -> Iterator[tuple[str, LoopKind, int]]:
    """Of what is unrolled or vectorized in the loop: iteration variable, kind and extent."""
    for own in loops_around(loop.body, block):
        for iterator, binding in zip(block.iters, block.bindings, strict=True):
            if binding == Var(own.var) and isinstance(own.upper, Const):
                yield iterator.name, own.kind, int(own.upper.value.real)
