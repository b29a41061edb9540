"""Reductions along rows, and what reads them: sums, norms, softmax, losses, one pass or several.

Looks for: a block of which each row takes reductions of its own row, which run along memory; its
rows are walked once more (softmax), or are reduced altogether (a sum, a norm). All producers are
computed at the row, while it is in the caches. Passes that do not wait for each other become one.
Processor: each pass in vectors, a reduction in several of them, so that none waits for the one
before; float sums in blocks, and long ones in blocks of blocks, for their rounding; threads over
rows. Callers may have arrays of columns, as where an axis is the first one: `columns` has those.
Short rows are taken several at a time, by `parts.short_rows`; rows of a product too, by `chain`.
"""

from collections.abc import Iterator, Mapping
from functools import reduce

from ...ir.nodes import Store, Update
from . import columns
from .chain import of_rows
from .parts.draft import Draft
from .parts.nest import Nest, nest_of
from .parts.pieces import in_pieces
from .parts.reduction import (
    LONG,
    accumulators,
    dear,
    extent_of,
    inner_loops,
    is_float_sum,
    is_pair,
    line_of,
    long_if,
    pairs_at_once,
)
from .parts.region import Region, dependences, region_of
from .parts.short_rows import across_rows

AHEAD = 2  # rows: the next one is on its way when the processor has seen where this one lies

Lines = Mapping[str, str]
"""The loop along which each block walks memory inside a row."""

Lengths = tuple[tuple[int, ...], tuple[int, ...]]
"""Of blocks: of the loop outside the line's, and of vectors along the line."""

Cuts = tuple[tuple[int, Lengths], ...]
"""The lengths for lines of so many terms or more, the longest first."""

ONE: Cuts = ((LONG, ((), (16, 16, 16))), (0, ((), (32,))))
SEVERAL: Cuts = ((LONG, ((), (16, 16, 16))), (8192, ((32,), (32,))), (0, ((16,), ())))
WALKED: Cuts = ((LONG, ((), (16, 16, 16))), (2048, ((), (32,))), (0, ((), ())))
DEAR: Cuts = ((0, ((), (32,))),)


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    region = region_of(draft, nest)
    banded = of_rows(draft, nest)
    if banded and not banded[-1].when:
        return banded
    nests = [nest_of(draft.kernel, name) for name in region.blocks]
    lines = {n.name: line_of(n) for n in nests if isinstance(n.block.body, Update)}
    beside = columns.of_callers(draft, nest)
    rows = _rows(draft.settled(*region.drawn), region, lines)
    short = across_rows(draft, region, lines)
    if not beside:
        return (*banded, *short, *(d.under(when) if when else d for when, d in rows))
    always = f"{draft.kernel.dims[0]} >= 0"
    return (*banded, *short, *(d.under(when or always) for when, d in rows), *beside)


def _rows(
    draft: Draft, region: Region, variables: Mapping[str, str]
) -> Iterator[tuple[str | None, Draft]]:
    """For long rows and for all; where there are several to reduce, for those between, too; where
    sums are followed by a pass, for such that blocks are not worth their joins. Long rows that are
    reduced once, and not walked, are in pieces.
    """
    sums = [nest_of(draft.kernel, name) for name in variables if is_float_sum(draft.blocks[name])]
    extents = [extent_of(nest, variables[nest.name]) for nest in sums]
    walks = region.sink not in variables and bool(inner_loops(draft, region.sink, region.rows))
    cuts = SEVERAL if any(len(nest.reduction) > 1 for nest in sums) else ONE
    if walks and cuts is ONE:
        walked = (
            b for n, b in draft.blocks.items() if len(region.of.get(n, b.iters)) < len(b.iters)
        )
        cuts = DEAR if any(map(dear, walked)) else WALKED
    lines = (extent_of(nest_of(draft.kernel, n), var) for n, var in variables.items())
    long = long_if(lines)
    pieces = in_pieces(draft, region, variables) if long else ()
    yield from ((long, each) for each in pieces)
    for least, lengths in cuts:
        if pieces and least == LONG:
            continue
        condition = long_if(extents, least) if least else None
        if condition or not least:
            yield condition, _row(draft, region, variables, lengths)


