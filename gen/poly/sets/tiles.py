"""Loops cut into parts of a size that is given at run time.

Input: directly nested loops. Output: where some of them count parts of a symbolic size b, and
others the places in a part, the nest as if it were not cut: one variable for each pair o, p, in
place of `o * b + p`, which is not affine. Each of its values runs once, where b is at least 1.

The loops of the nest that is not cut are in the order of the inner loops of the pairs. Where other
loops stand between those of a pair, the nest runs in another order, which keeps that of iterations
of which the earlier is ahead in no loop: `safety` requires that of all that depend on each other
(Irigoin and Triolet 1988).

The places in a part may be those of several loops, one after the other, each of which begins where
those before it have ended: lowering cuts loops so. Each of them, and what is inside, is one `_Way`
through the nest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast, final

from ...ir.algebra import add, conjunction, index, mul
from ...ir.nodes import Binary, BinaryOp, Expr, If, Loop, LoopKind, Seq, Stmt, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import seq, variables
from ..witness import Refused
from .sums import Sum, as_expr, extreme, joined, operands, outside, plus, sum_of, sums_in


@final
@dataclass(frozen=True, slots=True)
class Uncut:
    """A loop of the nest that is not cut: a variable over lower <= var < upper.

    loops, kinds: those that it stands for. size: of its parts, if it is cut. guarded: whether only
    guards keep it below `upper`.
    """

    var: str
    loops: tuple[str, ...]
    kinds: tuple[LoopKind, ...]
    lower: Expr
    upper: Expr
    size: Expr | None = None
    guarded: bool = False


@final
@dataclass(frozen=True, slots=True)
class Tiles:
    """loops: of the nest that is not cut, outermost first. turned: whether it runs in another order
    than the nest that is.
    """

    loops: tuple[Uncut, ...]
    turned: bool
    body: Stmt


@final
@dataclass(frozen=True, slots=True)
class _Way:
    """From the outermost loop inwards: one loop in each other, with what is inside the last, and
    the conditions on the way to that.
    """

    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    body: Stmt


def tiles(loop: Loop) -> Tiles | None:
    """The nest that starts with a loop over parts of a symbolic size; None where there is none.

    Raises Refused where there is one that the proof cannot follow.
    """
    if _size(loop) is None:
        return None
    depths = _depths(loop)
    chain = depths[-1][0].loops
    inside = [e for way in depths[-1] for e in outside(way.body)]
    pairs = {o: _inner(o, chain, inside) for o, x in enumerate(chain) if _size(x) is not None}
    outers = {p: o for o, p in pairs.items()}
    last = max(outers)
    found: list[Uncut] = []
    sums: list[tuple[Expr, str, str]] = []
    ways = [(way, list(way.guards)) for way in depths[last]]
    for k, x in enumerate(chain[: last + 1]):
        if k not in outers:
            _require_alike(depths, k, loop)
            if k not in pairs:
                found.append(Uncut(x.var, (x.var,), (x.kind,), x.lower, x.upper))
            continue
        outer = chain[outers[k]]
        _require_order(chain, outers[k], k, set(pairs))
        _require_turns(outer, depths[k])
        whole, alone = _pair(outer, [way.loops[k] for way in depths[k]])
        for way, guards in () if alone else ways:
            guards += _places(outer, way.loops[k]).conditions(Var(whole.var))
        found.append(whole)
        sums.append((_first(outer), x.var, whole.var))
    rest = (If(conjunction(*guards), way.body) if guards else way.body for way, guards in ways)
    body = cast(Stmt, joined(seq(tuple(rest)), sums))
    uncut = tuple(_with_sums(u, sums) for u in found)
    split = {v for o, p in pairs.items() for v in (chain[o].var, chain[p].var)}
    bounds = (variables(e) for u in uncut for e in (u.lower, u.upper))
    used = (variables(e) for e in outside(body))
    if split & frozenset[str]().union(*used, *bounds):
        raise Refused(
            f"loop '{loop.var}' counts parts of a symbolic size, and something other than the"
            " sum of a part's first iteration and the place in it is used",
            span=loop.span,
        )
    return Tiles(uncut, any(p != o + 1 for o, p in pairs.items()), body)


def _with_sums(u: Uncut, sums: Sequence[tuple[Expr, str, str]]) -> Uncut:
    lower, upper = (cast(Expr, joined(e, sums)) for e in (u.lower, u.upper))
    return replace(u, lower=lower, upper=upper)


def _depths(loop: Loop) -> list[list[_Way]]:
    """The ways through the nest that starts with the loop, to each depth at which all of them have
    a loop, of one name.
    """
    depths = [[_Way((loop,), (), loop.body)]]
    while True:
        ways: list[_Way] = []
        for way in depths[-1]:
            inside = _heads(way.body)
            if not inside:
                return depths
            ways += (_Way((*way.loops, x), (*way.guards, *guards), x.body) for guards, x in inside)
        if len({way.loops[-1].var for way in ways}) > 1:
            return depths
        depths.append(ways)


def _heads(stmt: Stmt) -> list[tuple[tuple[Expr, ...], Loop]]:
    """The loops that the statement is, one after the other, and the conditions around them; none
    where it is anything else.
    """
    match stmt:
        case Loop():
            return [((), stmt)]
        case If(condition, body):
            return [((condition, *guards), x) for guards, x in _heads(body)]
        case Seq(body):
            each = [_heads(s) for s in body]
            return [head for heads in each for head in heads] if all(each) else []
        case _:
            return []


def _size(loop: Loop) -> Var | None:
    """The size of the parts that the loop counts, if it is no number."""
    match loop.upper:
        case Binary(BinaryOp.FLOORDIV, _, Var() as size):
            return size
        case _:
            return None


def _first(outer: Loop) -> Expr:
    size = _size(outer)
    assert size is not None
    return mul(Var(outer.var), size)


def _inner(o: int, chain: Sequence[Loop], exprs: Sequence[Expr]) -> int:
    """The loop over the places in the parts that the o-th counts: what is added to their first
    iterations wherever these are, in the expressions inside all of the chain.
    """
    first, size = _first(chain[o]), _size(chain[o])
    later = range(o + 1, len(chain))
    fit = {p for p in later if size and size.name in variables(chain[p].upper)}
    for e in (s for expr in exprs for s in sums_in(expr)):
        terms = sum_of(e)
        if first in terms:
            fit &= {p for p in later if terms.get(Var(chain[p].var)) == terms[first]}
    if len(fit) > 1:  # the sums add them all up alike: the bounds tell
        fit &= {p for p in later if chain[o].var in variables(chain[p].upper)}
    if len(fit) == 1:
        return fit.pop()
    raise _without_places(chain[o])


def _without_places(outer: Loop) -> Refused:
    return Refused(
        f"loop '{outer.var}' counts parts of a symbolic size, and no loop directly inside it"
        " goes through them",
        span=outer.span,
    )


@final
@dataclass(frozen=True, slots=True)
class _Places:
    """The bounds of a loop over the places in a part, for the sum of the part's first iteration and
    a place: it is at least the least of each of `lowers`, and below the greatest of each of
    `uppers`.
    """

    lowers: tuple[tuple[Sum, ...], ...]
    uppers: tuple[tuple[Sum, ...], ...]

    def conditions(self, whole: Expr) -> Iterator[Expr]:
        for some in self.lowers:
            yield Binary(BinaryOp.GE, whole, extreme(BinaryOp.MIN, some))
        for some in self.uppers:
            yield Binary(BinaryOp.LT, whole, extreme(BinaryOp.MAX, some))

    def precedes(self, other: "_Places") -> bool:
        """Whether the other has no place before this one ends."""
        return any(all((end,) in self.uppers for end in some) for some in other.lowers)


def _places(outer: Loop, inner: Loop) -> _Places:
    """Raises Refused where the inner loop may leave the part."""
    size, first = sum_of(_size(outer) or index(0)), sum_of(_first(outer))
    below = _bounds(BinaryOp.MIN, inner.upper)
    above = _bounds(BinaryOp.MAX, inner.lower)
    if outer.lower != index(0) or [size] not in below or [{}] not in above:
        raise Refused(
            f"loops '{outer.var}' and '{inner.var}' do not run over the parts of one loop",
            span=outer.span,
        )
    # A place is below the size, and not below 0: these decide no minimum, or maximum, with others.
    return _Places(_whole(above, {}, size, first), _whole(below, size, {}, first))


def _bounds(op: BinaryOp, e: Expr) -> list[list[Sum]]:
    """What a minimum is of: maxima, each of some sums; or a maximum: minima."""
    other = BinaryOp.MAX if op is BinaryOp.MIN else BinaryOp.MIN
    return [[sum_of(x) for x in operands(other, some)] for some in operands(op, e)]


def _whole(bounds: list[list[Sum]], own: Sum, idle: Sum, first: Sum) -> tuple[tuple[Sum, ...], ...]:
    """The bounds of the sums; without the part's own, and without what never decides."""
    decide = ([e for e in some if e != idle] or some for some in bounds if some != [own])
    return tuple(tuple(plus(e, first) for e in some) for some in decide)


