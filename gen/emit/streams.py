"""Loops whose vector stores may pass the caches by: each is there twice, and a call takes one copy.

Input: a lowered tree, unrolled and inlined, in which blocks are marked by the step `stream`.
Output: for a loop that stores whole vectors of a marked block one after another, the loop as it is,
and a copy that pushes them into rows of `ts_stream.h`, one for each row of the array that an
iteration stores into; and where the step `align` lets loops begin with the array's lines, a third,
for rows that all do. Where loads would wait for a row's own stores (`ts_row_hits`), these are late,
or not streamed. Invariant: every marked block has a loop of that kind on every level, or it is an
error. Stores under a mask are of tails, and remain what they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from ..errors import Span, TilesmithError
from ..ir.algebra import TRUE, index
from ..ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Delinearize,
    Expr,
    If,
    Load,
    Loop,
    LoopKind,
    Seq,
    Stmt,
    Target,
    Transfer,
)
from ..ir.walk import blocks, loads, loops, substitute, targets, variables, walk
from ..lower.affine import Affine, affine, constant
from .context import Context
from .expr import suffix
from .forms import WORDS
from .unroll import has_vector_form, in_lanes
from .views import Argument, at_lane, plain_scalars, steps

FIRST = "@lower"  # the first iteration of a parallel loop's part, `lower` in C


@final
@dataclass(frozen=True, slots=True)
class _Stored:
    """A marked block's vector of `lanes` lanes."""

    block: Block
    lane: str
    lanes: int

    @property
    def target(self) -> Target:
        return targets(self.block.body)[0]


def either(
    loop: Loop, first: Expr, context: Context, emit: Callable[[Context], list[str]]
) -> list[str]:
    """The loop that `emit` emits in a context, in both copies if there is anything to stream.

    first: the loop variable's first value. Raises TilesmithError where a marked block's stores in
    the loop do not follow one another.
    """
    found = _stored(loop.body, context)
    plain = emit(context)
    if not found:
        return plain
    context.module.streamed.update(s.block.name for s in found)
    if any(context.dtypes[s.target.buffer] not in WORDS for s in found):
        return plain
    rows = _rows(loop, found, context)
    if context.target.vector_bytes < 32:
        return plain
    start = {loop.var: first, **{inner.var: inner.lower for inner in loops(loop.body)}}
    places = [_address(row[0].target, start, context) for row in rows]
    may_be_late = len(rows) == 1 and context.target.vector_bytes == 64
    late = "hits == 1" if may_be_late else "false"
    lines = _in_rows(rows, places, late, loop, context, emit)
    if {s.target.buffer for s in found} <= context.aligned:
        straight = emit(replace(context, pushes={s.target: "" for s in found}))
        bits = " | ".join(f"(uintptr_t){place}" for place in places)
        whole = f"({bits}) % TS_BYTES == 0"
        lines = _choice(f"!hits && {whole}" if may_be_late else whole, straight, lines)
    condition = _condition(found, context)
    hits = _hits(rows, places, loop, start, context, all_in_step=may_be_late)
    if may_be_late:
        counted = f"const int hits = {' | '.join(hits) or '0'};"
        return [
            "{",
            *_indented([counted, *_choice(f"{condition} && hits != 3", lines, plain)]),
            "}",
        ]
    return _choice(" && ".join([condition, *(f"{hit} != 1" for hit in hits)]), lines, plain)


def _in_rows(
    rows: list[list[_Stored]],
    places: list[str],
    late: str,
    loop: Loop,
    context: Context,
    emit: Callable[[Context], list[str]],
) -> list[str]:
    """The loop with a row of `ts_stream.h` for each of `rows`, which begin at `places`."""
    begun: list[str] = []
    ended: list[str] = []
    pushes: dict[Target, str] = {}
    end = {loop.var: loop.upper, **{inner.var: inner.lower for inner in loops(loop.body)}}
    for k, (row, place) in enumerate(zip(rows, places, strict=True)):
        s = suffix(context.dtypes[row[0].target.buffer])
        begun.append(f"ts_row_{s} line{k} = ts_row_begin_{s}({place}, {late});")
        if loop.kind is not LoopKind.PARALLEL:  # the line that a row ends in has to be read
            begun.append(f"__builtin_prefetch({_address(row[0].target, end, context)}, 1);")
        ended.append(f"ts_row_end_{s}(&line{k});")
        pushes |= {stored.target: f"line{k}" for stored in row}
    return [*begun, *emit(replace(context, pushes=pushes)), *ended]


