"""Transposes and other permutations: what lies along a row is written along a column.

Looks for: a block that reduces nothing and reads an array along another axis than the one along
which it writes. Processor: tiles as large as registers hold, loaded along rows and stored along
columns, in blocks of many, so that what is in the caches is used while it is there. Large arrays go
in tiles of whole lines, which are stored past the caches; there a block runs along the rows that it
loads, which is what processors foresee.
"""

from dataclasses import dataclass
from typing import final

from ...ir.nodes import Load, Store, Var
from .parts.draft import Declined, Draft
from .parts.nest import ArrayAccess, Nest, nest_of
from .parts.reduction import extent_of

TILES = 32  # of a block, each way
SHORT = 8  # rows of fewer elements have no use for tiles
LARGE = 640  # a row and a column together: arrays beyond that are more than the first-level cache


@final
@dataclass(frozen=True, slots=True)
class _Tiles:
    """What the block reads, of so many axes; the loops along which it writes (column) and reads
    (row), and those outside.
    """

    block: str
    buffer: str
    rank: int
    column: str
    row: str
    outer: tuple[str, ...]


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if not isinstance(nest.block.body, Store):
        raise Declined("it is a reduction")
    if nest.inner is None:
        raise Declined("no loop runs along the last axis of what it writes")
    read, var = _across(nest, nest.inner)
    column, row = nest.loop_of[nest.inner], nest.loop_of[var]
    own = [loop.var for loop in nest.own]
    if not {column, row} <= set(own):
        raise Declined("other blocks share its loops")
    outer = tuple(loop for loop in own if loop not in (column, row))
    tiles = _Tiles(nest.name, read.buffer, len(read.indices), column, row, outer)
    plain = _plain(draft, tiles, own)
    m, n = extent_of(nest, nest.inner), extent_of(nest, var)
    if not (isinstance(m, Var) and isinstance(n, Var)):
        return (plain,)
    several = f"{n.name} >= {SHORT}"
    lanes = _lanes(draft, tiles, own).under(several)
    moves = isinstance(nest.block.body.value, Load)  # else code for other strides is there, too
    if not (moves and draft.parameters["square"]):
        return (lanes, plain)
    large = f"{m.name} + {n.name} >= {LARGE}"
    return (_lines(draft, tiles, own, nest.writes[0].buffer).under(several, large), lanes, plain)


def _across(nest: Nest, inner: str) -> tuple[ArrayAccess, str]:
    """The read along another axis, and the variable of that axis. Raises Declined."""
    found = [read for read in nest.reads if read.stride(inner) is None]
    if not found:
        raise Declined("what it reads lies along what it writes")
    if len(found) > 1 or sum(read.buffer == found[0].buffer for read in nest.reads) > 1:
        raise Declined("it reads several arrays, or places, along another axis")
    (read,) = found
    var = next((v for v in reversed(nest.spatial) if read.stride(v) == 1), None)
    if var is None or read.stride(inner) == 0:
        raise Declined(f"no loop runs along the last axis of '{read.buffer}'")
    return read, var


def _lines(draft: Draft, tiles: _Tiles, own: list[str], written: str) -> Draft:
    draft = draft.perhaps("align", loop=tiles.row, buffer=tiles.buffer)
    draft = draft.perhaps("align", loop=tiles.column, buffer=written)
    draft, tile = _tiled(draft, tiles, own, "$square", along_rows=True)
    ahead = {f"d{tiles.rank - 1}": TILES}
    draft = draft.perhaps("prefetch", block=tile, buffer=tiles.buffer, ahead=ahead)
    draft = draft.perhaps("stream", block=tiles.block)
    return _threads(draft, tiles, [f"{tiles.row}0", f"{tiles.column}0"])


def _lanes(draft: Draft, tiles: _Tiles, own: list[str]) -> Draft:
    draft, _ = _tiled(draft, tiles, own, "$lanes", along_rows=False)
    return _threads(draft, tiles, [f"{tiles.row}0"])


def _tiled(
    draft: Draft, tiles: _Tiles, own: list[str], width: str, *, along_rows: bool
) -> tuple[Draft, str]:
    """Tiles of so many rows and columns; blocks of them run along rows, or along columns."""
    row, column = ([f"{loop}{k}" for k in range(3)] for loop in (tiles.row, tiles.column))
    draft = draft.step("split", loop=tiles.row, factors=[None, TILES, width], as_=row)
    draft = draft.step("split", loop=tiles.column, factors=[None, TILES, width], as_=column)
    inner = [column[1], row[1]] if along_rows else [row[1], column[1]]
    wanted = [*tiles.outer, row[0], column[0], *inner, row[2], column[2]]
    draft = draft.step("reorder", loops=wanted)
    tile = f"{tiles.block}_tile"
    given = {"buffer": tiles.buffer, "at": inner[1], "scope": "register", "as_": tile}
    draft = draft.step("cache_read", block=tiles.block, **given)
    rows, places = nest_of(draft.kernel, tile).loops[-2:]
    draft = draft.step("unroll", loop=rows.var).step("vectorize", loop=places.var, width=width)
    draft = draft.step("unroll", loop=row[2]).step("vectorize", loop=column[2], width=width)
    return draft, tile


def _plain(draft: Draft, tiles: _Tiles, own: list[str]) -> Draft:
    """For rows too short for tiles, and for arrays of other strides."""
    wanted = [*tiles.outer, tiles.column, tiles.row]
    if own != wanted:
        draft = draft.step("reorder", loops=wanted)
    draft = draft.step("vectorize", loop=tiles.column, width="$lanes")
    return _threads(draft, tiles, [f"{tiles.column}_0"])


def _threads(draft: Draft, tiles: _Tiles, blocks: list[str]) -> Draft:
    loops = [*tiles.outer, *blocks]
    if len(loops) > 1:
        draft = draft.step("fuse", loops=loops, as_=f"{tiles.block}.blocks")
        loops = [f"{tiles.block}.blocks"]
    return draft.step("parallel", loop=loops[0])