def _pair(outer: Loop, inner: Sequence[Loop]) -> tuple[Uncut, bool]:
    """The loop that the outer one, and those over the places in its parts, are parts of: it has all
    of their iterations once. And whether its bounds say all that theirs do.
    """
    size, first = _size(outer), _first(outer)
    assert size is not None and isinstance(outer.upper, Binary)
    extent = plus(plus(sum_of(outer.upper.lhs), sum_of(size), -1), {None: 1})
    loops = outer.var, inner[0].var
    kinds = outer.kind, *dict.fromkeys(x.kind for x in inner)
    var = expr_to_text(add(first, Var(inner[0].var)))
    places = [_places(outer, x) for x in inner]
    ends = all((extent,) in p.uppers for p in places)
    result = Uncut(var, loops, kinds, index(0), as_expr(extent), size, guarded=not ends)
    if len(places) > 1 or (places[0].uppers and not ends):
        return result, False
    (only,) = places
    lower, upper = result.lower, result.upper
    for some in only.lowers:
        lower = Binary(BinaryOp.MAX, lower, extreme(BinaryOp.MIN, some))
    if ends:
        upper, *uppers = (extreme(BinaryOp.MAX, some) for some in only.uppers)
        for other in uppers:
            upper = Binary(BinaryOp.MIN, upper, other)
    return replace(result, lower=lower, upper=upper), True


