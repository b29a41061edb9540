"""Chains: a product of values that are made row by row from another product, as in attention.

Looks for: a product one of whose operands is computed for its rows from a second product, by way of
passes over a row. All of that is computed for a band of rows, which stays in the second-level
cache: the second product by tiles, the passes, and the first product by tiles. Threads share bands.
"""

from ...ir.nodes import Block, LoopKind, Store, Update, Var
from ...ir.walk import loads, targets
from ..edit.tree import loop_named, reduction_loops
from .parts.draft import Declined, Draft
from .parts.nest import Nest, nest_of
from .parts.reduction import is_pair, pairs_at_once
from .parts.sums import alone, ordered, own_loops, reuses, sums_read
from .parts.tiles import RegisterTile, banded, threads, tiled
from .product import rows_of, with_reader

ROWS = 48  # of a band of a product: whole tiles on every level
SOME = 16  # rows that pay for a copy of the other operand


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    sums, line = sums_read(draft, nest), nest.inner
    rows = rows_of(sums, line) if len(sums) == 1 and line else None
    if not line or not rows or nest.shared:
        raise Declined("it is no product that reads the same vectors for several rows")
    made = _made(draft, {nest.name: rows, sums[0].name: sums[0].meant[rows]})
    if not any(_is_product(draft, name) for name in made):
        raise Declined("what it multiplies comes of no other product")
    draft, bands = banded(draft, nest, sums, RegisterTile(line, rows, copied=False))
    draft = _within(draft, made, bands[-1])
    draft = _passes(draft, nest.name, [name for name in reversed(made) if name not in draft.done])
    draft = threads(draft, nest.name, bands)
    return (draft.settled(nest.name, sums[0].name, *made),)


