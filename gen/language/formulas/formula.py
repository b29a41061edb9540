"""The formulas of a spec, oracle and accuracy: Python expressions over named NumPy and SciPy
functions, read with `ast` and run by the small interpreter here.

Input: a YAML scalar, the values of names. Output: a NumPy value. Invariant: only functions that
`calls` lists are ever looked up, only in the place of a called function, and no attribute of a
value is but a few of arrays; every value is a number, an array of numbers or a tuple of these. So a
formula computes and does nothing else; how long it takes, and how much memory, is not bounded.
"""

import ast
import importlib
import operator
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy

from ...errors import Span, SpecError
from ...ir import storage
from .. import yaml
from ..syntax import grammar
from . import calls

MAX_EXPONENT = 64
MAX_BITS = 64  # of Python's integers, which would grow without bound

ATTRIBUTES = frozenset({"T", "mT", "real", "imag", "shape", "ndim", "size"})
CONSTANTS = frozenset({"newaxis", "inf", "nan", "pi", "e"})  # of numpy

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip

FAILURES: tuple[type[Exception], ...] = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, ImportError, LookupError),
    *(MemoryError, OSError, RuntimeError, TypeError, ValueError, Warning),
)
"""What functions of NumPy, SciPy and scikit-image raise."""


def check(
    scalar: yaml.Scalar,
    names: Collection[str],
    functions: Collection[str],
    words: grammar.Words = grammar.NO_WORDS,
) -> None:
    """Refuses what `evaluate` would not run: unknown names and functions, other syntax."""
    place, tree = grammar.parse(scalar, "eval", words)
    assert isinstance(tree, ast.Expression)
    _check(tree.body, place, names, functions)


def span(scalar: yaml.Scalar) -> Span:
    """The place of the whole formula. Raises SpecError where it is none."""
    place, tree = grammar.parse(scalar, "eval")
    assert isinstance(tree, ast.Expression)
    return place.span(tree.body)


def names_in(scalar: yaml.Scalar) -> frozenset[str]:
    """The names that a formula mentions, modules and functions included."""
    _, tree = grammar.parse(scalar, "eval")
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def evaluate(
    scalar: yaml.Scalar,
    values: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
    words: grammar.Words = grammar.NO_WORDS,
) -> Any:
    """The formula's value over named `values`. Raises SpecError."""
    return prepared(scalar, values, functions, words)()


def prepared(
    scalar: yaml.Scalar,
    values: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
    words: grammar.Words = grammar.NO_WORDS,
) -> Callable[[], Any]:
    """`evaluate`, read and checked once and run at each call. Raises SpecError, as the calls do."""
    check(scalar, values.keys(), functions.keys(), words)
    place, tree = grammar.parse(scalar, "eval", words)
    assert isinstance(tree, ast.Expression)
    body, evaluator = tree.body, _Evaluator(place, values, functions)
    return lambda: evaluator.value(body)


# ---------------------------------------------------------------- checking


