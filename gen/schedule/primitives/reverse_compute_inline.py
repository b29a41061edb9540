"""reverse_compute_inline: a block computed inside the block that it reads from."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import add, conjunction, less
from ...ir.index.bounds import Range, at_most
from ...ir.nodes import Binary, BinaryOp, Block, Expr, Store, Var
from ...ir.walk import ancestors, loads, replace_stmt, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.inlining import inline_reads, plain_indices
from ..edit.new_loops import predicate_at
from ..edit.shared_loops import in_loops
from ..edit.tree import (
    block_named,
    is_argument,
    prune_shared,
    ranges_of,
    readers,
    rebuild,
    remove,
    scope_of,
    tree,
)
from ..examples import STENCIL, TWICE


@final
@dataclass(frozen=True)
class ReverseComputeInline(Primitive):
    """Computes a block in the place of the block that it reads from, with that block's expression
    in place of the reads.

    The block must be the only reader, at one index that names each of its iteration variables once.
    """

    block: str

    name: ClassVar[str] = "reverse_compute_inline"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Both in the producer's loop",
            TWICE,
            "- reverse_compute_inline: {block: y}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for t.i in range(n):
        with block("y", i=spatial(t.i)):
            y[i] = x[i] * 2.0 + 1.0
""",
        ),
        Example(
            "Reads at two places",
            STENCIL,
            "- reverse_compute_inline: {block: y}",
            refused="its reads of 't' do not name each of its iteration variables once",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        if not isinstance(block.body, Store):
            return f"block '{block.name}' is a reduction; use reverse_compute_at"
        producers = self._producers(state, block)
        if len(producers) != 1:
            return f"block '{block.name}' reads from {len(producers)} blocks, not from one"
        producer = producers[0]
        if not isinstance(producer.body, Store):
            return f"block '{producer.name}' is a reduction; use reverse_compute_at"
        buffer = producer.body.target.buffer
        if is_argument(state.kernel, buffer):
            return f"block '{producer.name}' writes the argument '{buffer}'"
        if reason := plain_indices(producer):
            return reason
        others = {name for name, _ in readers(state.flow, producer.name)} - {block.name}
        if others:
            return f"block '{min(others)}' reads from block '{producer.name}', too"
        indices = {x.indices for x in loads(block.body) if x.buffer == buffer}
        named = [i.name for i in min(indices, key=str) if isinstance(i, Var)]
        if len(indices) > 1 or sorted(named) != sorted(v.name for v in block.iters):
            return f"its reads of '{buffer}' do not name each of its iteration variables once"
        return None

    def _producers(self, state: Scheduled, block: Block) -> tuple[Block, ...]:
        count = len(loads(block.body))
        writers = (w for n in range(count) for w in state.flow[block.name, n].writers)
        return tuple(block_named(state.kernel, w) for w in dict.fromkeys(writers))

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        block = block_named(state.kernel, self.block)
        (producer,) = self._producers(state, block)
        new, sources = inline_reads(block, producer, state.flow)
        around = ancestors(root, producer)
        placed = _placed(new, block, producer, ranges_of(around), frozenset(scope_of(around)))
        body = remove(replace_stmt(root, producer, placed), block)
        kernel = rebuild(state.kernel, body)
        gone = {block.name, producer.name}
        flow = {read: s for read, s in state.flow.items() if read[0] not in gone}
        flow.update({(block.name, k): s for k, s in enumerate(sources)})
        return Scheduled(kernel, prune_shared(kernel, flow))


def _placed(
    new: Block,
    block: Block,
    producer: Block,
    ranges: tuple[Range, ...],
    in_scope: frozenset[str],
) -> Block:
    """The joined block where the producer stood, guarded where that runs past its domain."""
    assert isinstance(producer.body, Store)
    target = producer.body.target
    read = next(x for x in loads(block.body) if x.buffer == target.buffer)
    at = zip(read.indices, in_loops(producer, target.indices), strict=True)
    values = {i.name: value for i, value in at if isinstance(i, Var)}
    guards: list[Expr] = list(predicate_at(block, values, in_scope))
    for v in block.iters:
        lower, upper = substitute(v.lower, values), substitute(v.upper, values)
        if not at_most(lower, values[v.name], ranges):
            guards.append(Binary(BinaryOp.LE, lower, values[v.name]))
        if not at_most(add(values[v.name], 1), upper, ranges):
            guards.append(less(values[v.name], upper))
    return replace(
        new,
        bindings=tuple(values[v.name] for v in block.iters),
        predicate=conjunction(producer.predicate, *guards),
    )
