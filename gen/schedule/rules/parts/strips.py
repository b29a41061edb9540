"""Strips: a sum over the rows of a matrix, of vectors that lie along its line.

Input: a draft, a block, and the sums that it alone reads. Output: the draft in which a strip of the
line takes eight rows of the matrix at a time, summed in registers. So each is read in long runs.
The strip stays in the first-level cache; with several rows of results, in the second, where their
vectors of one place lie together: rows that are a power of two apart would share few places.
"""

from ....ir.walk import targets
from .draft import Draft
from .nest import Nest
from .sums import SumRead, loop_along, ordered, own_loops
from .tiles import in_vectors, threads

DEEP = 8
HIGH = 4  # rows of results at a time


def by_strips(
    draft: Draft, reader: Nest, sums: tuple[SumRead, ...], line: str, rows: str | None = None
) -> Draft:
    j, i = reader.loop_of[line], (reader.loop_of[rows],) if rows else ()
    outside = tuple(loop.var for loop in reader.own if loop.var not in (j, *i))
    parts = (f"{j}0", f"{j}1", f"{j}2")
    draft = draft.step("split", loop=j, factors=[None, "$strip_vectors", "$lanes"], as_=parts)
    draft = ordered(draft, (*outside, parts[0], *i, *parts[1:]))
    for each in sums:
        draft = _sum(draft, each, line, rows, parts[0])
    draft = draft.step("vectorize", loop=parts[2], width="$lanes")
    return threads(draft, reader.name, (*outside, parts[0]))


def _sum(draft: Draft, each: SumRead, line: str, rows: str | None, strip: str) -> Draft:
    name, part = each.name, f"{each.name}_part"
    draft = draft.step("compute_at", block=name, loop=strip)
    j = loop_along(draft, name, each.meant[line])
    k = loop_along(draft, name, each.nest.reduction[-1])
    strips, wide = ("$wide_strips", "$wide_vectors") if rows else ("$strip_vectors", 1)
    parts = [f"{j}1", f"{j}2", f"{j}3"]
    draft = draft.step("split", loop=j, factors=[strips, wide, "$lanes"], as_=parts)
    draft = draft.step("split", loop=k, factors=[None, DEEP], as_=[f"{k}0", f"{k}1"])
    tiles, inner = [parts[0]], [f"{k}1"]
    if rows:
        i = loop_along(draft, name, each.meant[rows])
        draft = draft.step("split", loop=i, factors=[None, HIGH], as_=[f"{i}0", f"{i}1"])
        tiles.append(f"{i}0")
        inner.append(f"{i}1")
    draft = ordered(draft, (f"{k}0", *tiles, *inner, *parts[1:]))
    draft = draft.step("rfactor", block=name, loop=f"{k}0", as_=[part])
    draft = draft.step("reverse_compute_at", block=name, loop=tiles[-1])
    if rows:
        draft = _together(draft, each, line)
    draft = draft.step("set_scope", buffer=part, scope="register")
    draft = draft.step("decompose_reduction", block=part, loop=f"{k}1")
    draft = draft.step("decompose_reduction", block=name, loop=f"{k}0")
    for block in (f"{name}.init", name):
        (lane,) = own_loops(draft, block)[-1:]
        draft = draft.step("vectorize", loop=lane, width="$lanes")
        draft = draft.perhaps("unroll", loop=f"{lane}_0")
    if rows:
        draft = draft.perhaps("unroll", loop=own_loops(draft, name)[0])
    draft = in_vectors(draft, f"{part}.init", len(inner) + 1)
    draft = in_vectors(draft, part, len(inner) + 1 if rows else 3)
    return _ahead(draft, each, line, part).settled(part)


def _together(draft: Draft, each: SumRead, line: str) -> Draft:
    """With the vectors of all rows at one place of the line side by side."""
    (target,) = targets(draft.blocks[each.name].body)
    names = [getattr(index, "name", "") for index in target.indices]
    axis = names.index(each.meant[line])
    order = [axis, *(k for k in range(len(names)) if k != axis), len(names)]
    return draft.step(
        "transform_layout", buffer=target.buffer, axis=axis, factors=[None, "$lanes"], order=order
    )


def _ahead(draft: Draft, each: SumRead, line: str, part: str) -> Draft:
    """With reads of the next rows ahead."""
    for read in each.nest.reads:
        if each.meant[line] in read.variables:
            next_ = {"buffer": read.buffer, "ahead": {f"{each.nest.reduction[-1]}0": 1}}
            draft = draft.perhaps("prefetch", block=part, **next_, into="l2")
    return draft
