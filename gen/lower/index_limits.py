"""How large sizes and int64 scalars may be so that index arithmetic stays in 64 bits.

Input: the lowered trees of a kernel, with the conditions of their variants. Output: the largest
size, for each scalar that takes part in index arithmetic the largest magnitude, and products of
sizes that each call has to work out. Proofs know no bounds, but code counts in int64:
`x[i + 2 * s]` under `i + 2 * s < n` is proved, and reads anywhere once 2 * s wraps; `x[i * c]` of a
large c as well. What a call gives is held against the limits before anything runs.

Method: interval arithmetic. Emitted code may add the terms of a sum, and of the two sides of a
comparison, of a minimum or of a loop's bounds, in another order than the tree, so what must fit is
the sum of the terms' magnitudes, in any order then. What is made of data is left out, since it
wraps (`ir.wrapping`); what it is compared with must stay below `FAR`, where `narrow` holds it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from ..errors import Span, TilesmithError
from ..ir import nodes as ir
from ..ir.algebra import conjuncts, dtype_of, index
from ..ir.text.print_expr import expr_to_text
from ..ir.types import INDEX, Kind
from ..ir.walk import blocks, children, loads, loops, substitute, variables, walk
from ..ir.wrapping import wraps
from ..poly.rewrites.narrowed import FAR

SIZES = (2**31, 2**47)
"""The largest size of a call, for which scalars have a limit each: nearly all calls; and all that
there can be, since 2**47 elements are more than any memory holds. A product such as `i * stride`
leaves a stride that much less room."""

LEAST = 2**10
"""The least size that every kernel takes: numbers that leave less room are a mistake."""

REACH = 2**59
"""The most that a product of sizes may come to where calls work it out."""

_LARGEST = 2**62
_MOST = 2**63 - 2**48  # what lowering and emission add of their own is constants: lanes, tiles

Variants = Sequence[tuple[ir.Kernel, ir.Expr | None]]


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What calls are held to. largest: of their sizes; scalars: for those that index, the largest
    magnitude for each of SIZES; products: of sizes, which are at most REACH.
    """

    largest: int = SIZES[-1]
    scalars: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    products: tuple[ir.Expr, ...] = ()


NO_LIMITS = Limits()


def index_limits(variants: Variants) -> Limits:
    """The limits with which no index expression of the variants, lowered and each with its
    condition, leaves 64 bits. Raises TilesmithError where one does at sizes of LEAST.
    """
    products = frozenset().union(*(_products(kernel) for kernel, _ in variants))

    def leaves(size: int, limit: int) -> bool:
        return any(r.peak > _MOST for r in _ranges(variants, products, size, limit))

    largest = SIZES[-1]
    if leaves(largest, 1):
        exponent = bisect_left(range(largest.bit_length()), True, key=lambda e: leaves(2**e, 1)) - 1
        if 2**exponent < LEAST:
            raise _too_large(variants, products)
        largest = 2**exponent
    used = sorted(_used(variants, products))
    limits = tuple(
        2 ** (bisect_left(range(_LARGEST.bit_length()), True, key=lambda e: leaves(size, 2**e)) - 1)
        for size in (min(size, largest) for size in SIZES if used)
    )
    return Limits(
        largest,
        dict.fromkeys(used, limits),
        tuple(
            dict.fromkeys(_of_dims(p, kernel) for kernel, _ in variants for p in _products(kernel))
        ),
    )


def _used(variants: Variants, products: frozenset[ir.Expr]) -> frozenset[str]:
    """The scalars that take part in index arithmetic."""
    if not any(s.dtype is INDEX for kernel, _ in variants for s in kernel.scalars):
        return frozenset()
    return frozenset().union(*(r.scalars for r in _ranges(variants, products, 1, 1)))


def smallest(all_limits: Iterable[Limits]) -> Limits:
    """What is within all of the limits."""
    found = NO_LIMITS
    for limits in all_limits:
        scalars = dict(found.scalars)
        for name, values in limits.scalars.items():
            scalars[name] = tuple(map(min, scalars.get(name, values), values))
        products = tuple(dict.fromkeys((*found.products, *limits.products)))
        found = Limits(min(found.largest, limits.largest), scalars, products)
    return found


