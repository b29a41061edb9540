"""Rows that are shorter than a few vectors: as many at a time as a vector has lanes.

Input: the blocks of a row, as `passes` has them. Output: a variant for short rows. Each row is
reduced in a vector of its own; these are a square, which is joined across the rows, so that what a
row costs is no joining of lanes, but a share of one transpose in registers. In the shortest rows a
lane is a row from the start, and their terms are gathered; so it is where several values are
reduced to, as in an argmax.
"""

from collections.abc import Mapping

from ....ir.nodes import Store, Update
from .draft import Declined, Draft
from .nest import Nest, nest_of
from .reduction import condition_on, extent_of
from .region import Region
from .sums import loop_along

FEW = 8  # rows, below which one after the other takes no longer

GROUP = 4
"""Rows of a square that are read together, a vector of each. All of them would be read in an order
of lines that no processor foresees: 200,000 rows of 34 took 8.8 ns each, 3.8 so; 1,000 rows took
2.4 either way.
"""

REDUCED, WALKED = 3, 2
"""The `$short_row` of a row up to which this takes less time than a row at a time: where it is
reduced alone, or is walked once more."""

GATHERED, SCATTERED = "6", "$lanes // 8 + 4"
"""Elements of a row up to which it is quicker still to gather one of each row: likewise. The
wider a vector is, the less an element costs that it gathers.
"""


def across_rows(draft: Draft, region: Region, variables: Mapping[str, str]) -> tuple[Draft, ...]:
    """The variants, proved, that of the shortest first; none where they are for no kernel such as
    this one. variables: that along which the terms of each reduction lie.
    """
    try:
        found = _across(draft.settled(*region.drawn), region, variables)
        return tuple(each.proved() for each in found)
    except Declined:
        return ()


def _across(draft: Draft, region: Region, variables: Mapping[str, str]) -> tuple[Draft, ...]:
    if not region.rows:
        raise Declined("it has no rows")
    nests = {name: nest_of(draft.kernel, name) for name in region.blocks}
    sink, row = nests[region.sink], region.rows[-1]
    tuples = any(len(nests[name].writes) > 1 for name in variables)
    shortest, short, many = _conditions(draft, region, nests, variables, tuples)
    at, lane = f"{row}0", f"{row}1"
    wanted = [*region.rows, *(x.var for x in sink.own if x.var not in region.rows)]
    if wanted != [loop.var for loop in sink.own]:
        draft = draft.step("reorder", loops=wanted)
    draft = draft.step("split", loop=row, factors=[None, "$lanes"], as_=[at, lane])
    for name in region.drawn:
        draft = draft.step("compute_at", block=name, loop=at)
    gathered = joined = draft
    for name, nest in nests.items():
        rows = loop_along(draft, name, region.variable(name, row))
        gathered = _each(gathered, name, rows, at)
        if tuples:
            continue
        if name in variables:
            joined = _joined(joined, name, rows, variables[name], at)
        else:
            joined = _along(joined, name, nest.inner)
    outer, known = [*region.rows[:-1], at][0], "$short_row > 0"
    gathered = gathered.step("parallel", loop=outer).under(known, shortest, many)
    if tuples:
        return (gathered,)
    return gathered, joined.step("parallel", loop=outer).under(known, short, many)


def _conditions(
    draft: Draft,
    region: Region,
    nests: Mapping[str, Nest],
    variables: Mapping[str, str],
    tuples: bool,
) -> tuple[str, str, str]:
    """That rows are the shortest, that they are short, and that they are not few. Raises Declined
    where no size tells, or rows are none that are taken so.
    """
    if not region.rows or not draft.parameters.get("short_row"):
        raise Declined("there are no rows, or more lanes than rows can be written out for")
    if any(len(nests[name].reduction) > 1 for name in variables):
        raise Declined("its rows are more than lines")
    if tuples and region.drawn:
        raise Declined("it reads what others reduce")
    (count,) = (loop.upper for loop in nests[region.sink].own if loop.var == region.rows[-1])
    lengths = [extent_of(nests[name], variable) for name, variable in variables.items()]
    walked = any(_walks(nest, region) for nest in nests.values())
    few, most = (SCATTERED, WALKED) if walked else (GATHERED, REDUCED)
    shortest = condition_on(lengths, "<= $short_row // 2" if tuples else f"<= {few}")
    short = condition_on(lengths, f"<= {most} * $short_row")
    many = condition_on([count], f">= {FEW}")
    if shortest is None or short is None or many is None:
        raise Declined("no size is how long rows are, or how many there are")
    return shortest, short, many


def _each(draft: Draft, name: str, row: str, at: str) -> Draft:
    """A block in vectors across the rows, whose elements lie a row apart."""
    nest = nest_of(draft.kernel, name)
    own = [loop.var for loop in nest.own if loop.var != at]
    if own[-1] != row:
        draft = draft.step("reorder", loops=[*(v for v in own if v != row), row])
    if isinstance(nest.block.body, Update):
        for write in nest.writes:
            draft = _in_register(draft, name, write.buffer, at)
    return draft.step("vectorize", loop=row, width="$lanes")


def _walks(nest: Nest, region: Region) -> bool:
    """Whether it writes a value for each place of a row."""
    return isinstance(nest.block.body, Store) and len(nest.spatial) > len(region.of[nest.name])


def _joined(draft: Draft, name: str, row: str, variable: str, at: str) -> Draft:
    """A reduction with the rows in vectors of their own, which are then joined lane by lane."""
    nest = nest_of(draft.kernel, name)
    line, (write,), part = nest.loop_of[variable], nest.writes, f"{name}_rows"
    vectors, lane, of_part, term = f"{line}0", f"{line}1", f"{part}.row", f"{name}.lane"
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=[vectors, lane])
    draft = draft.step("rfactor", block=name, loop=lane, as_=[part, term])
    draft = draft.step("fission", loop=row, as_=[of_part, row])
    group, each = f"{of_part}0", f"{of_part}1"
    draft = draft.step("split", loop=of_part, factors=[None, GROUP], as_=[group, each])
    draft = draft.step("reorder", loops=[group, vectors, each, lane])
    draft = draft.step("unroll", loop=group).step("unroll", loop=each)
    draft = draft.step("vectorize", loop=lane, width="$lanes")
    draft = draft.step("set_scope", buffer=part, scope="register")
    draft = _in_register(draft, name, write.buffer, at)
    draft = draft.step("reorder", loops=[term, row])
    draft = draft.step("unroll", loop=term)
    return draft.step("vectorize", loop=row, width="$lanes")


def _in_register(draft: Draft, name: str, buffer: str, at: str) -> Draft:
    """With the results of a reduction in a register until they are whole."""
    whole = f"{buffer}_whole"
    given = {"block": name, "buffer": buffer, "at": at, "scope": "register"}
    draft = draft.step("cache_write", **given, as_=whole)
    (*_, copied) = nest_of(draft.kernel, whole).loops
    return draft.step("vectorize", loop=copied.var, width="$lanes")


def _along(draft: Draft, name: str, variable: str | None) -> Draft:
    """A block that reduces nothing, in vectors along what it writes: its row, or all rows."""
    line = loop_along(draft, name, variable) if variable else None
    if line != nest_of(draft.kernel, name).loops[-1].var:
        raise Declined(f"what '{name}' writes does not lie along its innermost loop")
    return draft.step("vectorize", loop=line, width="$lanes")
