"""What is known of index variables at a place in a tree, and whether an inequality follows.

Input: bounds of the loops around, conditions, sizes. Output: True only where the inequality holds
for all values that the facts allow (False says nothing). It decides which guards and minima may be
dropped; the prover checks the lowered tree again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import final

from ..algebra import conjuncts, floordiv
from ..nodes import Binary, BinaryOp, Const, Delinearize, Expr, If, Kernel, Loop, Stmt, Var
from ..types import INDEX
from ..walk import map_nested, walk
from .inequalities import all_inequalities
from .linear import Linear, linear

_DEPTH = 24
_CHOICE = 3  # of one side of a min or max: twice the work for every one


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """order: variables, those known first (sizes) first. known: linear forms that are >= 0.
    remainders: of variables, each by what divisor and what is left, as `m % 128 == 0` says.
    _bounds: the facts about a variable that were asked for before.
    """

    order: tuple[str, ...]
    known: tuple[Linear, ...]
    remainders: tuple[tuple[str, int, int], ...] = ()
    _bounds: dict[tuple[str, bool], tuple[Linear, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def inside(self, stmt: Stmt) -> "Facts":
        """What holds of the statements directly inside the statement."""
        match stmt:
            case Loop(var, lower, upper):
                value, order = linear(Var(var)), (*self.order, var)
                begun = replace(self, order=order, known=(*self.known, value - linear(lower)))
                return begun.knowing(begun._decided(linear(upper) - 1 - value))
            case Delinearize(names, extents):
                facts = self
                for name, extent in zip(names, extents, strict=True):
                    facts = facts.within(name, Linear(), linear(extent) - 1)
                return facts
            case If(condition):
                return self.where(condition)
            case _:
                return self

    def _decided(self, form: Linear) -> Linear:
        """What is at least 0 where the form is: a part of it where that is a max, and the other
        part is below 0. In range(k, max(n - 1, k)) nothing is but what is below n - 1.
        """
        for a, b in _larger_of(form):
            for part, other in ((a, b), (b, a)):
                if self.holds(other * -1 - 1):
                    return self._decided(part)
        return form

    def within(self, name: str, first: Linear, last: Linear) -> "Facts":
        """With a variable more, from `first` to `last`."""
        value = linear(Var(name))
        known = (*self.known, value - first, last - value)
        return replace(self, order=(*self.order, name), known=known)

    def where(self, condition: Expr) -> "Facts":
        facts = self.knowing(*map(self._decided, all_inequalities(condition)))
        left = tuple(r for part in conjuncts(condition) if (r := _remainder(part)))
        return replace(facts, remainders=(*self.remainders, *left)) if left else facts

    def knowing(self, *forms: Linear) -> "Facts":
        """With forms more that are >= 0."""
        return replace(self, known=(*self.known, *forms)) if forms else self

    def holds(self, goal: Linear) -> bool:
        """Whether `goal` >= 0 follows."""
        return self._holds(goal, 1, _DEPTH)

    def _holds(self, goal: Linear, scale: int, depth: int) -> bool:
        """Whether goal > -scale: `goal` is at most `scale` times an integer that is to be >= 0."""
        if not goal.terms:
            return goal.constant > -scale
        if depth <= 0:
            return False
        if scale == 1:  # an integer: what divides all terms rounds the constant down
            goal //= gcd(*goal.terms.values())
        atom, c = self._next(goal)
        match atom:
            case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
                enough = any if (op is BinaryOp.MAX) is (c > 0) else all
                rest = goal.without(atom)
                return enough(
                    self._holds(rest + linear(side) * c, scale, depth - _CHOICE) for side in (a, b)
                )
            case _:
                return any(
                    self._holds(goal.combined(abs(k), fact, -abs(c)), scale * abs(k), depth - 1)
                    for fact in self._about(atom, c)
                    if (k := fact.terms.get(atom, 0)) * c > 0
                )

    def _of_earlier(self, name: str, c: int) -> Iterator[Linear]:
        """Facts that bound `c` of the variable from below, by what is known before it; the last
        first.
        """
        later, atom = set(self.order[self.order.index(name) + 1 :]), Var(name)
        below = (f for f in reversed(self.known) if f.terms.get(atom, 0) * c > 0)
        return (f for f in below if later.isdisjoint(f.variables()))

    def _left(self, form: Linear, divisor: int) -> tuple[int, int]:
        """The least and the most that dividing the form leaves."""
        left = form.constant
        for atom, c in form.terms.items():
            if c % divisor:
                told = (
                    r
                    for name, by, r in self.remainders
                    if atom == Var(name) and c * by % divisor == 0
                )
                known = next(told, None)
                if known is None:
                    return 0, divisor - 1
                left += c * known
        return left % divisor, left % divisor

    def _next(self, goal: Linear) -> tuple[Expr, int]:
        """The atom to be eliminated first: what is not a variable, then the innermost variable."""

        def rank(term: tuple[Expr, int]) -> int:
            atom = term[0]
            if not isinstance(atom, Var):
                return len(self.order)
            return self.order.index(atom.name) if atom.name in self.order else -1

        return max(goal.terms.items(), key=rank)

    def _about(self, atom: Expr, c: int) -> Iterable[Linear]:
        """Facts that bound `c * atom` from below by what is known before it, and others."""
        match atom:
            case Binary(BinaryOp.FLOORDIV, x, Const(int(divisor))) if divisor > 0:
                q = Linear({atom: divisor})
                least, most = self._left(linear(x), int(divisor))
                return (linear(x) - q - least, q - linear(x) + most)
            case Binary(BinaryOp.MOD, x, Const(int(divisor))) if divisor > 0:
                r = Linear({atom: 1})
                least, most = self._left(linear(x), int(divisor))
                return (r - least, r * -1 + most)
            case Var(name) if name in self.order:
                key = name, c > 0
                if key not in self._bounds:
                    self._bounds[key] = tuple(self._of_earlier(name, c))
                return self._bounds[key]
            case Binary(BinaryOp.MUL):  # of which `of_sizes` knows
                return tuple(f for f in self.known if [*f.terms] == [atom])
            case _:
                return ()


def _larger_of(form: Linear) -> Iterator[tuple[Linear, Linear]]:
    """Two forms of which the form is the larger one."""
    for atom, c in form.terms.items():
        rest = form.without(atom)
        match atom:
            case Binary(BinaryOp.MAX, a, b) if c == 1:
                yield rest + linear(a), rest + linear(b)
            case Binary(BinaryOp.FLOORDIV, x, Const(int(divisor))) if c == 1 and divisor > 0:
                for one, other in _larger_of(linear(x)):
                    yield rest + _floor(one, divisor), rest + _floor(other, divisor)
            case _:
                pass


def _floor(form: Linear, divisor: int) -> Linear:
    return linear(floordiv(form.expr(), divisor))


def _remainder(condition: Expr) -> tuple[str, int, int] | None:
    """What `m % 128 == 0` says: the variable, the divisor, and what is left."""
    match condition:
        case Binary(
            BinaryOp.EQ, Binary(BinaryOp.MOD, Var(name), Const(int(divisor))), Const(int(left))
        ) if divisor > 0:
            return name, int(divisor), int(left)
        case _:
            return None


def map_inside(stmt: Stmt, facts: Facts, f: Callable[[Stmt, Facts], Stmt]) -> Stmt:
    """The statement with `f` applied to each directly inside, and to what holds there."""
    inside = facts.inside(stmt)
    return map_nested(stmt, lambda s: f(s, inside))


def of_kernel(kernel: Kernel) -> Facts:
    """Sizes are at least 0, and the kernel's assumptions hold."""
    scalars = (s.name for s in kernel.scalars if s.dtype is INDEX)
    facts = replace(of_sizes(kernel.dims), order=(*kernel.dims, *scalars))
    for assumption in kernel.assumptions:
        facts = facts.where(assumption)
    for phase in kernel.phases:
        facts = facts.within(phase.name, Linear(), Linear({}, phase.size - 1))
    return facts


def of_sizes(names: Collection[str], exprs: Iterable[Expr] = ()) -> Facts:
    """All of them are at least 0, and products of what is, as far as the expressions hold any.

    At a place in a kernel nothing is known of products: proofs over sets know none of them either,
    and could not tell that what is left out by them changes nothing.
    """
    return with_products(Facts(tuple(names), tuple(linear(Var(name)) for name in names)), exprs)


def with_products(facts: Facts, exprs: Iterable[Expr]) -> Facts:
    """The facts, and that products in the expressions are at least 0 where both factors are."""
    for node in reversed([node for expr in exprs for node in walk(expr)]):
        match node:
            case Binary(BinaryOp.MUL, a, b) if facts.holds(linear(a)) and facts.holds(linear(b)):
                facts = facts.knowing(linear(node))
    return facts
