"""Sweeps: arrays that are computed again and again, each time from their own neighbours before.

Looks for: a loop over steps in time around blocks of rows and lines, of which some read what
others, or they themselves, have written. Processor: where the arrays are larger than the caches,
bands of steps. In a band each block goes over tiles of rows, and a step is some tiles behind the
one before it, so that what it reads is in the caches still (time skewing, Wonnacott 2000); the
steps of a band, each at a tile of its own, are independent of each other (Lamport 1974). Elsewhere:
threads over the rows of each step. Vectors begin where lines of caches do, wherever loops start.
"""

from ...ir.index.linear import constant, linear
from ...ir.nodes import Const, Expr, Loop, Var
from ...ir.text.print_expr import spec_text
from ...ir.walk import blocks, buffers
from ..edit.tree import loop_named
from .elementwise import walked_line
from .parts.draft import Declined, Draft
from .parts.nest import Nest, nest_of
from .parts.threads import threaded

STEPS, BLOCKS = 16, 32  # of a band, at most: steps, and blocks in all of them
ROWS = 8  # of a tile; a plane counts as twice as many


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    time, nests = _steps(draft, nest)
    names = tuple(each.name for each in nests)
    simple = draft.settled(*names)
    for name in names:
        simple = _vectors(simple, name)
    for name in names:
        simple = threaded(simple, name)
    large = _large(draft, time, nests)
    if not large:
        return (simple,)
    try:
        return _banded(draft.settled(*names), time, nests).proved().under(*large), simple
    except Declined:
        return (simple,)


def _steps(draft: Draft, nest: Nest) -> tuple[Loop, tuple[Nest, ...]]:
    """The loop over steps, and the nests of its blocks. Raises Declined."""
    if len(nest.loops) < 2:
        raise Declined("no loop over steps is around its own")
    time, *_ = nest.loops
    nests = tuple(nest_of(draft.kernel, block.name) for block in blocks(time))
    written = {write.buffer for each in nests for write in each.writes}
    if written.isdisjoint(read.buffer for each in nests for read in each.reads):
        raise Declined(f"nothing that loop '{time.var}' runs reads what it writes")
    for each in nests:
        loops = [loop.var for loop in each.loops if loop is not time]
        if not loops or each.shared.intersection(loops):
            raise Declined(f"block '{each.name}' has no loops of its own in '{time.var}'")
        if any(each.loop_of[var] != time.var for var in each.reduction):
            raise Declined("it is a reduction")
        if walked_line(each) not in loops:
            raise Declined(f"block '{each.name}' has no line in '{time.var}'")
        if any(_walks(each, time.var, index) for index in each.writes[0].indices):
            raise Declined(f"loop '{time.var}' goes along what it writes")
    if all(len(each.loops) < 3 for each in nests):
        raise Declined("it has no rows")
    return time, nests


def _walks(nest: Nest, loop: str, index: Expr) -> bool:
    """Whether each iteration of a loop writes further along an axis, and not in turns."""
    return any(isinstance(e, Var) and nest.loop_of.get(e.name) == loop for e in linear(index).terms)


def _large(draft: Draft, time: Loop, nests: tuple[Nest, ...]) -> tuple[str, ...]:
    """That there are several steps, of arrays that no cache holds; nothing where no size tells."""
    known = buffers(draft.kernel)
    shapes = (known[each.writes[0].buffer].shape for each in nests)
    axes = max(([e for e in shape if not isinstance(e, Const)] for shape in shapes), key=len)
    if not axes or constant(time.lower) != 0 or not isinstance(time.upper, Var):
        return ()
    size = " * ".join(spec_text(e) if isinstance(e, Var) else f"({spec_text(e)})" for e in axes)
    return f"{time.upper.name} >= 2", f"{size} >= $cache"


def _vectors(draft: Draft, name: str) -> Draft:
    """A block in vectors along its line."""
    nest = nest_of(draft.kernel, name)
    line = walked_line(nest)
    own = [loop.var for loop in nest.own]
    if own[-1] != line:
        draft = draft.step("reorder", loops=[*(var for var in own if var != line), line])
    if not constant(loop_named(draft.kernel, line).lower):
        return draft.step("vectorize", loop=line, width="$lanes")
    parts = [f"{line}0", f"{line}1"]
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=parts, grid=True)
    return draft.step("vectorize", loop=parts[1], width="$lanes")


def _banded(draft: Draft, time: Loop, nests: tuple[Nest, ...]) -> Draft:
    """A block's tile is one behind that of the block before it, and so is the first block's behind
    that of the last one, a step earlier: each reads at most the tile beside its own.
    """
    count, tiles = len(nests), list[str]()
    if count > BLOCKS // 4:
        raise Declined("it has many blocks, of which few steps are in the caches at once")
    band, step = f"{time.var}0", f"{time.var}1"
    planes = any(len(nest.loops) > 3 for nest in nests)
    steps = max(2, min(STEPS, BLOCKS // count // (2 if planes else 1)))
    draft = draft.step("split", loop=time.var, factors=[None, steps], as_=[band, step])
    for behind, nest in enumerate(nests):
        draft, tile = _tiles(draft, nest)
        tiles.append(tile)
        if behind:
            draft = draft.step("shift", loop=tile, by=behind)
    (tile, *others) = tiles
    if others:
        tile = f"{nests[0].name}.tiles"
        draft = draft.step("merge", loops=tiles, as_=[tile])
    draft = draft.step("skew", loops=[step, tile], factor=count + 1)
    draft = draft.step("reorder", loops=[band, tile, step]).step("parallel", loop=step)
    for nest in nests:
        draft = _vectors(draft, nest.name)
    return draft


def _tiles(draft: Draft, nest: Nest) -> tuple[Draft, str]:
    """A block's rows in tiles, and the loop over these; one for a line alone."""
    rows, line = nest.loops[1].var, walked_line(nest)
    if rows == line:
        return draft.step("add_unit_loop", loop=line, as_=[f"{nest.name}.row"]), f"{nest.name}.row"
    if len(nest.loops) > 3:  # planes, and not rows, of which one is as much as there should be
        return draft, rows
    parts = [f"{rows}0", f"{rows}1"]
    return draft.step("split", loop=rows, factors=[None, ROWS], as_=parts), parts[0]
