"""Rows: what is reduced over a row, and what is made of it, as one nest a row.

Looks for: a block whose values need whole reductions over axes of an array that is read once a
value, as sums, norms and softmax do; all reductions are over the same rows. GPU: a block of threads
a row, which reduce together, or a warp where rows are short; long rows where those are few, and
long columns, in two launches. Values of a line that only this row asks for are computed again
rather than kept, since a row may be of any length. Where rows lie across lines, the last variants
take neighbouring rows by neighbouring threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

from ...ir.index.linear import constant
from ...ir.nodes import Destination, Update, Var
from ...ir.text.print_expr import spec_text
from ...ir.walk import blocks, loads, targets, variables
from ..edit.tree import loop_named, readers, reduction_loops
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import THREADS, in_launch, kept, settled
from .parts.nest import Nest, nest_of

SHORT = 512  # terms, of which a warp has a few each
FEW_ROWS = 256  # as few as leave most of a GPU idle, if each is a block's
FEW = 32  # terms that a thread sums up as fast as several do


@final
@dataclass(frozen=True, slots=True)
class _Team:
    """Who takes a row: threads of a block along an axis, which join so many sums at a time; lanes:
    rows a block, along another axis. part: terms of a long row that are a block's.
    """

    threads: int
    axis: str
    fan: int
    part: int = 0
    lanes: int = 1
    lane_axis: str = ""


_WIDE = _Team(THREADS, "threadIdx.x", 16, 16384)
_WARP = _Team(32, "threadIdx.x", 8, lanes=8, lane_axis="threadIdx.y")
_COLUMNS = _Team(16, "threadIdx.y", 16, 256, 32, "threadIdx.x")
_MADE_COLUMNS = _Team(8, "threadIdx.y", 8, 256, 32, "threadIdx.x")
"""Of those that make something of each element of a row: 16 took more registers than there are."""


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if in_launch(nest):
        raise Declined("it is in a launch")
    draft = apart(draft, nest.name)
    members, count = _members(draft, nest.name)
    draft = _inlined(draft, members, count)
    rows = _rows(draft, members, count)
    first = nest_of(draft.kernel, _sums(draft, members)[0])
    across = bool(count) and _across(first)
    if not across and not _may_lie_across(draft, first):
        return (*_in_two(draft, members, _WIDE), _launched(draft, members, rows, _WIDE))
    made = len(_free(nest_of(draft.kernel, members[-1]))) > len(rows)
    team = _MADE_COLUMNS if made else _COLUMNS
    if across:
        return (*_in_two(draft, members, team), _launched(draft, members, rows, team))
    columns = _launched(draft, members, _beside(draft, members[-1], rows), team)
    wide = _launched(draft, members, rows, _WIDE).under(f"{draft.kernel.dims[0]} >= 0")
    short = _short(draft, members, rows)
    return (*_in_two(draft, members, _WIDE), *short, wide, *_in_two(draft, members, team), columns)


def _may_lie_across(draft: Draft, nest: Nest) -> bool:
    """Whether a caller may give rows that lie across lines: of arguments, and with rows to lie side
    by side.
    """
    return _is_given(draft, nest) and bool(_free(nest) and draft.kernel.dims)


def _beside(draft: Draft, name: str, rows: tuple[str, ...]) -> tuple[str, ...]:
    """The rows' variables, last the one over which a caller's rows lie side by side: it is the
    kernel's loop dim that the innermost axis of such a call becomes.
    """
    nest = nest_of(draft.kernel, name)
    ends = {var: loop_named(draft.kernel, nest.loop_of[var]).upper for var in rows}
    return tuple(sorted(rows, key=lambda var: ends[var] == Var(draft.loop_dim or "")))


def _is_given(draft: Draft, nest: Nest) -> bool:
    """Whether what it reads most of is an argument."""
    arguments = {p.buffer.name for p in draft.kernel.parameters}
    return nest.dominant is not None and nest.dominant.buffer in arguments


def _reduces(draft: Draft, name: str) -> bool:
    return isinstance(draft.blocks[name].body, Update)


def _free(nest: Nest) -> tuple[str, ...]:
    """The spatial variables of its own loops: those of loops that it shares are the host's."""
    own = {loop.var for loop in nest.own}
    return tuple(var for var in nest.spatial if nest.loop_of[var] in own)


