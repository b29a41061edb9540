"""Sizes of arrays: which dims a shape tells, and what an expression over dims comes to.

Input: INDEX expressions over dims and integer scalars, as shapes and assumptions have them.
"""

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import cast, final

from ..nodes import Binary, BinaryOp, Cast, Const, Expr, Var
from ..text.parse_expr import Names, expression
from ..types import INDEX, DType
from ..walk import variables
from .evaluate import binary

Shapes = Iterable[tuple[tuple[Expr, ...], tuple[int, ...]]]
"""Shapes in expressions, each with the sizes that an array has."""


@final
@dataclass(frozen=True, slots=True)
class Told:
    """The dim that an axis tells, which is `times`, 1 or more, of it and `more`, or less."""

    dim: str
    times: int = 1
    more: int = 0

    @property
    def is_plain(self) -> bool:
        return (self.times, self.more) == (1, 0)


def told(extent: Expr) -> Told | None:
    """What an axis of this extent tells, of `h`, `4 * h`, `h + 1` and `4 * h - 1` a dim."""
    match extent:
        case Binary(BinaryOp.ADD, most, Const(int(more))):
            pass
        case Binary(BinaryOp.SUB, most, Const(int(less))):
            more = -less
        case most:
            more = 0
    match most:
        case Var(name):
            return Told(name, 1, more)
        case Binary(BinaryOp.MUL, Var(name), Const(int(times))) if times >= 1:
            return Told(name, times, more)
        case Binary(BinaryOp.MUL, Const(int(times)), Var(name)) if times >= 1:
            return Told(name, times, more)
        case _:
            return None


def found(shapes: Shapes, dims: Collection[str]) -> dict[str, int]:
    """The dims that the shapes tell: by an axis that is the dim, else by one that has it times a
    number, and a number more or less. The first axis counts; whether the others agree, or that one
    is a whole number of times as long, is not asked.
    """
    axes = [pair for shape, sizes in shapes for pair in zip(shape, sizes, strict=True)]
    sizes: dict[str, int] = {}
    for plain in (True, False):
        for extent, size in axes:
            tells = told(extent)
            if tells is not None and tells.dim in dims and plain is tells.is_plain:
                sizes.setdefault(tells.dim, (size - tells.more) // tells.times)
    return sizes


class SizeError(ValueError):
    """A size that cannot be worked out."""


def value(expr: Expr, values: Mapping[str, float]) -> int:
    """What the expression comes to; 0 or 1 for a comparison. Its variables must have values.

    Raises SizeError where a divisor is not positive, or a number is not an int64.
    """
    match expr:
        case Var(name):
            return int(values[name])
        case Const(int(number)):
            return number
        case Cast(_, operand):
            return _whole(_real(operand, values))
        case Binary(BinaryOp.FLOORDIV | BinaryOp.MOD, _, rhs) if value(rhs, values) <= 0:
            raise SizeError("a divisor is not positive")
        case Binary(op, lhs, rhs) if op in _EXACT:
            return _fitting(_EXACT[op](value(lhs, values), value(rhs, values)))
        case Binary(op, lhs, rhs):
            return int(cast(int, binary(op, INDEX)(value(lhs, values), value(rhs, values))))
        case _:
            raise AssertionError("sizes have no other form")


_EXACT: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
}
"""What an interpreted kernel wraps: a call refuses such sizes, since proofs know none."""


def _fitting(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise SizeError(f"{number} is not an int64")
    return number


def _real(expr: Expr, values: Mapping[str, float]) -> float:
    """What an expression of float64 comes to."""
    match expr:
        case Var(name):
            return float(values[name])
        case Const(bool() | int() | float() as number):
            return float(number)
        case Binary(BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL as op, lhs, rhs):
            return float(
                cast(float, binary(op, DType.FLOAT64)(_real(lhs, values), _real(rhs, values)))
            )
        case _:
            raise AssertionError("sizes have no other form")


def _whole(number: float) -> int:
    """The number without its fraction, as C casts it."""
    if not -(2.0**63) < number < 2.0**63:
        raise SizeError(f"{number} is not an int64")
    return int(number)


def given(expr: Expr, values: Mapping[str, float]) -> str:
    """The expression's variables with their values, for messages: `k = 5, n = 3`."""
    names = (name for name in values if name in variables(expr))
    return ", ".join(f"{name} = {values[name]}" for name in names)


def from_text(text: str, scalars: Mapping[str, DType] | None = None) -> Expr:
    """The expression that `printer.expr_to_text` printed. scalars: those that are no INDEX.

    Raises ScriptError and SyntaxError.
    """
    names = Names("<size>", (text,), scalars=scalars or {})
    return expression(ast.parse(text, mode="eval").body, INDEX, names)
