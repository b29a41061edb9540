"""How large sizes and int64 scalars may be so that index arithmetic stays in 64 bits.

Input: the lowered trees of a kernel, with the conditions of their variants. Output: the largest
size, for each scalar that takes part in index arithmetic the largest magnitude, and products of
sizes that each call has to work out. Proofs know no bounds, but code counts in int64:
`x[i + 2 * s]` under `i + 2 * s < n` is proved, and reads anywhere once 2 * s wraps; `x[i * c]` of a
large c as well. What a call gives is held against the limits before anything runs.

Method: the ranges of all index expressions (`lower.ranges`); what must fit is the sum of the terms'
magnitudes, since emitted code may add them in another order.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from ..errors import Span, TilesmithError
from ..ir import nodes as ir
from ..ir.algebra import conjuncts, dtype_of, index
from ..ir.text.print_expr import expr_to_text
from ..ir.types import INDEX
from ..ir.walk import blocks, children, loads, loops, remembered, substitute, variables, walk
from ..ir.wrapping import wraps
from .ranges import Known, Range, of_variable, range_between, range_of, together

SIZES = (2**31, 2**47)
"""The largest size of a call, for which scalars have a limit each: nearly all calls; and all that
there can be, since 2**47 elements are more than any memory holds. A product such as `i * stride`
leaves a stride that much less room."""

LEAST = 2**10
"""The least size that every kernel takes: numbers that leave less room are a mistake."""

REACH = 2**59
"""The most that a product of sizes may come to where calls work it out."""

_LARGEST = 2**62
_BY_BITS = 3  # tries; where peaks double, the second is right, and the third shows it
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

    def peak(size: int, limit: int) -> int:
        return max((r.peak for r in _ranges(variants, products, size, limit)), default=0)

    def limit_at(size: int) -> int:
        return 1 << _last(lambda e: peak(size, 2**e), _LARGEST.bit_length())

    largest = SIZES[-1]
    found = [*_ranges(variants, products, largest, 1)]
    if any(r.peak > _MOST for r in found):
        exponent = _last(lambda e: peak(2**e, 1), largest.bit_length())
        if 2**exponent < LEAST:
            raise _too_large(variants, products)
        largest = 2**exponent
    used = sorted(frozenset[str]().union(*(r.scalars for r in found)))
    sizes = [min(size, largest) for size in SIZES if used]
    limits = {size: limit_at(size) for size in {*sizes}}
    return Limits(
        largest,
        dict.fromkeys(used, tuple(limits[size] for size in sizes)),
        tuple(
            dict.fromkeys(_of_dims(p, kernel) for kernel, _ in variants for p in _products(kernel))
        ),
    )


def _last(peak: Callable[[int], int], end: int) -> int:
    """The last of range(end) whose peak fits, -1 where none does; peaks grow. Each answer walks
    through all of the kernel, and most peaks double at every step: so the bits that are left say
    where to look, and where they did not, half of what is left does.
    """
    low, high, at = -1, end, min(31, end - 1)
    tries = 0
    while high - low > 1:
        found = peak(at)
        low, high = (at, high) if found <= _MOST else (low, at)
        tries += 1
        left = _MOST.bit_length() - found.bit_length()
        at = at + left if tries < _BY_BITS else (low + high) // 2
        at = min(max(at, low + 1), high - 1)
    return low


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
        known |= {s: range_between(-1, 1) for s in kernel.scalars}
        known |= {ir.Var(loop.var): range_between(0, LEAST) for loop in loops(kernel.body)}
        for block in blocks(kernel.body):
            if any(r.peak > _MOST for r in _below(block, known)):
                return _error(f"the index arithmetic of block '{block.name}'", block.span)
    return _error("index arithmetic", None)


def _error(what: str, span: Span | None) -> TilesmithError:
    return TilesmithError(f"{what} leaves 64 bits at sizes of {LEAST}", span, "use smaller numbers")


# ---------------------------------------------------------------- ranges


def _sizes(kernel: ir.Kernel, products: frozenset[ir.Expr], size: int) -> Known:
    known: Known = {ir.Var(d): range_between(0, size) for d in kernel.dims}
    known |= {ir.Var(p.name): range_between(0, p.size - 1) for p in kernel.phases}
    return known | {product: range_between(0, REACH) for product in products}


def _ranges(
    variants: Variants, products: frozenset[ir.Expr], size: int, limit: int
) -> Iterator[Range]:
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
                        if range_of(part, known).peak > _MOST:
                            yield part


def _of_dims(product: ir.Expr, kernel: ir.Kernel) -> ir.Expr:
    """The product, as large as phases make it."""
    return substitute(product, {p.name: index(p.size - 1) for p in kernel.phases})


def _scalar(name: str, least: int, most: int) -> Range:
    magnitude = max(abs(least), abs(most))
    return Range(least, most, magnitude, magnitude, frozenset((name,)))


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


def _below(stmt: ir.Node, known: Known) -> Iterator[Range]:
    """Of the index expressions of a statement."""
    match stmt:
        case ir.Loop(var, lower, upper, _, body):
            first, end = range_of(lower, known), range_of(upper, known)
            yield together(first, end)
            yield from (*_inside(lower, known), *_inside(upper, known))
            inside = of_variable(first.least, max(first.least, end.most - 1), (first, end))
            yield from _below(body, {**known, ir.Var(var): inside})
        case ir.Delinearize(names, extents, value, body):
            yield range_of(value, known)
            ends = [range_of(extent, known) for extent in extents]
            yield from ends
            parts = [of_variable(0, max(0, end.most - 1), (end,)) for end in ends]
            yield from _below(body, {**known, **dict(zip(map(ir.Var, names), parts, strict=True))})
        case ir.Block():
            values = [range_of(binding, known) for binding in stmt.bindings]
            yield from values
            yield from _inside(stmt.predicate, known)
            inner = dict(known)
            inner.update(zip((ir.Var(v.name) for v in stmt.iters), values, strict=True))
            yield from _inside(stmt.body, inner)
        case ir.If(condition, body):
            yield from _inside(condition, known)
            yield from _below(body, known)
        case ir.Allocate(buffers, body):
            yield from (range_of(extent, known) for buffer in buffers for extent in buffer.shape)
            yield from _below(body, known)
        case _:
            for child in children(stmt):
                yield from _below(child, known)


def _inside(node: ir.Node, known: Known) -> Iterator[Range]:
    """Of what expressions are indexed by, of what is computed of sizes, indices and scalars, and of
    what sizes and indices are compared with.
    """
    for n in _asked(node):
        match n:
            case ir.Binary(op, lhs, rhs) if op in ir.COMPARISONS:
                if any(_counts(side, known) for side in (lhs, rhs)):
                    sides = range_of(lhs, known), range_of(rhs, known)
                    data = loads(lhs) and loads(rhs)  # of which none is taken to the other side
                    yield from sides if data else (together(*sides),)
            case _:
                yield range_of(n, known)


@remembered
def _asked(node: ir.Node) -> tuple[ir.Expr, ...]:
    """The expressions in a node whose ranges are asked for, and the comparisons of such, each once:
    they are the same for all sizes.
    """
    found = list[ir.Expr]()
    for n in walk(node):
        match n:
            case ir.Load(_, indices) | ir.Destination(_, indices):
                found += indices
            case ir.Binary(op, lhs) if op in ir.COMPARISONS:
                if dtype_of(lhs) is INDEX:
                    found.append(n)
            case ir.Binary() | ir.Unary() if dtype_of(n) is INDEX:
                found.append(n)
    return tuple(dict.fromkeys(found))


def _counts(expr: ir.Expr, known: Known) -> bool:
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
