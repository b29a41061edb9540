"""How buffers are addressed in C.

Input: buffers and index expressions in the loops' variables. Output: C lvalues and strides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never, final

from ...ir.algebra import index
from ...ir.index.facts import Facts
from ...ir.index.linear import Linear, constant, linear
from ...ir.nodes import Buffer, Expr, Var
from ...ir.walk import substitute
from .expr import C11, Dialect, Scalars, suffix


@final
@dataclass(frozen=True, slots=True)
class ArgumentView:
    """An array argument. unit: the axes whose stride is 1; strides: C names of all axes'."""

    name: str
    buffer: Buffer
    strides: tuple[str, ...]
    unit: frozenset[int]


@final
@dataclass(frozen=True, slots=True)
class Dense:
    """A temporary in memory, in row-major order."""

    name: str
    buffer: Buffer


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """A square tile is stored by rows (`columns`: by columns), then transposed, before statement
    number `before` of those that run while it lives, and loaded by the others. A row is `vectors`.
    """

    before: int
    columns: bool
    vectors: int


@final
@dataclass(frozen=True, slots=True)
class Registers:
    """A temporary in an array of native vectors of `lanes` elements. blend: whether a masked store
    must leave the other lanes as they are; not where no access ever wants them. turn: how it is
    transposed while it lives, if it is.
    """

    name: str
    buffer: Buffer
    lanes: int
    blend: bool
    turn: Turn | None = None


View = ArgumentView | Dense | Registers


def flat(buffer: Buffer, indices: tuple[Expr, ...]) -> Linear:
    """The offset in a buffer of constant inner extents."""
    total = linear(index(0))
    for extent, i in zip(buffer.shape, indices, strict=True):
        total = total * (constant(extent) or 0) + linear(i)
    return total


def register_start(
    view: Registers, indices: tuple[Expr, ...], lane: str, *, stores: bool = False
) -> int | None:
    """The element that the first lane of an access stores or loads, where the others take those
    that follow it in the registers; None where that is no constant.
    """
    start = _start(view, indices, lane, stores)
    return None if start is None or start.terms else start.constant


def _start(view: Registers, indices: tuple[Expr, ...], lane: str, stores: bool) -> Linear | None:
    if view.turn and stores is view.turn.columns:
        rows, columns = (k for k, e in enumerate(view.buffer.shape) if constant(e) != 1)
        at = [*indices]
        at[rows], at[columns] = indices[columns], indices[rows]
        indices = tuple(at)
    offset = flat(view.buffer, indices)
    return offset.without(Var(lane)) if offset.coefficient(lane) == 1 else None


def register_number(
    view: Registers, indices: tuple[Expr, ...], lane: str, *, stores: bool = False
) -> Linear | None:
    """Which vector holds the elements for all values of `lane`, or for the first ones of them, for
    an access that stores or loads; None where no one does. Only in a tile that is transposed may
    it depend on loops around: one that is walked so is in memory while it lives.
    """
    start = _start(view, indices, lane, stores)
    if start is None or (start.terms and not view.turn):
        return None
    return start // view.lanes if start.modulo(view.lanes) == Linear() else None


def vectors(view: Registers, number: Linear, count: int, scalars: Scalars) -> tuple[str, ...]:
    """The C lvalues of `count` vectors from that number on."""
    places = (scalars.index((number + q).expr()) for q in range(count))
    return tuple(f"{view.name}[{place}]" for place in places)


def last_of_vector(view: View, indices: tuple[Expr, ...], native: int) -> str | None:
    """The native vector whose last lane the element is, if it is in a register and that."""
    if not isinstance(view, Registers) or view.lanes != native:
        return None
    number, lane = divmod(flat(view.buffer, indices).constant, native)
    return f"{view.name}[{number}]" if lane == native - 1 else None


