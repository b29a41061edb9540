"""The algebraic proof of a law, over the real numbers.

Input: a law. Output: nothing; Unproved where a line of the proof does not hold. Of a set of terms
the state is what the law's meanings say. Proved are, for each form:

- the state of one term is what the law says of a term;
- the state of two sets together, which share no term and are not empty, is their states combined;
- the identity is what the meanings' reductions give for no terms and, combined with the state of
  any set from either side or with itself, changes nothing.

So the state of a set is its terms combined, in any order and any groups, with identities among
them. A sum is taken apart into sums of products of the term alone, times what does not depend on
the term: sums over the two sets add up to those over both. Where a part is a maximum, each case of
which set has the larger one is a proof of its own. Floats keep to the law's bound, which is tested.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ...errors import TilesmithError
from ...ir import nodes as ir
from ...ir.interpret.evaluate import identity_constants
from ...ir.text.print_expr import expr_to_text
from .law import TERM, Form, Law
from .real import (
    Atom,
    Opaque,
    Positive,
    Powers,
    Product,
    Real,
    atom,
    atoms,
    exponential,
    is_zero,
    number,
    product,
    reciprocal,
)

INFINITY = float("inf")
Value = Real | float  # a float is an infinity
State = Mapping[str, Value]


class Unproved(TilesmithError):
    """A law does not hold, or not by what the proof knows."""


@final
@dataclass(frozen=True, slots=True)
class _Sum:
    """The atom: the sum, over the terms of a set, of a product of powers of the term and of the
    exponential of one of its multiples.
    """

    of: str
    product: Product


@final
@dataclass(frozen=True, slots=True)
class _Extreme:
    """The atom: a part that is the largest or smallest of a set's terms."""

    of: str
    part: str


@final
@dataclass(frozen=True, slots=True)
class _Order:
    """Which of two extremes is larger: first - second has this sign."""

    first: Atom = None
    second: Atom = None
    sign: int = 0


def check(law: Law) -> None:
    """Raises Unproved unless the law holds."""
    for form in law.forms:
        _check_term(law, form)
        for order in _orders(form):
            _check_join(law, form, order)
        _check_identity(law, form)


def _check_term(law: Law, form: Form) -> None:
    one = {TERM: atom(TERM)}
    terms = {name: _real(value, one, _Order()) for name, value in form.terms.items()}
    alone = _state(form, lambda p: product(*p), lambda name, value: value, _Order())
    _require_equal(law, terms, alone, "of one term")


def _check_join(law: Law, form: Form, order: _Order) -> None:
    a, b = _of(form, "A", order), _of(form, "B", order)

    def larger(name: str, value: Value) -> Value:
        del value
        pair = _compared(a[name], b[name], order, form.meanings[name].combiner)
        return a[name] if pair else b[name]

    both = _state(form, lambda p: atom(_Sum("A", p)) + atom(_Sum("B", p)), larger, order)
    case = {-1: ", B's the larger", 0: ", both alike", 1: ", A's the larger"}[order.sign]
    where = f"of two sets together{case if order.first else ''}"
    _require_equal(law, _combined(law, a, b, order), both, where)


def _check_identity(law: Law, form: Form) -> None:
    none: dict[str, Value] = {}
    for name, constant in zip(law.combiner.parts, law.combiner.identity, strict=True):
        none[name] = _real(constant, {}, _Order())
        (empty,) = identity_constants(form.meanings[name].combiner, (constant.dtype,))
        if constant.value != empty.value:
            raise Unproved(f"law '{law.name}': part '{name}' of no terms is not {empty.value}")
    some = _of(form, "A", _Order())
    for a, b, wanted in ((none, some, some), (some, none, some), (none, none, none)):
        _require_equal(law, _combined(law, a, b, _Order()), wanted, "with the identity")


