"""The rules that expressions obey: names are known, operands are of types that operators take.

Input: an expression and the names in scope. Output: its type, or an IRError naming the expression.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, assert_never

from ...errors import TilesmithError
from .. import nodes as ir
from ..algebra import result_of
from ..text.print_expr import expr_to_text
from ..types import INDEX, DType, Kind


class IRError(TilesmithError):
    """A tree that breaks a rule of the IR."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables' types and the buffers that an expression may use."""

    variables: Mapping[str, DType]
    buffers: Mapping[str, ir.Buffer]


_INTEGERS = frozenset({Kind.SIGNED, Kind.UNSIGNED})
_REALS = _INTEGERS | {Kind.FLOAT}
_NUMBERS = _REALS | {Kind.COMPLEX}
_BITS = _INTEGERS | {Kind.BOOL}
_ALL = frozenset(Kind)
_OPERANDS = {
    ir.BinaryOp.ADD: _NUMBERS,
    ir.BinaryOp.SUB: _NUMBERS,
    ir.BinaryOp.MUL: _NUMBERS,
    ir.BinaryOp.DIV: frozenset({Kind.FLOAT, Kind.COMPLEX}),
    ir.BinaryOp.FLOORDIV: _REALS,
    ir.BinaryOp.MOD: _REALS,
    ir.BinaryOp.MIN: _REALS | {Kind.BOOL},
    ir.BinaryOp.MAX: _REALS | {Kind.BOOL},
    ir.BinaryOp.EQ: _ALL,
    ir.BinaryOp.NE: _ALL,
    ir.BinaryOp.LT: _REALS | {Kind.BOOL},
    ir.BinaryOp.LE: _REALS | {Kind.BOOL},
    ir.BinaryOp.GT: _REALS | {Kind.BOOL},
    ir.BinaryOp.GE: _REALS | {Kind.BOOL},
    ir.BinaryOp.AND: frozenset({Kind.BOOL}),
    ir.BinaryOp.OR: frozenset({Kind.BOOL}),
    ir.BinaryOp.BITAND: _BITS,
    ir.BinaryOp.BITOR: _BITS,
    ir.BinaryOp.BITXOR: _BITS,
    ir.BinaryOp.SHL: _INTEGERS,
    ir.BinaryOp.SHR: _INTEGERS,
}
_UNARY_OPERANDS = {
    ir.UnaryOp.NEG: _NUMBERS,
    ir.UnaryOp.NOT: frozenset({Kind.BOOL}),
    ir.UnaryOp.INVERT: _BITS,
}


_ARITY = {ir.Function.FMA: 3} | dict.fromkeys(
    (
        ir.Function.COMPLEX,
        ir.Function.POW,
        ir.Function.COPYSIGN,
        ir.Function.ATAN2,
        ir.Function.HYPOT,
        ir.Function.FMOD,
    ),
    2,
)
_OF_COMPLEX_ALONE = frozenset({ir.Function.REAL, ir.Function.IMAG, ir.Function.CONJ})
_OF_COMPLEX = (
    _OF_COMPLEX_ALONE
    | ir.PREDICATES
    | {ir.Function.ABS, ir.Function.EXP, ir.Function.FMA, ir.Function.LOG, ir.Function.SQRT}
)


def refuse(node: ir.Node, message: str) -> NoReturn:
    raise IRError(message, node.span)


def expect(expr: ir.Expr, expected: DType, what: str, scope: Environment) -> None:
    """Refuses an expression that is not of the expected type; `what` names its role."""
    dtype = check(expr, scope)
    if dtype is not expected:
        text = expr_to_text(expr)
        refuse(expr, f"{what} is '{text}' of type {dtype.value}, not {expected.value}")


def check(expr: ir.Expr, scope: Environment) -> DType:
    """The expression's type, after checking all of it."""
    match expr:
        case ir.Var(name, dtype):
            _check_variable(expr, name, dtype, scope)
            return dtype
        case ir.Const():
            return _check_constant(expr)
        case ir.Unary(op, operand):
            dtype = check(operand, scope)
            _check_kind(expr, op, dtype, _UNARY_OPERANDS[op])
            return dtype
        case ir.Binary(op, lhs, rhs):
            dtype = _one_type(expr, (lhs, rhs), scope)
            _check_kind(expr, op, dtype, _OPERANDS[op])
            return DType.BOOL if op in ir.COMPARISONS else dtype
        case ir.Select(condition, then, otherwise):
            expect(condition, DType.BOOL, "a condition", scope)
            return _one_type(expr, (then, otherwise), scope)
        case ir.Cast(dtype, operand):
            source = check(operand, scope)
            if source.kind is Kind.COMPLEX and dtype.kind not in (Kind.COMPLEX, Kind.BOOL):
                refuse(expr, f"'{expr_to_text(expr)}' drops an imaginary part")
            _check_storage(expr, source, dtype)
            return dtype
        case ir.Call(function, args):
            return _check_call(expr, function, args, scope)
        case ir.Load(buffer, indices, dtype):
            declared = check_place(expr, buffer, indices, scope).dtype
            if dtype is not declared:
                refuse(expr, f"a load of '{buffer}' is {dtype.value}, not {declared.value}")
            return dtype
        case _:
            assert_never(expr)


