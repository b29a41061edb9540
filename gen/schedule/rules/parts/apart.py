"""Loops that several blocks share, cut into loops of their own.

Input: a draft, and a block. Output: the draft in which no other block runs in the block's loops, as
far as that is right: what blocks hand each other in an iteration then waits in memory for the next
loop.
"""

from ....ir.nodes import Update, Var
from ....ir.walk import accessed, blocks
from ...edit.allocation import hoist
from ...edit.tree import loop_named, temporaries, under
from .draft import Draft
from .nest import ArrayAccess, Nest, nest_of


def apart(draft: Draft, name: str) -> Draft:
    """With the blocks around this one in loops of their own, as far as that is right."""
    for loop in reversed(nest_of(draft.kernel, name).loops):  # then an outer one has more to cut
        if len(blocks(loop)) > 1:
            draft = _cut(draft, loop.var)
    return draft


def _cut(draft: Draft, loop: str) -> Draft:
    """With a loop for each statement in this one. What they hand each other gets elements for each
    iteration where it has none, no more of them than they write.
    """
    wide = draft
    for name in _handed_on(draft, loop):
        wide = wide.perhaps("expand", buffer=name, loops=[loop])
    cut = wide.if_sound("fission", loop=loop)
    return draft if cut is wide else cut


def _handed_on(draft: Draft, loop: str) -> list[str]:
    """The temporaries that statements of the loop share, of which an element is a sum in each
    iteration, for one of what is written. A number that is no sum is better used where it is made.
    """
    kernel = hoist(draft.state).kernel
    parts = [blocks(statement) for statement in under(loop_named(kernel, loop))]
    used = [frozenset[str]().union(*map(accessed, part)) for part in parts]
    return [
        buffer.name
        for buffer in temporaries(kernel)
        if sum(buffer.name in names for names in used) > 1
        and all(
            _is_for_one(nest_of(kernel, block.name), buffer.name, loop)
            for part in parts
            for block in part
            if buffer.name in accessed(block)
        )
    ]


def _is_for_one(nest: Nest, name: str, loop: str) -> bool:
    """Whether the block sums up the temporary from what lies along the loop; or writes from it an
    array in which each of its axes, and one along the loop, is an axis of its own.
    """
    own = {var for var, each in nest.loop_of.items() if each == loop}
    places = [access for access in (*nest.reads, *nest.writes) if access.buffer == name]
    axes = frozenset[str]().union(*(access.variables for access in places))
    if not own or own & axes:
        return False
    if any(written.buffer == name for written in nest.writes):
        summed = isinstance(nest.block.body, Update)
        return summed and any(own <= read.variables for read in nest.reads)
    return any(axes | own <= _alone(written) for written in nest.writes)


def _alone(access: ArrayAccess) -> frozenset[str]:
    """The variables that are indices by themselves: the array has an element for each."""
    return frozenset(index.name for index in access.indices if isinstance(index, Var))
