"""Lines: vectors along whatever line a block has.

Looks for: a line that is written, whose loop is the innermost one or may become it; or one that is
summed up, all that is read lying along it. Processor: lanes in that loop, and threads over the
outermost loops of which the iterations are independent, be they other blocks', too.
"""

from ...ir.nodes import Allocate, Block, Loop, LoopKind, Seq
from ...ir.walk import variables
from .parts.draft import Declined, Draft
from .parts.nest import Nest
from .parts.sums import of_windows
from .parts.threads import threaded


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if not nest.loops or nest.loops[-1].kind is not LoopKind.SERIAL:
        raise Declined("it has no innermost loop of its own")
    lanes = draft
    if nest.inner is not None:
        lanes = _along(draft, nest, nest.inner)
    if lanes is draft:
        lanes = _summed(draft, nest)
    if lanes is draft:
        raise Declined("no loop along a line may be taken in vectors")
    return (threaded(lanes, nest.name),)


def _along(draft: Draft, nest: Nest, line: str) -> Draft:
    """Along the line that is written, its loop being the innermost one or made it."""
    loop, own = nest.loop_of[line], [each.var for each in nest.own]
    if line in nest.of_data:
        return draft
    if loop != nest.loops[-1].var:
        if loop not in own or any(access.stride(line) is None for access in nest.reads):
            return draft
        if any(loop in variables(each.lower) | variables(each.upper) for each in nest.own):
            return draft
        own = [*(var for var in own if var != loop), loop]
        try:
            ordered = draft.step("reorder", loops=own).proved()
        except Declined:
            return draft
        lanes = ordered.if_sound("vectorize", loop=loop, width="$lanes")
        return draft if lanes is ordered else lanes
    if not _only_blocks(nest.loops[-1]):
        return draft
    return draft.if_sound("vectorize", loop=loop, width="$lanes")


def _summed(draft: Draft, nest: Nest) -> Draft:
    """Along what is summed up; windows are shorter than vectors."""
    last = nest.loops[-1]
    terms = [var for var in nest.reduction if nest.loop_of[var] == last.var]
    if not terms or any(access.stride(terms[0]) not in (0, 1) for access in nest.reads):
        return draft
    if nest.of_data & {*terms} or of_windows(nest, terms[0]) or not _only_blocks(last):
        return draft
    return draft.if_sound("vectorize", loop=last.var, width="$lanes")


def _only_blocks(loop: Loop) -> bool:
    """Whether nothing else is in it but the temporaries that they hand each other."""
    body = loop.body
    while isinstance(body, Allocate):
        body = body.body
    parts = body.body if isinstance(body, Seq) else (body,)
    return all(isinstance(part, Block) for part in parts)
