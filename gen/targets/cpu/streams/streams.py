"""Loops whose vector stores may pass the caches by: each is there twice, and a call takes one copy.

Input: a lowered tree, unrolled and inlined, in which blocks are marked by the step `stream`.
Output: for a loop that stores whole vectors of a marked block one after another, the loop as it is,
and a copy that pushes them into rows of `ts_stream.h`, one for each row of the array that an
iteration stores into; and where the step `align` lets loops begin with the array's lines, a third,
for rows that all do. Where loads would wait for a row's own stores (`ts_row_hits`), these are late,
or not streamed. Loops that store into other rows each iteration are for `apart`. Invariant: every
marked block has a loop of one kind on every level, or it is an error. Stores under a mask are of
tails, and remain what they are.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....ir.index.linear import Linear, linear
from ....ir.nodes import Delinearize, Destination, Expr, Load, Loop, LoopKind, Stmt
from ....ir.walk import blocks, loads, loops, statements, substitute, variables
from ...c.expr import suffix
from ...c.lines import choice, indented
from ...c.views import ArgumentView
from ..context import Context
from ..vectors.forms import WORDS
from . import row_loops
from .rows import Stored, address, condition, marked, refused, rows_of, stored


def either(
    loop: Loop, first: Expr, context: Context, emit: Callable[[Context], list[str]]
) -> list[str]:
    """The loop that `emit` emits in a context, in both copies if there is anything to stream.

    first: the loop variable's first value. Raises TilesmithError where a marked block's stores in
    the loop do not follow one another.
    """
    if context.apart and context.apart.loop is loop:
        return emit(replace(context, pushes={**context.pushes, **context.apart.pushes}))
    found = stored(loop.body, context)
    if not found:
        return row_loops.either(loop, first, context, emit) or emit(context)
    plain = emit(context)
    context.module.streamed.update(s.block.name for s in found)
    if any(context.dtypes[s.target.buffer] not in WORDS for s in found):
        return plain
    rows = rows_of(loop, found, context)
    if context.target.vector_bytes < 32:
        return plain
    start = {loop.var: first, **{inner.var: inner.lower for inner in loops(loop.body)}}
    places = [address(row[0].target, start, context) for row in rows]
    may_be_late = len(rows) == 1 and context.target.vector_bytes == 64
    late = "hits == 1" if may_be_late else "false"
    lines = _in_rows(rows, places, late, loop, context, emit)
    if {s.target.buffer for s in found} <= context.aligned:
        straight = emit(replace(context, pushes={s.target: "" for s in found}))
        bits = " | ".join(f"(uintptr_t){place}" for place in places)
        whole = f"({bits}) % TS_BYTES == 0"
        lines = choice(f"!hits && {whole}" if may_be_late else whole, straight, lines)
    streams = condition(found, context)
    hits = _hits(rows, places, loop, start, context, all_in_step=may_be_late)
    if may_be_late:
        counted = f"const int hits = {' | '.join(hits) or '0'};"
        return [
            "{",
            *indented([counted, *choice(f"{streams} && hits != 3", lines, plain)]),
            "}",
        ]
    return choice(" && ".join([streams, *(f"{hit} != 1" for hit in hits)]), lines, plain)


def _in_rows(
    rows: list[list[Stored]],
    places: list[str],
    late: str,
    loop: Loop,
    context: Context,
    emit: Callable[[Context], list[str]],
) -> list[str]:
    """The loop with a row of `ts_stream.h` for each of `rows`, which begin at `places`."""
    begun: list[str] = []
    ended: list[str] = []
    pushes: dict[Destination, str] = {}
    end = {loop.var: loop.upper, **{inner.var: inner.lower for inner in loops(loop.body)}}
    for k, (row, place) in enumerate(zip(rows, places, strict=True)):
        s = suffix(context.dtypes[row[0].target.buffer])
        begun.append(f"ts_row_{s} line{k} = ts_row_begin_{s}({place}, {late});")
        if loop.kind is not LoopKind.PARALLEL:  # the line that a row ends in has to be read
            begun.append(f"__builtin_prefetch({address(row[0].target, end, context)}, 1);")
        ended.append(f"ts_row_end_{s}(&line{k});")
        pushes |= {stored.target: f"line{k}" for stored in row}
    return [*begun, *emit(replace(context, pushes=pushes)), *ended]


def _hits(
    rows: list[list[Stored]],
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

    def place(access: Destination | Load) -> list[Linear]:
        at = [linear(substitute(i, start)) for i in access.indices]
        return at[-1:] if all_in_step else at

    def known(load: Load) -> bool:
        """Whether its first address is one before the loop, which may run nothing, reads any."""
        at = [substitute(i, start) for i in load.indices]
        return not any(loads(i) or variables(i) & unknown for i in at)

    unknown = {v for n in statements(loop.body) if isinstance(n, Delinearize) for v in n.vars}
    unknown |= start.keys()
    read = dict.fromkeys(
        load
        for block in blocks(loop.body)
        for load in loads(block.body)
        if isinstance(context.views.get(load.buffer), ArgumentView) and known(load)
    )
    return [
        f"ts_row_hits({where}, {address(load, start, context)})"
        for where, row in zip(places, rows, strict=True)
        for load in read
        if load.buffer != row[0].target.buffer and place(load) == place(row[0].target)
    ]


def fenced(lines: Sequence[str]) -> list[str]:
    """What a function whose body is `lines` has to end with: stores past the caches are seen by
    other threads after a fence alone.
    """
    streams = re.search(r"\bts_(row_end|line_end|stream)_", "\n".join(lines))
    return ["if (stream) {", "    ts_stream_fence();", "}"] if streams else []


def check_all(stmt: Stmt, context: Context) -> None:
    """Raises TilesmithError for a marked block that no loop streams."""
    for block in blocks(stmt):
        if marked(block) and block.name not in context.module.streamed:
            raise refused(block, "no loop stores whole vectors of it one after another")
