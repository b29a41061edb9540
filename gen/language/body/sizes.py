"""What is known of sizes in every call that runs a kernel, and what follows for shapes.

Input: dims, integer scalars, named sizes, and conditions that calls establish. Output: whether a
size is never negative, and whether two are one. The prover is told the same conditions, and proves
what is made of the answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import final

from ...ir import algebra, walk
from ...ir import nodes as ir
from ...ir.index.facts import Facts, of_sizes, with_products
from ...ir.index.linear import linear
from ...ir.nodes import BinaryOp

_MOST_PARTS = 100
"""Of a named size written out: each may hold those before it many times."""

_MOST_CONDITIONS = 24
"""That count for shapes: what follows from many takes long to find out, or that nothing does."""


@final
@dataclass(frozen=True, slots=True)
class Sizes:
    """dims: named sizes included. axes: of the arguments, those that are expressions or named
    sizes. facts: without `values`. values: what named sizes come to, in terms of others.
    """

    dims: tuple[str, ...]
    axes: tuple[ir.Expr, ...]
    facts: Facts
    values: Mapping[str, ir.Expr]

    def never_negative(self, size: ir.Expr) -> bool:
        written = walk.substitute(size, self.values)
        return self.about(written).holds(linear(written))

    def same(self, a: ir.Expr, b: ir.Expr) -> bool:
        """Whether the two are equal in every call, as far as can be told."""
        first, second = (walk.substitute(size, self.values) for size in (a, b))
        facts, difference = self.about(first, second), linear(first) - linear(second)
        return facts.holds(difference) and facts.holds(difference * -1)

    def shared(self, size: ir.Expr) -> ir.Expr:
        """The size as an argument has it, so that loops over both have bounds that are one."""
        if isinstance(size, ir.Var) and size.name not in self.values:
            return size
        form = linear(walk.substitute(size, self.values))
        axes = (a for a in self.axes if linear(walk.substitute(a, self.values)) == form)
        return next(axes, size)

    def about(self, *exprs: ir.Expr) -> Facts:
        """The facts, and those about products in the expressions."""
        return with_products(self.facts, exprs)


def sizes_of(
    dims: tuple[str, ...],
    scalars: tuple[str, ...],
    named: Mapping[str, ir.Expr | None],
    axes: tuple[ir.Expr, ...],
    conditions: Iterable[ir.Expr],
) -> Sizes:
    """What follows where dims, named sizes and arguments' axes are at least 0, and the conditions
    hold. named: with their values, where proofs know them.
    """
    values: dict[str, ir.Expr] = {}
    for name, value in named.items():
        if value is not None and _is_short(value):
            written = walk.substitute(value, values)
            values |= {name: written} if _is_short(written) else {}
    facts = replace(of_sizes((*dims, *named)), order=(*dims, *scalars, *named))
    at_least = (ir.Binary(BinaryOp.GE, x, algebra.index(0)) for x in (*values.values(), *axes))
    for condition in islice(chain(conditions, at_least), _MOST_CONDITIONS):
        facts = facts.where(walk.substitute(condition, values))
    return Sizes((*dims, *named), axes, facts, values)


def _is_short(expr: ir.Expr) -> bool:
    return len(list(islice(walk.walk(expr), _MOST_PARTS + 1))) <= _MOST_PARTS
