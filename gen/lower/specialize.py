"""A kernel under a variant's condition: dims and scalars that the condition fixes are numbers.

Input: the plain schedule, and a condition such as `stride == 1 and kw == 3`. Output: the plain
schedule in which `i * stride` is `i` and a loop over kw has 3 iterations, which assumes the
condition, and what named sizes come to where that is affine now, and without the clamps that these
make superfluous. Invariant: for sizes and scalars under which the condition holds, both compute the
same, block for block. Shapes of arguments stay as the spec has them: calls give dims by name.
"""

from collections.abc import Collection
from dataclasses import replace

from ..ir import algebra, walk
from ..ir import nodes as ir
from ..ir.index.facts import Facts, of_kernel
from ..ir.index.linear import constant, linear
from ..ir.index.simplify import resolve
from ..ir.nodes import BinaryOp
from ..language.model import NamedSize
from ..language.shapes import definitions, is_affine
from ..poly.rewrites.equivalence import check_unchanged


def where(kernel: ir.Kernel, condition: ir.Expr, sizes: tuple[NamedSize, ...]) -> ir.Kernel:
    """The kernel under the condition. sizes: the spec's."""
    names = {*kernel.dims, *(s.name for s in kernel.scalars)}
    fixed = _fixed(condition, names, sizes)
    if not fixed:
        return replace(kernel, assumptions=(*kernel.assumptions, condition))
    known = definitions(
        replace(s, value=walk.substitute(s.value, fixed)) for s in sizes if not is_affine(s.value)
    )
    assumed = replace(kernel, assumptions=(*kernel.assumptions, condition, *known))
    start = replace(assumed, body=walk.substitute(kernel.body, fixed))
    settled = replace(start, body=_settled(start.body, of_kernel(start)))
    check_unchanged(start, settled)  # all is proved against this one
    return settled


def _fixed(
    condition: ir.Expr, names: Collection[str], sizes: tuple[NamedSize, ...]
) -> dict[str, ir.Expr]:
    """The numbers that the condition says dims and scalars are, and that named sizes come to by
    these: a call works them out of the same values, or raises where they are below 0.
    """
    fixed: dict[str, ir.Expr] = {}
    for part in algebra.conjuncts(condition):
        match part:
            case ir.Binary(BinaryOp.EQ, ir.Var(name), ir.Const() as number) if name in names:
                fixed[name] = number
            case ir.Binary(BinaryOp.EQ, ir.Const() as number, ir.Var(name)) if name in names:
                fixed[name] = number
    for size in sizes:
        value = constant(walk.substitute(size.value, fixed))
        if value is not None and value >= 0:
            fixed.setdefault(size.name, algebra.index(value))
    return fixed


def _settled(stmt: ir.Stmt, facts: Facts) -> ir.Stmt:
    """The tree with 0 for iteration variables that have no other value, and indices resolved."""
    if not isinstance(stmt, ir.Block):
        return walk.map_nested(stmt, lambda s: _settled(s, facts))
    only: dict[str, ir.Expr] = {}
    for v in stmt.iters:
        if (v.lower, v.upper) == (algebra.index(0), algebra.index(1)):
            only[v.name] = algebra.index(0)
        facts = facts.within(v.name, linear(v.lower), linear(v.upper) - 1)
    return replace(stmt, body=_resolved(walk.substitute(stmt.body, only), facts))


def _resolved(node: walk.N, facts: Facts) -> walk.N:
    """The node with the indices of its loads resolved."""
    new = walk.map_children(node, lambda child: _resolved(child, facts))
    if isinstance(new, ir.Load):
        return replace(new, indices=tuple(resolve(i, facts) for i in new.indices))
    return new