def check_place(
    node: ir.Node, buffer: str, indices: tuple[ir.Expr, ...], scope: Environment
) -> ir.Buffer:
    """The buffer that is read or written at `indices`."""
    declared = scope.buffers.get(buffer)
    if declared is None:
        refuse(node, f"no buffer '{buffer}' is in scope")
    if len(indices) != len(declared.shape):
        refuse(node, f"'{buffer}' has {len(declared.shape)} axes, but {len(indices)} indices")
    for i in indices:
        expect(i, INDEX, f"an index of '{buffer}'", scope)
    return declared


def _check_variable(expr: ir.Var, name: str, dtype: DType, scope: Environment) -> None:
    declared = scope.variables.get(name)
    if declared is None:
        refuse(expr, f"no variable '{name}' is bound here")
    if dtype is not declared:
        refuse(expr, f"variable '{name}' is {declared.value}, not {dtype.value}")


def _check_constant(expr: ir.Const) -> DType:
    dtype, value = expr.dtype, expr.value
    match dtype.kind:
        case Kind.BOOL:
            fits = isinstance(value, bool)
        case Kind.SIGNED | Kind.UNSIGNED:
            lowest = -(1 << (dtype.bits - 1)) if dtype.kind is Kind.SIGNED else 0
            fits = type(value) is int and lowest <= value < lowest + (1 << dtype.bits)
        case Kind.FLOAT:
            fits = type(value) in (int, float)
        case Kind.COMPLEX:
            fits = type(value) in (int, float, complex)
        case kind:
            assert_never(kind)
    if not fits:
        refuse(expr, f"the constant {value!r} does not fit {dtype.value}")
    return dtype


def _check_storage(expr: ir.Cast, source: DType, target: DType) -> None:
    """What only stores is read as the type that is computed in, and rounded to from floats alone:
    so that a value is rounded once.
    """
    narrows = target.only_stores and (source.only_stores or not source.is_float)
    if narrows or (source.only_stores and target is not source.computed):
        refuse(expr, f"no cast leads from {source.value} to {target.value} at once")


def _check_kind(
    expr: ir.Expr, op: ir.UnaryOp | ir.BinaryOp, dtype: DType, kinds: frozenset[Kind]
) -> None:
    if dtype.kind not in kinds or dtype.only_stores:
        refuse(expr, f"'{op.value}' takes no {dtype.value}: '{expr_to_text(expr)}'")


def _one_type(expr: ir.Expr, operands: tuple[ir.Expr, ...], scope: Environment) -> DType:
    dtypes = [check(operand, scope) for operand in operands]
    if any(dtype is not dtypes[0] for dtype in dtypes):
        found = " and ".join(dtype.value for dtype in dtypes)
        refuse(expr, f"the operands of '{expr_to_text(expr)}' are {found}")
    return dtypes[0]


def _check_call(
    expr: ir.Expr,
    function: ir.Function | ir.External,
    args: tuple[ir.Expr, ...],
    scope: Environment,
) -> DType:
    if isinstance(function, ir.External):
        if len(args) != len(function.parameters):
            refuse(expr, f"'{function.name}' takes {len(function.parameters)} arguments")
        for arg, dtype in zip(args, function.parameters, strict=True):
            expect(arg, dtype, f"an argument of '{function.name}'", scope)
        return function.result
    arity = _ARITY.get(function, 1)
    if len(args) != arity:
        refuse(expr, f"'{function.value}' takes {arity} arguments, not {len(args)}")
    dtype = _one_type(expr, args, scope)
    if dtype.only_stores:
        refuse(expr, f"'{function.value}' takes floats, not {dtype.value}")
    if dtype.is_complex and function not in _OF_COMPLEX:
        refuse(expr, f"'{function.value}' takes floats, not {dtype.value}")
    if not dtype.is_complex and function in _OF_COMPLEX_ALONE:
        refuse(expr, f"'{function.value}' takes complex numbers, not {dtype.value}")
    if not dtype.is_float and not dtype.is_complex:
        refuse(expr, f"'{function.value}' takes floats, not {dtype.value}")
    if function is ir.Function.COMPLEX and dtype.complex is None:
        refuse(expr, f"no complex number has parts of {dtype.value}")
    return result_of(function, dtype)
