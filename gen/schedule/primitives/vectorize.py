"""vectorize: a loop's iterations become the lanes of vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from ...ir.algebra import add, index, sub
from ...ir.index.bounds import normal
from ...ir.index.linear import same
from ...ir.nodes import LoopKind, Update, Var
from ...ir.walk import blocks, replace_stmt
from ...poly.certificate import Scheduled
from ..base import NOWHERE, Example, Layer, Primitive
from ..edit.launches import require_met
from ..edit.nesting_rules import unfit
from ..edit.tree import (
    loop_named,
    names,
    rebuild,
    reduction_loops,
    renumbered,
    taken_loops,
    tree,
)
from ..examples import ROW_SUM, SCALE, TWICE
from ..wavefronts import band, wavefronts
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .unroll import Unroll

# Code is as long as the vectors are wide; 512 lanes are 32 of the widest native vectors of 32 bits.
MOST_LANES = 512
MOST_LANES_IN_ALL = 4096


@final
@dataclass(frozen=True)
class Vectorize(Primitive):
    """Runs `width` iterations of a loop at once, in vectors; the rest of the last one is masked.

    On a loop whose extent is `width` it only marks the loop. On any other it stands for a split
    (with a loop of `accumulators` vectors in between, unrolled) and, for each reduction over the
    loop, for an rfactor into partials in registers and a vectorized join: the lane tree.
    `as` names the loops of the split.
    """

    loop: str
    width: int
    accumulators: int = 1
    tail: Literal["mask"] = "mask"
    as_: tuple[str, ...] | None = None

    name: ClassVar[str] = "vectorize"
    aliases: ClassVar[tuple[str, ...]] = ("tag_vector_level",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Four lanes; the last vector is masked",
            TWICE,
            "- vectorize: {loop: y.i, width: 4}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            for y.i_1 in vectorized(4):
                with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    y[i] = t[i] + 1.0
""",
        ),
        Example(
            "A reduction: partials in registers, then the lane tree",
            ROW_SUM,
            "- vectorize: {loop: y.j, width: 4}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in range(m):
        with allocate(y_rf=float32[m, 4] @ register):
            for y.j_0 in range((n + 3) // 4):
                for y.j_1 in vectorized(4):
                    with block(
                        "y_rf",
                        i=spatial(y.i),
                        j_0=reduction(y.j_0),
                        j_1=spatial(y.j_1),
                        where=y.j_0 * 4 + y.j_1 < n,
                        initialises=True,
                        origin=y[i, j_0 * 4 + j_1],
                    ):
                        y_rf[i, j_1] = combine.sum(y_rf[i, j_1], x[i, j_0 * 4 + j_1])
            for y.r0 in vectorized(4):
                with block("y", i=spatial(y.i), r0=reduction(y.r0), initialises=True, origin=None):
                    y[i] = combine.sum(y[i], y_rf[i, r0])
""",
        ),
        Example(
            "A width that is no width",
            TWICE,
            "- vectorize: {loop: y.i, width: 0}",
            refused="width 0 is not positive",
        ),
        Example(
            "A loop of lanes that does not start at 0",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- shift: {loop: y.j_1, by: 5}\n"
            "- vectorize: {loop: y.j_1, width: 4}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in range((n + 3) // 4):
            for y.j_1 in vectorized(4):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j_0 * 4 + y.j_1, n),
                    where=y.j_0 * 4 + y.j_1 < n,
                ):
                    y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A loop that holds vectors",
            SCALE,
            "- vectorize: {loop: y.j, width: 4}\n- vectorize: {loop: y.i, width: 4}",
            refused="vectorized loop 'y.j_1' would be in vectorized loop 'y.i': a lane holds one"
            " value, no vector",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        if self.width < 1:
            return f"width {self.width} is not positive"
        if self.accumulators < 1:
            return f"accumulators {self.accumulators} is not positive"
        if self.width > MOST_LANES:
            return f"width {self.width} is more than {MOST_LANES} lanes"
        if self.width * self.accumulators > MOST_LANES_IN_ALL:
            return (
                f"{self.accumulators} accumulators of {self.width} lanes are more than "
                f"{MOST_LANES_IN_ALL} lanes in all"
            )
        if reason := unfit(tree(state.kernel), loop, LoopKind.VECTORIZED):
            return reason
        if self._marks(state):
            if self.as_ is not None:
                return "`as` names nothing: the loop is as wide as a vector already"
            return None
        if len(self._names()) != (3 if self.accumulators > 1 else 2):
            return f"`as` must give {3 if self.accumulators > 1 else 2} names"
        return taken_loops(state.kernel, self._names(), {self.loop})

    def _marks(self, state: Scheduled) -> bool:
        loop = loop_named(state.kernel, self.loop)
        whole = same(sub(loop.upper, loop.lower), index(self.width))
        return whole and self.accumulators == 1

    def _names(self) -> tuple[str, ...]:
        count = 3 if self.accumulators > 1 else 2
        return self.as_ or tuple(f"{self.loop}_{k}" for k in range(count))

    def remedies(self, state: Scheduled) -> Iterator[tuple[Primitive, ...]]:
        """A wavefront, whose innermost loop has independent iterations."""
        nest = band(state, self.loop)
        for steps, (*_, last) in wavefronts(state, nest, self.loop):
            yield (*steps, replace(self, loop=last))

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        if self._marks(state):
            return ()
        loop = loop_named(state.kernel, self.loop)
        new, lane = self._names(), self._names()[-1]
        wide = (self.accumulators,) if self.accumulators > 1 else ()
        steps: list[Primitive] = [Split(self.loop, (None, *wide, self.width), new, span=self.span)]
        for block in blocks(loop):
            if isinstance(block.body, Update) and self.loop in reduction_loops(block):
                steps += self._lane_tree(state, block.name)
        steps += [Unroll(name, span=self.span) for name in new[1:-1]]
        return (*steps, Vectorize(lane, self.width, span=self.span))

    def _lane_tree(self, state: Scheduled, block: str) -> list[Primitive]:
        """The steps that reduce into vectors, and those into the result."""
        factored = self._names()[1:]
        rfactor = Rfactor(block, loops=factored, span=self.span)
        *outer, lane = rfactor.join_loops(names(state.kernel))
        named = replace(rfactor, as_=(rfactor.partial(), *outer, lane))
        scopes = [
            SetScope(buffer, "register", span=self.span) for buffer in rfactor.buffers(state.kernel)
        ]
        unrolls = [Unroll(name, span=self.span) for name in outer]
        return [named, *scopes, *unrolls, Vectorize(lane, self.width, span=self.span)]

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        if loop.lower != index(0):  # lanes count from 0
            value = normal(add(Var(loop.var), loop.lower))
            state = renumbered(state, loop, index(0), index(self.width), value)
            loop = loop_named(state.kernel, self.loop)
        # The span is for what emission may have to say of the loop.
        span = loop.span if self.span == NOWHERE else self.span
        new = replace(loop, kind=LoopKind.VECTORIZED, span=span)
        kernel = rebuild(state.kernel, replace_stmt(tree(state.kernel), loop, new))
        after = replace(state, kernel=kernel)
        require_met(after)
        return after
