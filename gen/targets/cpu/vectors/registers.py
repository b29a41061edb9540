"""Which native vectors a register buffer is made of.

Input: a buffer of register scope and what runs while it lives, unrolled and inlined. Output: the
vectors that hold it, where all its accesses are of whole vectors at constant places, reads shifted
by constants too, or reads of one constant element; else it is a local array of its own type, whose
elements a C compiler keeps in registers where it can.

A square tile of lanes x lanes that is written or added to row by row, and then read column by
column, is held too: it is transposed in its registers between the last write and the first read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from ....ir import nodes as ir
from ....ir.algebra import conjuncts, dtype_of
from ....ir.index.inequalities import inequalities
from ....ir.index.linear import Linear, constant
from ....ir.types import DType
from ....ir.walk import children, loads, statements, substitute, variables
from ...c.views import Registers, Turn, flat, register_number
from ..levels import Processor
from ..passes.unroll import has_vector_form, in_lanes
from .forms import VECTOR_TYPES, WORDS, by_lane, maskable
from .shifts import readable

_LANE = "@"


@final
@dataclass(frozen=True, slots=True)
class RegisterAccess:
    """lane: the variable of the vectorized loop, of `lanes` lanes; empty for a scalar. guards:
    those on the lane, which is _LANE in them. reads, writes: what it does there. block: the block
    that does it; empty where it says when a loop is left.
    """

    indices: tuple[ir.Expr, ...]
    lane: str
    lanes: int
    guards: tuple[ir.Expr, ...]
    reads: bool
    writes: bool
    block: str


def accesses_of(
    stmt: ir.Stmt, name: str, dtypes: Mapping[str, DType]
) -> tuple[RegisterAccess, ...]:
    """All accesses of a buffer. dtypes: of all buffers."""
    return tuple(_accesses(stmt, name, dtypes, "", 0))


def register_view(
    name: str, buffer: ir.Buffer, body: ir.Stmt, machine: Processor, dtypes: Mapping[str, DType]
) -> Registers | None:
    """How the buffer, of that C name, is held in vectors; None where it is a local array: it has
    other accesses than those, or vectors of several lengths. dtypes: of all buffers.
    """
    if buffer.dtype not in VECTOR_TYPES:
        return None
    found = accesses_of(body, buffer.name, dtypes)
    lone = tuple(a for a in found if not a.lane and not a.writes and _constant(buffer, a))
    accesses = tuple(a for a in found if a not in lone)
    native = machine.lanes(buffer.dtype)
    lanes = min((native, *(a.lanes for a in accesses)))
    if lanes == 1 or not accesses:
        return None
    view = Registers(name, buffer, lanes, _blend(accesses, body))
    held = all(
        (a.lanes == lanes or (lanes == native and a.lanes % lanes == 0)) and _held(view, a, native)
        for a in accesses
    )
    if held:
        return view
    return _turned(name, buffer, body, native, dtypes)


def _turned(
    name: str, buffer: ir.Buffer, body: ir.Stmt, native: int, dtypes: Mapping[str, DType]
) -> Registers | None:
    """The buffer as vectors that are transposed once, if it is a tile for that: square but for axes
    of one element, its side a multiple of the native lanes, whose rows alone are stored or updated,
    and then only whole columns are loaded; or the other way about.

    Where each row is stored once, a lane that a guard leaves out holds anything: no other store has
    written it.
    """
    extents = (constant(extent) or 0 for extent in buffer.shape)
    side, *others = [extent for extent in extents if extent != 1] or [0]
    if others != [side] or side % native or not isinstance(body, ir.Seq):
        return None
    if buffer.dtype not in WORDS or buffer.dtype.is_complex:
        return None
    parts = [(s, accesses_of(s, buffer.name, dtypes)) for s in body.body]
    first = next((k for k, (_, part) in enumerate(parts) if not all(a.writes for a in part)), 0)
    stores = [a for _, part in parts[:first] for a in part]
    loaded = [a for _, part in parts[first:] for a in part]
    if any(a.writes for a in loaded) or any(a.lanes != side for a in (*stores, *loaded)):
        return None
    walked = [n.var for s, part in parts[:first] if part for n in _repeated(s)]
    for columns in (False, True):
        view = Registers(name, buffer, native, False, Turn(first, columns, side // native))
        to = [register_number(view, a.indices, a.lane, stores=True) for a in stores]
        at = [register_number(view, a.indices, a.lane) for a in loaded]
        if None not in (*to, *at):
            return replace(view, blend=not _once([n for n in to if n], walked))
    return None


def _repeated(stmt: ir.Stmt) -> Iterator[ir.Loop]:
    """The loops that run what is in them more than once."""
    loops = (n for n in statements(stmt) if isinstance(n, ir.Loop))
    return (n for n in loops if n.kind is not ir.LoopKind.VECTORIZED)


def _once(stored: Sequence[Linear], walked: Sequence[str]) -> bool:
    """Whether stores to vectors of these numbers, in loops over these variables, are to different
    ones: they are constants, or there is one, in a loop that walks the vectors.
    """
    if walked:
        return len(stored) == len(walked) == 1 and stored[0].coefficient(walked[0]) != 0
    return len({n.constant for n in stored if not n.terms}) == len(stored)


def _held(view: Registers, access: RegisterAccess, native: int) -> bool:
    """Whether an access is of vectors as they are, or reads them shifted by a constant."""
    if register_number(view, access.indices, access.lane, stores=access.writes) is not None:
        return True
    shiftable = view.lanes == native and not access.writes
    return shiftable and readable(view, access.indices, access.lane, access.lanes)


def _constant(buffer: ir.Buffer, access: RegisterAccess) -> bool:
    """Whether an access is of one element whatever loops run: it can be taken from its vector."""
    return not flat(buffer, access.indices).terms


def _accesses(
    stmt: ir.Stmt, name: str, dtypes: Mapping[str, DType], lane: str, lanes: int
) -> Iterator[RegisterAccess]:
    match stmt:
        case ir.Barrier() | ir.Transfer():
            pass
        case ir.Leave(condition):
            for load in loads(condition):
                if load.buffer == name:
                    moving = lane if lane in variables(load) else ""
                    width = lanes if moving else 1
                    yield RegisterAccess(load.indices, moving, width, (), True, False, "")
        case ir.Block():
            vector = lane if lane and has_vector_form(stmt, lane, dtypes) else ""
            on_lane = (p for p in conjuncts(stmt.predicate) if lane and lane in variables(p))
            guards = tuple(substitute(p, {lane: ir.Var(_LANE)}) for p in on_lane)
            for node, moving in _places(stmt, vector):
                if node.buffer == name:
                    reads = isinstance(node, ir.Load) or isinstance(stmt.body, ir.Update)
                    writes = isinstance(node, ir.Destination)
                    width = lanes if moving else 1
                    yield RegisterAccess(
                        node.indices, moving, width, guards, reads, writes, stmt.name
                    )
        case ir.Loop(var, _, upper, ir.LoopKind.VECTORIZED) if not lane and in_lanes(
            stmt.body, var
        ):
            yield from _accesses(stmt.body, name, dtypes, var, constant(upper) or 1)
        case ir.Loop() | ir.Delinearize() | ir.If() | ir.Allocate():
            yield from _accesses(stmt.body, name, dtypes, lane, lanes)
        case ir.Seq(parts):
            for s in parts:
                yield from _accesses(s, name, dtypes, lane, lanes)
        case _:
            assert_never(stmt)


def _blend(accesses: Sequence[RegisterAccess], body: ir.Stmt) -> bool:
    """Whether a lane may be accessed where another access leaves it out: not if all have the same
    guards on it, of what does not change while the buffer lives.
    """
    inside = {n.var for n in statements(body) if isinstance(n, ir.Loop)}
    inside |= {v for n in statements(body) if isinstance(n, ir.Delinearize) for v in n.vars}
    guards = [guard for a in accesses for guard in a.guards]
    if any(loads(guard) or variables(guard) & inside for guard in guards):
        return True
    forms = [[f for guard in a.guards for f in inequalities(guard) or ()] for a in accesses]
    if any(inequalities(guard) is None for guard in guards):
        return True
    return len(set(map(frozenset, forms))) > 1


def _places(block: ir.Block, lane: str) -> Iterator[tuple[ir.Load | ir.Destination, str]]:
    """The block's accesses, with the lane where a vector of them is accessed at once."""

    def go(node: ir.Node, lane: str) -> Iterator[tuple[ir.Load | ir.Destination, str]]:
        if isinstance(node, ir.Load | ir.Destination):
            yield node, lane if lane in variables(node) else ""
            lane = ""  # indices are scalars
        elif lane and isinstance(node, ir.Expr) and not _in_vectors(node, lane):
            lane = ""
        for child in children(node):
            yield from go(child, lane)

    yield from go(block.predicate, lane)
    yield from go(block.body, lane)


def _in_vectors(expr: ir.Expr, lane: str) -> bool:
    """Whether the expression is computed for all lanes at once, conditions as masks."""
    if lane not in variables(expr):
        return True
    return maskable(expr, lane) if dtype_of(expr) is DType.BOOL else not by_lane(expr, lane)
