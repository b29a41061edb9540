"""Register tiles: some rows by some vectors of a line, of which the sums stay in registers.

Input: a draft, a block, and the sums that it alone reads. Output: the draft in which the block runs
by tiles and each sum is computed a tile at a time. A step of a sum takes a vector of one operand
and a number of another for rows times vectors operations, with its innermost loops unrolled.
"""

from dataclasses import dataclass
from typing import final

from ....ir.index.linear import linear
from ....ir.nodes import Block, Store, Var
from ....ir.walk import targets, variables
from ...edit.tree import is_argument, loop_named, readers
from .draft import Declined, Draft
from .nest import ArrayAccess, Nest
from .sums import SumRead, loop_along, ordered, own_loops, reuse

BAND = 8  # lines of which a window's values are computed at a time, or tiles of rows
DIAGONAL = 4  # terms of a row of a triangle
WINDOW = 4  # vectors of a line of windows
LONGEST_STEP = 16  # from a value of a line to the next, for which a copy has phases


@final
@dataclass(frozen=True, slots=True)
class RegisterTile:
    """line, rows: variables of the reader. copied: whether what is read along the line is, a panel
    of vectors at a time, for all rows. wide: whether it is for large matrices. panels: whether some
    panels are taken at a time, so that rows of results are written in long runs: for short sums.
    windows: whether lines are short, as images' are, and not read in long runs. turned: whether the
    operand comes as the transpose of a matrix, so that its copy reads vectors along the terms.
    """

    line: str
    rows: str | None
    copied: bool = True
    wide: bool = False
    panels: bool = False
    windows: bool = False
    turned: bool = False

    @property
    def vectors(self) -> str | int:
        if self.rows:
            return f"${self._kind}_vectors"
        return WINDOW if self.windows else "$line_vectors"

    @property
    def height(self) -> str:
        return f"${self._kind}_rows"

    @property
    def _kind(self) -> str:
        return "wide" if self.wide else "tile"

    def along(self, each: SumRead) -> tuple[ArrayAccess, ...]:
        """What a sum reads along the line."""
        return reuse(each.nest, each.meant[self.line])[0]


@final
@dataclass(frozen=True, slots=True)
class _Loops:
    """The reader's. shared: by threads. made: in which operands are computed; None: in none.
    panel: of vectors of the line. tiles: in a panel. again: whether all run again and again.
    """

    shared: tuple[str, ...]
    made: str | None
    panel: str
    tiles: str
    again: bool


def by_tiles(draft: Draft, reader: Nest, sums: tuple[SumRead, ...], tile: RegisterTile) -> Draft:
    draft, shared = tiled(draft, reader, sums, tile)
    return threads(draft, reader.name, shared)


def tiled(
    draft: Draft, reader: Nest, sums: tuple[SumRead, ...], tile: RegisterTile
) -> tuple[Draft, tuple[str, ...]]:
    """By tiles, and the loops for threads."""
    draft, loops = _tiled(draft, reader, sums, tile)
    for each in sums:
        draft = _sum(draft, each, tile, loops)
    return in_vectors(draft, reader.name, 3 if tile.rows else 2), loops.shared


def banded(
    draft: Draft, reader: Nest, sums: tuple[SumRead, ...], tile: RegisterTile
) -> tuple[Draft, tuple[str, ...]]:
    """By tiles, some of which, one below the other, are a band; and the loops of bands."""
    assert tile.rows is not None
    i, j = reader.loop_of[tile.rows], reader.loop_of[tile.line]
    outside = tuple(loop.var for loop in reader.own if loop.var not in (i, j))
    rows, line = [f"{i}b", f"{i}0", f"{i}1"], [f"{j}0", f"{j}1", f"{j}2"]
    draft = draft.step("split", loop=i, factors=[None, BAND, tile.height], as_=rows)
    draft = draft.step("split", loop=j, factors=[None, tile.vectors, "$lanes"], as_=line)
    draft = ordered(draft, (*outside, *rows[:2], line[0], rows[2], *line[1:]))
    bands = (*outside, rows[0])
    for each in sums:
        draft = _sum(draft, each, tile, _Loops(bands, None, line[0], line[0], True))
    return in_vectors(draft, reader.name, 3), bands


