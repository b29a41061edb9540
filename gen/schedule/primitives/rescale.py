"""rescale: reductions that use each other's results become one pass, by a law."""

from dataclasses import replace

from ...ir.nodes import Block, Buffer, Destination, Expr, Kernel, Update, Var
from ...ir.walk import blocks, loads, replace_stmt, substitute, targets
from ...poly.certificate import Flow, Given, Scheduled, Source, Standing
from ...poly.laws.law import TERM
from ...poly.laws.matching import Blocks, Fit, NoFit, fitting
from ...poly.values.flow import Computed, Contents, Value
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import ROW_EXPONENTIALS, ROW_SPREAD


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

    def apply(self, state: Scheduled) -> Scheduled:
        fit = self._fit(state)
        first, *others = (edit.block_named(state.kernel, name) for name in self.blocks)
        one, buffers = _joined(state.kernel, fit, first)
        body = replace_stmt(edit.tree(state.kernel), first, one)
        gone = frozenset(b.name for b in others)
        flow = _flow(state.flow, first, one, gone)
        gone |= _unread(state, flow, gone, first.name)
        for block in blocks(body):
            if block.name in gone:
                body = edit.remove(body, block)
        kernel = edit.rebuild(state.kernel, body, *buffers)
        flow = {read: source for read, source in flow.items() if read[0] not in gone}
        origins = (edit.block_named(state.kernel, name).origin for name in fit.blocks.values())
        given = Given(fit.law.name, tuple(origin.block for origin in origins if origin))
        return Scheduled(kernel, flow, Standing((given,)))

    def _fit(self, state: Scheduled) -> Fit:
        """The law that joins the blocks, and how. Raises CannotApply."""
        for name in self.blocks:
            if not _whole(state.kernel, edit.block_named(state.kernel, name)):
                reason = f"block '{name}' is no longer the spec's reduction; rescale it before that"
                raise CannotApply(reason)
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

        try:
            fit = fitting(Blocks(by_name, maker), self.blocks, self.law)
        except NoFit as no:
            raise CannotApply(str(no)) from None
        bodies = (b.body for b in by_name.values())
        for combiner in (b.combiner for b in bodies if isinstance(b, Update)):
            if combiner.value == fit.law.name and combiner != fit.law.combiner:
                raise CannotApply(f"there is another reduction '{fit.law.name}' already")
        return fit

    EXAMPLES = (
        Example(
            "Exponentials and their largest one: one pass, with one exponential a term",
            ROW_EXPONENTIALS,
            "- rescale: {blocks: [peak, y]}",
        ),
        Example(
            "A mean and the squares of what is left: they need the number of terms, too",
            ROW_SPREAD,
            "- rescale: {blocks: [total, y]}",
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
            "A law that does not exist",
            ROW_SPREAD,
            "- rescale: {blocks: [total, y], law: online_variance}",
            refused="there is no law 'online_variance'; there are one_pass_moments, online_softmax",
        ),
    )


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
    places = targets(edit.block_named(kernel, block).body)
    return not any(edit.is_argument(kernel, t.buffer) for t in places)


def _whole(kernel: Kernel, block: Block) -> bool:
    """Whether the block is all of a reduction of the plain schedule, instance by instance."""
    if block.origin is None or block.origin.at != tuple(Var(v.name) for v in block.iters):
        return False
    origins = [b.origin.block for b in blocks(kernel.body) if b.origin]
    return origins.count(block.origin.block) == 1


def _joined(kernel: Kernel, fit: Fit, first: Block) -> tuple[Block, tuple[Buffer, ...]]:
    """The reduction of all parts, and buffers for those that no reduction had."""
    assert isinstance(first.body, Update)
    last = edit.block_named(kernel, list(fit.blocks.values())[-1])
    buffers: list[Buffer] = []
    places: list[Destination] = []
    terms: list[Expr] = []
    for part, none in zip(fit.law.combiner.parts, fit.law.combiner.identity, strict=True):
        terms.append(substitute(fit.form.terms[part], {TERM: first.body.values[0]}))
        block = edit.block_named(kernel, fit.blocks[part]) if part in fit.blocks else last
        place = _place(block, first)
        if part not in fit.blocks:
            name = edit.fresh(f"{first.name}_{part}", edit.names(kernel))
            buffers.append(Buffer(name, none.dtype, edit.buffer_named(kernel, place.buffer).shape))
            place = replace(place, buffer=name)
        places.append(place)
    body = Update(fit.law.combiner, tuple(places), tuple(terms))
    return replace(first, body=body), tuple(buffers)


def _place(block: Block, first: Block) -> Destination:
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
