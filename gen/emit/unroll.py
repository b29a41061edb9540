"""Unrolled loops as text, and which statements of vectorized loops are vector statements.

Input: a lowered tree. Output: one in which unrolled loops of constant extents are sequences.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ..ir.nodes import (
    Allocate,
    Block,
    Combiner,
    Delinearize,
    If,
    Loop,
    LoopKind,
    Seq,
    Stmt,
    Update,
)
from ..ir.types import DType
from ..ir.walk import (
    conjuncts,
    index,
    seq,
    substitute,
    targets,
    variables,
)
from ..lower.affine import constant
from .vector import VECTOR_TYPES, maskable
from .views import fixed_step

MOST_TRIPS = 64  # of a loop that is unrolled as text


def unroll(stmt: Stmt) -> Stmt:
    match stmt:
        case Block():
            return stmt
        case Loop(var, lower, upper, kind):
            body = unroll(stmt.body)
            first, last = constant(lower), constant(upper)
            if kind is not LoopKind.UNROLLED or first is None or last is None:
                return replace(stmt, body=body)
            if last - first > MOST_TRIPS:
                return replace(stmt, body=body)
            return seq(tuple(substitute(body, {var: index(i)}) for i in range(first, last)))
        case Delinearize() | If() | Allocate():
            return replace(stmt, body=unroll(stmt.body))
        case Seq(body_):
            return seq(tuple(unroll(s) for s in body_))
        case _:
            assert_never(stmt)


# ---------------------------------------------------------------- statements as vectors


def has_vector_form(block: Block, lane: str, dtypes: Mapping[str, DType]) -> bool:
    """Whether a block (in the loops' variables) becomes vector statements; else it is a scalar
    loop over its lanes. dtypes: of all buffers.
    """
    body = block.body
    if not all(dtypes[t.buffer] in VECTOR_TYPES for t in targets(body)):
        return False
    if not all(maskable(p, lane) for p in conjuncts(block.predicate)):
        return False
    if isinstance(body, Update) and body.combiner in (Combiner.ANY, Combiner.ALL):
        return False
    places = targets(body)
    moving = [lane in variables(place) for place in places]
    if any(moving) is not all(moving):
        return False
    if not any(moving) and not (
        isinstance(body, Update) and any(lane in variables(v) for v in body.values)
    ):
        return False
    return all(fixed_step(place.indices, lane) for place in places)


def in_lanes(stmt: Stmt, lane: str) -> bool:
    """Whether the body of a vectorized loop is run a statement at a time, all lanes at once: its
    inner loops and conditions do not depend on the lane.
    """
    match stmt:
        case Block():
            return True
        case Loop(_, lower, upper, kind):
            uniform = lane not in variables(lower) | variables(upper)
            return uniform and kind is not LoopKind.VECTORIZED and in_lanes(stmt.body, lane)
        case If(condition, body):
            return lane not in variables(condition) and in_lanes(body, lane)
        case Seq(body_):
            return all(in_lanes(s, lane) for s in body_)
        case Delinearize() | Allocate():
            return False
        case _:
            assert_never(stmt)