def _sums(draft: Draft, members: Sequence[str]) -> list[str]:
    return [name for name in members if name in draft.blocks and _reduces(draft, name)]


def _members(draft: Draft, name: str) -> tuple[list[str], int]:
    """The block and those of its rows that nothing else reads, in program order; and how many axes
    there are rows along. Raises Declined where no reduction over a row is among them.
    """
    order = [block.name for block in blocks(draft.kernel.body)]
    found, count = {name}, None
    if _reduces(draft, name):
        _require_line(nest_of(draft.kernel, name))
        count = len(_free(nest_of(draft.kernel, name)))
    shared = nest_of(draft.kernel, name).shared
    for other in reversed(order[: order.index(name)]):
        users = {reader for reader, _ in readers(draft.state.flow, other)}
        nest = nest_of(draft.kernel, other)
        if not users or not users <= found or other in draft.done or nest.shared != shared:
            continue
        if _reduces(draft, other):
            of_rows = _is_line(nest) and not _summed_up(draft, other)
            if count not in (None, len(_free(nest))) or not of_rows:
                continue
            count = len(_free(nest))
        found.add(other)
    if count is None:
        raise Declined("no reduction over a row of an array is read")
    found = _made_of_sums(draft, [other for other in order if other in found], count)
    return [other for other in order if other in found], count


def _summed_up(draft: Draft, name: str) -> bool:
    """Whether values of a block are terms of a reduction, and so of other rows than its own."""
    for reader, number in readers(draft.state.flow, name):
        read = loads(draft.blocks[reader].body)[number]
        terms = nest_of(draft.kernel, reader).reduction
        if any(variables(index) & {*terms} for index in read.indices):
            return True
    return False


def _made_of_sums(draft: Draft, members: Sequence[str], count: int) -> set[str]:
    """Without values of as many axes as there are of rows that come from no sum over a row."""
    made = set[str]()
    left = set[str]()
    for name in members:
        nest = nest_of(draft.kernel, name)
        from_sums = any(read.buffer in made for read in nest.reads)
        if _reduces(draft, name) or from_sums or len(_free(nest)) > count or name == members[-1]:
            left.add(name)
        if _reduces(draft, name) or from_sums:
            made |= {target.buffer for target in _targets(draft, name)}
    return left


def _is_line(nest: Nest) -> bool:
    try:
        _require_line(nest)
    except Declined:
        return False
    return True


def _require_line(nest: Nest) -> None:
    """Raises Declined where terms are few, or the same elements are read for several rows."""
    loops = {loop.var: loop for loop in nest.own}
    own = {*_free(nest), *nest.reduction}
    if not nest.reduction or {nest.loop_of[var] for var in own} != loops.keys():
        raise Declined(f"'{nest.name}' runs along other loops than its axes")
    extents = [constant(loops[nest.loop_of[var]].upper) for var in nest.reduction]
    if prod(FEW if extent is None else extent for extent in extents) < FEW:
        raise Declined(f"'{nest.name}' has few terms")
    read = nest.dominant
    if read is None or not own <= read.variables:
        raise Declined(f"'{nest.name}' reads elements for several rows")
    if not all(isinstance(index, Var) for index in read.indices):
        raise Declined(f"'{nest.name}' reads at other places than its axes'")


def _across(nest: Nest) -> bool:
    """Whether neighbours of what a row's reduction reads are of other rows."""
    read = nest.dominant
    assert read is not None
    return all(read.stride(var) != 1 for var in nest.reduction)


def _inlined(draft: Draft, members: Sequence[str], count: int) -> Draft:
    """With values of a row's line computed again where they are read."""
    for name in members[:-1]:
        if not _reduces(draft, name) and len(_free(nest_of(draft.kernel, name))) > count:
            draft = draft.step("compute_inline", block=name)
    return draft


def _rows(draft: Draft, members: Sequence[str], count: int) -> tuple[str, ...]:
    """The variables of the last member that its rows are along."""
    nest = nest_of(draft.kernel, members[-1])
    if len(_free(nest)) == count:
        return _free(nest)
    made = {
        t.buffer for name in members[:-1] if name in draft.blocks for t in _targets(draft, name)
    }
    for read in nest.reads:
        if read.buffer in made and len(read.variables) == count and count:
            return tuple(var for var in _free(nest) if var in read.variables)
    raise Declined("it is not of one row")