def of_rows(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    """A block that goes over rows of a product, or reduces them: the product of a band of rows by
    tiles, and what goes over them, while they are in the caches. The last variant is for all sizes,
    unless it has a condition; none where there is no product, or where that cannot be.
    """
    own = {loop.var for loop in nest.own}
    spatial = [var for var in reversed(nest.spatial) if nest.loop_of[var] in own]
    for rows in () if nest.shared else spatial[:2]:
        known = {nest.name: rows}
        made = _made(draft, known)
        products = [n for n in made if _is_product(draft, n) and _nest(draft, n).inner != known[n]]
        if products:
            return _of_rows(draft, nest, rows, made, products)
    return ()


def _of_rows(
    draft: Draft, nest: Nest, rows: str, made: tuple[str, ...], products: list[str]
) -> tuple[Draft, ...]:
    try:
        many = _in_bands(draft, nest, rows, made, copied=True)
        match nest.size(rows):
            case Var(high) if high != draft.loop_dim:
                many = many.under(f"{high} >= {SOME}")
        if many.when and all(_is_straight(draft, name) for name in products):
            return many, _in_bands(draft, nest, rows, made, copied=False)
        return (many,)
    except Declined:
        return ()


def _in_bands(draft: Draft, nest: Nest, rows: str, made: tuple[str, ...], *, copied: bool) -> Draft:
    """copied: whether what a product reads along its line is."""
    i, line = nest.loop_of[rows], nest.loop_of.get(nest.inner or "")
    parts, rest = (f"{i}0", f"{i}1"), [loop.var for loop in nest.own if loop.var != i]
    spatial = [nest.loop_of[var] for var in nest.spatial]
    outside = tuple(loop for loop in rest if loop in spatial and loop != line)
    inside = tuple(loop for loop in rest if loop not in outside)
    draft = draft.step("split", loop=i, factors=[None, ROWS], as_=parts)
    draft = ordered(draft, (*outside, *parts, *inside))
    draft = _within(draft, made, parts[0], copied=copied)
    passes = [name for name in (*reversed(made), nest.name) if name not in draft.done]
    draft = _passes(draft, nest.name, passes)
    return threads(draft, nest.name, (*outside, parts[0])).settled(nest.name, *made).proved()


def _within(draft: Draft, made: tuple[str, ...], band: str, *, copied: bool = True) -> Draft:
    """With what a band takes computed in its loop, products by tiles."""
    for name in made:
        draft = draft.step("compute_at", block=name, loop=band)
    for name in made:
        if name not in draft.done:
            draft = _products(draft, name, copied=copied)
    return draft


def _is_straight(draft: Draft, name: str) -> bool:
    """Whether all that a product reads along the line of its results lies side by side there."""
    nest = _nest(draft, name)
    return nest.inner is not None and all(r.stride(nest.inner) in (0, 1) for r in nest.reads)


def _made(draft: Draft, rows: dict[str, str]) -> tuple[str, ...]:
    """The blocks that compute, row after row, what these take, the last first. rows: of each of
    these, the variable of a row; those found are added.
    """
    found: list[str] = []
    for name, block in reversed(draft.blocks.items()):
        if name in rows or name in draft.done or not isinstance(block.body, Store | Update):
            continue
        asked = _asks(draft, name)
        its = {_row(draft, reader, number, rows.get(reader), block) for reader, number in asked}
        if len(its) == 1 and (row := its.pop()):
            rows[name] = row
            found.append(name)
    return tuple(found)


def _asks(draft: Draft, name: str) -> tuple[tuple[str, int], ...]:
    return tuple(read for read, source in draft.state.flow.items() if name in source.writers)


def _row(draft: Draft, reader: str, number: int, row: str | None, block: Block) -> str | None:
    """The block's variable of what a reader reads for its own row; None where it reads others."""
    load, target = loads(draft.blocks[reader].body)[number], targets(block.body)[0]
    for index, its in zip(load.indices, target.indices, strict=True):
        if row and index == Var(row) and isinstance(its, Var):
            return its.name
    return None


def _nest(draft: Draft, name: str) -> Nest:
    return alone(nest_of(draft.kernel, name))


def _is_product(draft: Draft, name: str) -> bool:
    return isinstance(draft.blocks[name].body, Update) and reuses(_nest(draft, name))


def _products(draft: Draft, name: str, *, copied: bool) -> Draft:
    """With a product in a band by tiles: a block that is one, or alone reads one."""
    if not _is_product(draft, name) and not sums_read(draft, _nest(draft, name)):
        return draft
    after, reader = with_reader(draft, _nest(draft, name))
    reader = alone(reader)
    sums, line = sums_read(after, reader), reader.inner
    rows = rows_of(sums, line) if sums and line else None
    if not sums or not line or not rows:
        return draft
    if reader.loop_of[line] not in {loop.var for loop in reader.own}:
        return draft  # other blocks share it: no tile of registers is this one's alone
    after, _ = tiled(after, reader, sums, RegisterTile(line, rows, copied=copied))
    return after.settled(name, reader.name, *(each.name for each in sums))


def _passes(draft: Draft, name: str, passes: list[str]) -> Draft:
    """With what is left, which goes over a row, a row at a time and in vectors."""
    outer = [own_loops(draft, each)[0] for each in passes]
    draft = _merged(draft, outer, f"{name}.row")
    last: list[str] = []
    for each in passes:
        line = nest_of(draft.kernel, each).loops[-1].var
        if last and (after := _merged(draft, [last[-1], line], f"{each}.pass")) is not draft:
            draft, line = after, f"{each}.pass"
            last.pop()
        last.append(line)
    for line in dict.fromkeys(last):
        draft = _lanes(draft, line)
    return draft


def _merged(draft: Draft, loops: list[str], name: str) -> Draft:
    if len(loops) < 2:
        return draft
    return draft.if_sound("merge", loops=loops, as_=[name])


def _lanes(draft: Draft, line: str) -> Draft:
    loop = loop_named(draft.kernel, line)
    if loop.kind is not LoopKind.SERIAL:
        return draft
    summed = [b for b in draft.blocks.values() if line in reduction_loops(b)]
    if len(summed) == 1 and is_pair(summed[0]):
        return pairs_at_once(draft, line)
    wide = {"accumulators": 4} if summed else {}
    return draft.if_sound("vectorize", loop=line, width="$lanes", **wide)
