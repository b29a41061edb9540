"""What a caller of a kernel gives: arrays, the types that they choose, scalars.

Input: Python's objects. Output: arrays and numbers. Errors have the words of a built package's,
where that refuses the same.
"""

import operator
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import language as specs
from ...ir.interpret.evaluate import numpy_dtype
from ...ir.nodes import Intent
from ...ir.types import INDEX, DType
from ...ir.walk import variables
from ...language import Dtypes
from ...language.declared.scalars import members_of
from ...language.formulas import oracle
from ...language.model import Argument, KernelSpec

Array = NDArray[Any]
Given: TypeAlias = Array | bool | int | float | complex
"""An array, or one of Python's numbers, which has no type of its own beside arrays (NEP 50)."""

_WEAK = frozenset({bool, int, float, complex})
_MOST_THREADS = 1024


def inputs_of(spec: KernelSpec) -> tuple[Argument, ...]:
    """The arguments that a call gives."""
    return tuple(a for a in spec.arguments if a.intent is not Intent.OUT)


# ---------------------------------------------------------------- arrays


def taken(kernel: str, argument: str, given: ArrayLike) -> Given:
    """What np.asarray gives, with elements where the processor reads them at once. Raises TypeError
    as a built package's functions do.
    """
    if type(given) is np.ndarray:
        return given if given.flags.aligned else given.copy()
    if type(given) in _WEAK:
        return given  # type: ignore[return-value]
    where = f"{kernel}: argument {argument}"
    masked = sys.modules.get("numpy.ma")  # not imported: nobody can have made one
    if masked is not None and isinstance(given, masked.MaskedArray):
        raise TypeError(
            f"{where} is a masked array, whose mask would be lost; pass its .data or .filled(...)"
        )
    if given is None:
        raise TypeError(f"{where} is None, not an array")
    if _is_elsewhere(given):
        raise TypeError(
            f"{where} is a {type(given).__name__} that is not in the processor's memory; pass"
            " NumPy's array, also to a kernel for a GPU, which copies it there and back"
        )
    array = np.asarray(given)
    return array if array.flags.aligned else array.copy()


def _is_elsewhere(given: Any) -> bool:
    """Whether it is, or may be, on a device, from which np.asarray might copy it."""
    if isinstance(given, np.ndarray):
        return False
    if hasattr(given, "__dlpack_device__"):
        try:
            return given.__dlpack_device__()[0] not in _PROCESSOR
        except (BufferError, RuntimeError, TypeError, ValueError):  # it is on several
            return True
    return hasattr(given, "__cuda_array_interface__")


_PROCESSOR = (1, 3, 11)
"""DLPack's kinds of devices whose memory is the processor's, pinned or not."""


# ---------------------------------------------------------------- types


def type_of(element: str, dtypes: Dtypes) -> DType:
    """Of an element type, or of a type variable in a choice."""
    return dtypes.get(element) or DType(element)


def chosen(spec: KernelSpec, given: Sequence[Given]) -> Dtypes:
    """Of the choices of types that all inputs can be cast to by NumPy's "safe" rule, the one in
    which most of them have their own type; the first of these. A number of Python's is cast to the
    type of the arrays beside it. Raises TypeError where there is none.
    """
    roots = _roots(spec)
    pairs = [*zip(inputs_of(spec), given, strict=True)]
    strong = {roots.get(a.element) for a, x in pairs if type(x) not in _WEAK}
    typed: list[tuple[str, np.dtype[Any] | Given]] = []
    for a, x in pairs:
        weak = type(x) in _WEAK and (a.element not in roots or roots[a.element] in strong)
        typed.append((a.element, x if weak else np.asarray(x).dtype))
    fitting = [
        choice
        for choice in specs.choices(spec)
        if all(_fits(x, type_of(element, choice)) for element, x in typed)
    ]
    if not fitting:
        types = ", ".join(f"{a.name}: {np.asarray(x).dtype}" for a, x in pairs)
        raise TypeError(f"{spec.name} has no version for {types}")
    return min(fitting, key=lambda choice: _others(typed, choice))


def _roots(spec: KernelSpec) -> dict[str, str]:
    """For each type variable the one that a call finds it from."""
    roots: dict[str, str] = {}
    for v in spec.dtypes:
        roots[v.name] = v.name if v.of is None else roots[v.of]
    return roots


def _fits(given: np.dtype[Any] | Given, dtype: DType) -> bool:
    match given:
        case np.dtype():
            return np.can_cast(given, numpy_dtype(dtype), "safe")
        case bool():
            return True
        case int():
            return dtype is not DType.BOOL
        case float():
            return dtype.is_float or dtype.is_complex
        case _:
            return dtype.is_complex