def _targets(draft: Draft, name: str) -> tuple[Destination, ...]:
    return targets(draft.blocks[name].body)


# ---------------------------------------------------------------- the launch


def _launched(draft: Draft, members: Sequence[str], rows: Sequence[str], team: _Team) -> Draft:
    name = members[-1]
    shared = nest_of(draft.kernel, name).shared
    draft, row, line = _ordered(draft, name, rows)
    if _reduces(draft, name):
        draft = _kept_row(draft, name, row)
    for other in reversed(members[:-1]):
        if other in draft.blocks and len(_free(nest_of(draft.kernel, other))) >= len(rows):
            draft = _drawn(draft, other, row)
    if line:
        parts = [f"{name}.turn", f"{name}.thread"]
        draft = draft.step("split", loop=line[-1], factors=[None, team.threads], as_=parts)
        line = [*line[:-1], *parts]
    draft = _bound(draft, name, row, shared, team)
    for k, other in enumerate(_sums(draft, members)):
        draft = _shared_out(draft, other, team, first=k == 0)
    if line:
        draft = draft.perhaps("sync_threads", loop=line[0])
        draft = draft.step("bind", loop=line[-1], axis=team.axis)
    return settled(draft).proved()


def _short(draft: Draft, members: Sequence[str], rows: tuple[str, ...]) -> tuple[Draft, ...]:
    """For rows that leave most threads of a block without work, a warp each."""
    nest = nest_of(draft.kernel, _sums(draft, members)[-1])
    sizes = [nest.size(var) for var in nest.reduction]
    if len(sizes) > 1 or sizes[0] is None or constant(sizes[0]) is not None:
        return ()
    try:
        draft = _launched(draft, members, rows, _WARP)
    except Declined:
        return ()
    return (draft.under(f"{spec_text(sizes[0])} <= {SHORT}"),)


def _in_two(draft: Draft, members: Sequence[str], team: _Team) -> tuple[Draft, ...]:
    """For long rows that a caller gives, a sum of each part of a row by a block, then the sum of
    these; nothing where its row is asked for, too. Sums before it are then by themselves, and in
    two as well. Blocks that take a row each are few where rows are; lanes are where rows lie
    across lines, and a block's lanes read few of them at a time.
    """
    members = members[members.index(_sums(draft, members)[-1]) :]
    name = members[0]
    nest = nest_of(draft.kernel, name)
    last = nest_of(draft.kernel, members[-1])
    if nest.shared or len(nest.reduction) != 1 or not _is_given(draft, nest):
        return ()
    if len(last.spatial) != len(nest.spatial):
        return ()
    (term,) = nest.reduction
    few = nest.spatial if team is _WIDE else ()
    sizes = {var: nest.size(var) for var in (term, *few)}
    texts = {var: spec_text(size) for var, size in sizes.items() if size is not None}
    if len(texts) < len(sizes):
        return ()
    when = [f"{texts[term]} >= {4 * team.part}"]
    if few:
        when.insert(0, f"{_times([texts[v] for v in few])} <= {FEW_ROWS}")
    try:
        draft = _parted(draft, nest, nest.loop_of[term], team)
        rows = nest_of(draft.kernel, members[-1]).spatial
        rows = rows if team is _WIDE else _beside(draft, members[-1], rows)
        draft = _launched(draft, members, rows, team)
    except Declined:
        return ()
    return (draft.under(*when),)


def _times(factors: Sequence[str]) -> str:
    return " * ".join(f if f.isidentifier() else f"({f})" for f in factors)


