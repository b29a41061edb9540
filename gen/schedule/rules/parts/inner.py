"""Inner products: sums of what lies side by side along what is summed.

Input: a draft, a block, and the sums that it alone reads. Output: the draft in which a vector of
partial sums, or a few, of some rows and some places of a line are in registers, and their lanes are
summed at the end.
"""

from .draft import Draft
from .nest import Nest
from .sums import SumRead, loop_along, ordered, own_loops
from .tiles import in_vectors, threads

ALONE = 4  # places of a line where there are no rows


def inner_products(
    draft: Draft,
    reader: Nest,
    sums: tuple[SumRead, ...],
    line: str,
    rows: str | None,
) -> Draft:
    j = reader.loop_of[line]
    across = "$inner_line" if rows else ALONE
    draft = draft.step("split", loop=j, factors=[None, across], as_=[f"{j}0", f"{j}1"])
    inside, last = [f"{j}0"], [f"{j}1"]
    if rows:
        i = reader.loop_of[rows]
        draft = draft.step("split", loop=i, factors=[None, "$inner_rows"], as_=[f"{i}0", f"{i}1"])
        inside, last = [*inside, f"{i}0"], [f"{i}1", *last]
    taken = {reader.loop_of[v] for v in (line, rows) if v}
    outside = [loop.var for loop in reader.own if loop.var not in taken]
    draft = ordered(draft, (*outside, *inside, *last))
    for each in sums:
        draft = _sum(draft, each, inside[-1], 1 if rows else 2)
    for loop in last:
        draft = draft.step("unroll", loop=loop)
    return threads(draft, reader.name, (*outside, *inside))


def short_lines(
    draft: Draft, reader: Nest, each: SumRead, line: str, rows: str, across: int
) -> Draft:
    """Of whole lines, `across` places at a time: rows are read once for all of them."""
    i, j = reader.loop_of[rows], reader.loop_of[line]
    draft = draft.step("split", loop=i, factors=[None, "$inner_rows"], as_=[f"{i}0", f"{i}1"])
    outside = [loop.var for loop in reader.own if loop.var not in (i, j)]
    draft = ordered(draft, (*outside, f"{i}0", f"{i}1", j))
    draft = _sum(draft, each, f"{i}0", 1, (each.meant[line], across))
    return threads(draft.step("unroll", loop=f"{i}1"), reader.name, (*outside, f"{i}0"))


def _sum(
    draft: Draft, each: SumRead, at: str, vectors: int, line: tuple[str, int] | None = None
) -> Draft:
    """line: along what, and by how many, the sum cuts its own tiles."""
    name, part = each.name, f"{each.name}_part"
    draft = draft.step("compute_at", block=name, loop=at)
    tiles = list[str]()
    if line:
        j = loop_along(draft, name, line[0])
        draft = draft.step("split", loop=j, factors=[None, line[1]], as_=[f"{j}0", f"{j}1"])
        tiles = [f"{j}0"]
    k = loop_along(draft, name, each.nest.reduction[-1])
    wide = (f"{k}1",) if vectors > 1 else ()
    factors = [None, *(vectors for _ in wide), "$lanes"]
    split = (f"{k}0", *wide, f"{k}2")
    draft = draft.step("split", loop=k, factors=factors, as_=split)
    summed = {loop_along(draft, name, var) for var in each.nest.reduction[:-1]}
    loops = own_loops(draft, name)
    over = (*(v for v in loops if v in summed), f"{k}0")
    tile = tuple(v for v in loops if v not in (*over, *split, *tiles))
    draft = ordered(draft, (*tiles, *over, *tile, *split[1:]))
    draft = draft.step("rfactor", block=name, loops=split[1:], as_=[part])
    draft = draft.step("set_scope", buffer=part, scope="register")
    draft = draft.step("decompose_reduction", block=part, loop=over[0])
    count = len(tile) + len(split) - 1
    for block in (f"{part}.init", part, name):
        draft = in_vectors(draft, block, count)
    return draft.settled(part)