def check(
    kernel: str, limits: Limits, scalars: Mapping[str, complex], sizes: Mapping[str, int]
) -> None:
    """Raises ValueError where a call's sizes or scalars are outside of the limits."""
    largest = max(sizes.values(), default=0)
    if largest > limits.largest:
        raise ValueError(
            f"{kernel}: a size of {largest} is more than its indices allow: {limits.largest}"
        )
    for product in limits.products:
        value = substitute(product, {name: index(size) for name, size in sizes.items()})
        if not (isinstance(value, ir.Const) and int(value.value.real) <= REACH):
            given = ", ".join(f"{d} = {s}" for d, s in sizes.items() if d in variables(product))
            raise ValueError(f"{kernel}: {expr_to_text(product)} is too large for {given}")
    for name, by_size in limits.scalars.items():
        limit, value_ = by_size[bisect_left(SIZES, largest)], int(scalars[name].real)
        if not -limit <= value_ <= limit:
            bound = f"at most {limit}" if value_ > 0 else f"at least {-limit}"
            raise ValueError(
                f"{kernel}: scalar {name} must be {bound}, or indices would leave 64 bits,"
                f" got {value_}"
            )


def _too_large(variants: Variants, products: frozenset[ir.Expr]) -> TilesmithError:
    """The error for what leaves 64 bits at sizes of LEAST, at the first block that does."""
    for kernel, _ in variants:
        known = _sizes(kernel, products, LEAST)
        known |= {s: _range(-1, 1) for s in kernel.scalars}
        known |= {ir.Var(loop.var): _range(0, LEAST) for loop in loops(kernel.body)}
        for block in blocks(kernel.body):
            if any(r.peak > _MOST for r in _below(block, known)):
                return _error(f"the index arithmetic of block '{block.name}'", block.span)
    return _error("index arithmetic", None)


def _error(what: str, span: Span | None) -> TilesmithError:
    return TilesmithError(f"{what} leaves 64 bits at sizes of {LEAST}", span, "use smaller numbers")


# ---------------------------------------------------------------- ranges


@final
@dataclass(frozen=True, slots=True)
class _Range:
    """The values of an expression, from `least` to `most`. magnitude: those of its terms, added up;
    peak: the largest magnitude of it and its parts; scalars: those that take part.
    """

    least: int
    most: int
    magnitude: int
    peak: int
    scalars: frozenset[str] = frozenset()


_NONE = frozenset[str]()
_DATA = _Range(-FAR, FAR, FAR, 0)
"""What may be any number, and is held between these where it meets a size or an index."""


def _range(
    least: int,
    most: int,
    parts: Sequence[_Range] = (),
    magnitude: int = 0,
    peak: int | None = None,
) -> _Range:
    """The range of what is made of the parts. peak: where it is not the largest of theirs."""
    scalars = _NONE.union(*[part.scalars for part in parts])
    magnitude = max(magnitude, abs(least), abs(most))
    if peak is None:
        peak = max(magnitude, *[part.peak for part in parts], 0)
    return _Range(least, most, magnitude, peak, scalars)


def _variable(least: int, most: int, bounds: Sequence[_Range]) -> _Range:
    """Of a variable between the bounds, which are looked at by themselves."""
    result = _range(least, most, bounds)
    return replace(result, peak=result.magnitude)


def _sum(least: int, most: int, a: _Range, b: _Range) -> _Range:
    """Of the sum or difference, which a minimum in one of both may be taken out of."""
    peak = max(a.magnitude + max(b.magnitude, b.peak), b.magnitude + max(a.magnitude, a.peak))
    return _range(least, most, (a, b), a.magnitude + b.magnitude, peak)


def _together(a: _Range, b: _Range) -> _Range:
    """Of both sides of a comparison, which may be subtracted."""
    return _sum(min(a.least, b.least), max(a.most, b.most), a, b)


_Known = dict[ir.Expr, _Range]
"""Of variables, and of the products of sizes that calls work out."""


def _sizes(kernel: ir.Kernel, products: frozenset[ir.Expr], size: int) -> _Known:
    known: _Known = {ir.Var(d): _range(0, size) for d in kernel.dims}
    known |= {ir.Var(p.name): _range(0, p.size - 1) for p in kernel.phases}
    return known | {product: _range(0, REACH) for product in products}


def _ranges(
    variants: Variants, products: frozenset[ir.Expr], size: int, limit: int
) -> Iterator[_Range]:
    """Of all index expressions, for sizes up to `size` and scalars up to `limit`."""
    for kernel, when in variants:
        known = _sizes(kernel, products, size)
        scalars = [s for s in kernel.scalars if s.dtype is INDEX]
        known |= {s: _scalar(s.name, -limit, limit) for s in scalars}
        if when is not None:
            yield from _inside(when, known)
        known |= {s: _scalar(s.name, *_assumed(kernel, s.name, limit)) for s in scalars}
        yield from _below(kernel.body, known)


