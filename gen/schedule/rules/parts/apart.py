"""Loops that several blocks share, cut into loops of their own.

Input: a draft, and a block. Output: the draft in which no other block runs in the block's loops, as
far as that is right: what blocks hand each other in an iteration then waits in memory for the next
loop.
"""

from ....ir.walk import blocks
from .draft import Draft
from .nest import nest_of


def apart(draft: Draft, name: str) -> Draft:
    """With the blocks around this one in loops of their own, as far as that is right."""
    for loop in reversed(nest_of(draft.kernel, name).loops):  # then an outer one has more to cut
        if len(blocks(loop)) > 1:
            draft = draft.if_sound("fission", loop=loop.var)
    return draft
