"""Values that an argument's `drawn` asks for.

Input: a Drawn, a shape, a type. Output: an array. Invariant: where values are random, or few
distinct ones, what `drawn` says of them holds, as far as the type can hold it. Of the kinds that
replace elements it holds no longer, but for matrices: their pivots stay away from 0, since next to
it no accuracy could be promised.
"""

import math
from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ..ir import storage
from ..ir.interpret.evaluate import numpy_dtype
from ..ir.types import DType
from ..language.declared.drawn import bounds
from ..language.model import Drawn, Property
from .kinds import InputKind, of_kind, with_limits

Array = NDArray[Any]

_ANY = 100
"""Integers without an end are drawn below so many more than their beginning."""


def draw(
    drawn: Drawn,
    shape: tuple[int, ...],
    element: DType,
    values: Mapping[str, float],
    kind: InputKind,
    rng: np.random.Generator,
) -> Array:
    """values: of dims, scalars and named sizes. Raises SpecError where a bound is no number."""
    dtype = numpy_dtype(element)
    if not math.prod(shape):
        return np.empty(shape, dtype)
    match drawn.property:
        case Property.POSITIVE_DEFINITE | Property.DIAGONALLY_DOMINANT:
            return _matrices(drawn.property, shape, element, kind, rng)
        case Property.PERMUTATION:
            rows = np.broadcast_to(np.arange(shape[-1]), shape)
            return _replaced(rng.permuted(rows, axis=-1).astype(dtype), element, kind, rng)
        case Property.PROBABILITIES:
            weights = rng.integers(1, 3, shape) if kind is InputKind.TIES else rng.random(shape)
            total = np.sum(weights, axis=-1, keepdims=True)
            return _replaced(weights / np.maximum(total, 2.0**-1000), element, kind, rng)
        case None:
            array = _between(drawn, shape, element, values, kind, rng)
            if drawn.sorted:
                array = np.sort(storage.computed(array), axis=-1).astype(dtype)
            return _replaced(array, element, kind, rng)
        case _:
            assert_never(drawn.property)


def _between(
    drawn: Drawn,
    shape: tuple[int, ...],
    element: DType,
    values: Mapping[str, float],
    kind: InputKind,
    rng: np.random.Generator,
) -> Array:
    """Uniform in the range; its beginning, where it is empty."""
    known = rng.choice if kind is InputKind.TIES else None
    many = (3,) if known else shape
    lower, below = bounds(drawn, values, element.is_integer)
    if element.is_integer:
        found = _integers(int(lower), below, many, numpy_dtype(element), rng)
    elif drawn.lower is None and below is None:
        found = rng.standard_normal(many)
    elif below is None:
        found = lower + np.abs(rng.standard_normal(many))
    else:
        found = rng.uniform(lower, max(lower, below), many)
    array = (found if known is None else known(found, shape)).astype(numpy_dtype(element))
    if below is not None and not element.is_integer:  # rounded up to it
        array[storage.computed(array) >= below] = lower
    return array


def _integers(
    lower: int,
    below: float | None,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> Array:
    limits = np.iinfo(dtype)
    first = min(max(lower, int(limits.min)), int(limits.max))
    end = min(first + _ANY if below is None else int(below), int(limits.max) + 1)
    return rng.integers(first, max(end, first + 1), shape, dtype)


def _replaced(array: Array, element: DType, kind: InputKind, rng: np.random.Generator) -> Array:
    """Some elements as a kind has them, whatever was drawn."""
    dtype = numpy_dtype(element)
    if element.is_integer:
        return with_limits(array, rng) if kind is InputKind.EXTREME else array.astype(dtype)
    if not kind.beyond:
        return array.astype(dtype)
    return of_kind(storage.computed(array.astype(dtype)), element, kind, rng).astype(dtype)


# ---------------------------------------------------------------- matrices


def _matrices(
    wanted: Property,
    shape: tuple[int, ...],
    element: DType,
    kind: InputKind,
    rng: np.random.Generator,
) -> Array:
    real = element.real

    def normal() -> Array:
        early = kind in (InputKind.TIES, InputKind.SMALL)
        return of_kind(rng.standard_normal(shape), real, kind if early else InputKind.RANDOM, rng)

    some = normal() + 1j * normal() if element.is_complex else normal()
    made = _definite(some) if wanted is Property.POSITIVE_DEFINITE else _dominant(some)
    if kind is InputKind.SPECIAL:  # no zeros: one may be a pivot
        special = rng.choice((np.nan, np.inf, -np.inf), shape)
        made = np.where(rng.random(shape) < 0.1, special, made)
    elif kind is InputKind.EXTREME:
        parts = of_kind(made.real, real, kind, rng)
        made = parts + 1j * made.imag if element.is_complex else parts
    return made.astype(numpy_dtype(element))


def _definite(some: Array) -> Array:
    """B B' / n + 1, whose eigenvalues are from 1 to about 5."""
    n = some.shape[-1]
    square = some @ np.conj(np.swapaxes(some, -1, -2)) / n + np.eye(n)
    made: Array = (square + np.conj(np.swapaxes(square, -1, -2))) / 2  # rounded alike
    return made


def _dominant(some: Array) -> Array:
    """The diagonal is by 1 more than the rest of its row, and of its column, together."""
    rows, columns = some.shape[-2:]
    diagonal = np.arange(min(rows, columns))
    sizes = np.abs(some)
    sizes[..., diagonal, diagonal] = 0
    of_rows, of_columns = np.sum(sizes, axis=-1), np.sum(sizes, axis=-2)
    made = some.copy()
    made[..., diagonal, diagonal] = 1 + np.maximum(
        of_rows[..., diagonal], of_columns[..., diagonal]
    )
    return made
