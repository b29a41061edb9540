"""The expressions of an IR script.

Input: Python syntax trees and the names that are known where they stand. Output: IR expressions.
The type of a bare constant is that of its neighbours, else of its context, else INDEX or float64:
the same rule as in `ir.text.printer`, read off the syntax.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from ...errors import Span, TilesmithError
from .. import nodes as ir
from ..algebra import bare_type, result_of
from ..types import INDEX, DType, Kind
from .script_names import from_script


class ScriptError(TilesmithError):
    """An IR script that cannot be read."""


@dataclass(frozen=True, slots=True)
class Names:
    """What is known at a place of the script: names of arrays, scalars, loops and combiners."""

    path: str
    lines: tuple[str, ...]
    dtypes: Mapping[str, DType] = field(default_factory=dict)
    scalars: Mapping[str, DType] = field(default_factory=dict)
    bounds: Mapping[str, tuple[ir.Expr, ir.Expr]] = field(default_factory=dict)
    combiners: Mapping[str, ir.AnyCombiner] = field(default_factory=lambda: COMBINERS)
    externals: Mapping[str, ir.External] = field(default_factory=dict)

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        whole = node.end_lineno == node.lineno and node.end_col_offset is not None
        length = node.end_col_offset - node.col_offset if whole and node.end_col_offset else 1
        line = self.lines[node.lineno - 1]
        return Span(self.path, node.lineno, node.col_offset + 1, length, line)

    def refuse(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, message: str) -> NoReturn:
        raise ScriptError(message, self.span(node))


DTYPES = {dtype.value: dtype for dtype in DType}
COMBINERS: Mapping[str, ir.AnyCombiner] = {combiner.value: combiner for combiner in ir.Combiner}
_FUNCTIONS = {function.value: function for function in ir.Function}
_OPERATORS: dict[type[ast.operator | ast.cmpop | ast.boolop], ir.BinaryOp] = {
    ast.Add: ir.BinaryOp.ADD,
    ast.Sub: ir.BinaryOp.SUB,
    ast.Mult: ir.BinaryOp.MUL,
    ast.Div: ir.BinaryOp.DIV,
    ast.FloorDiv: ir.BinaryOp.FLOORDIV,
    ast.Mod: ir.BinaryOp.MOD,
    ast.BitAnd: ir.BinaryOp.BITAND,
    ast.BitOr: ir.BinaryOp.BITOR,
    ast.BitXor: ir.BinaryOp.BITXOR,
    ast.LShift: ir.BinaryOp.SHL,
    ast.RShift: ir.BinaryOp.SHR,
    ast.Eq: ir.BinaryOp.EQ,
    ast.NotEq: ir.BinaryOp.NE,
    ast.Lt: ir.BinaryOp.LT,
    ast.LtE: ir.BinaryOp.LE,
    ast.Gt: ir.BinaryOp.GT,
    ast.GtE: ir.BinaryOp.GE,
    ast.And: ir.BinaryOp.AND,
    ast.Or: ir.BinaryOp.OR,
}
_SIGNS: dict[type[ast.unaryop], ir.UnaryOp] = {
    ast.USub: ir.UnaryOp.NEG,
    ast.Invert: ir.UnaryOp.INVERT,
    ast.Not: ir.UnaryOp.NOT,
}
_EXTREMES = {"min": ir.BinaryOp.MIN, "max": ir.BinaryOp.MAX}


def dotted(node: ast.expr, names: Names) -> str:
    """A name, of parts joined by dots."""
    match node:
        case ast.Name(name):
            return from_script(name)
        case ast.Attribute(value, attribute):
            return f"{dotted(value, names)}.{from_script(attribute)}"
        case _:
            names.refuse(node, f"expected a name, got '{ast.unparse(node)}'")


def items(node: ast.expr) -> list[ast.expr]:
    """The parts of a tuple; anything else is one part."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def expression(node: ast.expr, context: DType | None, names: Names) -> ir.Expr:
    """The expression, its bare constants of type `context` where nothing nearer fixes it."""
    at = names.span(node)
    if (value := literal_number(node)) is not None:
        return _literal(node, value, context, names)
    match node:
        case ast.Constant(bool(truth)):
            return ir.Const(truth, DType.BOOL, span=at)
        case ast.Name() | ast.Attribute():
            name = dotted(node, names)
            return ir.Var(name, names.scalars.get(name, INDEX), span=at)
        case ast.UnaryOp(op, operand) if type(op) in _SIGNS:
            inner = DType.BOOL if isinstance(op, ast.Not) else context
            return ir.Unary(_SIGNS[type(op)], expression(operand, inner, names), span=at)
        case ast.BoolOp(op, first_and_rest):
            first, *rest = (expression(v, DType.BOOL, names) for v in first_and_rest)
            for operand_ in rest:
                first = ir.Binary(_OPERATORS[type(op)], first, operand_, span=at)
            return first
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            return _binary(_OPERATORS[type(op)], left, right, context, names, at)
        case ast.Compare(left, [op], [right]) if type(op) in _OPERATORS:
            return _binary(_OPERATORS[type(op)], left, right, None, names, at)
        case ast.IfExp(test, body, orelse):
            inner_type = _first_type((body, orelse), names) or context
            condition = expression(test, DType.BOOL, names)
            then = expression(body, inner_type, names)
            return ir.Select(condition, then, expression(orelse, inner_type, names), span=at)
        case ast.Subscript(array, indices):
            name = dotted(array, names)
            return ir.Load(name, place(indices, names), _dtype(node, name, names), span=at)
        case ast.Call(ast.Name(name), args, []):
            return _call(node, name, args, context, names)
        case _:
            names.refuse(node, f"'{ast.unparse(node)}' is not an expression of the IR")