def _tiled(
    draft: Draft, reader: Nest, sums: tuple[SumRead, ...], tile: RegisterTile
) -> tuple[Draft, _Loops]:
    """With the reader's loops split: what a panel's operand has outside of it, the rest inside."""
    own, loop_of = {loop.var for loop in reader.own}, reader.loop_of
    rest = [v for v in reader.spatial if v not in (tile.line, tile.rows) and loop_of[v] in own]
    has = {v for s in sums for read in tile.along(s) for v in _results(s, read)}
    windows = _windows(draft, sums, tile)
    outside = [loop_of[v] for v in rest if v in has and v not in windows]
    inside = [loop_of[v] for v in rest if v not in has]
    moved = [loop_of[v] for v in rest if v in windows]
    if moved and all(windows.values()):
        *more, h = moved
        draft = draft.step("split", loop=h, factors=[None, BAND], as_=[f"{h}0", f"{h}1"])
        outside, moved = [*outside, *more, f"{h}0"], [f"{h}1"]
    j, last = loop_of[tile.line], list[str]()
    factors: list[object] = [None, tile.vectors, "$lanes"]
    parts = [f"{j}0", f"{j}1", f"{j}2"]
    if tile.panels:
        factors, parts = [None, BAND, *factors[1:]], [f"{j}b", *parts]
    triangle = _of_triangle(reader, j)
    if triangle and len(sums) > 1:
        raise Declined("it reads several sums of a triangle, whose edges would be much code")
    if triangle:  # its parts go outside of rows while these are whole, and are the same for all
        draft = draft.step("split", loop=j, factors=factors, as_=parts, grid=True)
        draft = ordered(draft, (parts[0], *triangle, *parts[1:]))
    if tile.rows:
        i = loop_of[tile.rows]
        draft = draft.step("split", loop=i, factors=[None, tile.height], as_=[f"{i}0", f"{i}1"])
        inside, last = [*inside, f"{i}0"], [f"{i}1"]
    if not triangle:
        draft = draft.step("split", loop=j, factors=factors, as_=parts)
    if tile.panels:  # rows outside of panels
        inside = [*inside, parts.pop(1)]
    draft = ordered(draft, (*outside, *moved, parts[0], *inside, *last, *parts[1:]))
    ends = parts[0], (parts[0], *inside)[-1], bool(reader.shared)
    if not moved:
        return draft, _Loops((*outside, parts[0]), parts[0], *ends)
    return draft, _Loops(tuple(outside or moved), _last(outside), *ends)


def _of_triangle(reader: Nest, line: str) -> tuple[str, ...]:
    """The reader's loops, rows of a triangle, that say where the line begins or ends."""
    loop = next(loop for loop in reader.own if loop.var == line)
    bound = variables(loop.lower) | variables(loop.upper)
    return tuple(loop.var for loop in reader.own if loop.var in bound)


def _last(loops: list[str]) -> str | None:
    return loops[-1] if loops else None


def _results(each: SumRead, read: ArrayAccess) -> set[str]:
    """The reader's variables that an operand has, but where data alone says which of its values."""
    its = (read.variables - read.by_data) & set(each.meant.values())
    return each.readers_of(its)


def _windows(draft: Draft, sums: tuple[SumRead, ...], tile: RegisterTile) -> dict[str, bool]:
    """The reader's variables, but for the line's, along which a sum reads windows of an operand
    that is computed for it; and whether they move evenly, so that bands of them are known.
    """
    found: dict[str, bool] = {}
    for each in sums:
        for read in tile.along(each):
            if _maker(draft, each, read) is None:
                continue
            for var in sorted(_results(each, read) - {tile.line}):
                its = each.meant[var]
                index = next(index for index in read.indices if its in variables(index))
                if index != Var(its):
                    even = all(isinstance(atom, Var) for atom in linear(index).terms)
                    found[var] = found.get(var, True) and even
    return found


def _maker(draft: Draft, each: SumRead, read: ArrayAccess) -> Block | None:
    """The block that computes what a sum alone reads, value by value, and that is not placed."""
    if is_argument(draft.kernel, read.buffer):
        return None
    for made in draft.blocks.values():
        if isinstance(made.body, Store) and targets(made.body)[0].buffer == read.buffer:
            alone = {by for by, _ in readers(draft.state.flow, made.name)} == {each.name}
            return made if alone and made.name not in draft.done else None
    return None


def _sum(draft: Draft, each: SumRead, tile: RegisterTile, loops: _Loops) -> Draft:
    """With the sum computed a tile at a time."""
    name = each.name
    draft = draft.step("compute_at", block=name, loop=loops.tiles)
    j = loop_along(draft, name, each.meant[tile.line])
    parts = (f"{j}1", f"{j}2")
    draft = draft.step("split", loop=j, factors=[tile.vectors, "$lanes"], as_=parts)
    inside = (loop_along(draft, name, each.meant[tile.rows]),) if tile.rows else ()
    over = tuple(v for v in own_loops(draft, name) if v not in (*inside, *parts))
    draft, over = _guarded(draft, over, {*inside, *parts})
    draft = ordered(draft, (*over, *inside, *parts))
    arrays = [read.buffer for read in each.nest.reads]
    once = [read for read in each.nest.reads if arrays.count(read.buffer) == 1]
    for read in tile.along(each):  # of what is its own transpose's factor all would come along
        draft = _operand(draft, each, read, tile, loops) if read in once else draft
    if tile.rows and tile.copied:
        for read in once:
            draft = _numbers(draft, each, read, tile)
    return in_registers(draft, each, over[0], len(inside) + 2)