def _parted(draft: Draft, nest: Nest, term: str, team: _Team) -> Draft:
    """With sums of parts of rows in a launch of their own, a team each."""
    name = nest.name
    inside, outside, part = f"{name}.inside", f"{name}.parts", f"{name}_part"
    own = nest.spatial if team is _WIDE else _beside(draft, name, nest.spatial)
    rows = [nest.loop_of[var] for var in own]
    draft = draft.step("split", loop=term, factors=[None, team.part], as_=[outside, inside])
    draft = draft.step("reorder", loops=[outside, *rows, inside])
    draft = draft.step("rfactor", block=name, loop=outside, as_=[part, f"{name}.left"])
    if team.lanes > 1:
        draft = _bound(draft, part, rows[-1], frozenset(), team)
    else:
        for loop, axis in zip((outside, *reversed(rows)), "xyz", strict=False):
            draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    return _shared_out(draft, part, team, first=True)


def _ordered(draft: Draft, name: str, rows: Sequence[str]) -> tuple[Draft, str, list[str]]:
    """With the loops over the rows around those along them; the innermost of the former, and the
    latter.
    """
    nest = nest_of(draft.kernel, name)
    inner = nest.inner
    rest = [var for var in _free(nest) if var not in rows]
    rest = [var for var in rest if var != inner] + [var for var in rest if var == inner]
    wanted = [nest.loop_of[var] for var in (*rows, *rest, *nest.reduction)]
    if wanted != [loop.var for loop in nest.own]:
        draft = draft.step("reorder", loops=wanted)
    line = [nest.loop_of[var] for var in rest]
    if rows:
        return draft, nest.loop_of[rows[-1]], line
    row = f"{name}.row"
    if line:
        raise Declined("there is one row, which one block of threads would take")
    inside = {"loop": nest.own[0].var} if nest.own else {"block": name}
    return draft.step("add_unit_loop", **inside, as_=[row]), row, line


def _drawn(draft: Draft, name: str, row: str) -> Draft:
    """With a producer in the loop over rows, its values shared by the threads of a row."""
    buffers = [target.buffer for target in _targets(draft, name)]
    draft = draft.step("compute_at", block=name, loop=row)
    for buffer in buffers:
        if buffer in kept(draft):
            draft = draft.step("set_scope", buffer=buffer, scope="shared")
    return draft


def _kept_row(draft: Draft, name: str, row: str) -> Draft:
    """With what a reduction gives a row in shared memory until it is whole."""
    for buffer in [target.buffer for target in _targets(draft, name)]:
        own = {"block": name, "buffer": buffer, "at": row}
        draft = draft.perhaps("cache_write", **own, scope="shared", as_=f"{buffer}_row")
    return draft


def _bound(draft: Draft, name: str, row: str, shared: frozenset[str], team: _Team) -> Draft:
    """With rows as blocks, or as blocks of lanes."""
    nest = nest_of(draft.kernel, name)
    around = [loop.var for loop in nest.loops if loop.var not in shared]
    around = around[: around.index(row) + 1]
    lane = f"{name}.lane"
    if team.lanes > 1:
        parts = [f"{name}.group", lane]
        draft = draft.step("split", loop=row, factors=[None, team.lanes], as_=parts)
        around = [*around[:-1], parts[0]]
    for loop, axis in zip(reversed(around), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    return draft.step("bind", loop=lane, axis=team.lane_axis) if team.lanes > 1 else draft


def _shared_out(draft: Draft, name: str, team: _Team, *, first: bool) -> Draft:
    """With a reduction by the threads of a row together."""
    nest = nest_of(draft.kernel, name)
    reduced = reduction_loops(nest.block)
    loops = [loop.var for loop in nest.own if loop.var in reduced]
    if not loops:
        raise Declined(f"no loop of '{name}' alone is one of its reduction")
    if nest.dominant is not None:
        inner = [nest.loop_of[v] for v in nest.reduction if nest.dominant.stride(v) == 1]
        wanted = [loop for loop in loops if loop not in inner] + inner
        if wanted != loops:
            draft, loops = draft.step("reorder", loops=wanted), wanted
    if not first:
        draft = draft.perhaps("sync_threads", loop=loops[0])
    known = kept(draft)
    draft = draft.step(
        "cross_thread_reduction",
        block=name,
        loop=loops[-1],
        threads=team.threads,
        fan=team.fan,
        axis=team.axis,
    )
    if team.lanes > 1:
        for partials in (name for name in kept(draft) if name not in known):
            draft = draft.step(
                "storage_align", buffer=partials, axis=-2, factor=team.threads, offset=1
            )
    return draft
