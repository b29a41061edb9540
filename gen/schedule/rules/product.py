"""Products: reductions of which some operand is read again for other results.

Looks for: a reduction, with the elementwise block that alone reads it, if there is one. Its results
lie side by side along a *line*. *Rows*: a variable that what it reads along the line does not have.

- With rows it is computed by register tiles (`tiles`): matrix products of any orientation,
  distances, triangles, convolutions, products within recurrences. What is read along the line is
  copied for all rows where there are many.
- Few rows, or none: where what it reads lies along the line, by strips of it (`strips`): vector
  times matrix; where all that it reads lies along what is summed, as inner products (`inner`).

How many rows there are, the call says: so there is a variant for each.
"""

from ...ir.index.linear import constant
from ...ir.nodes import Store, Update, Var
from ...ir.text.print_expr import spec_text
from ...ir.walk import blocks, targets, variables
from .parts.draft import Declined, Draft
from .parts.inner import inner_products
from .parts.matrices import operands, special
from .parts.nest import Nest, nest_of
from .parts.strips import by_strips
from .parts.sums import SumRead, loop_along, of_windows, ordered, reuse, reuses, sums_read
from .parts.tiles import RegisterTile, banded, by_tiles, threads

LARGE = 192  # rows, and places of a line, of which what is left over of wide tiles is little
SHORT = 128  # terms so few that panels of many vectors fit the second-level cache
NARROW = 64  # places of a line that are few panels: threads share the rows
BROAD = 512  # places of a line that are many such panels
STRIP = 128  # places of a line that pay for a strip of it in the first-level cache, for few rows
MANY = 48  # rows that pay for a copy of the other operand
SOME = 8  # rows that pay for turning the other operand
FEW = 3  # rows of which a tile is better than lines
LONG = 16  # terms that pay for the sum of a vector's lanes


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    draft, reader = with_reader(draft, nest)
    sums = sums_read(draft, reader)
    if not sums:
        raise Declined("it reads no sum, a value a point, that nothing else reads")
    line = reader.inner
    if line is None:
        raise Declined("no loop runs along the last axis of what it writes")
    if not {reader.loop_of[var] for var in sums[0].meant} & {loop.var for loop in reader.own}:
        raise Declined("other blocks share its loops")
    if not all(reuses(each.nest) for each in sums):
        raise Declined("it reads nothing twice")
    rows = rows_of(sums, line)
    drafts = (
        _with_rows(draft, reader, sums, line, rows) if rows else _alone(draft, reader, sums, line)
    )
    return tuple(d.settled(reader.name, *(s.name for s in sums)) for d in drafts)


def with_reader(draft: Draft, nest: Nest) -> tuple[Draft, Nest]:
    """Who reads the sum: the block itself, or a copy, where there is no one such."""
    match nest.block.body:
        case Store():
            return draft, nest
        case Update():
            if not reuses(nest):
                raise Declined("it reads nothing twice")
            copy = f"{nest.name}_tile"
            (target, *_) = targets(nest.block.body)
            if not nest.shared and not all(isinstance(i, Var) for i in target.indices):
                draft = draft.step("reindex", block=nest.name, buffer=target.buffer, as_=copy)
                return draft, nest_of(draft.kernel, copy)
            within = {"at": nest.loops[len(nest.shared) - 1].var} if nest.shared else {}
            draft = draft.step("cache_write", block=nest.name, **within, as_=copy)
            return draft, nest_of(draft.kernel, copy)
        case _:
            raise Declined("it is an init")


def _others(draft: Draft, sums: tuple[SumRead, ...]) -> bool:
    """Whether the kernel has other products, each of which would double the variants."""
    mine = {each.name for each in sums}
    plain = draft.context.plain
    updates = (b.name for b in blocks(plain.body) if isinstance(b.body, Update))
    return any(reuses(nest_of(plain, name)) for name in updates if name not in mine)


def rows_of(sums: tuple[SumRead, ...], line: str) -> str | None:
    """The innermost of the reader's variables for which all sums read again what they read along
    the line; of a few values alone, as the parts of a stride, where there is no other.
    """
    found = [s.readers_of(reuse(s.nest, s.meant[line])[1]) for s in sums]
    common = set.intersection(*found)
    wide = all(reuse(s.nest, s.meant[line])[0] for s in sums)
    rows = [v for v in reversed(list(sums[0].meant)) if v in common] if wide else []
    return next((v for v in rows if not sums[0].nest.few(sums[0].meant[v])), next(iter(rows), None))


