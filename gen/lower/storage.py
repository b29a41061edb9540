"""Temporaries shrink to what their allocation uses, and get a place.

Input: a tree with explicit inits. Output: every temporary's shape covers, in each dimension, the
indices that are used inside its Allocate (where those are affine; else the dimension stays whole),
with the accesses shifted to match; no temporary's scope is AUTO.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from math import gcd, prod
from typing import final

from ..errors import TilesmithError
from ..ir.algebra import add, mod, sub
from ..ir.index.bounds import LoopRange, highest, lowest
from ..ir.index.facts import Facts, map_inside, of_kernel
from ..ir.index.inequalities import Ranges, least
from ..ir.index.linear import Linear, constant, linear
from ..ir.index.simplify import resolve
from ..ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Delinearize,
    Destination,
    Expr,
    IterVar,
    Kernel,
    Load,
    Loop,
    Node,
    Scope,
    Stmt,
    Var,
)
from ..ir.text.print_expr import expr_to_text
from ..ir.walk import (
    accessed,
    blocks,
    map_children,
    map_nested,
    nested,
    substitute,
    variables,
    walk,
)
from ..poly.queries.extents import Extent, Temporaries

STACK_BYTES = 16 * 1024

Span = tuple[Linear, Linear] | None  # the first and last index used; None: not affine
_TOLD = (Scope.REGISTER, Scope.SHARED, Scope.LOCAL)  # of small constant sizes
_OF_LAUNCHES = (Scope.SHARED, Scope.LOCAL)  # which have no other place for what is larger


def shrink(kernel: Kernel) -> Kernel:
    named = (*kernel.dims, *(s.name for s in kernel.scalars), *(p.name for p in kernel.phases))
    enclosing = _Enclosing(Temporaries(kernel), (), (), frozenset(named))
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel), enclosing))


@final
@dataclass(frozen=True, slots=True)
class _Enclosing:
    """whole: all of the kernel, as it was. around: the loops around a statement; threads: those of
    them that are threads'. named: what no iteration variable may be called.
    """

    whole: Temporaries
    around: Ranges
    threads: Ranges
    named: frozenset[str]


def _visit(stmt: Stmt, facts: Facts, enclosing: _Enclosing) -> Stmt:
    if isinstance(stmt, Allocate):
        for buffer in stmt.buffers:
            stmt = _shrink(stmt, buffer, facts, enclosing)
    new = _ranges(stmt)
    threads = new if isinstance(stmt, Loop) and stmt.kind.is_thread else ()
    inside = replace(
        enclosing, around=(*enclosing.around, *new), threads=(*enclosing.threads, *threads)
    )
    return map_inside(stmt, facts, lambda s, known: _visit(s, known, inside))


def _ranges(stmt: Stmt) -> Ranges:
    """The first and last value of each variable that the statement binds."""
    match stmt:
        case Loop(var, lower, upper):
            return ((var, linear(lower), linear(upper) - 1),)
        case Delinearize(vars_, extents):
            pairs = zip(vars_, extents, strict=True)
            return tuple((v, Linear(), linear(e) - 1) for v, e in pairs)
        case _:
            return ()


def _shrink(allocate: Allocate, buffer: Buffer, facts: Facts, enclosing: _Enclosing) -> Allocate:
    all_use = enclosing.threads if buffer.scope is Scope.SHARED else ()
    known = facts if buffer.scope in _OF_LAUNCHES else None
    used = () if buffer.fixed else _accesses(allocate.body, buffer.name, all_use, known)
    if not used:
        return allocate
    speaks = _common_names(allocate.body, buffer.name)
    windows: list[Expr | _Window] = []
    for axis, extent in enumerate(buffer.shape):
        span = reduce(lambda a, b: _join(a, b, facts), [access[axis] for access in used])
        window = None if span is None else _window(span, linear(extent), speaks, facts)
        if window is not None and window.folded and span is not None:
            if buffer.scope in _TOLD:
                window = _told(span, enclosing.around)  # a remainder is no register
            elif axis == len(buffer.shape) - 1:
                window = None  # a remainder that stays would break vectors up
        windows.append(extent if window is None else window)
    if buffer.scope in _OF_LAUNCHES:
        windows = _in_tiles(windows, buffer, speaks, enclosing)
    shape = tuple(map(_length, windows))
    new = replace(buffer, shape=shape)
    if new == buffer:
        return allocate
    buffers = tuple(new if b is buffer else b for b in allocate.buffers)
    return Allocate(buffers, _shifted(allocate.body, buffer.name, tuple(windows), enclosing.named))


@final
@dataclass(frozen=True, slots=True)
class _Window:
    """The `length` indices from `offset` on, in the variables of loops around the Allocate.

    A body speaks of iteration variables alone. Where those of every block that uses the buffer can
    say the offset it is taken off; else indices are taken modulo the length (`modulo`), which is
    the same if the offset is a multiple of it but for what they can say, and as good if not
    (`folded`). Else blocks are told, by an iteration variable from `told[0]` to `told[1]`.
    """

    offset: Linear
    length: Linear
    modulo: int = 0
    folded: bool = False
    told: tuple[Linear, Linear] | None = None


def _told(span: tuple[Linear, Linear], around: Ranges) -> _Window | None:
    offset, length = span[0], span[1] - span[0] + 1
    first, below = least(offset, around), least(offset * -1, around)
    if first is None or below is None:
        return None
    return _Window(offset, length, told=(first, below * -1))


def _length(window: Expr | _Window) -> Expr:
    return window.length.expr() if isinstance(window, _Window) else window


def _in_tiles(
    windows: list[Expr | _Window], buffer: Buffer, speaks: frozenset[str], enclosing: _Enclosing
) -> list[Expr | _Window]:
    """The windows of a launch's buffer, those as tiles of which isl finds that all accesses,
    guarded, clamped, halved or reversed, stay in one of a smaller size for all sizes.
    """
    known = [constant(_length(w)) for w in windows]
    if buffer.scope is not Scope.SHARED and None not in known:
        return windows
    found = enclosing.whole.footprint(buffer.name)
    if found is None:
        return windows
    result = list(windows)
    for axis, length in enumerate(known):
        tile = found.extent(axis)
        if tile and (length is None or tile.size < length):
            result[axis] = _tile(tile, speaks, enclosing) or windows[axis]
    return result


def _tile(tile: Extent, speaks: frozenset[str], enclosing: _Enclosing) -> _Window | None:
    """The window that the tile is; None where nothing bounds where it starts."""
    found = _Window(linear(tile.start), Linear({}, tile.size))
    if found.offset.variables() <= speaks:
        return found
    ranges = [LoopRange(name, a.expr(), b.expr()) for name, a, b in enclosing.around]
    first, last = lowest(tile.start, ranges), highest(tile.start, ranges)
    if first is None or last is None or not variables(first) | variables(last) <= enclosing.named:
        return None
    return replace(found, told=(linear(first), linear(last)))


def _window(
    span: tuple[Linear, Linear], extent: Linear, speaks: frozenset[str], facts: Facts
) -> _Window | None:
    """The window of a span; None where it is no smaller than the whole, or cannot be said."""
    offset, length = span[0], span[1] - span[0] + 1
    bounded = extent.terms and not length.terms  # of constant size, if not always smaller
    if length == extent or not (bounded or facts.holds(extent - length)):
        return None
    if offset.variables() <= speaks:
        return _Window(offset, length)
    if length.terms or length.constant < 1:
        return None
    rest = offset.modulo(length.constant)
    if rest.variables() <= speaks:
        return _Window(rest, length, length.constant)
    start = Linear({}, rest.constant)
    return _Window(start, length, length.constant, folded=bool(rest.terms))


def _common_names(stmt: Stmt, name: str) -> frozenset[str]:
    """Dims, and the loop variables that all blocks that use the buffer have as they are."""
    users = [b for b in blocks(stmt) if name in accessed(b.body)]
    said = [frozenset(b.name for b in u.bindings if isinstance(b, Var)) for u in users]
    dims = (v for b in users for e in (*b.bindings, *_bounds(b)) for v in variables(e))
    return frozenset.intersection(*said) | {v for v in dims if "." not in v}


def _bounds(block: Block) -> Iterator[Expr]:
    for it in block.iters:
        yield from (it.lower, it.upper)


def _join(a: Span, b: Span, facts: Facts) -> Span:
    if a is None or b is None:
        return None
    first = _ordered(a[0], b[0], facts)
    last = _ordered(b[1], a[1], facts)
    if first is None or last is None:
        return None
    return (a if first else b)[0], (a if last else b)[1]


def _ordered(a: Linear, b: Linear, facts: Facts) -> bool | None:
    """Whether a <= b, where the facts decide."""
    if facts.holds(b - a):
        return True
    return False if facts.holds(a - b) else None


def _accesses(stmt: Stmt, name: str, ranges: Ranges, facts: Facts | None) -> list[tuple[Span, ...]]:
    """For each access of the buffer, the span of each of its indices over the loops around it.

    facts: what quotients and remainders in the indices are decided by, if they are.
    """
    if name not in accessed(stmt):
        return []
    if not isinstance(stmt, Block):
        inside, known = (*ranges, *_ranges(stmt)), facts and facts.inside(stmt)
        return [access for s in nested(stmt) for access in _accesses(s, name, inside, known)]
    values = {it.name: b for it, b in zip(stmt.iters, stmt.bindings, strict=True)}
    return [
        tuple(_span(_decided(substitute(i, values), facts), ranges) for i in node.indices)
        for node in walk(stmt.body)
        if isinstance(node, Load | Destination) and node.buffer == name
    ]


def _decided(index: Expr, facts: Facts | None) -> Expr:
    return index if facts is None else resolve(index, facts)


def _span(index: Expr, ranges: Ranges) -> Span:
    match index:
        case Binary(BinaryOp.MIN | BinaryOp.MAX):
            return None
        case _:
            value = linear(index)
            first, below = least(value, ranges), least(value * -1, ranges)
            return None if first is None or below is None else (first, below * -1)


# ---------------------------------------------------------------- shifting


def _shifted(
    stmt: Stmt, name: str, windows: tuple[Expr | _Window, ...], named: frozenset[str]
) -> Stmt:
    """The accesses of the buffer moved into its windows; a dimension that is no window stays."""
    if name not in accessed(stmt):
        return stmt
    if isinstance(stmt, Block):
        return _shift_block(stmt, name, windows, named)
    return map_nested(stmt, lambda s: _shifted(s, name, windows, named))


def _shift_block(
    block: Block, name: str, windows: tuple[Expr | _Window, ...], named: frozenset[str]
) -> Block:
    if name not in accessed(block):
        return block
    block, starts = _with_starts(block, windows, named)
    names: dict[str, Expr] = {
        b.name: Var(it.name)
        for it, b in zip(block.iters, block.bindings, strict=True)
        if isinstance(b, Var)
    }

    def moved(index: Expr, axis: int) -> Expr:
        window = windows[axis]
        if not isinstance(window, _Window):
            return index
        known = starts.get(axis, substitute(window.offset.expr(), names))
        shifted = (linear(index) - linear(known)).expr()
        return mod(shifted, window.modulo) if window.modulo else shifted

    def go(node: Node) -> Node:
        new = map_children(node, go)
        if isinstance(new, Load | Destination) and new.buffer == name:
            return replace(new, indices=tuple(moved(i, k) for k, i in enumerate(new.indices)))
        return new

    return replace(block, body=map_children(block.body, go))


def _with_starts(
    block: Block, windows: tuple[Expr | _Window, ...], named: frozenset[str]
) -> tuple[Block, dict[int, Expr]]:
    """The block with iteration variables for the offsets that it is told, and these by axis."""
    starts: dict[int, Expr] = {}
    for axis, window in enumerate(windows):
        if not isinstance(window, _Window) or window.told is None:
            continue
        used = {*named, *(v.name for v in block.iters)}
        start = next(s for k in count(1) if (s := f"start_{k}") not in used)
        first, last = window.told
        known = IterVar(start, first.expr(), (last + 1).expr())
        starts[axis] = Var(start)
        block = replace(
            block,
            iters=(*block.iters, known),
            bindings=(*block.bindings, window.offset.expr()),
        )
    return block, starts


# ---------------------------------------------------------------- strides


def align(kernel: Kernel) -> Kernel:
    """Each temporary that is aligned with the axes as long as that needs."""

    def visit(node: Node) -> Node:
        new = map_children(node, visit)
        if isinstance(new, Allocate):
            return replace(new, buffers=tuple(map(_aligned, new.buffers)))
        return new

    return map_children(kernel, visit)


def _aligned(buffer: Buffer) -> Buffer:
    shape = list(buffer.shape)
    for a in sorted(buffer.aligned, key=lambda a: -a.axis):
        inner = prod(constant(e) or 0 for e in shape[a.axis + 2 :])
        factor = a.factor // gcd(a.factor, inner) if a.offset == 0 and inner else a.factor
        extent = shape[a.axis + 1]
        shape[a.axis + 1] = add(extent, mod(sub(a.offset, extent), factor))
    return replace(buffer, shape=tuple(shape), aligned=())


# ---------------------------------------------------------------- scopes


def place(kernel: Kernel) -> Kernel:
    """Each temporary that the recipe leaves open on the stack; and every one on the heap whose size
    is no constant of at most STACK_BYTES, whatever the recipe says: the stack is never unbounded.

    Raises TilesmithError for a buffer of register scope whose size is not such a constant.
    """

    def scope(buffer: Buffer) -> Buffer:
        if buffer.scope is Scope.HEAP:
            return buffer
        extents = [constant(extent) for extent in buffer.shape]
        known = [extent for extent in extents if extent is not None]
        fits = len(known) == len(extents) and buffer.dtype.bytes * prod(known) <= STACK_BYTES
        if buffer.scope is Scope.REGISTER:
            if not fits:
                raise _no_registers(buffer)
            return buffer
        return replace(buffer, scope=Scope.STACK if fits else Scope.HEAP)

    def visit(node: Node) -> Node:
        new = map_children(node, visit)
        if isinstance(new, Allocate):
            return replace(new, buffers=tuple(scope(b) for b in new.buffers))
        return new

    return map_children(kernel, visit)


def _no_registers(buffer: Buffer) -> TilesmithError:
    shape = ", ".join(map(expr_to_text, buffer.shape))
    return TilesmithError(
        f"'{buffer.name}' cannot be kept in registers: what is used of it has the shape [{shape}]",
        buffer.span,
        "compute it at a loop around which its indices are constant, or give it another scope",
    )