def _products(kernel: ir.Kernel) -> Iterator[ir.Expr]:
    """The products of sizes in the bounds of loops, as fused ones have them, that might leave 64
    bits for sizes of nearly all calls.
    """
    known = _sizes(kernel, frozenset(), SIZES[0])
    for loop in loops(kernel.body):
        for bound in (loop.lower, loop.upper):
            for part in walk(bound):
                match part:
                    case ir.Binary(ir.BinaryOp.MUL) if variables(part) <= {
                        *kernel.dims,
                        *(p.name for p in kernel.phases),
                    }:
                        if _of(part, known).peak > _MOST:
                            yield part


def _of_dims(product: ir.Expr, kernel: ir.Kernel) -> ir.Expr:
    """The product, as large as phases make it."""
    return substitute(product, {p.name: index(p.size - 1) for p in kernel.phases})


def _scalar(name: str, least: int, most: int) -> _Range:
    magnitude = max(abs(least), abs(most))
    return _Range(least, most, magnitude, magnitude, frozenset((name,)))


def _assumed(kernel: ir.Kernel, scalar: str, limit: int) -> tuple[int, int]:
    """The scalar's values within the limit, as far as `s >= 0` and the like say."""
    least, most = -limit, limit
    for part in (p for assumption in kernel.assumptions for p in conjuncts(assumption)):
        match part:
            case ir.Binary(ir.BinaryOp.GE, ir.Var(name), ir.Const(int(number))) if name == scalar:
                least = min(max(least, number), limit)
            case ir.Binary(ir.BinaryOp.LE, ir.Var(name), ir.Const(int(number))) if name == scalar:
                most = max(min(most, number), -limit)
    return least, max(least, most)


def _below(stmt: ir.Node, known: _Known) -> Iterator[_Range]:
    """Of the index expressions of a statement."""
    match stmt:
        case ir.Loop(var, lower, upper, _, body):
            first, end = _of(lower, known), _of(upper, known)
            yield _together(first, end)
            yield from (*_inside(lower, known), *_inside(upper, known))
            inside = _variable(first.least, max(first.least, end.most - 1), (first, end))
            yield from _below(body, {**known, ir.Var(var): inside})
        case ir.Delinearize(names, extents, value, body):
            yield _of(value, known)
            ends = [_of(extent, known) for extent in extents]
            yield from ends
            parts = [_variable(0, max(0, end.most - 1), (end,)) for end in ends]
            yield from _below(body, {**known, **dict(zip(map(ir.Var, names), parts, strict=True))})
        case ir.Block():
            values = [_of(binding, known) for binding in stmt.bindings]
            yield from values
            yield from _inside(stmt.predicate, known)
            inner = dict(known)
            inner.update(zip((ir.Var(v.name) for v in stmt.iters), values, strict=True))
            yield from _inside(stmt.body, inner)
        case ir.If(condition, body):
            yield from _inside(condition, known)
            yield from _below(body, known)
        case ir.Allocate(buffers, body):
            yield from (_of(extent, known) for buffer in buffers for extent in buffer.shape)
            yield from _below(body, known)
        case _:
            for child in children(stmt):
                yield from _below(child, known)


def _inside(node: ir.Node, known: _Known) -> Iterator[_Range]:
    """Of what expressions are indexed by, of what is computed of sizes, indices and scalars, and of
    what sizes and indices are compared with.
    """
    for n in walk(node):
        match n:
            case ir.Load(_, indices) | ir.Destination(_, indices):
                yield from (_of(i, known) for i in indices)
            case ir.Binary(op, lhs, rhs) if op in ir.COMPARISONS and dtype_of(lhs) is INDEX:
                if any(_counts(side, known) for side in (lhs, rhs)):
                    sides = _of(lhs, known), _of(rhs, known)
                    data = loads(lhs) and loads(rhs)  # of which none is taken to the other side
                    yield from sides if data else (_together(*sides),)
            case ir.Binary() | ir.Unary() if dtype_of(n) is INDEX:
                yield _of(n, known)


def _counts(expr: ir.Expr, known: _Known) -> bool:
    """Whether a size or an index takes part, outside of what is read from memory."""
    match expr:
        case ir.Load():
            return False
        case ir.Var(name):
            return expr in known and known[expr].scalars != {name}
        case _ if wraps(expr):
            return False
        case _:
            return any(
                _counts(child, known) for child in children(expr) if isinstance(child, ir.Expr)
            )


