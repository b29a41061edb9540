"""Unrolled loops as text, and which statements of vectorized loops are vector statements.

Input: a lowered tree. Output: one in which unrolled loops of constant extents are sequences, but
for those that an intrinsic computes (see `tensor`).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ....ir import nodes as ir
from ....ir.algebra import conjuncts, index
from ....ir.index.linear import constant
from ....ir.text.print_expr import expr_to_text
from ....ir.types import DType
from ....ir.walk import map_nested, seq, substitute, targets, variables
from ....poly.rewrites.equivalence import MOST_TRIPS
from ....schedule.nests import tensorized
from ...c.views import fixed_step
from .. import combiners
from ..vectors.forms import VECTOR_TYPES, maskable


def unroll(stmt: ir.Stmt) -> ir.Stmt:
    match stmt:
        case ir.Loop() if tensorized(stmt):
            return stmt
        case ir.Loop(var, lower, upper, kind):
            body = unroll(stmt.body)
            first, last = constant(lower), constant(upper)
            if kind is not ir.LoopKind.UNROLLED or first is None or last is None:
                return replace(stmt, body=body)
            if last - first > MOST_TRIPS:
                return replace(stmt, body=body)
            copies = tuple(substitute(body, {var: index(i)}) for i in range(first, last))
            return _merged(seq(copies))
        case _:
            return map_nested(stmt, unroll)


def _merged(stmt: ir.Stmt) -> ir.Stmt:
    """Vectorized loops of blocks that follow each other as one: a loop of vector statements runs
    them one after the other, all lanes of each, too.
    """
    if not isinstance(stmt, ir.Seq):
        return stmt
    parts: list[ir.Stmt] = []
    for s in stmt.body:
        last = parts[-1] if parts else None
        if isinstance(s, ir.Loop) and isinstance(last, ir.Loop) and _mergeable(last, s):
            parts[-1] = replace(last, body=seq((last.body, s.body)))
        else:
            parts.append(s)
    return seq(tuple(parts))


def _mergeable(a: ir.Loop, b: ir.Loop) -> bool:
    return _of_blocks(a) and _of_blocks(b) and replace(a, body=b.body) == b


def _of_blocks(loop: ir.Loop) -> bool:
    body = loop.body.body if isinstance(loop.body, ir.Seq) else (loop.body,)
    return loop.kind is ir.LoopKind.VECTORIZED and all(isinstance(s, ir.Block) for s in body)


def as_run(stmt: ir.Stmt) -> ir.Stmt:
    """The tree in which vectorized loops of blocks are what their code is: a block at a time."""
    match stmt:
        case ir.Loop(body=ir.Seq(body_)) if _of_blocks(stmt):
            return seq(tuple(replace(stmt, body=s) for s in body_))
        case _:
            return map_nested(stmt, as_run)


# ---------------------------------------------------------------- statements as vectors


def has_vector_form(block: ir.Block, lane: str, dtypes: Mapping[str, DType]) -> bool:
    """Whether a block (in the loops' variables) becomes vector statements; else it is a scalar
    loop over its lanes. dtypes: of all buffers.
    """
    body = block.body
    if not all(_stored_from(body, dtypes[t.buffer], lane) for t in targets(body)):
        return False
    if not all(maskable(p, lane) for p in conjuncts(block.predicate)):
        return False
    if isinstance(body, ir.Update) and not _combined_in_lanes(body.combiner, lane):
        return False
    places = targets(body)
    moving = [lane in variables(place) for place in places]
    if any(moving) is not all(moving):
        return False
    if not any(moving) and not (
        isinstance(body, ir.Update) and any(lane in variables(v) for v in body.values)
    ):
        return False
    return all(fixed_step(place.indices, lane) for place in places)


def _stored_from(body: ir.Store | ir.Init | ir.Update, dtype: DType, lane: str) -> bool:
    """Whether vectors hold what the body puts into memory of a type; of bool, masks do."""
    if dtype is DType.BOOL:
        return isinstance(body, ir.Store) and maskable(body.value, lane)
    return dtype in VECTOR_TYPES


def scattered(block: ir.Block, lane: str) -> tuple[str, ...]:
    """For messages: the places of the block that keep it from being vector statements."""
    return tuple(
        f"note: {place.buffer}[{', '.join(map(expr_to_text, place.indices))}] is at no fixed"
        " distance from one lane to the next"
        for place in targets(block.body)
        if not fixed_step(place.indices, lane)
    )


def _combined_in_lanes(combiner: ir.AnyCombiner, lane: str) -> bool:
    match combiner:
        case ir.Combiner.ANY | ir.Combiner.ALL:
            return False
        case ir.DefinedCombiner():
            return combiners.has_vector_form(combiner, lane)
        case _:
            return True


def in_lanes(stmt: ir.Stmt, lane: str) -> bool:
    """Whether the body of a vectorized loop is run a statement at a time, all lanes at once: its
    inner loops and conditions do not depend on the lane.
    """
    match stmt:
        case ir.Block():
            return True
        case ir.Loop(_, lower, upper, kind):
            uniform = lane not in variables(lower) | variables(upper)
            return uniform and kind is not ir.LoopKind.VECTORIZED and in_lanes(stmt.body, lane)
        case ir.If(condition, body):
            return lane not in variables(condition) and in_lanes(body, lane)
        case ir.Leave(condition):
            return maskable(condition, lane)
        case ir.Seq(body_):
            return all(in_lanes(s, lane) for s in body_)
        case ir.Delinearize() | ir.Allocate() | ir.Barrier() | ir.Transfer():
            return False
        case _:
            assert_never(stmt)
