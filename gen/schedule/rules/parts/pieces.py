"""Long rows: pieces of them, which threads take from whichever row they are.

Input: the blocks of a row, of which one is reduced, as `passes` has them. Output: a variant for
long rows. Each piece has a partial result; a row's are reduced when all are there. Pieces have a
length of their own, so that results do not depend on how many threads there are.
"""

from collections.abc import Mapping

from .draft import Declined, Draft
from .nest import nest_of
from .reduction import accumulators, inner_loops, is_float_sum, is_pair, pairs_at_once
from .region import Region

PIECE = 32768  # terms: enough work for a thread to be worth it


def in_pieces(draft: Draft, region: Region, variables: Mapping[str, str]) -> tuple[Draft, ...]:
    """The variant, proved; none where rows are better whole, as they are walked more than once.
    variables: that along which the terms of each reduction lie.
    """
    try:
        return (_in_pieces(draft, region, variables).proved(),)
    except Declined:
        return ()


def _in_pieces(draft: Draft, region: Region, variables: Mapping[str, str]) -> Draft:
    others = [name for name in region.blocks if name not in variables]
    walked = any(inner_loops(draft, name, region.rows) for name in others)
    if len(variables) != 1 or walked or len(region.rows) != 1:
        raise Declined("it is more than one reduction of each row")
    ((name, variable),) = variables.items()
    nest = nest_of(draft.kernel, name)
    if len(nest.reduction) > 1:
        raise Declined("its rows are more than lines")
    line = nest.loop_of[variable]
    piece, inside, part = f"{line}0", f"{line}1", f"{name}_pieces"
    draft = draft.step("split", loop=line, factors=[None, PIECE], as_=[piece, inside])
    draft = draft.step("rfactor", block=name, loops=[piece], as_=[part, f"{name}.piece"])
    if name == region.sink:
        (row,) = region.rows
        draft = draft.step("fission", loop=row, as_=[f"{part}.row", row])
    draft = vectors(draft, part, inside)
    for drawn in region.drawn:
        draft = draft.step("compute_at", block=drawn, loop=region.rows[0])
    if is_float_sum(draft.blocks[name]):
        draft = draft.step("cascade", block=name, loop=f"{name}.piece", lengths=[16, 16])
    first = f"{part}_rf" if f"{part}_rf" in draft.blocks else part
    loops = [loop.var for loop in nest_of(draft.kernel, first).loops]
    draft = draft.step("fuse", loops=loops[: loops.index(piece) + 1], as_=f"{part}.rows")
    draft = draft.step("parallel", loop=f"{part}.rows")
    (rows, *_) = nest_of(draft.kernel, region.sink).loops
    return draft.step("parallel", loop=rows.var)


def vectors(draft: Draft, name: str, line: str) -> Draft:
    """A reduction over a line in vectors, and these in blocks."""
    if is_pair(draft.blocks[name]):
        return pairs_at_once(draft, line)
    count = accumulators([draft.blocks[name]])
    before = draft.blocks
    draft = draft.step("vectorize", loop=line, width="$lanes", accumulators=count)
    (part,) = (new for new in draft.blocks if new not in before)
    if is_float_sum(draft.blocks[name]):
        draft = draft.step("cascade", block=part, loop=f"{line}_0", lengths=[32])
    return draft
