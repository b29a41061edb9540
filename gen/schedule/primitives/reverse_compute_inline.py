"""reverse_compute_inline: a block computed inside the block that it reads from."""

from dataclasses import replace

from ...ir.algebra import conjunction
from ...ir.index.bounds import LoopRange
from ...ir.nodes import Block, Expr, Store, Var
from ...ir.walk import ancestors, loads, replace_stmt, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.inlining import inline_reads, require_plain_indices
from ..edit.new_loops import predicate_at, within
from ..edit.shared_loops import in_loops
from ..edit.tree import CannotApply
from ..examples import STENCIL, TWICE


class ReverseComputeInline(Primitive):
    """Computes a block in the place of the block that it reads from, with that block's expression
    in place of the reads.

    The block must be the only reader, at one index that names each of its iteration variables once.
    """

    block: str

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        if not isinstance(block.body, Store):
            raise CannotApply(f"block '{block.name}' is a reduction; use reverse_compute_at")
        producers = self._producers(state, block)
        if len(producers) != 1:
            raise CannotApply(
                f"block '{block.name}' reads from {len(producers)} blocks, not from one"
            )
        producer = producers[0]
        if not isinstance(producer.body, Store):
            raise CannotApply(f"block '{producer.name}' is a reduction; use reverse_compute_at")
        buffer = producer.body.target.buffer
        if edit.is_argument(state.kernel, buffer):
            raise CannotApply(f"block '{producer.name}' writes the argument '{buffer}'")
        require_plain_indices(producer)
        others = {name for name, _ in edit.readers(state.flow, producer.name)} - {block.name}
        if others:
            raise CannotApply(f"block '{min(others)}' reads from block '{producer.name}', too")
        indices = {x.indices for x in loads(block.body) if x.buffer == buffer}
        named = [i.name for i in min(indices, key=str) if isinstance(i, Var)]
        if len(indices) > 1 or sorted(named) != sorted(v.name for v in block.iters):
            raise CannotApply(
                f"its reads of '{buffer}' do not name each of its iteration variables once"
            )
        root = edit.tree(state.kernel)
        (producer,) = self._producers(state, block)
        new, sources = inline_reads(block, producer, state.flow)
        around = ancestors(root, producer)
        placed = _placed(
            new, block, producer, edit.ranges_of(around), frozenset(edit.scope_of(around))
        )
        body = edit.remove(replace_stmt(root, producer, placed), block)
        kernel = edit.rebuild(state.kernel, body)
        gone = {block.name, producer.name}
        flow = {read: s for read, s in state.flow.items() if read[0] not in gone}
        flow.update({(block.name, k): s for k, s in enumerate(sources)})
        return Scheduled(kernel, flow)

    def _producers(self, state: Scheduled, block: Block) -> tuple[Block, ...]:
        count = len(loads(block.body))
        writers = (w for n in range(count) for w in state.flow[block.name, n].writers)
        return tuple(edit.block_named(state.kernel, w) for w in dict.fromkeys(writers))

    EXAMPLES = (
        Example("Both in the producer's loop", TWICE, "- reverse_compute_inline: {block: y}"),
        Example(
            "Reads at two places",
            STENCIL,
            "- reverse_compute_inline: {block: y}",
            refused="its reads of 't' do not name each of its iteration variables once",
        ),
    )


def _placed(
    new: Block,
    block: Block,
    producer: Block,
    ranges: tuple[LoopRange, ...],
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
        guards += within(values[v.name], (lower,), (upper,), ranges)
    return replace(
        new,
        bindings=tuple(values[v.name] for v in block.iters),
        predicate=conjunction(producer.predicate, *guards),
    )