def _orders(form: Form) -> Iterator[_Order]:
    """The cases of which of two sets has the larger extreme."""
    extremes = [
        n for n, m in form.meanings.items() if m.combiner in (ir.Combiner.MAX, ir.Combiner.MIN)
    ]
    match extremes:
        case []:
            yield _Order()
        case [part]:
            for sign in (-1, 0, 1):
                yield _Order(_Extreme("A", part), _Extreme("B", part), sign)
        case _:
            raise Unproved("a law with several extremes is not known how to prove")


def _compared(a: Value, b: Value, order: _Order, combiner: ir.Combiner) -> bool:
    """Whether the extreme of both is the first one."""
    sign = _sign(a, b, order)
    return sign >= 0 if combiner is ir.Combiner.MAX else sign <= 0


# ---------------------------------------------------------------- states


def _of(form: Form, which: str, order: _Order) -> State:
    """The state of a set. Where two extremes are alike, they are one number."""

    def extreme(name: str, value: Value) -> Value:
        del value
        found = _Extreme(which, name)
        return atom(order.first if order.sign == 0 and found == order.second else found)

    return _state(form, lambda p: atom(_Sum(which, p)), extreme, order)


def _state(
    form: Form,
    sums: Callable[[Product], Real],
    extremes: Callable[[str, Value], Value],
    order: _Order,
) -> State:
    """The parts of a set, by its sums and extremes."""
    state: dict[str, Value] = {}
    for name, meaning in form.meanings.items():
        value = _real(meaning.value, {TERM: atom(TERM), **state}, order)
        match meaning.combiner:
            case ir.Combiner.SUM if isinstance(value, Real):
                state[name] = _summed(value, sums)
            case ir.Combiner.MAX | ir.Combiner.MIN:
                state[name] = extremes(name, value)
            case _:
                raise Unproved(f"'{name}' is neither a sum nor an extreme")
    return state


def _summed(value: Real, sums: Callable[[Product], Real]) -> Real:
    """The sum of a value over the terms."""
    total = number(0)
    for (powers, exponent), factor in value.products:
        own, rest = _split(powers)
        grown: list[tuple[Powers, Fraction]] = []
        fixed: list[tuple[Powers, Fraction]] = []
        for inner, share in exponent:
            mine, others = _split(inner)
            if mine and others:
                raise Unproved("an exponential mixes the term with a result")
            (grown if mine else fixed).append((inner, share))
        outside = product(rest, frozenset(fixed))
        total += number(factor) * outside * sums((own, frozenset(grown)))
    return total


def _split(powers: Powers) -> tuple[Powers, Powers]:
    """The powers of the term, and the others."""
    own = frozenset(p for p in powers if p[0] == TERM)
    rest = powers - own
    if TERM in atoms(product(rest, frozenset())):
        raise Unproved("the term is in what the proof does not look into")
    return own, rest


def _combined(law: Law, a: State, b: State, order: _Order) -> State:
    known = {f"{owner}.{name}": v for owner, s in (("a", a), ("b", b)) for name, v in s.items()}
    for name, value in zip(law.combiner.parts, law.combiner.combined, strict=True):
        known[f"c.{name}"] = _real(value, known, order)
    return {name: known[f"c.{name}"] for name in law.combiner.parts}


def _require_equal(law: Law, got: State, wanted: State, where: str) -> None:
    for name, value in wanted.items():
        other = got[name]
        if isinstance(value, Real) and isinstance(other, Real):
            equal = is_zero(value - other, _positive(value - other))
        else:
            equal = value == other
        if not equal:
            raise Unproved(f"law '{law.name}': part '{name}' {where} is not what it means")


# ---------------------------------------------------------------- values


def _positive(value: Real) -> Positive:
    """The atoms of a value that are above 0: sums of exponentials, and of 1, over sets that are not
    empty.
    """
    sums = (a for a in atoms(value) if isinstance(a, _Sum))
    return Positive(frozenset(a for a in sums if not a.product[0]))


