"""Which native vectors a register buffer is made of.

Input: a buffer of register scope and what runs while it lives, unrolled and inlined. Output: the
lanes of each of its vectors, 1 where it holds scalars: then all its accesses are of whole vectors,
or scalars, at constant places, which a C compiler keeps in registers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never, final

from ..errors import TilesmithError
from ..ir.nodes import (
    Allocate,
    Block,
    Buffer,
    Delinearize,
    Expr,
    If,
    Load,
    Loop,
    LoopKind,
    Node,
    Seq,
    Stmt,
    Target,
)
from ..ir.printer import expr_to_text
from ..ir.types import DType
from ..ir.walk import children, variables
from ..lower.affine import constant
from ..lower.target import Target as Machine
from .unroll import has_vector_form, in_lanes
from .vector import by_lane
from .views import Registers, register_number


@final
@dataclass(frozen=True, slots=True)
class _Access:
    """lane: the variable of the vectorized loop, of `lanes` lanes; empty for a scalar."""

    indices: tuple[Expr, ...]
    lane: str
    lanes: int


def vector_lanes(buffer: Buffer, body: Stmt, machine: Machine, dtypes: Mapping[str, DType]) -> int:
    """Elements in a vector of the buffer. dtypes: of all buffers.

    Raises TilesmithError where an access is neither a whole vector nor a scalar at a constant
    place, or where there are both, or vectors of several lengths.
    """
    accesses = tuple(_accesses(body, buffer.name, dtypes, "", 0))
    lengths = {a.lanes for a in accesses} or {1}
    vectors = lengths - {1}
    lanes = min(*vectors, machine.lanes(buffer.dtype)) if vectors else 1
    view = Registers(buffer.name, buffer, lanes)
    for a in accesses:
        if a.lanes % lanes or (a.lanes > 1) is not (lanes > 1):
            raise _refusal(buffer, a, f"as {_length(a.lanes)}, and elsewhere as {_length(lanes)}")
        if register_number(view, a.indices, a.lane) is None:
            raise _refusal(buffer, a, f"as {_length(a.lanes)} at no constant place")
    return lanes


def _length(lanes: int) -> str:
    return "a scalar" if lanes == 1 else f"a vector of {lanes}"


def _refusal(buffer: Buffer, access: _Access, how: str) -> TilesmithError:
    place = ", ".join(map(expr_to_text, access.indices))
    return TilesmithError(
        f"'{buffer.name}' cannot be kept in registers: {buffer.name}[{place}] is used {how}",
        buffer.span,
        "unroll the loops that the index depends on, vectorize all its uses alike, or give it"
        " another scope",
    )


def _accesses(
    stmt: Stmt, name: str, dtypes: Mapping[str, DType], lane: str, lanes: int
) -> Iterator[_Access]:
    match stmt:
        case Block():
            vector = lane if lane and has_vector_form(stmt, lane, dtypes) else ""
            for node, moving in _places(stmt, vector):
                if node.buffer == name:
                    yield _Access(node.indices, moving, lanes if moving else 1)
        case Loop(var, _, upper, LoopKind.VECTORIZED) if not lane and in_lanes(stmt.body, var):
            yield from _accesses(stmt.body, name, dtypes, var, constant(upper) or 0)
        case Loop() | Delinearize() | If() | Allocate():
            yield from _accesses(stmt.body, name, dtypes, lane, lanes)
        case Seq(parts):
            for s in parts:
                yield from _accesses(s, name, dtypes, lane, lanes)
        case _:
            assert_never(stmt)


def _places(block: Block, lane: str) -> Iterator[tuple[Load | Target, str]]:
    """The block's accesses, with the lane where a vector of them is accessed at once."""

    def go(node: Node, lane: str) -> Iterator[tuple[Load | Target, str]]:
        if isinstance(node, Load | Target):
            yield node, lane if lane in variables(node) else ""
            lane = ""  # indices are scalars
        elif lane and isinstance(node, Expr) and lane in variables(node) and by_lane(node, lane):
            lane = ""
        for child in children(node):
            yield from go(child, lane)

    yield from go(block.predicate, lane)
    yield from go(block.body, lane)
