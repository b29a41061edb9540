"""Expressions as Python text: the part of `printer` that `parse_expr` reads back."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from ..algebra import bare_type, result_of
from ..expressions import (
    COMPARISONS,
    PREDICATES,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    External,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from ..types import INDEX, DType, Kind
from ..walk import map_children
from .script_names import from_script, to_script

# Python's own precedences; what binds tighter has the larger number.
_SELECT, _OR, _AND, _NOT, _COMPARE = 0, 1, 2, 3, 4
_UNARY, _ATOM = 11, 12
_PRECEDENCE = {
    BinaryOp.OR: _OR,
    BinaryOp.AND: _AND,
    BinaryOp.BITOR: 5,
    BinaryOp.BITXOR: 6,
    BinaryOp.BITAND: 7,
    BinaryOp.SHL: 8,
    BinaryOp.SHR: 8,
    BinaryOp.ADD: 9,
    BinaryOp.SUB: 9,
    BinaryOp.MUL: 10,
    BinaryOp.DIV: 10,
    BinaryOp.FLOORDIV: 10,
    BinaryOp.MOD: 10,
} | dict.fromkeys(COMPARISONS, _COMPARE)


def expr_to_text(expr: Expr) -> str:
    """An expression, for messages."""
    return expr_text(expr, None)


def spec_text(expr: Expr) -> str:
    """An expression of sizes as a spec has it, where `in_` is no name that has to change."""
    return expr_to_text(_before_script(expr))


def _before_script(expr: Expr) -> Expr:
    if isinstance(expr, Var):
        return replace(expr, name=from_script(expr.name))
    return map_children(expr, _before_script)


def own_type(expr: Expr) -> DType | None:
    """The type that the text of an expression fixes by itself: None for constants alone.

    A constant whose type is that of its neighbours, or of its context, needs no type in the text.
    """
    match expr:
        case Var(_, dtype) | Cast(dtype, _) | Load(_, _, dtype):
            return dtype
        case Const(_, dtype):
            return dtype if dtype is DType.BOOL else None
        case Unary(UnaryOp.NOT, _):
            return DType.BOOL
        case Call(function, _) if function in PREDICATES:
            return DType.BOOL
        case Unary(_, operand):
            return own_type(operand)
        case Binary(op, lhs, rhs):
            is_bool = op in COMPARISONS or op in (BinaryOp.AND, BinaryOp.OR)
            return DType.BOOL if is_bool else first_type(lhs, rhs)
        case Select(_, then, otherwise):
            return first_type(then, otherwise)
        case Call(function, args):
            if isinstance(function, External):
                return function.result
            of = first_type(*args)
            return of and result_of(function, of)
        case _:
            assert_never(expr)


def first_type(*exprs: Expr) -> DType | None:
    return next((t for e in exprs if (t := own_type(e))), None)


def expr_text(expr: Expr, context: DType | None, floor: int = _SELECT) -> str:
    """The text, in parentheses where it binds less tightly than `floor`."""
    text, precedence = _render(expr, context)
    return text if precedence >= floor else f"({text})"


def _render(expr: Expr, context: DType | None) -> tuple[str, int]:
    match expr:
        case Var(name, _):
            return to_script(name), _ATOM
        case Const():
            return _const(expr, context)
        case Unary(UnaryOp.NOT, operand):
            return f"not {expr_text(operand, DType.BOOL, _NOT)}", _NOT
        case Unary(op, operand):
            return f"{op.value}{_alone(operand, context, op is UnaryOp.NEG)}", _UNARY
        case Binary():
            return _binary(expr, context)
        case Select(condition, then, otherwise):
            inner = first_type(then, otherwise) or context
            parts = (
                expr_text(then, inner, _OR),
                expr_text(condition, DType.BOOL, _OR),
                expr_text(otherwise, inner),
            )
            return "{} if {} else {}".format(*parts), _SELECT
        case Cast(dtype, operand):
            return f"{dtype.value}({_alone(operand, None, True, _SELECT)})", _ATOM
        case Call(function, args):
            if isinstance(function, External):
                pairs = zip(args, function.parameters, strict=True)
                return f"{function.name}({', '.join(expr_text(a, t) for a, t in pairs)})", _ATOM
            inner = first_type(*args) or bare_type(function, context)
            return f"{function.value}({list_text(args, inner)})", _ATOM
        case Load(buffer, indices, _):
            return place_text(buffer, indices), _ATOM
        case _:
            assert_never(expr)


def _binary(expr: Binary, context: DType | None) -> tuple[str, int]:
    op, lhs, rhs = expr.op, expr.lhs, expr.rhs
    inner: DType | None
    if op in (BinaryOp.AND, BinaryOp.OR):
        inner = DType.BOOL
    else:
        inner = first_type(lhs, rhs) or (None if op in COMPARISONS else context)
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        return f"{op.value}({list_text((lhs, rhs), inner)})", _ATOM
    level = _PRECEDENCE[op]
    # All associate to the left, but for comparisons: Python would chain them.
    left = expr_text(lhs, inner, level + 1 if level == _COMPARE else level)
    return f"{left} {op.value} {expr_text(rhs, inner, level + 1)}", level


def _alone(operand: Expr, context: DType | None, typed: bool, floor: int = _UNARY) -> str:
    """The one operand of a sign or a cast: a constant there needs its type, since `-1` and
    `float32(1)` are themselves constants.
    """
    if typed and isinstance(operand, Const):
        return _typed_const(operand)
    return expr_text(operand, context, floor)


def _const(const: Const, context: DType | None) -> tuple[str, int]:
    plain = _plain_const(const)
    natural = DType.FLOAT64 if const.dtype.is_float else INDEX
    if plain is None or (const.dtype is not DType.BOOL and (context or natural) is not const.dtype):
        return _typed_const(const), _ATOM
    return plain, _UNARY if plain.startswith("-") else _ATOM


def _plain_const(const: Const) -> str | None:
    """A literal of the constant's kind of number, where Python has one."""
    match const.dtype.kind, const.value:
        case Kind.BOOL, value:
            return str(bool(value))
        case Kind.SIGNED | Kind.UNSIGNED, int(value):
            return str(int(value))
        case Kind.FLOAT, int(value) | float(value) if math.isfinite(value):
            return repr(float(value))
        case _:
            return None


def _typed_const(const: Const) -> str:
    plain = _plain_const(const)
    if const.dtype is DType.BOOL and plain:
        return plain
    if plain:
        return f"{const.dtype.value}({plain})"
    value = complex(const.value)
    parts = (value.real, value.imag) if const.dtype.kind is Kind.COMPLEX else (value.real,)
    texts = (repr(part) if math.isfinite(part) else f'"{part}"' for part in parts)
    return f"{const.dtype.value}({', '.join(texts)})"


def list_text(exprs: Iterable[Expr], context: DType | None) -> str:
    return ", ".join(expr_text(e, context) for e in exprs)


def place_text(buffer: str, indices: tuple[Expr, ...]) -> str:
    return f"{to_script(buffer)}[{list_text(indices, INDEX) or '()'}]"


def tuple_text(texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
