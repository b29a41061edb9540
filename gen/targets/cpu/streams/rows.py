"""The rows of an array into which a loop's vectors are stored past the caches.

Input: the body of a loop of a lowered tree, unrolled and inlined, in which blocks are marked by the
step `stream`. Output: the vectors of marked blocks that one iteration stores, row by row, and why a
row is none that could be streamed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never, final

from ....errors import Span, TilesmithError
from ....ir import nodes as ir
from ....ir.algebra import TRUE, index
from ....ir.index.linear import Linear, constant, linear
from ....ir.walk import blocks, substitute, targets, variables
from ...c.views import at_lane, plain_scalars, steps
from ..context import Context
from ..passes.unroll import has_vector_form, in_lanes

FIRST = "@lower"  # the first iteration of a parallel loop's part, `lower` in C


@final
@dataclass(frozen=True, slots=True)
class Stored:
    """A marked block's vector of `lanes` lanes."""

    block: ir.Block
    lane: str
    lanes: int

    @property
    def target(self) -> ir.Destination:
        return targets(self.block.body)[0]


def address(
    access: ir.Destination | ir.Load, start: Mapping[str, ir.Expr], context: Context
) -> str:
    """Of what is accessed where variables are as at the `start` of the loop."""
    at = tuple(substitute(i, start) for i in access.indices)
    names = {**context.names.variables, FIRST: "lower"}
    scalars = plain_scalars(names, context.views, context.facts)
    return f"&{scalars.element(access.buffer, at, context.facts)}"


def marked(block: ir.Block) -> bool:
    return any(key == "stream" for key, _ in block.annotations)


def refused(block: ir.Block, reason: str) -> TilesmithError:
    line = next(value for key, value in block.annotations if key == "stream")
    where = Span(block.span.path, int(line), 1) if block.span and line else block.span
    return TilesmithError(f"stream (block {block.name}): {reason}", where)


# ---------------------------------------------------------------- what a loop stores


def stored(body: ir.Stmt, context: Context) -> list[Stored]:
    """The marked blocks' vectors that one iteration stores, in order; none where one of them is
    under a guard, as they are in tails.
    """
    found = [s for s in _direct(body, "", 0) if marked(s.block)]
    whole = all(
        s.lane and s.block.predicate == TRUE and has_vector_form(s.block, s.lane, context.dtypes)
        for s in found
    )
    return found if whole else []


def _direct(stmt: ir.Stmt, lane: str, lanes: int) -> Iterator[Stored]:
    """The blocks that run once an iteration."""
    match stmt:
        case ir.Block():
            yield Stored(stmt, lane, lanes)
        case ir.Loop(var, _, upper, ir.LoopKind.VECTORIZED, body) if in_lanes(body, var):
            yield from _direct(body, var, constant(upper) or 0)
        case ir.Seq(parts):
            for part in parts:
                yield from _direct(part, lane, lanes)
        case ir.Allocate(_, body):
            yield from _direct(body, lane, lanes)
        case ir.Loop() | ir.If() | ir.Delinearize() | ir.Barrier() | ir.Leave() | ir.Transfer():
            return
        case _:
            assert_never(stmt)


# ---------------------------------------------------------------- rows


def rows_of(loop: ir.Loop, found: list[Stored], context: Context) -> list[list[Stored]]:
    """The vectors by row; an error where they are not all of what an iteration stores there, one
    after another, from where the iteration before has stopped.
    """
    rows = by_row(found)
    for row in rows:
        if reason := gap(loop, row, context):
            raise refused(row[0].block, f"in loop '{loop.var}' {reason}")
    if other := stored_beside(loop, found):
        raise refused(found[0].block, f"block '{other}' stores into the same array")
    return rows


def by_row(found: list[Stored]) -> list[list[Stored]]:
    """The vectors by row, each row's in order."""
    rows: dict[object, list[Stored]] = {}
    for s in found:
        rows.setdefault(_row(s), []).append(s)
    return list(rows.values())


def stored_beside(loop: ir.Loop, found: list[Stored]) -> str | None:
    """Another block in the loop that stores into the same array."""
    names = {s.block.name for s in found}
    buffers = {s.target.buffer for s in found}
    return next(
        (
            block.name
            for block in blocks(loop.body)
            if block.name not in names and buffers & {t.buffer for t in targets(block.body)}
        ),
        None,
    )


def _row(s: Stored) -> object:
    """What tells the rows of an array apart."""
    *outer, last = (linear(i) for i in at_lane(s.target.indices, s.lane, index(0)))
    return (s.target.buffer, tuple(outer), last - last.constant)


def start_of(s: Stored) -> Linear:
    """Where in its row a vector begins."""
    return linear(at_lane(s.target.indices, s.lane, index(0))[-1])


def gap(loop: ir.Loop, row: list[Stored], context: Context) -> str | None:
    """Why the vectors do not make a row without gaps; None where they do."""
    target, first = row[0].target, start_of(row[0])
    if context.dtypes[target.buffer].is_complex:
        return "it stores complex numbers, which do not pass the caches by yet"
    native = context.target.lanes(context.dtypes[target.buffer])
    for s in row:
        by = [linear(i).coefficient(s.lane) for i in s.target.indices]
        if by != [0] * (len(by) - 1) + [1]:
            return f"its lanes are not neighbours along the last axis of '{target.buffer}'"
        if s.lanes % native:
            return f"its {s.lanes} lanes are not a whole number of vectors of {native}"
    at = first.constant
    for s in row:
        if start_of(s).constant != at:
            return f"it stores element {start_of(s).constant} where element {at} comes next"
        at += s.lanes
    if any(loop.var in variables(i) for i in target.indices[:-1]):
        return f"each iteration stores into another row of '{target.buffer}'"
    if first.coefficient(loop.var) != at - first.constant:
        return (
            f"an iteration stores {at - first.constant} elements of a row and moves on by"
            f" {first.coefficient(loop.var)}"
        )
    return None


def condition(found: list[Stored], context: Context) -> str:
    """When to stream: where the call says so, in code for arrays of unit stride."""
    places = ((context.views[s.target.buffer], s) for s in found)
    moves = [steps(view, s.target.indices, s.lane, context.scalars) for view, s in places]
    chosen = any(move is not None and not move.unit for move in moves)
    return "unit && stream" if chosen else "stream"
