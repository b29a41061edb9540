"""What is known of index variables at a place in a tree, and whether an inequality follows.

Input: bounds of the loops around, conditions, sizes. Output: True only where the inequality holds
for all values that the facts allow (False says nothing). It decides which guards and minima may be
dropped; the prover checks the lowered tree again.
"""

from dataclasses import dataclass
from math import gcd
from typing import assert_never, final

from ..nodes import Binary, BinaryOp, Const, Delinearize, Expr, If, Kernel, Loop, Var
from ..types import INDEX
from .inequalities import all_inequalities
from .linear import Linear, linear

_DEPTH = 24


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """order: variables, those known first (sizes) first. known: linear forms that are >= 0."""

    order: tuple[str, ...]
    known: tuple[Linear, ...]

    def inside(self, stmt: Loop | Delinearize | If) -> "Facts":
        """What holds in its body."""
        match stmt:
            case Loop():
                return self.loop(stmt)
            case Delinearize():
                return self.delinearize(stmt)
            case If():
                return self.where(stmt.condition)
            case _:
                assert_never(stmt)

    def loop(self, loop: Loop) -> "Facts":
        """Inside the loop."""
        v = linear(Var(loop.var))
        return Facts(
            (*self.order, loop.var),
            (*self.known, v - linear(loop.lower), linear(loop.upper) - v - 1),
        )

    def delinearize(self, node: Delinearize) -> "Facts":
        parts = [linear(Var(v)) for v in node.vars]
        tops = [linear(e) - p - 1 for e, p in zip(node.extents, parts, strict=True)]
        return Facts((*self.order, *node.vars), (*self.known, *parts, *tops))

    def where(self, condition: Expr) -> "Facts":
        return Facts(self.order, (*self.known, *all_inequalities(condition)))

    def holds(self, goal: Linear) -> bool:
        """Whether `goal` >= 0 follows."""
        return self._holds(goal, 1, _DEPTH)

    def _holds(self, goal: Linear, scale: int, depth: int) -> bool:
        """Whether goal > -scale: `goal` is at most `scale` times an integer that is to be >= 0."""
        if not goal.terms:
            return goal.constant > -scale
        if not depth:
            return False
        if scale == 1:  # an integer: what divides all terms rounds the constant down
            goal //= gcd(*goal.terms.values())
        atom, c = self._next(goal)
        match atom:
            case Binary(BinaryOp.MIN | BinaryOp.MAX as op, a, b):
                rest = goal.without(atom)
                either = (op is BinaryOp.MIN) is (c < 0)
                sides = (self._holds(rest + linear(s) * c, scale, depth - 1) for s in (a, b))
                return any(sides) if either else all(sides)
            case _:
                return any(
                    self._holds(goal * abs(k) - fact * abs(c), scale * abs(k), depth - 1)
                    for fact in self._about(atom)
                    if (k := fact.terms.get(atom, 0)) * c > 0
                )

    def _next(self, goal: Linear) -> tuple[Expr, int]:
        """The atom to be eliminated first: what is not a variable, then the innermost variable."""

        def rank(term: tuple[Expr, int]) -> int:
            atom = term[0]
            if not isinstance(atom, Var):
                return len(self.order)
            return self.order.index(atom.name) if atom.name in self.order else -1

        return max(goal.terms.items(), key=rank)

    def _about(self, atom: Expr) -> tuple[Linear, ...]:
        """Facts that bound the atom by what is known before it."""
        match atom:
            case Binary(BinaryOp.FLOORDIV, x, Const(int(divisor))) if divisor > 0:
                q = Linear({atom: divisor})
                return (linear(x) - q, q - linear(x) + (divisor - 1))
            case Binary(BinaryOp.MOD, _, Const(int(divisor))) if divisor > 0:
                r = Linear({atom: 1})
                return (r, r * -1 + (divisor - 1))
            case Var(name) if name in self.order:
                later, variable = set(self.order[self.order.index(name) + 1 :]), Var(name)
                return tuple(
                    f
                    for f in reversed(self.known)
                    if variable in f.terms and later.isdisjoint(f.variables())
                )
            case _:
                return ()


def of_kernel(kernel: Kernel) -> Facts:
    """Sizes are at least 0, and the kernel's assumptions hold."""
    scalars = (s.name for s in kernel.scalars if s.dtype is INDEX)
    facts = Facts((*kernel.dims, *scalars), tuple(linear(Var(d)) for d in kernel.dims))
    for assumption in kernel.assumptions:
        facts = facts.where(assumption)
    for phase in kernel.phases:
        value = linear(Var(phase.name))
        within = (value, value * -1 + (phase.size - 1))
        facts = Facts((*facts.order, phase.name), (*facts.known, *within))
    return facts
