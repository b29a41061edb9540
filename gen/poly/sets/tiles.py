"""Loops cut into parts of a size that is given at run time.

Input: directly nested loops. Output: where some of them count parts of a symbolic size b, and
others the places in a part, the nest as if it were not cut: one variable for each pair o, p, in
place of `o * b + p`, which is not affine. Each of its values runs once, where b is at least 1.

The loops of the nest that is not cut are in the order of the inner loops of the pairs. Where other
loops stand between those of a pair, the nest runs in another order, which keeps that of iterations
of which the earlier is ahead in no loop: `safety` requires that of all that depend on each other
(Irigoin and Triolet 1988).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import cast, final

from ...ir.algebra import add, dtype_of, index, mul
from ...ir.nodes import Binary, BinaryOp, Block, Const, Expr, Loop, LoopKind, Node, Stmt, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.types import INDEX
from ...ir.walk import children, map_children, variables
from ..witness import Refused

Sum = dict[Expr | None, int]
"""Integer multiples of expressions that are no sums; of None, the constant."""


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


def tiles(loop: Loop) -> Tiles | None:
    """The nest that starts with a loop over parts of a symbolic size; None where there is none.

    Raises Refused where there is one that the proof cannot follow.
    """
    if _size(loop) is None:
        return None
    chain = [loop]
    while isinstance(chain[-1].body, Loop):
        chain.append(chain[-1].body)
    pairs = {o: _inner(o, chain) for o, x in enumerate(chain) if _size(x) is not None}
    nest = chain[: max(pairs.values()) + 1]
    found: list[Uncut] = []
    sums: list[tuple[Expr, str, str]] = []
    for k, x in enumerate(nest):
        outer = next((o for o, p in pairs.items() if p == k), None)
        if outer is not None:
            _require_order(nest, outer, k, set(pairs))
            found.append(_pair(nest[outer], x))
            sums.append((_first(nest[outer]), x.var, found[-1].var))
        elif k not in pairs:
            found.append(Uncut(x.var, (x.var,), (x.kind,), x.lower, x.upper))
    body = _joined(nest[-1].body, sums)
    split = {v for o, p in pairs.items() for v in (chain[o].var, chain[p].var)}
    bounds = (variables(e) for u in found for e in (u.lower, u.upper))
    used = (variables(e) for e in _outside(body))
    if split & frozenset[str]().union(*used, *bounds):
        raise Refused(
            f"loop '{loop.var}' counts parts of a symbolic size, and something other than the"
            " sum of a part's first iteration and the place in it is used",
            span=loop.span,
        )
    return Tiles(tuple(found), any(p != o + 1 for o, p in pairs.items()), body)


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


def _inner(o: int, chain: Sequence[Loop]) -> int:
    """The loop over the places in the parts that the o-th counts: what is added to their first
    iterations wherever these are.
    """
    first, size = _first(chain[o]), _size(chain[o])
    later = range(o + 1, len(chain))
    fit = {p for p in later if size and size.name in variables(chain[p].upper)}
    for e in (s for outside in _outside(chain[-1].body) for s in _sums(outside)):
        terms = _terms(e)
        if first in terms:
            fit &= {p for p in later if terms.get(Var(chain[p].var)) == terms[first]}
    if len(fit) == 1:
        return fit.pop()
    raise Refused(
        f"loop '{chain[o].var}' counts parts of a symbolic size, and no loop directly inside it"
        " goes through them",
        span=chain[o].span,
    )


def _pair(outer: Loop, inner: Loop) -> Uncut:
    """The loop that the two are parts of; it has all of its iterations once, from `lower` to
    `upper`.
    """
    size, first = _size(outer), _first(outer)
    assert size is not None and isinstance(outer.upper, Binary)
    extent = _plus(_plus(_terms(outer.upper.lhs), _terms(size), -1), {None: 1})
    below = [_terms(e) for e in _operands(BinaryOp.MIN, inner.upper)]
    above = [_terms(e) for e in _operands(BinaryOp.MAX, inner.lower)]
    if outer.lower == index(0) and _terms(size) in below and {} in above:
        # What bounds the place in a part by what is left from its first iteration bounds the sum.
        uppers = [_plus(e, _terms(first)) for e in below if e != _terms(size)]
        lowers = [_plus(e, _terms(first)) for e in above if e]
        loops, kinds = (outer.var, inner.var), (outer.kind, inner.kind)
        var = expr_to_text(add(first, Var(inner.var)))
        lower = _joint(BinaryOp.MAX, [{}, *lowers])
        if not uppers:
            return Uncut(var, loops, kinds, lower, _expr(extent), size, guarded=True)
        if extent in uppers:
            return Uncut(var, loops, kinds, lower, _joint(BinaryOp.MIN, uppers), size)
    raise Refused(
        f"loops '{outer.var}' and '{inner.var}' do not run over the parts of one loop",
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


# ---------------------------------------------------------------- sums


def _is_sum(node: Node) -> bool:
    sums = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
    match node:
        case Binary(op, _, _) if op in sums:
            return dtype_of(node) is INDEX
        case _:
            return False


def _outside(stmt: Stmt) -> Iterator[Expr]:
    """The expressions in loops' variables: what is in a block's body has names of its own."""
    if isinstance(stmt, Block):
        yield from (*stmt.bindings, stmt.predicate)
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _outside(child)
        elif isinstance(child, Expr):
            yield child


def _sums(node: Node) -> Iterator[Expr]:
    """The sums below that are no parts of others."""
    if isinstance(node, Binary) and _is_sum(node):
        yield node
        return
    for child in children(node):
        yield from _sums(child)


def _terms(e: Expr) -> Sum:
    match e:
        case Const(int() as value, _):
            return {None: int(value)} if value else {}
        case Binary(BinaryOp.ADD, a, b):
            return _plus(_terms(a), _terms(b), 1)
        case Binary(BinaryOp.SUB, a, b):
            return _plus(_terms(a), _terms(b), -1)
        case Binary(BinaryOp.MUL, a, Const(int() as factor)) | Binary(
            BinaryOp.MUL, Const(int() as factor), a
        ):
            return _plus({}, _terms(a), int(factor))
        case _:
            return {e: 1}


def _operands(op: BinaryOp, e: Expr) -> Iterator[Expr]:
    """What a minimum, or a maximum, is of."""
    if isinstance(e, Binary) and e.op is op:
        yield from _operands(op, e.lhs)
        yield from _operands(op, e.rhs)
    else:
        yield e


def _joint(op: BinaryOp, sums: Sequence[Sum]) -> Expr:
    """The least, or the greatest, of the sums."""
    return reduce(lambda a, b: Binary(op, a, b), map(_expr, sums))


def _plus(a: Sum, b: Sum, factor: int = 1) -> Sum:
    result = dict(a)
    for atom, c in b.items():
        result[atom] = result.get(atom, 0) + c * factor
    return {atom: c for atom, c in result.items() if c}


def _expr(terms: Sum) -> Expr:
    result: Expr = index(0)
    for atom, c in terms.items():
        result = add(result, index(c) if atom is None else mul(atom, c))
    return result


def _joined(stmt: Stmt, sums: Sequence[tuple[Expr, str, str]]) -> Stmt:
    """The statement with one variable for each sum of a part's first iteration and a place."""

    def go(node: Node) -> Node:
        if isinstance(node, Block):
            bindings = tuple(cast(Expr, go(b)) for b in node.bindings)
            return replace(node, bindings=bindings, predicate=cast(Expr, go(node.predicate)))
        if not isinstance(node, Binary) or not _is_sum(node):
            return map_children(node, go)
        terms = _terms(node)
        for first, place, whole in sums:
            c = terms.get(first, 0)
            if c and terms.get(Var(place)) == c:
                terms = _plus(_plus(terms, {first: 1, Var(place): 1}, -c), {Var(whole): c})
        return _expr({map_children(a, go) if a else a: c for a, c in terms.items()})

    return cast(Stmt, go(stmt))