def _guarded(draft: Draft, over: tuple[str, ...], tile: set[str]) -> tuple[Draft, tuple[str, ...]]:
    """With a sum of a triangle's row in parts of a few terms, so that a guard says which are there,
    and the loops of the tile, which go inside, keep their bounds.
    """
    done: list[str] = []
    for loop in over:
        found = loop_named(draft.kernel, loop)
        if (variables(found.lower) | variables(found.upper)) & tile:
            parts = [f"{loop}0", f"{loop}1"]
            draft = draft.step("split", loop=loop, factors=[None, DIAGONAL], as_=parts)
            done += parts
        else:
            done.append(loop)
    return draft, tuple(done)


def in_registers(draft: Draft, each: SumRead, over: str, count: int) -> Draft:
    """With the sum's results in registers, from before the loop `over` on, and with the innermost
    of its loops unrolled: so many, the last of them vectors.
    """
    buffer = targets(draft.blocks[each.name].body)[0].buffer
    draft = draft.step("set_scope", buffer=buffer, scope="register")
    draft = draft.step("decompose_reduction", block=each.name, loop=over)
    draft = in_vectors(draft, f"{each.name}.init", count)
    return in_vectors(draft, each.name, count)


def _operand(
    draft: Draft, each: SumRead, read: ArrayAccess, tile: RegisterTile, loops: _Loops
) -> Draft:
    """With what is read along the line near where it is used: computed there, or copied."""
    made = _maker(draft, each, read)
    if made is not None and loops.made is not None:
        after = draft.perhaps("compute_at", block=made.name, loop=loops.made)
        if after is not draft:
            return _copied(after, made.name, made.iters[-1].name).settled(made.name)
    if not tile.copied:
        return draft
    if loops.again and is_argument(draft.kernel, read.buffer):
        return _whole(draft, each, read, tile)
    copy = f"{each.name}_{read.buffer}"
    to = {"buffer": read.buffer, "at": loops.panel, "as_": copy}
    after = draft.perhaps("cache_read", block=each.name, **to)
    if after is draft:
        return draft
    axis, rank = _axis(each, read, tile), len(read.indices)
    if tile.panels:
        others = [k if k < axis else k + 2 for k in range(rank) if k != axis]
        order = [*others[:-1], axis, others[-1], axis + 1, axis + 2]
        panels = {"axis": axis, "factors": [None, tile.vectors, "$lanes"], "order": order}
        after = after.step("transform_layout", buffer=copy, **panels)
    elif axis != rank - 1:
        order = [*(k for k in range(rank) if k != axis), axis]
        after = after.step("transform_layout", buffer=copy, order=order)
    if axis != rank - 1 and read.stride(each.nest.reduction[-1]) == 1:
        return _turned(after, copy, read.buffer, axis, rank - 1)
    if tile.turned:
        return _turned(after, copy, read.buffer, axis, 0)
    step = read.step(each.meant[tile.line])
    if axis == rank - 1 and not tile.panels and step is not None and 1 < step <= LONGEST_STEP:
        return _in_phases(after, copy, axis, step)
    along = loop_along(after, copy, f"d{axis}")
    after = ordered(after, (*(v for v in own_loops(after, copy) if v != along), along))
    return _copied(after, copy, f"d{axis}").settled(copy)


def _in_phases(draft: Draft, copy: str, axis: int, step: int) -> Draft:
    """With a copy in which what is read `step` apart lies side by side."""
    order = [*range(axis), axis + 1, axis]
    phases = {"axis": axis, "factors": [None, step], "order": order}
    draft = draft.step("transform_layout", buffer=copy, **phases)
    line = loop_along(draft, copy, f"d{axis}")
    parts = (f"{line}_0", f"{line}_1")
    draft = draft.step("split", loop=line, factors=[None, step], as_=parts)
    rest = tuple(loop for loop in own_loops(draft, copy) if loop not in parts)
    draft = ordered(draft, (*rest, parts[1], parts[0]))
    draft = draft.step("vectorize", loop=parts[0], width="$lanes")
    return draft.perhaps("unroll", loop=f"{parts[0]}_0").settled(copy)