def _others(typed: Sequence[tuple[str, np.dtype[Any] | Given]], choice: Dtypes) -> int:
    """How many arrays have another type than the choice has for them."""
    return sum(
        isinstance(x, np.dtype) and x != numpy_dtype(type_of(element, choice))
        for element, x in typed
    )


# ---------------------------------------------------------------- scalars


def threads(kernel: str, given: int) -> int:
    """Raises TypeError and ValueError as a built package's functions do."""
    try:
        if isinstance(given, bool):
            raise TypeError
        count = operator.index(given)
    except TypeError:
        found = type(given).__name__
        raise TypeError(f"{kernel}: num_threads must be an integer, got {found}") from None
    if not 1 <= count <= _MOST_THREADS:
        raise ValueError(f"{kernel}: num_threads must be from 1 to {_MOST_THREADS}, got {count}")
    return count


def number(kernel: str, scalar: str, dtype: DType, given: Any) -> complex:
    """A scalar as a number of its type. Raises TypeError and OverflowError as a built package's
    functions do.
    """
    try:
        if isinstance(given, str | bytes | bytearray):  # which float and complex would read
            raise TypeError
        if dtype.is_complex:
            return complex(given)
        if dtype.is_float:
            return float(given)
        if dtype is DType.BOOL:
            if not isinstance(given, bool | np.bool_):
                raise TypeError
            return bool(given)
        return _within(dtype, operator.index(given))
    except OverflowError as error:
        raise OverflowError(f"{kernel}: scalar {scalar}: {error}") from None
    except TypeError:
        raise TypeError(
            f"{kernel}: scalar {scalar} must convert to {dtype.value}, got {type(given).__name__}"
        ) from None


def _within(dtype: DType, given: int) -> int:
    limits = np.iinfo(dtype.value)
    if not limits.min <= given <= limits.max:
        raise OverflowError(f"must fit {dtype.value}, got {given}")
    return int(given)


@final
@dataclass(frozen=True, slots=True)
class KernelScalars:
    """The scalars of a kernel. deciding: those that sizes and indices may depend on, by name, with
    their types, which are the same for all choices; others: the names of the rest.
    """

    spec: KernelSpec
    defaults: Mapping[str, complex]
    deciding: tuple[tuple[str, DType], ...]
    others: tuple[str, ...]

    def values(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """All scalars: of the deciding ones their numbers, of others what was given. Raises
        TypeError, ValueError and OverflowError as a built package's functions do.
        """
        name = self.spec.name
        if not given and len(self.defaults) == len(self.spec.scalars):
            return self.defaults
        if unknown := given.keys() - {s.name for s in self.spec.scalars}:
            hint = _ALONE if min(unknown) in _BUILT else ""
            raise TypeError(f"{name} has no scalar {min(unknown)!r}{hint}")
        values = {**self.defaults, **given, **self._members(given)}
        for scalar in self.spec.scalars:
            if scalar.name not in values:
                raise TypeError(f"{name} needs the scalar {scalar.name!r}")
        return {**values, **{s: number(name, s, t, values[s]) for s, t in self.deciding}}

    def numbers(
        self, values: Mapping[str, Any], types: Mapping[str, DType]
    ) -> Mapping[str, complex]:
        """All as numbers. types: of the others, in the choice that the call takes."""
        if not self.others:
            return values
        name = self.spec.name
        return {**values, **{s: number(name, s, types[s], values[s]) for s in self.others}}

    def _members(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The words as their numbers."""
        numbers: dict[str, int] = {}
        for name, members in members_of(self.spec.scalars).items():
            if name not in given:
                continue
            word, known = given[name], " or ".join(map(repr, members))
            where = f"{self.spec.name}: {name} must be {known}, got"
            if not isinstance(word, str):
                raise TypeError(f"{where} {type(word).__name__}")
            if word not in members:
                raise ValueError(f"{where} {word!r}")
            numbers[name] = members.index(word)
        return numbers


def scalars_of(spec: KernelSpec) -> KernelScalars:
    """Integers index and size arrays; others do so where the value of a named size has them."""
    sized = frozenset[str]().union(*(variables(size.value) for size in spec.sizes))
    deciding = {s.name: s for s in spec.scalars if s.element == INDEX.value or s.name in sized}
    return KernelScalars(
        spec,
        oracle.defaults(spec),
        tuple((name, DType(s.element)) for name, s in deciding.items()),
        tuple(s.name for s in spec.scalars if s.name not in deciding),
    )


_BUILT = frozenset({"axis", "out", "keepdims"})
"""What the functions of a built package take besides."""

_ALONE = (
    ": a kernel tried out takes arrays, scalars and num_threads= alone; the functions of a built"
    " package have axis=, out= and keepdims="
)