def _require_alike(depths: Sequence[Sequence[_Way]], k: int, loop: Loop) -> None:
    """One loop for each way to the k-th depth, the same in all."""
    before = len(depths[k - 1]) if k else 1
    headers = {(x.kind, x.lower, x.upper) for x in (way.loops[k] for way in depths[k])}
    if len(depths[k]) > before or len(headers) > 1:
        raise _without_places(loop)


def _require_turns(outer: Loop, ways: Sequence[_Way]) -> None:
    """Of several loops over the places in one part, one after the other, that each has only places
    that come after those of the others: so the sums are in order.
    """
    for k, way in enumerate(ways):
        for later in ways[k + 1 :]:
            together = all(a is b for a, b in zip(way.loops[:-1], later.loops[:-1], strict=True))
            mine, its = _places(outer, way.loops[-1]), _places(outer, later.loops[-1])
            if together and not mine.precedes(its):
                raise Refused(
                    f"two loops '{way.loops[-1].var}' in loop '{outer.var}', which counts parts of"
                    " a symbolic size, do not go through a part one after the other",
                    span=outer.span,
                )


def _require_order(nest: Sequence[Loop], o: int, p: int, outer: set[int]) -> None:
    """Iterations of an outer loop that run at once are checked as those of the loop that is not
    cut: right where nothing that the check takes as fixed runs in between.
    """
    between = any(k not in outer for k in range(o + 1, p))
    if between and nest[o].kind is not LoopKind.SERIAL:
        raise Refused(
            f"loop '{nest[o].var}' counts parts of a symbolic size and is {nest[o].kind.value}"
            " around parts of another loop",
            span=nest[o].span,
        )
