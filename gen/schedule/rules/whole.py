"""Reductions of whole arrays to one value.

Looks for: a reduction that no loop runs for several results, and whose terms lie in lines.
Processor: a partial result for each line, or for each piece of the only one, so that threads can
share them; each of these as `passes` has it; then these in vectors. Pieces have a length of their
own, so that results do not depend on how many threads there are.
"""

from ...ir.nodes import Update
from .parts.draft import Declined, Draft
from .parts.nest import Nest
from .parts.pieces import vectors
from .parts.reduction import line_of

PIECE = 65536  # terms: enough work for a thread to be worth it


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if not isinstance(nest.block.body, Update) or nest.spatial or nest.shared:
        raise Declined("it is no reduction to one value")
    line = nest.loop_of[line_of(nest)]
    own = [loop.var for loop in nest.own]
    rows = [loop for loop in own if loop != line]
    if own != [*rows, line]:
        draft = draft.step("reorder", loops=[*rows, line])
    if not rows:
        rows, line = [f"{line}0"], f"{line}1"
        draft = draft.step("split", loop=own[0], factors=[None, PIECE], as_=[*rows, line])
    part = f"{nest.name}_lines"
    joins = [f"{nest.name}.line{k}" for k, _ in enumerate(rows)]
    draft = draft.step("rfactor", block=nest.name, loops=rows, as_=[part, *joins])
    draft = vectors(draft, part, line)
    draft = draft.perhaps("vectorize", loop=joins[-1], width="$lanes")
    if len(rows) > 1:
        draft = draft.step("fuse", loops=rows, as_=f"{nest.name}.rows")
        rows = [f"{nest.name}.rows"]
    return (draft.step("parallel", loop=rows[0]),)