def _turned(draft: Draft, copy: str, buffer: str, axis: int, terms: int) -> Draft:
    """With a copy that takes a square of vectors, of which rows become columns, at a time. axis,
    terms: the buffer's axes along the line and along what is summed.
    """
    line, deep = loop_along(draft, copy, f"d{axis}"), loop_along(draft, copy, f"d{terms}")
    j, k = (f"{line}_0", f"{line}_1"), (f"{deep}_0", f"{deep}_1")
    rest = tuple(loop for loop in own_loops(draft, copy) if loop not in (line, deep))
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=j)
    draft = draft.step("split", loop=deep, factors=[None, "$lanes"], as_=k)
    draft = ordered(draft, (*rest, k[0], j[0], k[1], j[1]))
    square = f"{copy}_square"
    to = {"buffer": buffer, "at": j[0], "scope": "register", "as_": square}
    draft = draft.step("cache_read", block=copy, **to)
    if terms < axis:
        draft = draft.step("transform_layout", buffer=square, order=[1, 0])
        draft = ordered(draft, tuple(reversed(own_loops(draft, square))))
    draft = in_vectors(draft, square, 2)
    return in_vectors(draft, copy, 2).settled(copy, square)


def _whole(draft: Draft, each: SumRead, read: ArrayAccess, tile: RegisterTile) -> Draft:
    """With a copy of all that is read along the line, before the loop that reads it again and
    again: panels of vectors, in the order of their use.
    """
    axis = _axis(each, read, tile)
    copy, rank = f"{each.name}_{read.buffer}", len(read.indices)
    draft = draft.step("cache_read", block=each.name, buffer=read.buffer, as_=copy)
    line = loop_along(draft, copy, f"d{axis}")
    others = [k if k < axis else k + 2 for k in range(rank) if k != axis]
    panels = {"axis": axis, "factors": [None, tile.vectors, "$lanes"]}
    order = [axis, *others, axis + 1, axis + 2]
    draft = draft.step("transform_layout", buffer=copy, **panels, order=order)
    loops, parts = own_loops(draft, copy), (f"{line}_0", f"{line}_1")
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=parts)
    draft = ordered(draft, (parts[0], *(v for v in loops if v != line), parts[1]))
    if axis == rank - 1:
        draft = draft.step("vectorize", loop=parts[1], width="$lanes")
    return draft.if_sound("parallel", loop=parts[0]).settled(copy)


def _axis(each: SumRead, read: ArrayAccess, tile: RegisterTile) -> int:
    """Along which an operand is read in vectors."""
    its = each.meant[tile.line]
    return next(k for k, index in enumerate(read.indices) if its in variables(index))


def _numbers(draft: Draft, each: SumRead, read: ArrayAccess, tile: RegisterTile) -> Draft:
    """With the operand of one number a row in the order of its use, where that is not its own: the
    rows of a tile side by side, for one term after another.
    """
    assert tile.rows is not None
    rows, terms = each.meant[tile.rows], each.nest.reduction
    names = [index.name if isinstance(index, Var) else "" for index in read.indices]
    if rows not in names or each.meant[tile.line] in read.variables or read.stride(terms[-1]) == 1:
        return draft
    if "" in names or not is_argument(draft.kernel, read.buffer):
        return draft
    at = names.index(rows)
    axes = [*names[: at + 1], "", *names[at + 1 :]]  # a tile, and then the rows in it
    first = [k for k, name in enumerate(axes) if name and name not in terms]
    order = [*first, *(axes.index(term) for term in terms if term in axes), at + 1]
    copy = f"{each.name}_{read.buffer}"
    draft = draft.step("cache_read", block=each.name, buffer=read.buffer, as_=copy)
    tiles = {"axis": at, "factors": [None, tile.height], "order": order}
    draft = draft.step("transform_layout", buffer=copy, **tiles)
    return draft.if_sound("parallel", loop=own_loops(draft, copy)[0]).settled(copy)


def _copied(draft: Draft, block: str, axis: str) -> Draft:
    """With the innermost loop of a panel's copy in vectors."""
    line = loop_along(draft, block, axis)
    draft = draft.step("vectorize", loop=line, width="$lanes")
    return draft.perhaps("unroll", loop=f"{line}_0")


def in_vectors(draft: Draft, block: str, count: int) -> Draft:
    """With so many of the innermost loops of a block unrolled, the last of them vectors."""
    *outer, lane = own_loops(draft, block)[-count:]
    for loop in outer:
        draft = draft.step("unroll", loop=loop)
    return draft.step("vectorize", loop=lane, width="$lanes")


def threads(draft: Draft, reader: str, loops: tuple[str, ...]) -> Draft:
    """With threads over directly nested loops, as one."""
    if len(loops) > 1:
        draft = draft.step("fuse", loops=loops, as_=f"{reader}.tasks")
        loops = (f"{reader}.tasks",)
    return draft.if_sound("parallel", loop=loops[0])
