"""Products that are added become fused multiply-adds.

Input: a lowered kernel. Output: the kernel with `a*b + c`, `a*b - c` and `c - a*b` of floats and of
complex numbers as `fma`, at every place alike, so that the vector code, its tails and the scalar
code of one level give the same bits. A sum (Update) of products stays as it is: emission adds each
product fused. It runs after the last proof: that is about exact arithmetic, of which this changes
the rounding alone, as `poly.rewrites.equivalence` checks.
"""

from dataclasses import replace
from typing import cast

from ..ir import nodes as ir
from ..ir.algebra import dtype_of
from ..ir.walk import map_children


def contract(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=map_children(kernel, _visit).body)


def _visit(node: ir.Node) -> ir.Node:
    new = map_children(node, _visit)
    match new:
        case ir.Binary(ir.BinaryOp.ADD | ir.BinaryOp.SUB as op, lhs, rhs) if _rounds(new):
            return _fused(op, lhs, rhs) or new
        case ir.Update(ir.DefinedCombiner() as combiner):
            combined = cast(tuple[ir.Expr, ...], tuple(map(_visit, combiner.combined)))
            return replace(new, combiner=replace(combiner, combined=combined))
        case _:
            return new


def _rounds(expr: ir.Expr) -> bool:
    return dtype_of(expr).is_float or dtype_of(expr).is_complex


def _fused(op: ir.BinaryOp, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr | None:
    minus = op is ir.BinaryOp.SUB
    match lhs, rhs:
        case ir.Binary(ir.BinaryOp.MUL, a, b), c:
            return _fma(a, b, ir.Unary(ir.UnaryOp.NEG, c) if minus else c)
        case c, ir.Binary(ir.BinaryOp.MUL, a, b):
            return _fma(ir.Unary(ir.UnaryOp.NEG, a) if minus else a, b, c)
        case _:
            return None


def _fma(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Function.FMA, (a, b, c))
