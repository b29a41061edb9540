"""reverse_compute_at: values used where they are computed."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.index.bounds import smaller
from ...ir.nodes import Block, Loop
from ...ir.walk import blocks, loads, replace_stmt, substitute, targets
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.moving import between, inside_of, kept_iters, refuse_move, used_names
from ..edit.new_loops import Interval, place, required, touched
from ..edit.shared_loops import reads_of, share_loop
from ..edit.tree import (
    block_named,
    containing,
    insert,
    loop_named,
    loops_around,
    prune_shared,
    ranges_of,
    rebuild,
    remove,
    tree,
    under,
    with_body,
)
from ..examples import ROW_SQUARES, TWICE


@final
@dataclass(frozen=True)
class ReverseComputeAt(Primitive):
    """Moves a block into a loop in which values that it reads are computed, after the last of
    them; each iteration runs the instances whose values are complete with it.

    The block may be a reduction: then it goes on with what each iteration gives it.
    """

    block: str
    loop: str

    name: ClassVar[str] = "reverse_compute_at"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "A reduction goes on with each value",
            ROW_SQUARES,
            "- reverse_compute_at: {block: y, loop: t.j}",
            after="""\
def row_squares(m, n, x: float32[m, n], y: Out[float32[m]]):
    for t.i in range(m):
        for t.j in range(n):
            with allocate(t=float32[m, n]):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * x[i, j]
                with block("y", i=spatial(t.i), j=reduction(t.j), initialises=True):
                    y[i] = combine.sum(y[i], t[i, j])
""",
        ),
        Example(
            "Nothing that it reads is computed there",
            TWICE,
            "- reverse_compute_at: {block: t, loop: y.i}",
            refused="no block in loop 'y.i' computes what block 't' reads",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        loop = loop_named(state.kernel, self.loop)
        if any(loop is x for x in loops_around(tree(state.kernel), block)):
            return f"loop '{self.loop}' is around block '{block.name}' already"
        if not self._producers(state, block, loop):
            return f"no block in loop '{self.loop}' computes what block '{block.name}' reads"
        return refuse_move(state, block, loop)

    def _producers(self, state: Scheduled, block: Block, loop: Loop) -> tuple[Block, ...]:
        count = len(loads(block.body))
        writers = {w for n in range(count) for w in state.flow[block.name, n].writers}
        return tuple(b for b in blocks(loop) if b.name in writers)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        around = inside_of(root, loop)
        kept = kept_iters(root, block, loop)
        wanted = self._wanted(state, block, loop, kept)
        new = place(block, around, kept, wanted, used_names(state, block))
        producers = {b.name for b in self._producers(state, block, loop)}
        rest = remove(root, block)
        loop = loop_named(rebuild(state.kernel, rest), self.loop)
        last = containing(under(loop), lambda b: b.name in producers)[-1]
        moved = with_body(loop, insert(under(loop), last + 1, new))
        kernel = rebuild(state.kernel, replace_stmt(rest, loop, moved))
        flow = prune_shared(kernel, state.flow)
        for x in (*loops_around(rest, loop), loop):
            flow = share_loop(kernel, flow, x.var, reads_of(flow, block.name))
        return Scheduled(kernel, flow)

    def _wanted(
        self, state: Scheduled, block: Block, loop: Loop, kept: frozenset[str]
    ) -> dict[str, Interval]:
        """For each iteration variable, the values whose last input one iteration computes."""
        ranges = ranges_of(inside_of(tree(state.kernel), loop))
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