def _row(draft: Draft, region: Region, variables: Mapping[str, str], lengths: Lengths) -> Draft:
    sink = nest_of(draft.kernel, region.sink)
    own = [loop.var for loop in sink.own]
    wanted = [*region.rows, *(loop for loop in own if loop not in region.rows)]
    if own != wanted:
        draft = draft.step("reorder", loops=wanted)
    for name in region.drawn:
        draft = draft.perhaps("compute_at", block=name, loop=region.rows[-1])
    lines = dict(_lines(draft, region, variables))
    for name, line in lines.items():
        inner = [loop.var for loop in inner_loops(draft, name, region.rows)]
        if inner[-1] != line:
            draft = draft.step("reorder", loops=[*(v for v in inner if v != line), line])
    groups, reading = _groups(draft, region, lines), _reading(draft, region, lines)
    walks = sink.name in lines and len(inner_loops(draft, sink.name, region.rows)) == 1
    walks = walks and isinstance(sink.block.body, Store)
    if walks and [sink.name] in groups:
        draft = draft.perhaps("align", loop=lines[sink.name], buffer=sink.writes[0].buffer)
    draft = reduce(lambda d, group: _pass(d, group, lines, lengths), groups, draft)
    if walks:
        draft = draft.perhaps("stream", block=sink.name)
        draft = draft.perhaps("prefetch", **reading) if reading else draft
    return _threads(draft, region)


def _threads(draft: Draft, region: Region) -> Draft:
    if not region.rows:
        return draft
    rows = region.rows[0]
    if len(region.rows) > 1:
        rows = f"{region.sink}.rows"
        draft = draft.step("fuse", loops=list(region.rows), as_=rows)
    return draft.step("parallel", loop=rows)


def _lines(draft: Draft, region: Region, variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in region.blocks:
        nest = nest_of(draft.kernel, name)
        line = nest.loop_of.get(variables.get(name) or nest.inner or "")
        if line and line in {loop.var for loop in inner_loops(draft, name, region.rows)}:
            yield name, line


def _reading(draft: Draft, region: Region, lines: Lines) -> dict[str, object] | None:
    """The prefetch of the argument that the last pass over a row reads, rows ahead."""
    written = {w.buffer for name in draft.blocks for w in nest_of(draft.kernel, name).writes}
    for name in reversed([name for name in region.blocks if name in lines and region.rows]):
        nest = nest_of(draft.kernel, name)
        row = region.variable(name, region.rows[-1])
        found = [r for r in nest.reads if r.buffer not in written and row in r.variables]
        if found:
            read = max(found, key=lambda r: len(r.variables))
            return {"block": name, "buffer": read.buffer, "ahead": {row: AHEAD}}
    return None


def _groups(draft: Draft, region: Region, lines: Lines) -> list[list[str]]:
    """The blocks that walk the row; those of a group do not wait for each other's last value, and
    may share a pass. One of them is cut into blocks at most.
    """
    level: dict[str, int] = {}
    groups: dict[object, list[str]] = {}
    for name in region.blocks:
        before = [b for b in dependences(draft, name) if b in level]
        waits = [level[b] + isinstance(draft.blocks[b].body, Update) for b in before]
        level[name] = max(waits, default=0)
        if name not in lines:
            continue
        inner = inner_loops(draft, name, region.rows)
        key: object = (level[name], inner[0].upper) if len(inner) == 1 else name
        beside = groups.get(key, [])
        if is_float_sum(draft.blocks[name]) and any(is_float_sum(draft.blocks[b]) for b in beside):
            key = name
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _pass(draft: Draft, group: list[str], lines: Lines, lengths: Lengths) -> Draft:
    """Vectors along the line; blocks of them, and of lines, for float sums."""
    line = lines[group[0]]
    if len(group) > 1:
        line = f"{group[-1]}.pass"
        merged = draft.perhaps("merge", loops=[lines[name] for name in group], as_=[line])
        if merged is draft:
            return reduce(lambda d, name: _pass(d, [name], lines, lengths), group, draft)
        draft = merged
    reduced = [name for name in group if isinstance(draft.blocks[name].body, Update)]
    if not reduced:
        return draft.step("vectorize", loop=line, width="$lanes")
    if len(group) == 1 and is_pair(draft.blocks[group[0]]):
        return pairs_at_once(draft, line)
    count = accumulators(draft.blocks[name] for name in group)
    draft = draft.step("vectorize", loop=line, width="$lanes", accumulators=count)
    sums = (name for name in reduced if is_float_sum(draft.blocks[name]))
    return reduce(lambda d, name: _blocks(d, name, line, lengths), sums, draft)


def _blocks(draft: Draft, name: str, line: str, lengths: Lengths) -> Draft:
    """The sum's vectors in blocks of lines and of vectors."""
    outer, along = lengths
    part = f"{name}_rf"
    nest = nest_of(draft.kernel, part)
    loops = [nest.loop_of[var] for var in nest.reduction if nest.loop_of[var] != f"{line}_0"]
    if outer and loops:
        draft = draft.step("cascade", block=part, loop=loops[-1], lengths=list(outer))
        part = f"{part}_part"
    if along:
        draft = draft.step("cascade", block=part, loop=f"{line}_0", lengths=list(along))
    return draft
