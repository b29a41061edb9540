"""Kinds of values that a kernel is tried on, beside random ones.

Input: random values. Output: those of a kind, in the place of some or all of them.
"""

from enum import Enum
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..ir.types import DType

Array = NDArray[Any]


@final
class InputKind(Enum):
    """What is particular about a case's inputs; the values are as reports call them."""

    RANDOM = "random"
    TIES = "ties"
    SMALL = "zeros and the smallest"
    EXTREME = "the largest"
    SPECIAL = "NaN and infinities"
    STRIDED = "strided"
    LONG = "long"

    @property
    def beyond(self) -> bool:
        """Whether the values may leave what a type holds on the way to a result."""
        return self in (InputKind.SMALL, InputKind.EXTREME, InputKind.SPECIAL)


def of_kind(drawn: Array, element: DType, kind: InputKind, rng: np.random.Generator) -> Array:
    """Random float64 numbers, some or all of them replaced by those of a kind."""
    limits = _LIMITS[element]
    match kind:
        case InputKind.TIES:
            return rng.integers(-1, 2, drawn.shape).astype(float)
        case InputKind.SMALL:
            others = (0.0, -0.0, limits.smallest, -limits.smallest, limits.normal)
            return _mixed(drawn, others, 0.5, rng)
        case InputKind.SPECIAL:
            return _mixed(drawn, (np.nan, np.inf, -np.inf, -0.0), 0.1, rng)
        case InputKind.EXTREME if drawn.size:  # one: sums of several depend on their order
            changed = drawn.copy()
            changed.flat[rng.integers(drawn.size)] = rng.choice((-1, 1)) * limits.largest
            return changed
        case _:
            return drawn


def _mixed(
    drawn: Array, others: tuple[float, ...], share: float, rng: np.random.Generator
) -> Array:
    return np.where(rng.random(drawn.shape) < share, rng.choice(others, drawn.shape), drawn)


def with_limits(drawn: Array, rng: np.random.Generator) -> Array:
    """Random integers, half of them replaced by those at the limits of their type, and 0."""
    limits = np.iinfo(drawn.dtype)
    others = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 0], drawn.dtype)
    return np.where(rng.random(drawn.shape) < 0.5, rng.choice(others, drawn.shape), drawn)


class _Limits(NamedTuple):
    """Of a float type: its smallest number above 0, its smallest normal one, its largest."""

    smallest: float
    normal: float
    largest: float


_LIMITS = {
    DType.FLOAT16: _Limits(2.0**-24, 2.0**-14, 65504.0),
    DType.BFLOAT16: _Limits(2.0**-133, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    DType.FLOAT32: _Limits(2.0**-149, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    DType.FLOAT64: _Limits(2.0**-1074, 2.0**-1022, (2 - 2.0**-52) * 2.0**1023),
}


def smallest(element: DType) -> float:
    """The smallest number above 0 of a float or complex type."""
    return _LIMITS[element.real].smallest
