"""How an argument is drawn where a kernel is tried: `drawn`.

Input: YAML, then the whole spec. Output: a Drawn; the numbers of its bounds at given sizes.
Invariant: what is read here says what a kernel is tried on, and nothing of what it computes.
Raises SpecError.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from ...errors import Span, SpecError
from ...ir.nodes import Intent
from ...ir.types import DType
from .. import yaml
from ..formulas import formula
from ..model import Argument, Drawn, KernelSpec, Property
from ..shapes import same_size

WORDS = tuple(p.value for p in Property)

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": numpy.abs,
    "min": numpy.minimum,
    "max": numpy.maximum,
}
_MODULES = frozenset({"np", "numpy", "scipy", "skimage"})
"""What no bound calls, so that it is worked out at once: `show --html` may draw, too."""
_HINT = f"write {', '.join(WORDS)}, or a map such as {{from: 0, below: n, sorted: true}}"
_WIDE = frozenset({DType.INT32, DType.INT64, DType.UINT32, DType.UINT64})


@dataclass(frozen=True, slots=True)
class DrawnEntry:
    span: Span
    from_: yaml.Scalar | None = None
    below: yaml.Scalar | None = None
    sorted: bool = False


def read_drawn(argument: str, node: yaml.Node | None) -> Drawn | None:
    """What `drawn` says of an argument; None where that is nothing."""
    what = f"'drawn' of argument '{argument}'"
    match node:
        case None | yaml.Scalar(None):
            return None
        case yaml.Scalar(_, text) if text in WORDS:
            return Drawn(Property(text), span=node.span)
        case yaml.Scalar(_, text):
            near = "write {sorted: true}" if text == "sorted" else yaml.hint(text, WORDS)
            raise SpecError(f"{what} cannot be '{text[:64]}'", node.span, near or _HINT)
        case yaml.List():
            raise SpecError(f"{what} cannot be a list", node.span, _HINT)
    entry = yaml.decode(node, DrawnEntry, what)
    if entry.from_ is None and entry.below is None and not entry.sorted:
        raise SpecError(f"{what} says nothing", node.span, _HINT)
    return Drawn(None, entry.from_, entry.below, entry.sorted, entry.span)


def check_drawn(spec: KernelSpec) -> None:
    """Refuses what no values can be drawn by."""
    for argument in spec.arguments:
        if argument.drawn is not None:
            _check(spec, argument, argument.drawn)


def _check(spec: KernelSpec, a: Argument, drawn: Drawn) -> None:
    if a.intent is Intent.OUT:
        raise SpecError(f"'{a.name}' is an output: nothing is drawn for it", drawn.span)
    types = _types(spec, a)
    match drawn.property:
        case Property.POSITIVE_DEFINITE:
            _check_types(a, drawn, types, [t for t in types if t.is_float or t.is_complex])
            if len(a.shape) < 2 or not same_size(*a.shape[-2:]):
                message = f"'{a.name}' has no two last axes of one size: it holds no square matrix"
                raise SpecError(message, drawn.span, 'its type would be "T[n, n]"')
        case Property.DIAGONALLY_DOMINANT:
            _check_types(a, drawn, types, [t for t in types if t.is_float or t.is_complex])
            if len(a.shape) < 2:
                message = f"'{a.name}' has fewer than two axes: it holds no matrix"
                raise SpecError(message, drawn.span, 'its type would be "T[m, n]"')
        case Property.PERMUTATION:
            _check_types(a, drawn, types, [t for t in types if t in _WIDE])
            _check_axis(a, drawn)
        case Property.PROBABILITIES:
            _check_types(a, drawn, types, [t for t in types if t.is_float])
            _check_axis(a, drawn)
        case None:
            _check_types(a, drawn, types, [t for t in types if t.is_float or t.is_integer])
            if drawn.sorted:
                _check_axis(a, drawn)
            _check_bounds(spec, a, drawn, all(t.is_integer for t in types))


def _types(spec: KernelSpec, a: Argument) -> tuple[DType, ...]:
    """The element types that an argument may have."""
    chosen = (v.choices for v in spec.dtypes if v.name == a.element)
    return next(chosen, None) or (DType(a.element),)


_OF = {
    Property.POSITIVE_DEFINITE: "a positive definite matrix is of floats or complex numbers",
    Property.DIAGONALLY_DOMINANT: "a diagonally dominant matrix is of floats or complex numbers",
    Property.PERMUTATION: "a permutation is of int32, int64, uint32 or uint64",
    Property.PROBABILITIES: "probabilities are floats",
    None: "bounds and order are of floats and integers",
}


def _check_types(a: Argument, drawn: Drawn, types: tuple[DType, ...], fit: list[DType]) -> None:
    if others := [t for t in types if t not in fit]:
        message = f"{_OF[drawn.property]}, and '{a.name}' may be {others[0].value}"
        raise SpecError(message, drawn.span)


def _check_axis(a: Argument, drawn: Drawn) -> None:
    if not a.shape:
        what = drawn.property.value if drawn.property else "sorted"
        raise SpecError(f"'{a.name}' has no axis along which it could be {what}", drawn.span)


def _check_bounds(spec: KernelSpec, a: Argument, drawn: Drawn, whole: bool) -> None:
    names = [*spec.all_dims, *(s.name for s in spec.scalars if not s.members)]
    for bound in (drawn.lower, drawn.below):
        if bound is not None:
            if formula.names_in(bound) & _MODULES:
                raise SpecError(
                    "a bound has sizes, numbers, operators, min, max and abs", formula.span(bound)
                )
            formula.check(bound, names, _FUNCTIONS)
            if whole and isinstance(bound.value, float):
                raise SpecError(f"'{a.name}' has integers: its bounds are integers", bound.span)
    lower = 0 if drawn.lower is None else _number(drawn.lower)
    below = None if drawn.below is None else _number(drawn.below)
    if drawn.below and lower is not None and below is not None and not lower < below:
        raise SpecError(
            f"nothing is from {lower} and below {below}",
            drawn.below.span,
            "'from' is 0 where it is left out" if drawn.lower is None else None,
        )


def _number(bound: yaml.Scalar) -> int | float | None:
    match bound.value:
        case bool():
            return None
        case int() | float() as number:
            return number
        case _:
            return None


def bounds(
    drawn: Drawn, values: Mapping[str, float], whole: bool
) -> tuple[int | float, int | float | None]:
    """The numbers that are drawn from, and below; None where there is no end. values: of dims,
    scalars and named sizes. whole: whether integers are drawn.
    """
    lower = 0 if drawn.lower is None else _bound(drawn.lower, values, whole)
    return lower, None if drawn.below is None else _bound(drawn.below, values, whole)


def _bound(bound: yaml.Scalar, values: Mapping[str, float], whole: bool) -> int | float:
    found = numpy.asarray(formula.evaluate(bound, values, _FUNCTIONS))
    if found.ndim or found.dtype.kind not in "iuf" or not numpy.isfinite(found):
        raise SpecError("a bound must be a finite number", formula.span(bound))
    if whole and found != numpy.floor(found):
        raise SpecError(f"integers are drawn between integers, not {found}", formula.span(bound))
    return int(found) if whole else float(found)
