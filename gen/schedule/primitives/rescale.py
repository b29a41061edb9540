"""rescale: reductions that use each other's results become one pass, by a law."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.nodes import (
    Block,
    Buffer,
    Expr,
    Kernel,
    Target,
    Update,
    Var,
)
from ...ir.walk import blocks, loads, replace_stmt, substitute, targets
from ...poly.certificate import Flow, Given, Scheduled, Source
from ...poly.laws.law import TERM
from ...poly.laws.matching import Blocks, Fit, NoFit, fitting
from ...poly.values.flow import Computed, Contents, Value
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    block_named,
    buffer_named,
    fresh,
    is_argument,
    names,
    prune_shared,
    rebuild,
    remove,
    temporaries,
    tree,
)
from ..examples import ROW_EXPONENTIALS, ROW_SPREAD


@final
@dataclass(frozen=True)
class Rescale(Primitive):
    """Makes one reduction, of tuples, of reductions of which each uses the results of those before:
    one pass over the terms, in which what was reduced so far is scaled to each new result.

    `blocks` are the reductions in their order. The block that is left has the first one's name and
    loops, and is a reduction like any other: rfactor, vectorize and parallel take it apart as they
    do a sum. That this is right is a law, which is found by what the blocks compute, or named by
    `law`; the proof takes it for granted, and says so. Results are no longer the same bits: each
    law states how far they may be from the exact ones. Blocks that nothing reads any more are gone.
    """

    blocks: tuple[str, ...]
    law: str | None = None

    name: ClassVar[str] = "rescale"
    layer: ClassVar[Layer] = Layer.ALGORITHM
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Exponentials and their largest one: one pass, with one exponential a term",
            ROW_EXPONENTIALS,
            "- rescale: {blocks: [peak, y]}",
            after="""\
def row_exponentials(m, n, x: float32[m, n], y: Out[float32[m]]):
    @combiner(peak=float32("-inf"), total=float32(0.0))
    def online_softmax(a, b, c):
        c.peak = max(a.peak, b.peak)
        c.total = a.total + b.total if a.peak == b.peak else (a.total if a.peak == c.peak else b.total) + (0.0 if min(a.peak, b.peak) == float32("-inf") else (b.total if a.peak == c.peak else a.total) * exp(min(a.peak, b.peak) - c.peak))
    with allocate(peak=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i], y[i] = combine.online_softmax((peak[i], y[i]), (x[i, j], 1.0 + (x[i, j] - x[i, j])))
""",  # noqa: E501
        ),
        Example(
            "A mean and the squares of what is left: they need the number of terms, too",
            ROW_SPREAD,
            "- rescale: {blocks: [total, y]}",
            after="""\
def row_spread(m, n, x: float32[m, n], y: Out[float32[m]]):
    @combiner(count=float32(0.0), total=float32(0.0), square=float32(0.0))
    def one_pass_moments(a, b, c):
        c.count = a.count + b.count
        c.total = a.total + b.total
        c.square = a.square + b.square + (0.0 if a.count == 0.0 or b.count == 0.0 else (b.total / b.count - a.total / a.count) * (b.total / b.count - a.total / a.count) * (a.count * b.count / c.count))
    with allocate(total=float32[m], total_count=float32[m]):
        for total.i in range(m):
            for total.j in range(n):
                with block("total", i=spatial(total.i), j=reduction(total.j), initialises=True):
                    total_count[i], total[i], y[i] = combine.one_pass_moments((total_count[i], total[i], y[i]), (1.0, x[i, j], x[i, j] - x[i, j]))