def _check(
    node: ast.expr,
    place: grammar.Positions,
    names: Collection[str],
    functions: Collection[str],
    texts: bool = False,
) -> None:
    """texts: whether the node may be a text, as some functions' arguments may."""
    inside: list[ast.expr | None]
    match node:
        case ast.Name(name):
            if name not in names:
                message = f"unknown name '{name[:64]}'"
                raise SpecError(message, place.span(node), yaml.hint(name, names))
            return
        case ast.Constant(bool() | int() | float() | complex() | None as value):
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                raise SpecError("the integer does not fit in 64 bits", place.span(node))
            return
        case ast.Constant(str()):
            if not texts:
                raise SpecError("a formula cannot have a text as its value", place.span(node))
            return
        case ast.Call(function):
            chain = _chain(function)
            calls.check(node, chain, place, functions)
            for name, value in calls.arguments(node, calls.SIGNATURES[calls.known_as(chain)]):
                _check(value, place, names, functions, name in calls.TEXTS)
            return
        case ast.Attribute(value, name) if name in ATTRIBUTES:
            inside = [value]
        case ast.Attribute(ast.Name("np" | "numpy"), name) if name in CONSTANTS:
            return
        case ast.Subscript(value, index):
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            inside = [value, *(item for item in items if not _is_ellipsis(item))]
        case ast.Slice(lower, upper, step):
            inside = [lower, upper, step]
        case ast.Tuple(elements) | ast.List(elements):
            for element in elements:
                _check(element, place, names, functions, texts)
            return
        case ast.BinOp(lhs, op, rhs) if type(op) in _BINARY:
            inside = [lhs, rhs]
        case ast.UnaryOp(op, operand) if type(op) in _UNARY:
            inside = [operand]
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
            inside = [left, right]
        case ast.IfExp(test, then, otherwise):
            inside = [test, then, otherwise]
        case _:
            raise SpecError("this is not part of a formula", place.span(node))
    for part in inside:
        if part is not None:
            _check(part, place, names, functions)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _chain(node: ast.expr) -> str:
    """`np.linalg.norm` as text; empty for what is not a chain of names."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, name):
            start = _chain(value)
            return f"{start}.{name}" if start else ""
        case _:
            return ""


# ---------------------------------------------------------------- evaluating


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Runs a checked tree."""

    place: grammar.Positions
    values: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]

    def value(self, node: ast.expr) -> Any:
        """The node's value: numbers, whatever it is. Raises SpecError for all that goes wrong."""
        try:
            found = self.found(node)
        except SpecError:
            raise
        except FAILURES + _of_fortran() as error:
            message = f"this fails: {error or type(error).__name__}".partition("\n")[0]
            raise SpecError(message, self.place.span(node)) from error
        if not isinstance(node, ast.Constant | ast.Name | ast.Slice) and not _are_numbers(found):
            raise SpecError("this gives no numbers", self.place.span(node))
        return found

    def found(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(name):
                return self.values[name]
            case ast.Constant(value):
                return value
            case ast.Call(function, args, keywords):
                called = self.function(function)
                named = {k.arg: self.value(k.value) for k in keywords if k.arg}
                return called(*(self.value(arg) for arg in args), **named)
            case ast.Attribute(ast.Name("np" | "numpy"), name) if name in CONSTANTS:
                return getattr(numpy, name)
            case ast.Attribute(value, name):
                return getattr(numpy.asarray(self.value(value)), name)
            case ast.Subscript(value, index):
                return self.value(value)[self.value(index)]
            case ast.Slice(lower, upper, step):
                return slice(*(part and self.value(part) for part in (lower, upper, step)))
            case ast.Tuple(elements):
                return tuple(self.value(e) for e in elements)
            case ast.List(elements):
                return [self.value(e) for e in elements]
            case ast.BinOp(lhs, op, rhs):
                return self.binary(op, self.number(lhs), self.number(rhs), node)
            case ast.UnaryOp(op, operand):
                return _UNARY[type(op)](self.number(operand))
            case ast.Compare(left, [op], [right]):
                return _COMPARE[type(op)](self.number(left), self.number(right))
            case ast.IfExp(test, then, otherwise):
                return self.value(then if self.number(test) else otherwise)
            case _:
                raise SpecError("this is not part of a formula", self.place.span(node))

    def number(self, node: ast.expr) -> Any:
        """A number or array: a list times an integer would be memory without bound."""
        value = self.value(node)
        if isinstance(value, str | list | tuple):
            raise SpecError("this is not a number or an array", self.place.span(node))
        return value

    def binary(self, op: ast.operator, lhs: Any, rhs: Any, node: ast.expr) -> Any:
        if isinstance(op, ast.Pow) and isinstance(rhs, int) and abs(rhs) > MAX_EXPONENT:
            raise SpecError(f"the exponent is larger than {MAX_EXPONENT}", self.place.span(node))
        found = _BINARY[type(op)](lhs, rhs)
        if isinstance(found, int) and found.bit_length() > MAX_BITS:
            raise SpecError("the integer does not fit in 64 bits", self.place.span(node))
        return found

    def function(self, node: ast.expr) -> Callable[..., Any]:
        chain = _chain(node)
        if chain in self.functions:
            return self.functions[chain]
        module, _, name = calls.known_as(chain).rpartition(".")
        package = re.sub(r"^np\b", "numpy", module)
        try:
            found: Callable[..., Any] | None = getattr(importlib.import_module(package), name, None)
        except ImportError:
            message = f"the formula needs {package}, which is not installed"
            raise SpecError(message, self.place.span(node)) from None
        if found is None:
            message = f"the {package} that is installed has no '{name}'"
            raise SpecError(message, self.place.span(node))
        return found


def _of_fortran() -> tuple[type[Exception], ...]:
    """What functions of Fortran raise: each module that f2py made has a class of its own."""
    loaded = [*sys.modules.items()]
    named = ((f"_{name.rpartition('.')[2]}_error", module) for name, module in loaded)
    found = (getattr(module, "__dict__", {}).get(error) for error, module in named)
    return tuple(e for e in found if isinstance(e, type) and issubclass(e, Exception))


def _are_numbers(value: Any) -> bool:
    """Whether a value is one that formulas may go on with: no object, no text."""
    match value:
        case numpy.ndarray() | numpy.generic():
            return value.dtype.kind in "biufc" or storage.is_float(numpy.asarray(value))
        case None | bool() | int() | float() | complex() | slice() | EllipsisType():
            return True
        case tuple() | list():
            return all(isinstance(v, str) or _are_numbers(v) for v in value)
        case _:
            return False
