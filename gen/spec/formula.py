"""The formulas of a spec, oracle and accuracy: Python expressions over named NumPy and SciPy
functions, read with `ast` and run by the small interpreter here.

Input: a YAML scalar, the values of names. Output: a NumPy value. Invariant: only the functions and
modules listed here are ever looked up, only in the place of a called function, and no attribute of
a value is but a few of arrays; so a formula computes and does nothing else.
"""

import ast
import importlib
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from ..errors import SpecError
from . import language, yaml

MAX_EXPONENT = 64

_NUMPY = """abs absolute all amax amin any arange arccos arcsin arctan arctan2 argmax argmin argsort
    around array asarray atleast_1d atleast_2d average broadcast_to bitwise_and bitwise_or
    bitwise_xor cbrt ceil clip complex64 complex128 concatenate conj convolve copysign correlate cos
    cosh count_nonzero cross cumprod cumsum deg2rad diag diagonal diff divide dot einsum equal exp
    exp2 expand_dims expm1 eye fabs flip float32 float64 floor floor_divide fmax fmin fmod full
    full_like greater greater_equal heaviside hypot identity imag inner int32 int64 interp invert
    isfinite isinf isnan kron left_shift less less_equal linspace log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor longdouble matmul max maximum mean median min
    minimum mod moveaxis multiply nan_to_num nancumsum nanmax nanmean nanmin nansum negative
    not_equal ones ones_like outer pad percentile power prod ptp rad2deg real reciprocal remainder
    repeat reshape right_shift rint roll round searchsorted sign signbit sin sinh sort spacing sqrt
    square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile
    trace transpose tri tril triu true_divide trunc unwrap var vdot vecdot vstack hstack where zeros
    zeros_like"""
NUMPY = frozenset(_NUMPY.split())
MODULES = {
    "np.linalg": "numpy.linalg",
    "numpy.linalg": "numpy.linalg",
    "np.lib.stride_tricks": "numpy.lib.stride_tricks",
    "np.fft": "numpy.fft",
    "numpy.fft": "numpy.fft",
    **{
        name: name
        for name in ("scipy.special", "scipy.ndimage", "scipy.linalg", "scipy.signal", "scipy.fft",
                     "scipy.stats", "skimage.color", "skimage.filters", "skimage.transform")
    },
}  # fmt: skip
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


def check(scalar: yaml.Scalar, names: Collection[str], functions: Collection[str]) -> None:
    """Refuses what `evaluate` would not run: unknown names and functions, other syntax."""
    place, tree = language.parse(scalar, "eval")
    assert isinstance(tree, ast.Expression)
    _check(tree.body, place, names, functions)


def names_in(scalar: yaml.Scalar) -> frozenset[str]:
    """The names that a formula mentions, modules and functions included."""
    _, tree = language.parse(scalar, "eval")
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def evaluate(
    scalar: yaml.Scalar, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """The formula's value over named `values`. Raises SpecError, and what NumPy raises."""
    return prepared(scalar, values, functions)()


def prepared(
    scalar: yaml.Scalar, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Callable[[], Any]:
    """`evaluate`, read and checked once and run at each call. Raises SpecError."""
    check(scalar, values.keys(), functions.keys())
    place, tree = language.parse(scalar, "eval")
    assert isinstance(tree, ast.Expression)
    body, evaluator = tree.body, _Evaluator(place, values, functions)
    return lambda: evaluator.value(body)


# ---------------------------------------------------------------- checking


def _check(
    node: ast.expr, place: language.Place, names: Collection[str], functions: Collection[str]
) -> None:
    inside: list[ast.expr | None]
    match node:
        case ast.Name(name):
            if name not in names:
                message = f"unknown name '{name[:64]}'"
                raise SpecError(message, place.span(node), yaml.hint(name, names))
            return
        case ast.Constant(bool() | int() | float() | complex() | str() | None):
            return
        case ast.Call(function, args, keywords):
            _check_function(function, place, functions)
            inside = [*args, *(keyword.value for keyword in keywords if keyword.arg)]
            if len(inside) < len(args) + len(keywords):
                raise SpecError("'**' is not allowed in a formula", place.span(node))
        case ast.Attribute(value, name) if name in ATTRIBUTES:
            inside = [value]
        case ast.Attribute(ast.Name("np" | "numpy"), name) if name in CONSTANTS:
            return
        case ast.Subscript(value, index):
            inside = [value, index]
        case ast.Slice(lower, upper, step):
            inside = [lower, upper, step]
        case ast.Tuple(elements) | ast.List(elements):
            inside = [*elements]
        case ast.BinOp(lhs, op, rhs) if type(op) in _BINARY:
            inside = [lhs, rhs]
        case ast.UnaryOp(op, operand) if type(op) in _UNARY:
            inside = [operand]
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
            inside = [left, right]
        case _:
            raise SpecError("this is not part of a formula", place.span(node))
    for part in inside:
        if part is not None:
            _check(part, place, names, functions)


def _check_function(node: ast.expr, place: language.Place, functions: Collection[str]) -> None:
    chain = _chain(node)
    module, _, name = chain.rpartition(".")
    if chain in functions or (module in ("np", "numpy") and name in NUMPY):
        return
    if module in MODULES and not name.startswith("_"):
        return
    known = {*functions, *(f"np.{name}" for name in NUMPY)}
    raise SpecError(
        f"'{chain[:64] or 'this'}' is not a function that a formula may call",
        place.span(node),
        yaml.hint(chain, known),
    )


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

    place: language.Place
    values: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]

    def value(self, node: ast.expr) -> Any:
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
        return _BINARY[type(op)](lhs, rhs)

    def function(self, node: ast.expr) -> Callable[..., Any]:
        chain = _chain(node)
        if chain in self.functions:
            return self.functions[chain]
        module, _, name = chain.rpartition(".")
        try:
            owner = importlib.import_module(MODULES.get(module, "numpy"))
        except ImportError:
            message = f"the formula needs {MODULES[module]}, which is not installed"
            raise SpecError(message, self.place.span(node)) from None
        found: Callable[..., Any] | None = getattr(owner, name, None)
        if not callable(found):
            raise SpecError(f"{module} has no function '{name[:64]}'", self.place.span(node))
        return found
