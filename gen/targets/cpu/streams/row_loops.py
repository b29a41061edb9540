"""Loops around one that stores whole lines into other rows each iteration: lines past the caches.

Input: a lowered tree, unrolled and inlined, in which blocks are marked by the step `stream`.
Output: where each iteration of a loop goes on in all rows into which an inner loop stores, the loop
as it is; a copy that streams the vectors as they are, for rows that begin with lines; and one that
shifts them to lines (`ts_line_push`), for which each row's last line is kept in memory. So a tile
that was transposed is stored in the order in which its rows are read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

from ....ir.algebra import index
from ....ir.index.linear import constant, linear
from ....ir.nodes import Allocate, Binary, BinaryOp, Destination, Expr, Loop, LoopKind, Seq, Stmt
from ....ir.walk import loads, variables
from ...c.expr import c_type, suffix
from ...c.lines import choice, indented
from ...c.views import ArgumentView, fixed_step
from ..context import Apart, Context, Kept, Push
from ..levels import LINE
from ..vectors.forms import WORDS
from .rows import Stored, address, by_row, condition, gap, stored, stored_beside

MOST = 1 << 16  # bytes of lines that are kept: what a second-level cache has room for


@final
@dataclass(frozen=True, slots=True)
class _Inner:
    """An inner loop, and the rows into which an iteration of it stores."""

    loop: Loop
    rows: list[list[Stored]]

    @property
    def found(self) -> list[Stored]:
        return [s for row in self.rows for s in row]


def either(
    loop: Loop, first: Expr, context: Context, emit: Callable[[Context], list[str]]
) -> list[str]:
    """The copies of the loop that `emit` emits in a context; none where it is no such loop."""
    inner = _inner(loop, context)
    if inner is None:
        return []
    context.module.streamed.update(s.block.name for s in inner.found)

    def copy(pushes: Mapping[Destination, Push]) -> list[str]:
        return emit(replace(context, apart=Apart(inner.loop, pushes)))

    plain = copy({})
    dtype = context.dtypes[inner.found[0].target.buffer]
    if dtype not in WORDS or context.target.vector_bytes < 32:
        return plain
    lines = copy({s.target: "" for s in inner.found})
    whole, streams = _whole(inner, {loop.var: first}, context), condition(inner.found, context)
    most = _most(inner.loop.upper) if context.facts.holds(linear(inner.loop.lower)) else None
    if most is None or most * len(inner.rows) * LINE > MOST:
        return choice(f"{streams} && {whole}", lines, plain)
    shifted = _shifted(inner, most, loop, first, context, copy)
    return choice(streams, choice(whole, lines, shifted), plain)


def _inner(loop: Loop, context: Context) -> _Inner | None:
    """The one inner loop that streams, if the loop is such a loop around it."""
    found = [i for i in _serial(loop.body) if stored(i.body, context)]
    if loop.kind is not LoopKind.SERIAL or len(found) != 1:
        return None
    (inner,) = found
    bounds = (inner.lower, inner.upper)
    if any(loop.var in variables(b) or loads(b) for b in bounds):
        return None
    vectors = stored(inner.body, context)
    if len({s.target.buffer for s in vectors}) > 1 or stored_beside(loop, vectors):
        return None
    if not all(_goes_on(s, loop, inner, context) for s in vectors):
        return None
    rows = by_row(vectors)
    return None if any(gap(loop, row, context) for row in rows) else _Inner(inner, rows)


def _serial(stmt: Stmt) -> list[Loop]:
    """The serial loops that a statement runs once."""
    match stmt:
        case Loop(kind=LoopKind.SERIAL):
            return [stmt]
        case Seq(parts):
            return [loop for part in parts for loop in _serial(part)]
        case Allocate(_, body):
            return _serial(body)
        case _:
            return []


def _goes_on(s: Stored, loop: Loop, inner: Loop, context: Context) -> bool:
    """Whether a store is of whole lines, of which an iteration of the inner loop has its own rows,
    and one of the outer loop goes on in the row.
    """
    *outer, last = s.target.indices
    bytes_ = context.dtypes[s.target.buffer].bytes
    apart = any(linear(i).coefficient(inner.var) for i in outer)
    steady = all(fixed_step(s.target.indices, var) for var in (loop.var, inner.var))
    return steady and apart and inner.var not in variables(last) and s.lanes * bytes_ % LINE == 0


def _most(expr: Expr) -> int | None:
    """A constant that the value does not exceed, if one stands there."""
    match expr:
        case Binary(BinaryOp.MIN, lhs, rhs):
            return min((m for m in (_most(lhs), _most(rhs)) if m is not None), default=None)
        case _:
            return constant(expr)


def _whole(inner: _Inner, start: Mapping[str, Expr], context: Context) -> str:
    """C of whether all rows begin with lines: the first one, and by their distances the others.
    Where the inner loop runs nothing there is no first row, so its address is an integer.
    """
    target = inner.found[0].target
    view = context.views[target.buffer]
    assert isinstance(view, ArgumentView)
    start = {inner.loop.var: inner.loop.lower, inner.found[0].lane: index(0), **start}
    place = address(target, start, context)[len(view.name) + 2 : -1]
    size = f"sizeof({c_type(view.buffer.dtype)})"
    first = f"(uintptr_t){view.name} + {size} * (uintptr_t)({place})"
    steps = [f"{size} * (uintptr_t){stride}" for stride in view.strides[:-1]]
    return f"({' | '.join([f'({first})', *steps])}) % {LINE} == 0"


def _shifted(
    inner: _Inner,
    most: int,
    loop: Loop,
    first: Expr,
    context: Context,
    copy: Callable[[Mapping[Destination, Push]], list[str]],
) -> list[str]:
    """The copy that keeps a line a row, and what stores these at the loop's end."""
    scalars, names = context.scalars, context.names.variables
    s = suffix(context.dtypes[inner.found[0].target.buffer])
    var, outer = names[inner.loop.var], names[loop.var]
    start, end = scalars.index(first), scalars.index(loop.upper)
    pushes: dict[Destination, Push] = {}
    ends: list[str] = []
    inside = context.inside(inner.loop)
    for k, row in enumerate(inner.rows):
        place = f"kept[{var}][{k}]"
        for stored_ in row:
            begins = f"{outer} == {start}" if stored_ is row[0] else "false"
            pushes[stored_.target] = Kept(place, begins)
        to = address(row[0].target, {loop.var: loop.upper, row[0].lane: index(0)}, inside)
        ends.append(f"ts_line_end_{s}({place}, {to});")
    lower, upper = scalars.index(inner.loop.lower), scalars.index(inner.loop.upper)
    return [
        f"ts_{s} kept[{most}][{len(inner.rows)}][TS_LINE_VECTORS];",
        *copy(pushes),
        f"if ({start} < {end}) {{",
        f"    for (int64_t {var} = {lower}; {var} < {upper}; ++{var}) {{",
        *indented(indented(ends)),
        "    }",
        "}",
    ]
