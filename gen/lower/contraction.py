"""Products that are added become fused multiply-adds.

Input: a lowered kernel. Output: the kernel with `a*b + c`, `a*b - c` and `c - a*b` of floats and of
complex numbers as `fma`, at every place alike, so that the vector code, its tails and the scalar
code of one level give the same bits. A product that some place needs rounded is fused at none:
`exp(x*s - max(x*s))` is at most 1, and with one of the two rounded it may be infinite. A sum
(Update) of products stays as it is: emission adds each product fused. A kernel whose spec asks for
no contraction stays as it is, and emission adds its products rounded. It runs after the last proof:
that is about exact arithmetic, of which this changes the rounding alone, as
`poly.rewrites.equivalence` checks.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from ..ir import nodes as ir
from ..ir.algebra import dtype_of, index
from ..ir.types import INDEX
from ..ir.walk import children, map_children, walk


def contract(kernel: ir.Kernel) -> ir.Kernel:
    if kernel.contraction is ir.Contraction.NONE:
        return kernel
    rounded = frozenset(_anywhere(product) for product in _rounded(kernel.body))

    def visit(node: ir.Node) -> ir.Node:
        match node:
            case ir.Binary() if (product := _product(node)) and _anywhere(product) not in rounded:
                return _fused(map_children(node, visit))
            case ir.Update(ir.DefinedCombiner() as combiner):
                combined = cast(tuple[ir.Expr, ...], tuple(map(visit, combiner.combined)))
                new = map_children(node, visit)
                return replace(new, combiner=replace(combiner, combined=combined))
            case _:
                return map_children(node, visit)

    return replace(kernel, body=map_children(kernel.body, visit))


def _is_product(expr: ir.Node) -> bool:
    return isinstance(expr, ir.Binary) and expr.op is ir.BinaryOp.MUL


def _product(expr: ir.Binary) -> ir.Expr | None:
    """The operand of a sum or difference that may be fused with it."""
    if expr.op not in (ir.BinaryOp.ADD, ir.BinaryOp.SUB):
        return None
    if not (dtype_of(expr).is_float or dtype_of(expr).is_complex):
        return None
    return next(filter(_is_product, (expr.lhs, expr.rhs)), None)


def _rounded(body: ir.Stmt) -> Iterator[ir.Expr]:
    """The products that stand where none is fused."""
    for node in walk(body):
        below = [child for child in children(node) if _is_product(child)]
        if isinstance(node, ir.Binary) and _product(node):
            below = below[1:]
        elif isinstance(node, ir.Update) and node.combiner is ir.Combiner.SUM:
            below = []
        yield from cast(list[ir.Expr], below)


def _anywhere(node: ir.Node) -> ir.Node:
    """The expression without the places that it reads: what it is in each iteration."""
    match node:
        case ir.Load():
            return replace(node, indices=())
        case _ if isinstance(node, ir.Expr) and dtype_of(node) is INDEX:
            return index(0)
        case _:
            return map_children(node, _anywhere)


def _fused(expr: ir.Binary) -> ir.Expr:
    minus = expr.op is ir.BinaryOp.SUB
    match expr.lhs, expr.rhs:
        case ir.Binary(ir.BinaryOp.MUL, a, b), c:
            return _fma(a, b, ir.Unary(ir.UnaryOp.NEG, c) if minus else c)
        case c, ir.Binary(ir.BinaryOp.MUL, a, b):
            return _fma(ir.Unary(ir.UnaryOp.NEG, a) if minus else a, b, c)
        case _:
            return expr


def _fma(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Function.FMA, (a, b, c))
