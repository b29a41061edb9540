"""Reductions of columns, and what reads them: memory lies along the results, not along the terms.

Looks for: a block of which each place takes reductions of its own column, whose neighbours lie
beside it. Processor: a strip of columns at a time, in vectors along it, with the results in the
first-level cache, or of a vector's columns in a register; eight rows at a time go into registers
first, so that the results are loaded and stored once for these. Float sums are in blocks of that,
long ones in blocks of blocks; threads over strips. Rows of a caller's array of columns are the
same, whether they are reduced or walked again: what is kept of them lies along the columns, too.
"""

from collections.abc import Iterator, Sequence

from ...ir.nodes import LoopKind, Update, Var
from ..edit.tree import is_argument, reduction_loops
from .parts.draft import Declined, Draft
from .parts.nest import Nest, nest_of
from .parts.reduction import (
    condition_on,
    extent_of,
    in_registers,
    is_float_sum,
    is_pair,
    long_if,
    require_vectors,
)
from .parts.region import Region, region_of
from .parts.sums import loop_along

ROWS = 8  # that go into registers before they go into the results
DEEP = (32, 32, 32)  # blocks of those, blocks of these and so on, of long columns
WIDE = "$strip_vectors"  # of a strip whose results are in the first-level cache
NARROW = 4  # vectors of a strip of columns that are walked again, and so are to stay in the caches


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    draft, nest = _copied(draft, nest)
    region = region_of(draft, nest)
    if nest.inner is None or nest.loop_of[nest.inner] not in region.rows:
        raise Declined("what it writes does not lie along its columns")
    line = nest.loop_of[nest.inner]
    for name in region.blocks:
        _require_beside(nest_of(draft.kernel, name), region.variable(name, line))
    return tuple(strips(draft, region, line))