def place(indices: ast.expr, names: Names) -> tuple[ir.Expr, ...]:
    return tuple(expression(i, INDEX, names) for i in items(indices))


def _dtype(node: ast.expr, buffer: str, names: Names) -> DType:
    if buffer not in names.dtypes:
        names.refuse(node, f"no array '{buffer}' is declared here")
    return names.dtypes[buffer]


def _binary(
    op: ir.BinaryOp,
    left: ast.expr,
    right: ast.expr,
    context: DType | None,
    names: Names,
    at: Span,
) -> ir.Binary:
    inner = _first_type((left, right), names) or context
    return ir.Binary(op, expression(left, inner, names), expression(right, inner, names), span=at)


def _call(
    node: ast.Call, name: str, args: list[ast.expr], context: DType | None, names: Names
) -> ir.Expr:
    at = names.span(node)
    if (dtype := DTYPES.get(name)) and _is_typed_constant(node):
        return _typed_constant(node, dtype, names)
    if dtype and len(args) == 1:
        return ir.Cast(dtype, expression(args[0], None, names), span=at)
    if name in _EXTREMES and len(args) == 2:
        return _binary(_EXTREMES[name], args[0], args[1], context, names, at)
    if external := names.externals.get(name):
        pairs = zip(args, external.parameters, strict=False)
        values = tuple(expression(a, dtype, names) for a, dtype in pairs)
        return ir.Call(external, values, span=at)
    if function := _FUNCTIONS.get(name):
        inner = _first_type(args, names) or bare_type(function, context)
        return ir.Call(function, tuple(expression(a, inner, names) for a in args), span=at)
    names.refuse(node, f"'{ast.unparse(node)}' is not an expression of the IR")


# ---------------------------------------------------------------- constants


def literal_number(node: ast.expr) -> int | float | None:
    """The value of a literal, which may have a sign."""
    match node:
        case ast.Constant(int(value) | float(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value) | float(value))):
            return None if isinstance(value, bool) else -value
        case _:
            return None


def _literal(node: ast.expr, value: float, context: DType | None, names: Names) -> ir.Const:
    """A bare literal; an integer may stand for a float."""
    dtype = context or (DType.FLOAT64 if isinstance(value, float) else INDEX)
    number: int | float | complex = value
    match dtype.kind:
        case Kind.SIGNED | Kind.UNSIGNED if isinstance(value, int):
            pass
        case Kind.FLOAT:
            number = float(value)
        case Kind.COMPLEX:
            number = complex(value)
        case _:
            names.refuse(node, f"'{ast.unparse(node)}' stands where {dtype.value} is expected")
    return ir.Const(number, dtype, span=names.span(node))


def _part(node: ast.expr) -> int | float | None:
    """A number, or the text of one that has no literal: "inf", "-inf", "nan"."""
    match node:
        case ast.Constant("inf" | "-inf" | "nan" as text):
            return float(text)
        case _:
            return literal_number(node)


def _is_typed_constant(node: ast.Call) -> bool:
    return len(node.args) in (1, 2) and all(_part(a) is not None for a in node.args)


def _typed_constant(node: ast.Call, dtype: DType, names: Names) -> ir.Const:
    """`float32(2.0)`, `int8(-1)`, `float64("inf")`, `complex64(1.0, 2.0)`."""
    parts = [part for a in node.args if (part := _part(a)) is not None]
    if len(parts) == 2:
        if dtype.kind is not Kind.COMPLEX:
            names.refuse(node, f"a constant of type {dtype.value} has one part, not two")
        return ir.Const(complex(parts[0], parts[1]), dtype, span=names.span(node))
    return _literal(node, parts[0], dtype, names)


# ---------------------------------------------------------------- types of neighbours


def _first_type(nodes: tuple[ast.expr, ...] | list[ast.expr], names: Names) -> DType | None:
    return next((t for n in nodes if (t := _own_type(n, names))), None)


def _own_type(node: ast.expr, names: Names) -> DType | None:
    """As `printer.own_type`: None for constants other than truth values."""
    if literal_number(node) is not None:
        return None
    match node:
        case ast.Constant(bool()) | ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not(), _):
            return DType.BOOL
        case ast.Name() | ast.Attribute():
            return names.scalars.get(dotted(node, names), INDEX)
        case ast.UnaryOp(_, operand):
            return _own_type(operand, names)
        case ast.BinOp(left, _, right):
            return _first_type((left, right), names)
        case ast.IfExp(_, body, orelse):
            return _first_type((body, orelse), names)
        case ast.Subscript(value, _):
            return _dtype(node, dotted(value, names), names)
        case ast.Call(ast.Name(name), args, _):
            if name in DTYPES:
                return None if _is_typed_constant(node) else DTYPES[name]
            if name in names.externals:
                return names.externals[name].result
            if _FUNCTIONS.get(name) in ir.PREDICATES:
                return DType.BOOL
            of = _first_type(args, names)
            return result_of(_FUNCTIONS[name], of) if of and name in _FUNCTIONS else of
        case _:
            return None
