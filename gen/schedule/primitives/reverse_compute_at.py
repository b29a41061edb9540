"""reverse_compute_at: values used where they are computed."""

from ...ir.index.bounds import smaller
from ...ir.nodes import Block, Loop
from ...ir.walk import blocks, loads, substitute, targets
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.moving import (
    between,
    inside_of,
    kept_iters,
    put,
    require_movable,
    require_outside,
    used_names,
)
from ..edit.new_loops import Interval, place, required, touched
from ..edit.shared_loops import reads_of, share_loop
from ..edit.tree import CannotApply
from ..examples import ROW_SQUARES, TWICE


class ReverseComputeAt(Primitive):
    """Moves a block into a loop in which values that it reads are computed, after the last of
    them; each iteration runs the instances whose values are complete with it. Reads at
    quotients by numbers count, as of phases that are computed apart: with `y[i] = z[i % 2, i // 2]`
    an iteration that computes rows of z runs twice as many of y.

    The block may be a reduction: then it goes on with what each iteration gives it.
    """

    block: str
    loop: str

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        loop = edit.loop_named(state.kernel, self.loop)
        require_outside(state, block, loop)
        if not self._producers(state, block, loop):
            raise CannotApply(
                f"no block in loop '{self.loop}' computes what block '{block.name}' reads"
            )
        require_movable(state, block, loop)
        root = edit.tree(state.kernel)
        around = inside_of(root, loop)
        kept = kept_iters(root, block, loop)
        wanted = self._wanted(state, block, loop, kept)
        new = place(block, around, kept, wanted, used_names(state, block))
        producers = {b.name for b in self._producers(state, block, loop)}
        rest = edit.remove(root, block)
        loop = edit.loop_named(edit.rebuild(state.kernel, rest), self.loop)
        body = put(rest, loop, new, lambda b: b.name in producers, after=True)
        kernel = edit.rebuild(state.kernel, body)
        flow = edit.prune_shared(kernel, state.flow)
        for x in (*edit.loops_around(rest, loop), loop):
            flow = share_loop(kernel, flow, x.var, reads_of(flow, block.name))
        return Scheduled(kernel, flow)

    def _producers(self, state: Scheduled, block: Block, loop: Loop) -> tuple[Block, ...]:
        count = len(loads(block.body))
        writers = {w for n in range(count) for w in state.flow[block.name, n].writers}
        return tuple(b for b in blocks(loop) if b.name in writers)

    def _wanted(
        self, state: Scheduled, block: Block, loop: Loop, kept: frozenset[str]
    ) -> dict[str, Interval]:
        """For each iteration variable, the values whose last input one iteration computes."""
        ranges = edit.ranges_of(inside_of(edit.tree(state.kernel), loop))
        pairs = zip(block.iters, block.bindings, strict=True)
        known = {v.name: b for v, b in pairs if v.name in kept}
        iters = frozenset(v.name for v in block.iters)
        result: dict[str, Interval] = {}
        producers = self._producers(state, block, loop)
        for number, load in enumerate(loads(block.body)):
            for producer in producers:
                if producer.name not in state.flow[block.name, number].writers:
                    continue
                target = next(t for t in targets(producer.body) if t.buffer == load.buffer)
                region = touched(producer, target.indices, between(loop, producer), ranges)
                places = tuple(substitute(i, known) for i in load.indices)
                for name, new in required(places, region, iters).items():
                    old = result.get(name, new)
                    lower = smaller(old.lower, new.lower, ranges)
                    result[name] = Interval(lower, smaller(old.upper, new.upper, ranges))
        return result

    EXAMPLES = (
        Example(
            "A reduction goes on with each value",
            ROW_SQUARES,
            "- reverse_compute_at: {block: y, loop: t.j}",
        ),
        Example(
            "Nothing that it reads is computed there",
            TWICE,
            "- reverse_compute_at: {block: t, loop: y.i}",
            refused="no block in loop 'y.i' computes what block 't' reads",
        ),
    )