def _choice(condition: str, then: list[str], otherwise: list[str]) -> list[str]:
    return [f"if ({condition}) {{", *_indented(then), "} else {", *_indented(otherwise), "}"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _address(access: Target | Load, start: Mapping[str, Expr], context: Context) -> str:
    """Of what is accessed where variables are as at the `start` of the loop."""
    at = tuple(substitute(i, start) for i in access.indices)
    scalars = plain_scalars({**context.names, FIRST: "lower"}, context.views, context.facts)
    return f"&{scalars.element(access.buffer, at, context.facts)}"


def _hits(
    rows: list[list[_Stored]],
    places: list[str],
    loop: Loop,
    start: Mapping[str, Expr],
    context: Context,
    *,
    all_in_step: bool,
) -> list[str]:
    """C of how what the loop reads of other arguments comes upon its stores: of what it reads from
    where it stores, or of all that it reads in step with its stores.
    """

    def place(access: Target | Load) -> list[Affine]:
        at = [affine(substitute(i, start)) for i in access.indices]
        return at[-1:] if all_in_step else at

    def known(load: Load) -> bool:
        """Whether its first address is one before the loop, which may run nothing, reads any."""
        at = [substitute(i, start) for i in load.indices]
        return not any(loads(i) or variables(i) & unknown for i in at)

    unknown = {v for n in walk(loop.body) if isinstance(n, Delinearize) for v in n.vars}
    unknown |= start.keys()
    read = dict.fromkeys(
        load
        for block in blocks(loop.body)
        for load in loads(block.body)
        if isinstance(context.views.get(load.buffer), Argument) and known(load)
    )
    return [
        f"ts_row_hits({where}, {_address(load, start, context)})"
        for where, row in zip(places, rows, strict=True)
        for load in read
        if load.buffer != row[0].target.buffer and place(load) == place(row[0].target)
    ]


def fenced(lines: Sequence[str]) -> list[str]:
    """What a function whose body is `lines` has to end with: stores past the caches are seen by
    other threads after a fence alone.
    """
    streams = any("ts_row_end" in line for line in lines)
    return ["if (stream) {", "    ts_stream_fence();", "}"] if streams else []


def check_all(stmt: Stmt, context: Context) -> None:
    """Raises TilesmithError for a marked block that no loop streams."""
    for block in blocks(stmt):
        if marked(block) and block.name not in context.module.streamed:
            raise _error(block, "no loop stores whole vectors of it one after another")


def marked(block: Block) -> bool:
    return any(key == "stream" for key, _ in block.annotations)


def _error(block: Block, reason: str) -> TilesmithError:
    line = next(value for key, value in block.annotations if key == "stream")
    where = Span(block.span.path, int(line), 1) if block.span and line else block.span
    return TilesmithError(f"stream (block {block.name}): {reason}", where)


# ---------------------------------------------------------------- what a loop stores


def _stored(body: Stmt, context: Context) -> list[_Stored]:
    """The marked blocks' vectors that one iteration stores, in order; none where one of them is
    under a guard, as they are in tails.
    """
    found = [s for s in _direct(body, "", 0) if marked(s.block)]
    whole = all(
        s.lane and s.block.predicate == TRUE and has_vector_form(s.block, s.lane, context.dtypes)
        for s in found
    )
    return found if whole else []


def _direct(stmt: Stmt, lane: str, lanes: int) -> Iterator[_Stored]:
    """The blocks that run once an iteration."""
    match stmt:
        case Block():
            yield _Stored(stmt, lane, lanes)
        case Loop(var, _, upper, LoopKind.VECTORIZED, body) if in_lanes(body, var):
            yield from _direct(body, var, constant(upper) or 0)
        case Seq(parts):
            for part in parts:
                yield from _direct(part, lane, lanes)
        case Allocate(_, body):
            yield from _direct(body, lane, lanes)
        case Loop() | If() | Delinearize() | Barrier() | Transfer():
            return
        case _:
            assert_never(stmt)


# ---------------------------------------------------------------- rows


def _rows(loop: Loop, found: list[_Stored], context: Context) -> list[list[_Stored]]:
    """The vectors by row, each row's in order; an error where they are not all of what an iteration
    stores there, one after another, from where the iteration before has stopped.
    """
    rows: dict[object, list[_Stored]] = {}
    for s in found:
        rows.setdefault(_row(s), []).append(s)
    for row in rows.values():
        if reason := _gap(loop, row, context):
            raise _error(row[0].block, f"in loop '{loop.var}' {reason}")
    names = {s.block.name for s in found}
    buffers = {s.target.buffer for s in found}
    for block in blocks(loop.body):
        if block.name not in names and buffers & {t.buffer for t in targets(block.body)}:
            raise _error(found[0].block, f"block '{block.name}' stores into the same array")
    return list(rows.values())


def _row(s: _Stored) -> object:
    """What tells the rows of an array apart."""
    *outer, last = (affine(i) for i in at_lane(s.target.indices, s.lane, index(0)))
    where = tuple((frozenset(a.terms), a.constant) for a in outer)
    return (s.target.buffer, where, frozenset(last.terms))


def _start(s: _Stored) -> Affine:
    """Where in its row a vector begins."""
    return affine(at_lane(s.target.indices, s.lane, index(0))[-1])


def _gap(loop: Loop, row: list[_Stored], context: Context) -> str | None:
    """Why the vectors do not make a row without gaps; None where they do."""
    target, first = row[0].target, _start(row[0])
    if context.dtypes[target.buffer].is_complex:
        return "it stores complex numbers, which do not pass the caches by yet"
    native = context.target.lanes(context.dtypes[target.buffer])
    for s in row:
        by = [affine(i).coefficient(s.lane) for i in s.target.indices]
        if by != [0] * (len(by) - 1) + [1]:
            return f"its lanes are not neighbours along the last axis of '{target.buffer}'"
        if s.lanes % native:
            return f"its {s.lanes} lanes are no whole number of vectors of {native}"
    at = first.constant
    for s in row:
        if _start(s).constant != at:
            return f"it stores element {_start(s).constant} where element {at} comes next"
        at += s.lanes
    if any(loop.var in variables(i) for i in target.indices[:-1]):
        return f"each iteration stores into another row of '{target.buffer}'"
    if first.coefficient(loop.var) != at - first.constant:
        return (
            f"an iteration stores {at - first.constant} elements of a row and moves on by"
            f" {first.coefficient(loop.var)}"
        )
    return None


def _condition(found: list[_Stored], context: Context) -> str:
    """When to stream: where the call says so, in code for arrays of unit stride."""
    places = ((context.views[s.target.buffer], s) for s in found)
    moves = [steps(view, s.target.indices, s.lane, context.scalars) for view, s in places]
    chosen = any(move is not None and not move.unit for move in moves)
    return "unit && stream" if chosen else "stream"
