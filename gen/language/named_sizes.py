"""Named sizes: what a call works out of dims and scalars, and the body knows as a dim.

Input: the spec's `sizes`, syntax. Output: a `NamedSize` each. Invariant: a value is over core dims,
scalars and the names before it, so that a call can work the sizes out in order.
"""

from collections.abc import Collection, Mapping

from ..errors import Span, SpecError
from ..ir import algebra, walk
from ..ir import nodes as ir
from ..ir.interpret import sizes
from ..ir.nodes import BinaryOp, UnaryOp
from ..ir.types import INDEX, DType
from . import yaml
from .body.indices import ARITHMETIC, index_expr
from .model import KernelSpec, NamedSize
from .shapes import integers
from .syntax import grammar
from .syntax import nodes as syntax

_REAL = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL})


def read_sizes(
    entries: tuple[tuple[yaml.Scalar, yaml.Node], ...],
    dims: tuple[str, ...],
    scalars: Mapping[str, str],
) -> tuple[NamedSize, ...]:
    """The named sizes in their order. scalars: the element types of the scalars.

    Raises SpecError.
    """
    found: list[NamedSize] = []
    for key, node in entries:
        if not isinstance(node, yaml.Scalar):
            hint = 'write it in quotes, as in "(n - k) // stride + 1"'
            raise SpecError(f"the size '{key.text}' must be an expression", node.span, hint)
        expr = grammar.expression(node, grammar.Words(frozenset({INDEX.value})))
        names = (*dims, *integers(scalars), *(size.name for size in found))
        found.append(NamedSize(key.text, _value(expr, names, scalars), key.span))
    return tuple(found)


def check_whole(sizes: tuple[NamedSize, ...], loop_dim: str | None, span: Span) -> None:
    """Raises SpecError where one is the loop dim, or depends on it. span: the signature's."""
    for size in sizes:
        if size.name == loop_dim:
            raise SpecError(
                f"the leading axes must be one dim of its own, not the size '{loop_dim}'", span
            )
        if loop_dim in walk.variables(size.value):
            raise SpecError(
                f"the size '{size.name}' is of the loop dim '{loop_dim}'",
                size.span,
                "a call may run it in parts; an axis of the signature is whole",
            )


def _value(expr: syntax.Expr, names: Collection[str], scalars: Mapping[str, str]) -> ir.Expr:
    match expr:
        case syntax.Name(name) if name in scalars and name not in names:
            raise SpecError(
                f"the scalar '{name}' is {scalars[name]}: sizes are of {INDEX.value}", expr.span
            )
        case syntax.Apply(_, (operand,)):
            return ir.Cast(INDEX, _real(operand, scalars), span=expr.span)
        case syntax.Unary(UnaryOp.NEG, operand):
            return algebra.sub(0, _value(operand, names, scalars))
        case syntax.Binary(op, lhs, rhs) if op in ARITHMETIC:
            a, b = _value(lhs, names, scalars), _value(rhs, names, scalars)
            if op in (BinaryOp.FLOORDIV, BinaryOp.MOD):
                _check_divisor(b, rhs)
            return algebra.simplify(ir.Binary(op, a, b, span=expr.span))
        case _:
            return index_expr(expr, names)


def _check_divisor(divisor: ir.Expr, expr: syntax.Expr) -> None:
    if isinstance(divisor, ir.Const) and int(divisor.value.real) <= 0:
        raise SpecError("sizes are divided by positive numbers alone", expr.span)


def _real(expr: syntax.Expr, scalars: Mapping[str, str]) -> ir.Expr:
    """What `int64` may be taken of: an expression over float64 scalars and numbers."""
    dtype = DType.FLOAT64
    match expr:
        case syntax.Name(name) if scalars.get(name) == dtype.value:
            return ir.Var(name, dtype, span=expr.span)
        case syntax.Literal(int() | float() as number) if not isinstance(number, bool):
            return ir.Const(float(number), dtype, span=expr.span)
        case syntax.Binary(op, lhs, rhs) if op in _REAL:
            return ir.Binary(op, _real(lhs, scalars), _real(rhs, scalars), span=expr.span)
        case _:
            raise SpecError(
                f"{INDEX.value} is of a sum or product of {dtype.value} scalars and numbers here",
                expr.span,
            )


def with_named(spec: KernelSpec, values: Mapping[str, float]) -> dict[str, float]:
    """The values of dims and scalars, and those of the named sizes. Raises SizeError."""
    known = dict(values)
    for size in spec.sizes:
        known[size.name] = sizes.value(size.value, known)
    return known
