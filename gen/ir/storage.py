"""float16 and bfloat16, which only store: rounding to them, and what NumPy does not say of them.

Input: values, arrays, element types. Output: bits, and arrays of types that NumPy computes in.
NumPy has no bfloat16, and does not take the type that the package ml_dtypes adds for a float.
"""

import math
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .types import DType

Array = NDArray[Any]


def bfloat16() -> np.dtype[Any]:
    """NumPy's dtype of that name. Raises ImportError where ml_dtypes is not installed."""
    dtype: np.dtype[Any] = np.dtype(import_module("ml_dtypes").bfloat16)
    return dtype


def bits(value: float, dtype: DType) -> int:
    """The bits of a value in float16 or bfloat16, rounded once, to nearest, ties to even."""
    if dtype is DType.FLOAT16:
        with np.errstate(over="ignore"):
            return int(np.float64(value).astype(np.float16).view(np.uint16))
    wide = int(_rounded_to_odd(np.float64(value)).view(np.uint32))
    if math.isnan(value):
        return wide >> 16 | 0x40
    return (wide + 0x7FFF + (wide >> 16 & 1)) >> 16


def _rounded_to_odd(value: np.float64) -> np.float32:
    """The nearest float32 but that the last bit of inexact ones is set: so that rounding it once
    more, to fewer bits, is rounding the value.
    """
    with np.errstate(over="ignore"):
        near = value.astype(np.float32)
    if near == value or np.isnan(value):
        return near
    below = near if abs(np.float64(near)) < abs(value) else np.nextafter(near, np.float32(0))
    return np.uint32(below.view(np.uint32) | np.uint32(1)).view(np.float32)


def is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == DType.BFLOAT16.value


def computed(array: Array) -> Array:
    """The array in the type that its values are computed in."""
    only_stores = array.dtype.name in (DType.FLOAT16.value, DType.BFLOAT16.value)
    return array.astype(np.float32) if only_stores else array


def eps(array: Array) -> float:
    """The step from 1 to the next larger value of the array's type."""
    return 2.0**-7 if array.dtype.name == DType.BFLOAT16.value else np.finfo(array.dtype).eps


def ulp(values: Array, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """The distance of each value, rounded to the type, to the next larger one in magnitude."""
    if dtype.name != DType.BFLOAT16.value:
        return np.asarray(np.spacing(np.abs(np.asarray(values, dtype))), np.float64)
    near = np.abs(np.asarray(values, dtype)).astype(np.float64)
    exponent = np.maximum(np.frexp(near)[1] - 1, -126)
    return np.where(np.isfinite(near), np.ldexp(1.0, exponent - 7), np.nan)