def _with_rows(
    draft: Draft, reader: Nest, sums: tuple[SumRead, ...], line: str, rows: str
) -> tuple[Draft, ...]:
    many = by_tiles(draft, reader, sums, RegisterTile(line, rows))
    high, long = _extent(reader, rows), _extent(reader, line)
    if high is None or reader.shared or _others(draft, sums):
        return (many,)
    straight = all(_straight(s, line) for s in sums)
    terms = _extent(sums[0].nest, sums[0].nest.reduction[-1])
    found: list[Draft] = []
    plain = bool(long and terms and len(sums) == 1 and operands(sums[0], rows, line))
    if long and terms and plain:
        found += special(draft, reader, sums[0], line, rows, (high, long, terms))
    if long and straight and len(reader.spatial) == 2:
        narrow, bands = banded(draft, reader, sums, RegisterTile(line, rows))
        narrow = threads(narrow, reader.name, bands)
        found.append(narrow.under(f"{high} >= {MANY}", f"{long} <= {NARROW}"))
    alone = all(len(each.nest.reduction) == 1 for each in sums)
    if long and terms and alone and terms != long and not plain:
        short = by_tiles(draft, reader, sums, RegisterTile(line, rows, panels=True))
        sizes = f"{terms} <= {SHORT}", f"{high} >= {MANY}", f"{long} >= {BROAD}"
        found.append(short.under(*sizes))
    if long:
        wide = by_tiles(draft, reader, sums, RegisterTile(line, rows, wide=True))
        large = (f"{high} >= {MANY}",) if plain else (f"{high} >= {LARGE}", f"{long} >= {LARGE}")
        found.append(wide.under(*large))
    if straight:
        low = by_tiles(draft, reader, sums, RegisterTile(line, rows, copied=False))
        flat = by_tiles(draft, reader, sums, _flat(sums, line))
        if low.lines != many.lines and not plain:
            found.append(many.under(f"{high} >= {MANY}"))
        if long and high != draft.loop_dim and all(_apart(s, line) for s in sums):
            strips = by_strips(draft, reader, sums, line, rows)
            few = f"64 * {high} <= {long} + 320"  # up to 7 rows of 128 places, 24 of 1216
            found.append(strips.under(f"{long} >= {STRIP}", f"{high} > {FEW}", few))
        return *found, low.under(f"{high} >= {FEW}"), flat
    if all(_deep(s) for s in sums) and high != draft.loop_dim:
        inner = inner_products(draft, reader, sums, line, rows)
        return *found, many.under(f"{high} >= {SOME}"), inner
    return *found, many


def _alone(draft: Draft, reader: Nest, sums: tuple[SumRead, ...], line: str) -> tuple[Draft, ...]:
    flat, count = _flat(sums, line), _extent(reader, line)
    if flat.windows:
        windows = by_tiles(draft, reader, sums, flat)
        if count is None or _others(draft, sums) or not all(_deep(s) for s in sums):
            return (windows,)
        return windows.under(f"{count} >= {LONG}"), _one_by_one(draft, reader, sums, line)
    if all(_straight(s, line) for s in sums):
        apart = all(_apart(s, line) for s in sums)
        return (
            by_strips(draft, reader, sums, line) if apart else by_tiles(draft, reader, sums, flat),
        )
    if not all(_deep(s) for s in sums):
        return (by_tiles(draft, reader, sums, flat),)
    if not set(reader.spatial) <= set(sums[0].meant):  # the rules for rows mind few terms
        raise Declined("its results are a row of each iteration of a loop around other blocks")
    long = inner_products(draft, reader, sums, line, None)
    terms = _extent(sums[0].nest, sums[0].nest.reduction[-1])
    if terms is None or _others(draft, sums):
        return (long,)
    tiles = by_tiles(draft, reader, sums, flat)
    if count is not None and count == draft.loop_dim:  # for columns that lie side by side alone
        return long.under(f"{count} >= 0"), tiles
    found = (long.under(f"{terms} >= {LONG}"), tiles)
    if count in (None, draft.loop_dim) or not all(_turned(s, line) for s in sums):
        return found
    return by_strips(draft, reader, sums, line).under(f"{count} >= 0"), *found


def _one_by_one(draft: Draft, reader: Nest, sums: tuple[SumRead, ...], line: str) -> Draft:
    """Each result by itself, its terms in vectors."""
    at = reader.loop_of[line]
    rows = tuple(loop.var for loop in reader.own if loop.var != at)
    draft = ordered(draft, (*rows, at))
    for each in sums:
        draft = draft.step("compute_at", block=each.name, loop=at)
        terms = loop_along(draft, each.name, each.nest.reduction[-1])
        draft = draft.step("vectorize", loop=terms, width="$lanes", accumulators=4)
    return threads(draft, reader.name, (*rows, at))


def _flat(sums: tuple[SumRead, ...], line: str) -> RegisterTile:
    windows = any(of_windows(s.nest, var) for s in sums for var in s.nest.reduction)
    return RegisterTile(line, None, copied=False, panels=windows, windows=windows)


def _straight(each: SumRead, line: str) -> bool:
    """Whether all that it reads along its line lies side by side there."""
    its = each.meant[line]
    return all(read.stride(its) in (0, 1) for read in each.nest.reads)


def _turned(each: SumRead, line: str) -> bool:
    """Whether a call may give what it reads along its line so that it lies side by side there: as
    the transpose of a matrix. A variant that is not the last is then for such calls alone.
    """
    its = each.meant[line]
    wide = [read for read in each.nest.reads if its in read.variables]
    first = all(len(read.indices) == 2 and read.indices[0] == Var(its) for read in wide)
    return first and len(each.nest.reduction) == 1


def _apart(each: SumRead, line: str) -> bool:
    """Whether the vectors that one result sums up are rows of a matrix, one a term."""
    wide = [read for read in each.nest.reads if each.meant[line] in read.variables]
    (*over, last) = each.nest.reduction
    apart = all(read.stride(last) is None for read in wide)
    return not over and apart and not of_windows(each.nest, last)


def _deep(each: SumRead) -> bool:
    """Whether all that it reads lies side by side along the innermost of what is summed."""
    last = each.nest.reduction[-1]
    return all(read.stride(last) in (0, 1) for read in each.nest.reads)


def _extent(nest: Nest, var: str) -> str | None:
    """How many values a variable has, as a condition of a recipe says it."""
    it = next(it for it in nest.block.iters if it.name == var)
    local = {other.name for other in nest.block.iters}
    if constant(it.lower) != 0 or variables(it.upper) & local or constant(it.upper) is not None:
        return None
    return spec_text(it.upper)