def register_count(view: Registers) -> int:
    size = prod(constant(e) or 0 for e in view.buffer.shape)
    return -(-size // view.lanes)


def element(views: Mapping[str, View], scalars: Scalars, name: str, at: tuple[Expr, ...]) -> str:
    """The C lvalue of an element in memory, or the value of one in a vector."""
    view = views[name]
    match view:
        case ArgumentView():
            terms = [_term(view, axis, i, scalars) for axis, i in enumerate(at)]
            offset = " + ".join(t for t in terms if t != "0") or "0"
            return f"{view.name}[{offset}]"
        case Dense():
            return f"{view.name}[{_row_major(view, at, scalars)}]"
        case Registers():
            place = flat(view.buffer, at)
            assert not place.terms, f"an element of {name} is not in memory"
            if view.buffer.dtype.is_complex:
                vector, lane = divmod(place.constant, view.lanes)
                return f"ts_lane_{suffix(view.buffer.dtype)}({view.name}[{vector}], {lane})"
            return f"{view.name}[{place.constant // view.lanes}][{place.constant % view.lanes}]"
        case _:
            assert_never(view)


def _term(view: ArgumentView, axis: int, i: Expr, scalars: Scalars) -> str:
    text = scalars.index(i)
    if axis in view.unit or text == "0":
        return text
    return f"{view.strides[axis]} * {operand(text)}"


def operand(text: str) -> str:
    """An index as an operand of a product."""
    return text if re.fullmatch(r"\w+(\([^()]*\))?", text) else f"({text})"


def product(factors: Sequence[str]) -> str:
    """C of the product of operands. It starts as an int64_t where their numbers, which are ints in
    C, might be too large together.
    """
    text = " * ".join(factors) or "1"
    alone = " ".join(f for f in factors if not re.search("[A-Za-z_]", f))
    numbers = prod(max(1, int(n)) for n in re.findall(r"\d+", alone))
    return text if numbers < 2**31 else f"INT64_C(1) * {text}"


def _row_major(view: Dense, at: tuple[Expr, ...], scalars: Scalars) -> str:
    """Horner's scheme over the extents. Numbers are ints in C: where those of the extents go beyond
    them, it starts as an int64_t.
    """
    text = ""
    large = prod(constant(extent) or 1 for extent in view.buffer.shape) >= 2**31
    for extent, i in zip(view.buffer.shape, at, strict=True):
        inner = scalars.index(i)
        if text in ("", "0"):
            text = f"INT64_C({inner})" if large and inner.isdigit() and inner != "0" else inner
        else:
            size = operand(scalars.index(extent))
            text = f"{size} * {operand(text)}" + ("" if inner == "0" else f" + {inner}")
    return text or "0"


@final
@dataclass(frozen=True, slots=True)
class Stride:
    """How an access moves a lane: by `stride` elements. unit: by one, whatever is called with.
    dense: by how many in a dense array, where that is known; else 0.
    """

    unit: bool
    stride: str
    dense: int = 0


def steps(view: View, at: tuple[Expr, ...], lane: str, scalars: Scalars) -> Stride | None:
    """How the access moves with the lane; None where it is not by a fixed stride."""
    moves = [(axis, linear(i)) for axis, i in enumerate(at)]
    if not fixed_step(at, lane):
        return None
    by = [(axis, a.coefficient(lane)) for axis, a in moves if a.coefficient(lane)]
    stride = " + ".join(_step(view, axis, c, scalars) for axis, c in by)
    return Stride(stride == "1", stride, _dense(view, by))


def _dense(view: View, by: Sequence[tuple[int, int]]) -> int:
    match by:
        case [(axis, c)] if isinstance(view, ArgumentView):
            inner = [constant(extent) or 0 for extent in view.buffer.shape[axis + 1 :]]
            return c * prod(inner)
        case _:
            return 0


def fixed_step(at: tuple[Expr, ...], lane: str) -> bool:
    """Whether the indices move with the lane by integers, if at all."""
    return all(lane not in linear(i).without(Var(lane)).variables() for i in at)


def _step(view: View, axis: int, c: int, scalars: Scalars) -> str:
    if isinstance(view, ArgumentView):
        size = [] if axis in view.unit else [view.strides[axis]]
    else:
        size = [operand(scalars.index(e)) for e in view.buffer.shape[axis + 1 :]]
    if product(size) == "1":
        return str(c)
    return product(size if c == 1 else [str(c), *size])


def at_lane(indices: tuple[Expr, ...], lane: str, value: Expr) -> tuple[Expr, ...]:
    return tuple(linear(substitute(i, {lane: value})).expr() for i in indices)


def plain_scalars(
    names: Mapping[str, str],
    views: Mapping[str, View],
    facts: Facts,
    words: Dialect = C11,
    fuses: bool = False,
) -> Scalars:
    """Scalar code over these views."""

    def at(name: str, indices: tuple[Expr, ...], known: Facts) -> str:
        return element(views, plain_scalars(names, views, known, words), name, indices)

    return Scalars(names, at, facts, words, fuses)
