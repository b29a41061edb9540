"""New loops for a block that moves: which instances it runs, and under which loops.

Input: a block, the variables in scope at its new place, and the region of a buffer that it must
cover there. Output: loops named after the block's iteration variables, its new bindings and
predicate. The region may be covered generously, never short; domains are never left.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import final

from ...ir.algebra import add, ceildiv, conjunction, conjuncts, floordiv, index, less, mul, sub
from ...ir.index.bounds import LoopRange, at_most, highest, larger, lowest, normal, sides, smaller
from ...ir.index.linear import Linear, constant, linear, same
from ...ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Const,
    Expr,
    IterKind,
    IterVar,
    Loop,
    Stmt,
    Var,
)
from ...ir.walk import substitute, variables
from ...poly.queries.extents import greatest
from .tree import CannotApply, fresh, nest, ranges_of, scope_of, serial_loop

_MOST_PARTS = 16


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """`lower <= index <= upper`."""

    lower: Expr
    upper: Expr


Region = tuple[Interval | None, ...]
"""An interval an axis; None where nothing is known, so the whole axis."""


def touched(
    block: Block, indices: Sequence[Expr], inside: Iterable[Stmt], around: tuple[LoopRange, ...]
) -> Region:
    """The places that a block's accesses cover while the loops among `inside` run and those of
    `around` stand still.
    """
    loops = ranges_of(inside)
    iters: list[LoopRange] = []
    unbounded: set[str] = set()
    for v, binding in zip(block.iters, block.bindings, strict=True):
        lower, upper = lowest(binding, loops), highest(binding, loops)
        if lower is None or upper is None:
            unbounded.add(v.name)
            continue
        if not same(lower, upper):
            known = (*around, *iters)
            lower = larger(lower, v.lower, known)
            upper = smaller(upper, sub(v.upper, 1), known)
        iters.append(LoopRange(v.name, lower, upper))

    def interval(i: Expr) -> Interval | None:
        lower, upper = lowest(i, iters), highest(i, iters)
        if lower is None or upper is None or variables(i) & unbounded:
            return None
        return Interval(lower, upper)

    return tuple(map(interval, indices))


def union(a: Region, b: Region, ranges: tuple[LoopRange, ...]) -> Region:
    """The smallest box around both."""

    def both(x: Interval | None, y: Interval | None) -> Interval | None:
        if x is None or y is None:
            return None
        return Interval(smaller(x.lower, y.lower, ranges), larger(x.upper, y.upper, ranges))

    return tuple(both(x, y) for x, y in zip(a, b, strict=True))


def required(places: Sequence[Expr], region: Region, iters: frozenset[str]) -> dict[str, Interval]:
    """What a region means for the iteration variables that index it.

    An axis `a*v + rest`, `a` not 0, gives `v`'s interval where `rest` has no other of `iters`; so
    does a quotient of that by a number. A quotient and a remainder by one number, each one value in
    the region, together give one value: `v // 2` and `v % 2` say what v is.
    """
    result: dict[str, Interval] = {}
    pairs = [*_wholes(places, region), *zip(places, region, strict=True)]  # the first counts
    for place, interval in reversed(pairs):
        found = _solved(linear(place), interval, iters) if interval else None
        result.update([found] if found else [])
    return result


def _solved(form: Linear, interval: Interval, iters: frozenset[str]) -> tuple[str, Interval] | None:
    """The variable of which the form is one, and the interval in which it is for the form to be in
    this one; None where there is no such variable, or another beside it.
    """
    inner = [(atom, c) for atom, c in form.terms.items() if variables(atom) & iters]
    if len(inner) != 1:
        return None
    ((atom, c),) = inner
    rest = form.without(atom).expr()
    low, high = sub(interval.lower, rest), sub(interval.upper, rest)
    if c < 0:
        low, high, c = sub(0, high), sub(0, low), -c
    low, high = ceildiv(normal(low), c), floordiv(normal(high), c)
    match atom:
        case Var(name):
            return name, Interval(low, high)
        case Binary(BinaryOp.FLOORDIV, whole, Const(int(divisor))) if divisor > 0:
            last = add(mul(high, int(divisor)), int(divisor) - 1)
            return _solved(linear(whole), Interval(mul(low, int(divisor)), last), iters)
        case _:
            return None


def _wholes(places: Sequence[Expr], region: Region) -> Iterator[tuple[Expr, Interval]]:
    """What the region says of `e` where it has one value for `e // n` and one for `e % n`."""
    single = {
        place: interval.lower
        for place, interval in zip(places, region, strict=True)
        if interval and same(interval.lower, interval.upper)
    }
    for place, quotient in single.items():
        match place:
            case Binary(BinaryOp.FLOORDIV, whole, Const(int(divisor)) as by) if divisor > 0:
                left = single.get(Binary(BinaryOp.MOD, whole, by))
                if left is not None:
                    value = add(mul(quotient, int(divisor)), left)
                    yield whole, Interval(value, value)
            case _:
                pass


@dataclass(slots=True)
class _Placing:
    """The nest so far, from outside in."""

    ranges: tuple[LoopRange, ...]
    loops: list[Loop]
    guards: list[Expr]
    values: dict[str, Expr]


def place(
    block: Block,
    around: Sequence[Stmt],
    kept: frozenset[str],
    wanted: Mapping[str, Interval],
    used: Iterable[str],
) -> Stmt:
    """The block in loops of its own, to stand below `around`.

    kept: iteration variables whose bindings stay. wanted: what must be covered of the others, all
    of the domain where nothing is said; a single value gets no loop. used: names that the loops
    may not take. Raises CannotApply where the predicate cannot be said at the new place.
    """
    p = _Placing(ranges_of(around), [], [], {})
    taken = set(used)
    for v, binding in zip(block.iters, block.bindings, strict=True):
        if v.name in kept:
            p.values[v.name] = binding
            continue
        lower, upper = substitute(v.lower, p.values), substitute(v.upper, p.values)
        want = wanted.get(v.name) or Interval(lower, sub(upper, 1))
        if same(want.lower, want.upper):
            value = normal(want.lower)
            p.values[v.name] = value
            p.guards += within(value, (lower,), (upper,), p.ranges)
            continue
        var = fresh(f"{block.name}.{v.name}", taken)
        taken.add(var)
        _add_loop(
            p,
            v,
            var,
            larger(lower, want.lower, p.ranges),
            smaller(upper, add(want.upper, 1), p.ranges),
            in_part=v.name in wanted,
        )
    in_scope = frozenset(scope_of((*around, *p.loops)))
    conditions = predicate_at(block, p.values, in_scope)
    moved = replace(
        block,
        bindings=tuple(p.values[v.name] for v in block.iters),
        predicate=conjunction(*conditions, *p.guards),
    )
    return nest(p.loops, moved)


def within(
    value: Expr, lowers: Iterable[Expr], uppers: Iterable[Expr], ranges: Iterable[LoopRange]
) -> Iterator[Expr]:
    """The guards that keep a value from each lower bound on and below each upper one, without those
    that hold anyway.
    """
    known = tuple(ranges)
    for lower in lowers:
        if not at_most(lower, value, known):
            yield Binary(BinaryOp.LE, lower, value)
    for upper in uppers:
        if not at_most(add(value, 1), upper, known):
            yield less(value, upper)


def _add_loop(
    p: _Placing, v: IterVar, var: str, lower: Expr, upper: Expr, *, in_part: bool
) -> None:
    """One more loop, inside the others, for lower <= v < upper. in_part: of the domain, so that a
    loop further out runs over the rest.

    Where the interval lies in a tile of constant size, the loop has that size, so that it can be
    unrolled and vectorized, and what leaves the interval gets a guard.
    """
    start: Expr = index(0)
    lowers, uppers = sides(BinaryOp.MAX, lower), sides(BinaryOp.MIN, upper)
    tile = _tile(lower, upper)
    if tile is None and v.kind is IterKind.SPATIAL:
        tile = _tile_for_all_sizes(lower, upper, p.ranges)
        lowers, uppers = (substitute(v.lower, p.values),), (substitute(v.upper, p.values),)
    if tile is not None:
        start, size = tile
        p.ranges = (*p.ranges, LoopRange(var, index(0), index(size - 1)))
        value = add(start, Var(var))
        p.guards += within(value, lowers, uppers, p.ranges)
        p.loops.append(serial_loop(var, index(0), index(size)))
        p.values[v.name] = value
        return
    if v.kind is IterKind.REDUCTION and in_part and not is_over_dims(lower):
        # The binding has to name the loops that the reduction goes on over: its init is
        # before the outermost of them.
        start, lower, upper = lower, index(0), sub(upper, lower)
    p.loops.append(serial_loop(var, lower, upper))
    p.ranges = (*p.ranges, LoopRange(var, lower, sub(upper, 1)))
    p.values[v.name] = add(start, Var(var))


def _tile(lower: Expr, upper: Expr) -> tuple[Expr, int] | None:
    """Start and size of the smallest tile of constant size that covers lower <= v < upper.

    None where there is none, or where both ends are constant already.
    """
    tiles: list[tuple[int, Expr]] = []
    for start in sides(BinaryOp.MAX, lower):
        for end in sides(BinaryOp.MIN, upper):
            size = constant(sub(end, start))
            if size is not None and size > 0:
                tiles.append((size, start))
    if not tiles or (constant(sub(upper, lower)) is not None and is_over_dims(lower)):
        return None
    size_, start = min(tiles, key=lambda tile: tile[0])
    return start, size_


def _tile_for_all_sizes(
    lower: Expr, upper: Expr, ranges: tuple[LoopRange, ...]
) -> tuple[Expr, int] | None:
    """The same of ends that are never further apart than a number, though no two of their sides
    are just a number apart: halved, reversed, or clamped from one side.
    """
    if is_over_dims(lower) and is_over_dims(upper):
        return None
    first = (Binary(BinaryOp.LE, r.lower, Var(r.var)) for r in ranges)
    last = (Binary(BinaryOp.LE, Var(r.var), r.upper) for r in ranges)
    inside = (*first, *last, less(lower, upper))
    tiles: list[tuple[int, Expr]] = []
    for start in dict.fromkeys((*islice(_parts(lower), _MOST_PARTS), lower)):
        before, size = greatest(sub(start, lower), inside), greatest(sub(upper, start), inside)
        if before is not None and before <= 0 and size is not None:
            tiles.append((size, start))
    size_, start = min(tiles, key=lambda tile: tile[0], default=(0, lower))
    return (normal(start), size_) if tiles else None


def _parts(e: Expr) -> Iterator[Expr]:
    """The expressions that `e` may be: its minima and maxima decided either way."""
    match e:
        case Binary(BinaryOp.MIN | BinaryOp.MAX, a, b):
            yield from _parts(a)
            yield from _parts(b)
        case Binary(_, a, b):
            for lhs, rhs in product(_parts(a), _parts(b)):
                yield replace(e, lhs=lhs, rhs=rhs)
        case _:
            yield e


def predicate_at(
    block: Block, values: Mapping[str, Expr], in_scope: frozenset[str]
) -> tuple[Expr, ...]:
    """The conditions in the variables of the new place; those that only keep an iteration variable
    within its bounds are dropped, since the new loops do that.
    """
    pairs = tuple(zip(block.iters, block.bindings, strict=True))
    loops = {b.name: values[v.name] for v, b in pairs if isinstance(b, Var)}
    old = {v.name: b for v, b in pairs}
    bounds = [(b, substitute(v, old)) for v, b in pairs]
    stay = [b for v, b in pairs if values[v.name] == b]
    result: list[Expr] = []
    for condition in conjuncts(block.predicate):
        if any(_is_bound(condition, b, v) for b, v in bounds if b not in stay):
            continue
        new = substitute(condition, loops)
        foreign = [v for v in sorted(variables(new)) if "." in v and v not in in_scope]
        if foreign:
            raise CannotApply(
                f"the condition of block '{block.name}' on '{foreign[0]}' is not one on its "
                "iteration variables; place it before that loop is made"
            )
        result.append(new)
    return tuple(result)


def is_over_dims(e: Expr) -> bool:
    """Whether the expression has no loop variables."""
    return not any("." in name for name in variables(e))


def _is_bound(condition: Expr, binding: Expr, of: IterVar) -> bool:
    match condition:
        case Binary(BinaryOp.LT, lhs, rhs):
            return same(lhs, binding) and same(rhs, of.upper)
        case Binary(BinaryOp.LE, lhs, rhs):
            return same(lhs, of.lower) and same(rhs, binding)
        case _:
            return False
