"""vectorize: a loop's iterations become the lanes of vectors."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from ...ir.algebra import add, index, sub
from ...ir.index.bounds import normal
from ...ir.index.linear import same
from ...ir.nodes import Loop, LoopKind, Update, Var
from ...ir.walk import blocks
from ...poly.certificate import Scheduled
from ..base import NOWHERE, Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.launches import require_met
from ..edit.nesting_rules import require_fit
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, SCALE, TWICE
from ..wavefronts import band, wavefronts
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .unroll import Unroll

# Code is as long as the vectors are wide; 512 lanes are 32 of the widest native vectors of 32 bits.
MOST_LANES = 512
MOST_LANES_IN_ALL = 4096


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

    aliases = ("tag_vector_level",)

    def apply(self, state: Scheduled) -> Scheduled | Steps:
        loop = edit.loop_named(state.kernel, self.loop)
        self._require_lanes()
        require_fit(edit.tree(state.kernel), loop, LoopKind.VECTORIZED)
        if same(sub(loop.upper, loop.lower), index(self.width)) and self.accumulators == 1:
            if self.as_ is not None:
                raise CannotApply("`as` names nothing: the loop is as wide as a vector already")
            return self._as_lanes(state, loop)
        count = 3 if self.accumulators > 1 else 2
        new = self.as_ or tuple(f"{self.loop}_{k}" for k in range(count))
        if len(new) != count:
            raise CannotApply(f"`as` must give {count} names")
        edit.require_free_loops(state.kernel, new, {self.loop})
        wide = (self.accumulators,) if self.accumulators > 1 else ()
        steps: list[Primitive] = [Split(self.loop, (None, *wide, self.width), new)]
        for block in blocks(loop):
            if isinstance(block.body, Update) and self.loop in edit.reduction_loops(block):
                steps += self._lane_tree(state, block.name, new[1:])
        return (*steps, *map(Unroll, new[1:-1]), Vectorize(new[-1], self.width))

    def _require_lanes(self) -> None:
        if self.width < 1:
            raise CannotApply(f"width {self.width} is not positive")
        if self.accumulators < 1:
            raise CannotApply(f"accumulators {self.accumulators} is not positive")
        if self.width > MOST_LANES:
            raise CannotApply(f"width {self.width} is more than {MOST_LANES} lanes")
        if self.width * self.accumulators > MOST_LANES_IN_ALL:
            raise CannotApply(
                f"{self.accumulators} accumulators of {self.width} lanes are more than "
                f"{MOST_LANES_IN_ALL} lanes in all"
            )

    def _as_lanes(self, state: Scheduled, loop: Loop) -> Scheduled:
        """The state with the loop's iterations as lanes, which count from 0."""
        if loop.lower != index(0):
            value = normal(add(Var(loop.var), loop.lower))
            state = edit.renumbered(state, loop, index(0), index(self.width), value)
            loop = edit.loop_named(state.kernel, self.loop)
        # The span is for what emission may have to say of the loop.
        span = loop.span if self.span == NOWHERE else self.span
        after = edit.replaced(state, loop, replace(loop, kind=LoopKind.VECTORIZED, span=span))
        require_met(after)
        return after

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """A wavefront, whose innermost loop has independent iterations."""
        nest = band(state, self.loop)
        for steps, (*_, last) in wavefronts(state, nest, self.loop):
            yield (*steps, replace(self, loop=last))

    def _lane_tree(self, state: Scheduled, block: str, factored: tuple[str, ...]) -> Steps:
        """The steps that reduce into vectors, and those into the result."""
        rfactor = Rfactor(block, loops=factored)
        *outer, lane = rfactor.join_loops(edit.names(state.kernel))
        named = replace(rfactor, as_=(rfactor.partial(), *outer, lane))
        scopes = (SetScope(buffer, "register") for buffer in rfactor.buffers(state.kernel))
        return (named, *scopes, *map(Unroll, outer), Vectorize(lane, self.width))

    EXAMPLES = (
        Example(
            "Four lanes; the last vector is masked", TWICE, "- vectorize: {loop: y.i, width: 4}"
        ),
        Example(
            "A reduction: partials in registers, then the lane tree",
            ROW_SUM,
            "- vectorize: {loop: y.j, width: 4}",
        ),
        Example(
            "A width that is not one",
            TWICE,
            "- vectorize: {loop: y.i, width: 0}",
            refused="width 0 is not positive",
        ),
        Example(
            "A loop of lanes that does not start at 0",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- shift: {loop: y.j_1, by: 5}\n"
            "- vectorize: {loop: y.j_1, width: 4}",
        ),
        Example(
            "A loop that holds vectors",
            SCALE,
            "- vectorize: {loop: y.j, width: 4}\n- vectorize: {loop: y.i, width: 4}",
            refused="vectorized loop 'y.j_1' would be in vectorized loop 'y.i': a lane holds one"
            " value, no vector",
        ),
    )