def _of(expr: ir.Expr, known: _Known) -> _Range:
    """The range of an index expression."""
    match expr:
        case ir.Var() | ir.Binary(ir.BinaryOp.MUL) if expr in known:
            return known[expr]
        case ir.Const(int(number)):
            return _range(int(number), int(number), peak=0)  # as large as its type allows
        case ir.Cast(_, operand) if dtype_of(operand) is INDEX:
            return _of(operand, known)
        case ir.Cast(_, operand) if (dtype := dtype_of(operand)).bits <= 32 and not dtype.is_float:
            signed = dtype.kind is Kind.SIGNED
            return _range(-(2 ** (dtype.bits - 1)) * signed, 2 ** (dtype.bits - signed) - 1)
        case ir.Select(_, then, otherwise):
            a, b = _of(then, known), _of(otherwise, known)
            return _either(min(a.least, b.least), max(a.most, b.most), a, b, expr)
        case ir.Unary() | ir.Binary() if wraps(expr):
            return _DATA
        case ir.Unary(ir.UnaryOp.NEG, operand):
            a = _of(operand, known)
            return _range(-a.most, -a.least, (a,), a.magnitude)
        case ir.Unary(ir.UnaryOp.INVERT, operand) if not loads(expr):
            a = _of(operand, known)
            return _range(-a.most - 1, -a.least - 1, (a,), a.magnitude + 1)
        case ir.Binary(op, lhs, rhs):
            a, b = _of(lhs, known), _of(rhs, known)
            return _of_data(expr, a, b) if loads(expr) else _of_binary(op, a, b)
        case _:
            return _DATA


def _of_data(expr: ir.Binary, a: _Range, b: _Range) -> _Range:
    """Where data takes part that does not wrap; its two sides are never subtracted."""
    match expr.op:
        case ir.BinaryOp.MIN:
            return _either(min(a.least, b.least), min(a.most, b.most), a, b, expr)
        case ir.BinaryOp.MAX:
            return _either(max(a.least, b.least), max(a.most, b.most), a, b, expr)
        case ir.BinaryOp.FLOORDIV:
            return _either(-a.magnitude, a.magnitude, a, b, expr)
        case ir.BinaryOp.MOD:
            return _either(-b.magnitude if b.least < 0 else 0, b.magnitude, a, b, expr)
        case ir.BinaryOp.BITAND if isinstance(expr.rhs, ir.Const) and b.least >= 0:
            return _either(0, b.most, a, b, expr)
        case ir.BinaryOp.ADD | ir.BinaryOp.SUB | ir.BinaryOp.MUL:
            return _of_binary(expr.op, a, b)
        case _:
            return _DATA


def _either(least: int, most: int, a: _Range, b: _Range, expr: ir.Expr) -> _Range:
    """Of one of the two, or what is between them; of data no more than is known of all data."""
    if loads(expr):
        held = _range(max(min(least, FAR), -FAR), min(max(most, -FAR), FAR), (a, b))
        return replace(held, peak=max(a.peak, b.peak))
    return _range(least, most, (a, b), max(a.magnitude, b.magnitude))


def _of_binary(op: ir.BinaryOp, a: _Range, b: _Range) -> _Range:
    match op:
        case ir.BinaryOp.ADD:
            return _sum(a.least + b.least, a.most + b.most, a, b)
        case ir.BinaryOp.SUB:
            return _sum(a.least - b.most, a.most - b.least, a, b)
        case ir.BinaryOp.MUL:
            products = [x * y for x in (a.least, a.most) for y in (b.least, b.most)]
            return _range(min(products), max(products), (a, b), a.magnitude * b.magnitude)
        case ir.BinaryOp.FLOORDIV if (
            b.least == b.most > 0
        ):  # of `3*k - 1`, the divisor is added first
            return _range(a.least // b.least, a.most // b.least, (_together(a, b),))
        case ir.BinaryOp.FLOORDIV:  # where it rounds up, too
            return _range(-a.magnitude, a.magnitude, (_together(a, b),))
        case ir.BinaryOp.MOD:
            within = max(0, -b.least, b.most)
            return _range(-within if b.least < 0 else 0, within, (_together(a, b),))
        case ir.BinaryOp.MIN:
            return _range(min(a.least, b.least), min(a.most, b.most), (_together(a, b),))
        case ir.BinaryOp.MAX:
            return _range(max(a.least, b.least), max(a.most, b.most), (_together(a, b),))
        case ir.BinaryOp.SHL:
            by = 2 ** min(max(b.most, 0), 64)
            return _range(a.least * by, a.most * by, (a, b), a.magnitude * by)
        case ir.BinaryOp.SHR:
            return _range(-a.magnitude, a.magnitude, (a, b))
        case ir.BinaryOp.BITAND if min(a.least, b.least) >= 0:
            return _range(0, min(a.most, b.most), (a, b))
        case _:  # other bits are no more than the longer operand's
            within = 2 ** max(a.magnitude, b.magnitude).bit_length()
            return _range(-within, within, (a, b))