""",  # noqa: E501
        ),
        Example(
            "Sums that no law joins",
            ROW_SPREAD,
            "- rescale: {blocks: [total, y], law: online_softmax}",
            refused="no law joins them (online_softmax: block 'total' is a sum, and 'peak' a max)",
        ),
        Example(
            "A reduction that is in parts already",
            ROW_SPREAD,
            "- rfactor: {block: y, loop: y.j}\n- rescale: {blocks: [total, y]}",
            refused="block 'y' is no longer the spec's reduction; rescale it before that",
        ),
        Example(
            "A law that there is not",
            ROW_SPREAD,
            "- rescale: {blocks: [total, y], law: online_variance}",
            refused="there is no law 'online_variance'; there are one_pass_moments, online_softmax",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        for name in self.blocks:
            block = block_named(state.kernel, name)
            if not _whole(state.kernel, block):
                return f"block '{name}' is no longer the spec's reduction; rescale it before that"
        try:
            law = self._fit(state).law
        except NoFit as no:
            return str(no)
        bodies = [b.body for b in blocks(state.kernel.body)]
        for combiner in (b.combiner for b in bodies if isinstance(b, Update)):
            if combiner.value == law.name and combiner != law.combiner:
                return f"there is another reduction '{law.name}' already"
        return None

    def _fit(self, state: Scheduled) -> Fit:
        by_name = {b.name: b for b in blocks(state.kernel.body)}

        def maker(block: str, number: int) -> Value | None:
            buffer = loads(by_name[block].body)[number].buffer
            match state.flow[block, number]:
                case Source((), True):
                    return Contents(buffer)
                case Source((writer,), False):
                    places = [t.buffer for t in targets(by_name[writer].body)]
                    return Computed(writer, places.index(buffer))
                case _:
                    return None

        return fitting(Blocks(by_name, maker), self.blocks, self.law)

    def laws(self, state: Scheduled) -> tuple[Given, ...]:
        fit = self._fit(state)
        origins = (block_named(state.kernel, name).origin for name in fit.blocks.values())
        return (Given(fit.law.name, tuple(origin.block for origin in origins if origin)),)

    def rewrite(self, state: Scheduled) -> Scheduled:
        fit = self._fit(state)
        first, *others = (block_named(state.kernel, name) for name in self.blocks)
        one, buffers = _joined(state.kernel, fit, first)
        body = replace_stmt(tree(state.kernel), first, one)
        gone = frozenset(b.name for b in others)
        flow = _flow(state.flow, first, one, gone)
        gone |= _unread(state, flow, gone, first.name)
        for block in blocks(body):
            if block.name in gone:
                body = remove(body, block)
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), *buffers))
        flow = {read: source for read, source in flow.items() if read[0] not in gone}
        return Scheduled(kernel, prune_shared(kernel, flow))


def _unread(state: Scheduled, flow: Flow, gone: frozenset[str], kept: str) -> frozenset[str]:
    """The blocks that only those which are gone have read, or others of these."""
    found: frozenset[str] = frozenset()
    while True:
        lost = gone | found
        wanted = {w for read, s in flow.items() if read[0] not in lost for w in s.writers}
        fed = {w for read, s in state.flow.items() if read[0] in lost for w in s.writers}
        new = {name for name in fed - wanted - lost - {kept} if _is_temporary(state.kernel, name)}
        if not new:
            return found
        found |= new


def _is_temporary(kernel: Kernel, block: str) -> bool:
    """Whether the block writes temporaries alone."""
    places = targets(block_named(kernel, block).body)
    return not any(is_argument(kernel, t.buffer) for t in places)


def _whole(kernel: Kernel, block: Block) -> bool:
    """Whether the block is all of a reduction of the plain schedule, instance by instance."""
    if block.origin is None or block.origin.at != tuple(Var(v.name) for v in block.iters):
        return False
    origins = [b.origin.block for b in blocks(kernel.body) if b.origin]
    return origins.count(block.origin.block) == 1


def _joined(kernel: Kernel, fit: Fit, first: Block) -> tuple[Block, tuple[Buffer, ...]]:
    """The reduction of all parts, and buffers for those that no reduction had."""
    assert isinstance(first.body, Update)
    last = block_named(kernel, list(fit.blocks.values())[-1])
    buffers: list[Buffer] = []
    places: list[Target] = []
    terms: list[Expr] = []
    for part, none in zip(fit.law.combiner.parts, fit.law.combiner.identity, strict=True):
        terms.append(substitute(fit.form.terms[part], {TERM: first.body.values[0]}))
        block = block_named(kernel, fit.blocks[part]) if part in fit.blocks else last
        place = _place(block, first)
        if part not in fit.blocks:
            name = fresh(f"{first.name}_{part}", names(kernel))
            buffers.append(Buffer(name, none.dtype, buffer_named(kernel, place.buffer).shape))
            place = replace(place, buffer=name)
        places.append(place)
    body = Update(fit.law.combiner, tuple(places), tuple(terms))
    return replace(first, body=body), tuple(buffers)


def _place(block: Block, first: Block) -> Target:
    """Where the block puts its result, in the first block's variables."""
    own = zip(block.iters, first.iters, strict=True)
    return substitute(targets(block.body)[0], {v.name: Var(w.name) for v, w in own})


def _flow(flow: Flow, first: Block, one: Block, gone: frozenset[str]) -> Flow:
    """Each term reads what the first reduction's did; who read the others reads the one."""
    before = len(loads(first.body))
    result: dict[tuple[str, int], Source] = {}
    for (reader, number), source in flow.items():
        if reader not in gone and reader != first.name:
            writers = (first.name if w in gone else w for w in source.writers)
            result[reader, number] = replace(source, writers=tuple(dict.fromkeys(writers)))
    for number in range(len(loads(one.body))):
        result[first.name, number] = flow[first.name, number % before]
    return result