def _real(expr: ir.Expr, known: Mapping[str, Value], order: _Order) -> Value:
    """The value of an expression. Raises Unproved where the proof cannot follow it."""

    def real(e: ir.Expr) -> Real:
        value = _real(e, known, order)
        if isinstance(value, float):
            raise Unproved(f"`{expr_to_text(expr)}` computes with an infinity")
        return value

    match expr:
        case ir.Var(name):
            return known[name]
        case ir.Const(value):
            given = float(value.real)
            return given if abs(given) == INFINITY else number(given)
        case ir.Select(condition, then, otherwise):
            return _real(then if _holds(condition, known, order) else otherwise, known, order)
        case ir.Unary(ir.UnaryOp.NEG, operand):
            inner = _real(operand, known, order)
            return -inner if isinstance(inner, float) else number(-1) * inner
        case ir.Binary(ir.BinaryOp.MIN | ir.BinaryOp.MAX as op, lhs, rhs):
            a, b = _real(lhs, known, order), _real(rhs, known, order)
            first = _sign(a, b, order) <= 0
            return a if first is (op is ir.BinaryOp.MIN) else b
        case ir.Binary(ir.BinaryOp.ADD, lhs, rhs):
            return real(lhs) + real(rhs)
        case ir.Binary(ir.BinaryOp.SUB, lhs, rhs):
            return real(lhs) - real(rhs)
        case ir.Binary(ir.BinaryOp.MUL, lhs, rhs):
            return real(lhs) * real(rhs)
        case ir.Binary(ir.BinaryOp.DIV, lhs, rhs):
            return real(lhs) * _inverse(real(rhs), expr)
        case ir.Call(ir.Function.EXP, (argument,)):
            if (result := exponential(real(argument))) is not None:
                return result
        case ir.Call(ir.Function.ABS, (argument,)):
            return atom(Opaque("abs", (real(argument),)))
    raise Unproved(f"`{expr_to_text(expr)}` is nothing that the proof follows")


def _inverse(divisor: Real, expr: ir.Expr) -> Real:
    if not _positive(divisor)(divisor):
        raise Unproved(f"the divisor of `{expr_to_text(expr)}` is not known to be above 0")
    return reciprocal(divisor)


def _holds(condition: ir.Expr, known: Mapping[str, Value], order: _Order) -> bool:
    match condition:
        case ir.Binary(ir.BinaryOp.AND, lhs, rhs):
            return _holds(lhs, known, order) and _holds(rhs, known, order)
        case ir.Binary(ir.BinaryOp.OR, lhs, rhs):
            return _holds(lhs, known, order) or _holds(rhs, known, order)
        case ir.Binary(op, lhs, rhs) if op in _SIGNS:
            return _sign(_real(lhs, known, order), _real(rhs, known, order), order) in _SIGNS[op]
        case _:
            raise Unproved(f"`{expr_to_text(condition)}` is nothing that the proof decides")


_SIGNS = {
    ir.BinaryOp.EQ: (0,), ir.BinaryOp.NE: (-1, 1), ir.BinaryOp.LT: (-1,), ir.BinaryOp.LE: (-1, 0),
    ir.BinaryOp.GT: (1,), ir.BinaryOp.GE: (0, 1),
}  # fmt: skip


def _sign(a: Value, b: Value, order: _Order) -> int:
    """The sign of a - b. Raises Unproved where it is not known."""
    if isinstance(a, float) or isinstance(b, float):
        x, y = (v if isinstance(v, float) else 0.0 for v in (a, b))
        return (x > y) - (x < y)
    difference = a - b
    positive = _positive(difference)
    if is_zero(difference, positive):
        return 0
    for sign in (1, -1):
        signed = number(sign) * difference
        if positive(signed):
            return sign
        if order.first is not None and signed == atom(order.first) - atom(order.second):
            return sign * order.sign
    raise Unproved("a comparison is not known to hold or not")