def of_callers(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    """Where rows are reduced, variants for arrays of columns: callers may give their arrays with
    the axes in another order. Of rows that are walked again, one variant for all lengths. None
    where that leads to no arrays of columns.
    """
    if draft.loop_dim is None:
        return ()
    draft, nest = _copied(draft, nest)
    region = region_of(draft, nest)
    walked = False
    for name in region.blocks:
        block, row = nest_of(draft.kernel, name), region.variable(name, region.rows[-1])
        walked |= len(block.spatial) > 1
        if len(block.spatial) > 2 or len(block.reduction) > 1:
            return ()
        first = [read.indices[0] == Var(row) for read in block.reads if row in read.variables]
        if block.reduction and not (first and all(first)):
            return ()
    line = region.rows[-1]
    if walked:
        try:
            draft = _turned(draft.settled(*region.drawn), region)
            return (_strip(draft, region, line, WIDE, DEEP[:1]),)
        except Declined:
            return ()
    return tuple(strips(draft, region, line, f"{draft.kernel.dims[0]} >= 0"))


def _turned(draft: Draft, region: Region) -> Draft:
    """With lines that are kept from one walk to the next of as many columns as the arrays are."""
    for name in region.drawn:
        nest = nest_of(draft.kernel, name)
        if len(nest.spatial) > 1:
            for write in nest.writes:
                draft = draft.step("transform_layout", buffer=write.buffer, order=[1, 0])
    return draft


def _copied(draft: Draft, nest: Nest) -> tuple[Draft, Nest]:
    """A reduction is copied to its argument when it is done, so that no result is stored often."""
    if not isinstance(nest.block.body, Update):
        return draft, nest
    results = [w.buffer for w in nest.writes if is_argument(draft.kernel, w.buffer)]
    if not results:
        raise Declined("what it reduces is no result")
    buffer = results[0]
    copy = f"{nest.name}_columns"
    draft = draft.step("cache_write", block=nest.name, buffer=buffer, as_=copy)
    return draft, nest_of(draft.kernel, copy)


def strips(draft: Draft, region: Region, line: str, *also: str) -> Iterator[Draft]:
    """For few columns and for all, long ones and others: in an order of sums that does not tell how
    many columns there are. also: conditions of all but the last.
    """
    draft = draft.settled(*region.drawn)
    nests = [nest_of(draft.kernel, name) for name in region.blocks]
    long = long_if(extent_of(n, n.reduction[-1]) for n in nests if is_float_sum(n.block))
    (count,) = (x.upper for x in nests[-1].own if x.var == line)
    pairs = any(is_pair(nest.block) for nest in nests)  # whose values stay in memory
    few = None if pairs else condition_on([count], "<= $lanes")
    cuts = [([long], DEEP)] if long else []
    for when, lengths in [*cuts, ([], DEEP[:1])]:
        narrow = _strip(draft, region, line, 1, lengths) if few else None
        if few and narrow and (kept := in_registers(narrow, f"{line}0")):
            yield kept.under(*also, few, *when)
    for when, lengths in cuts:
        yield _strip(draft, region, line, WIDE, lengths).under(*also, *when)
    yield _strip(draft, region, line, WIDE, DEEP[:1])


def _require_beside(nest: Nest, own: str) -> None:
    require_vectors(nest)
    strides = [read.stride(own) for read in nest.reads]
    if None in strides or (nest.reduction and 1 not in strides):
        raise Declined(f"what '{nest.name}' reads does not lie along '{nest.loop_of[own]}'")


def _strip(
    draft: Draft, region: Region, line: str, width: int | str, lengths: Sequence[int]
) -> Draft:
    own = [loop.var for loop in nest_of(draft.kernel, region.sink).own]
    walked = [loop for loop in own if loop not in region.rows]
    strip, *parts = (f"{line}{k}" for k in range(3))
    if width == WIDE and walked:
        width = NARROW
    draft = draft.step("split", loop=line, factors=[None, width, "$lanes"], as_=[strip, *parts])
    outer = [*(row for row in region.rows if row != line), strip]
    if len(own) > 1:
        draft = draft.step("reorder", loops=[*outer, *walked, *parts])
    for name in region.drawn:
        draft = draft.perhaps("compute_at", block=name, loop=strip)
    for name in reversed(region.drawn):
        nest = nest_of(draft.kernel, name)
        at = loop_along(draft, name, region.variable(name, line))
        if isinstance(nest.block.body, Update):
            draft = _eight(draft, nest, at, lengths)
        else:
            loops = [loop.var for loop in nest.own]
            if loops[-1] != at:
                draft = draft.step("reorder", loops=[*(v for v in loops if v != at), at])
    draft = _vectors(draft, strip)
    rows = strip
    if len(outer) > 1:
        rows = f"{region.sink}.strips"
        draft = draft.step("fuse", loops=outer, as_=rows)
    return draft.step("parallel", loop=rows)


def _eight(draft: Draft, nest: Nest, line: str, lengths: Sequence[int]) -> Draft:
    """So many rows at a time into registers, these into the results of the strip."""
    name, own = nest.name, [loop.var for loop in nest.own]
    terms = [loop for loop in own if loop != line]
    places, eights = [f"{line}{k}" for k in range(2)], [f"{terms[-1]}{k}" for k in range(2)]
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=places)
    draft = draft.step("split", loop=terms[-1], factors=[None, ROWS], as_=eights)
    wanted = [*terms[:-1], eights[0], places[0], eights[1], places[1]]
    draft = draft.step("reorder", loops=wanted)
    before = draft.blocks
    draft = draft.step("rfactor", block=name, loops=[*terms[:-1], eights[0]])
    (part,) = (block for block in draft.blocks if block not in before)
    draft = draft.step("reverse_compute_at", block=name, loop=places[0])
    for write in nest_of(draft.kernel, part).writes:
        draft = draft.step("set_scope", buffer=write.buffer, scope="register")
    draft = draft.step("decompose_reduction", block=part, loop=eights[1])
    draft = _fetched(draft, part, eights[0])
    known = set(draft.blocks) - {name}
    if is_float_sum(draft.blocks[name]):
        draft = draft.step("cascade", block=name, loop=eights[0], lengths=list(lengths))
    for new in draft.blocks:
        if new not in known:
            draft = draft.step("decompose_reduction", block=new, loop=_first(draft, new))
    return draft


def _fetched(draft: Draft, part: str, loop: str) -> Draft:
    """With the next rows asked for: in many arrays, they are a page or a power of two further."""
    nest = nest_of(draft.kernel, part)
    ahead = next(var for var, own in nest.loop_of.items() if own == loop)
    found = [r for r in nest.reads if len(r.variables) > 1]
    for buffer in dict.fromkeys(read.buffer for read in found):
        given = {"block": part, "buffer": buffer, "ahead": {ahead: 1}, "into": "l2"}
        draft = draft.perhaps("prefetch", **given)
    return draft


def _first(draft: Draft, name: str) -> str:
    """The outermost loop over the terms of a reduction."""
    nest = nest_of(draft.kernel, name)
    terms = reduction_loops(nest.block)
    return next(loop.var for loop in nest.loops if loop.var in terms)


def _vectors(draft: Draft, strip: str) -> Draft:
    """All innermost loops in the strip as vectors."""
    for name in draft.blocks:
        loops = nest_of(draft.kernel, name).loops
        if strip in {loop.var for loop in loops} and loops[-1].kind is LoopKind.SERIAL:
            draft = draft.step("vectorize", loop=loops[-1].var, width="$lanes")
    return draft
