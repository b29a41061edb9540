"""Expressions as Python functions: one `lambda` a tree, in place of a call a node.

Input: expressions, the values of variables, and what computes loads and calls. Output: functions of
no arguments. Sums, differences and products of integers are wrapped around once, where they end:
Python's are exact, so that this is what wrapping each of them comes to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from .. import nodes as ir
from ..algebra import dtype_of
from ..types import Kind
from .evaluate import Value, binary, cast, range_of, scalar, unary, wrap

Thunk = Callable[[], Value]
Leaf = Callable[[ir.Load | ir.Call], Thunk]

_DEPTH = 24  # of a text; CPython takes 200 parentheses in one another
_NUMPYS = (Kind.FLOAT, Kind.COMPLEX)  # whose values are NumPy's, not Python's
_WRAPPED = {ir.BinaryOp.ADD: "+", ir.BinaryOp.SUB: "-", ir.BinaryOp.MUL: "*"}
_OF_NUMBERS = {**_WRAPPED, ir.BinaryOp.DIV: "/"}
_COMPARED = {
    ir.BinaryOp.EQ: "==",
    ir.BinaryOp.NE: "!=",
    ir.BinaryOp.LT: "<",
    ir.BinaryOp.LE: "<=",
    ir.BinaryOp.GT: ">",
    ir.BinaryOp.GE: ">=",
}
_DIVIDED = {ir.BinaryOp.FLOORDIV: "//", ir.BinaryOp.MOD: "%"}
_LAZY = {ir.BinaryOp.AND: "and", ir.BinaryOp.OR: "or"}
_CHOSEN = {ir.BinaryOp.MIN: "min", ir.BinaryOp.MAX: "max"}


def compiled(expr: ir.Expr, values: dict[str, Value], leaf: Leaf) -> Thunk:
    """The function that computes the expression's value now. leaf: that of a load or a call.

    Names and numbers, which are most of all, do without Python's compiler.
    """
    match expr:
        case ir.Var(name):
            return lambda: values[name]
        case ir.Const(value, dtype):
            constant = scalar(value, dtype)
            return lambda: constant
        case ir.Load() | ir.Call():
            return leaf(expr)
        case _:
            made = _Lambda(values, leaf)
            return made.function(made.text(expr))


def compiled_all(
    exprs: Sequence[ir.Expr], values: dict[str, Value], leaf: Leaf
) -> Callable[[], tuple[Value, ...]]:
    """The function that computes the values of all, in their order."""
    made = _Lambda(values, leaf)
    return made.function(f"({''.join(made.text(expr) + ', ' for expr in exprs)})")


@dataclass(frozen=True, slots=True)
class _Lambda:
    """Texts of one function. names: what they call what is no text."""

    values: dict[str, Value]
    leaf: Leaf
    names: dict[str, Any] = field(default_factory=dict)

    def function(self, text: str) -> Callable[[], Any]:
        names = {**self.names, "values": self.values, "min": min, "max": max}
        made: Callable[[], Any] = eval(f"lambda: {text}", names)
        return made

    def named(self, what: object) -> str:
        name = f"f{len(self.names)}"
        self.names[name] = what
        return name

    def text(self, expr: ir.Expr, depth: int = 0) -> str:
        if depth > _DEPTH:
            return f"{self.named(compiled(expr, self.values, self.leaf))}()"
        match expr:
            case ir.Var(name):
                return f"values[{name!r}]"
            case ir.Const(value, dtype):
                constant = scalar(value, dtype)
                return self.named(constant) if dtype.kind in _NUMPYS else f"({constant})"
            case ir.Load() | ir.Call():
                return f"{self.named(self.leaf(expr))}()"
            case ir.Select(condition, then, otherwise):
                c, x, y = (self.text(e, depth + 1) for e in (condition, then, otherwise))
                return f"({x} if {c} else {y})"
            case ir.Cast(dtype, operand):
                convert = self.named(cast(dtype_of(operand), dtype))
                return f"{convert}({self.text(operand, depth + 1)})"
            case ir.Unary(op, operand):
                apply = self.named(unary(op, dtype_of(operand)))
                return f"{apply}({self.text(operand, depth + 1)})"
            case ir.Binary():
                return self._binary(expr, depth)
            case _:
                assert_never(expr)

    def _binary(self, expr: ir.Binary, depth: int) -> str:
        op, dtype = expr.op, dtype_of(expr.lhs)
        if op in _WRAPPED and dtype.is_integer:
            low, high = range_of(dtype)
            exact, again = self._exact(expr, depth), self.named(wrap(dtype))
            return f"(x if {low} <= (x := {exact}) <= {high} else {again}(x))"
        a, b = self.text(expr.lhs, depth + 1), self.text(expr.rhs, depth + 1)
        if op in _LAZY:
            return f"({a} {_LAZY[op]} {b})"
        if op in _COMPARED:
            compared = f"({a} {_COMPARED[op]} {b})"
            return compared if dtype.is_integer else f"{self.named(bool)}{compared}"
        if op in _CHOSEN and dtype.is_integer:
            return f"{_CHOSEN[op]}({a}, {b})"
        if op in _DIVIDED and dtype.is_integer and _is_positive(expr.rhs):
            return f"({a} {_DIVIDED[op]} {b})"
        if op in _OF_NUMBERS and dtype.kind in _NUMPYS:
            return f"({a} {_OF_NUMBERS[op]} {b})"
        return f"{self.named(binary(op, dtype))}({a}, {b})"

    def _exact(self, expr: ir.Expr, depth: int) -> str:
        """A sum, difference or product of integers before it wraps; of others the text."""
        match expr:
            case ir.Binary(op, lhs, rhs) if op in _WRAPPED and depth <= _DEPTH:
                a, b = (self._exact(e, depth + 1) for e in (lhs, rhs))
                return f"({a} {_WRAPPED[op]} {b})"
            case _:
                return self.text(expr, depth)


def _is_positive(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and isinstance(expr.value, int) and expr.value > 0
