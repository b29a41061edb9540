"""Objects that are not plain arrays"""

import array
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilesmith as ts

from .support import refused

X = np.array([1.0, 2.0, 4.0])
MASKED = "is a masked array, whose mask would be lost; pass its .data or .filled(...)"
RULES = (
    "Quantity has rules of its own for NumPy's functions (__array_ufunc__), which would be passed "
    "over; pass np.asarray(...) of it"
)


class Series:
    """As those of pandas and xarray: an array inside, and rules for NumPy's functions."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        raise AssertionError("kernels are no ufuncs")

    def __array_function__(self, *_: Any) -> Any:
        raise AssertionError("kernels are none of NumPy's functions")


class Quantity(np.ndarray):
    """As that of astropy: numbers with a unit, which NumPy's functions take into account."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("kernels are no ufuncs")


class Plain(np.ndarray):
    pass


class Refuses:
    __array_ufunc__ = None


class OnlyDlpack:
    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return X.__dlpack_device__()


class Elsewhere:
    """As an array on a GPU."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("this array is on a GPU; use .get()")


def test_masked_arrays() -> None:
    """Masked arrays: TypeError that names `.data` and `.filled()`, since the mask would be lost; as
    `out=` too.
    """
    masked = np.ma.masked_array(X, [True, False, False])
    for call in (
        lambda: ts.softmax(masked),
        lambda: ts.sum(masked),
        lambda: ts.sum(masked, axis=0),
        lambda: ts.exp(X, out=masked),
        lambda: ts.matmul(X[None], masked[:, None]),
    ):
        with refused(TypeError, MASKED):
            call()


def test_subclasses(tmp_path: Path) -> None:
    """np.matrix, np.memmap, records and other subclasses without rules of their own for NumPy's
    functions: as np.asarray of them; results are plain arrays, `out=` stays what it is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix(X)
    X.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", X.dtype, "r")
    for given in (matrix, mapped, X.view(Plain), X.view(np.recarray)):
        result = ts.exp(given)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, ts.exp(np.asarray(given)))
    out = X.copy().view(Plain)
    assert ts.exp(X, out=out) is out


def test_subclasses_with_rules() -> None:
    """Subclasses with `__array_ufunc__` of their own, such as astropy's Quantity: TypeError that
    names np.asarray, since a unit would be lost; as `out=` too.
    """
    quantity = X.view(Quantity)
    for call in (
        lambda: ts.exp(quantity),
        lambda: ts.sum(quantity),
        lambda: ts.exp(X, out=quantity),
    ):
        with refused(TypeError, RULES):
            call()


def test_array_holders() -> None:
    """Objects with `__array__`, such as pandas' Series and xarray's DataArray: as np.asarray of
    them; `__array_ufunc__` and `__array_function__` are not asked, the result is a plain array.
    """
    for result in (ts.softmax(Series(X)), ts.softmax(Series(X), axis=0)):
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, ts.softmax(X))
    assert ts.sum(Series(X)) == 7
    with refused(TypeError, "must be an ndarray, got Series"):
        ts.exp(X, out=Series(X))


def test_objects_that_refuse() -> None:
    """Objects with `__array_ufunc__ = None`: TypeError, as from NumPy's operators."""
    for call in (ts.exp, ts.sum):
        with refused(TypeError, "argument x: Refuses does not take part in NumPy's functions"):
            call(Refuses())


def test_arrays_elsewhere() -> None:
    """Arrays that refuse to become NumPy's, such as those on a GPU: their own TypeError, with
    kernel and argument.
    """
    with refused(TypeError, "exp: argument x: this array is on a GPU; use .get()"):
        ts.exp(Elsewhere())


def test_buffers() -> None:
    """Buffers (array.array, bytearray, memoryview): as np.asarray of them."""
    for given in (array.array("d", X), memoryview(X)):
        np.testing.assert_array_equal(ts.exp(given), ts.exp(X))
    assert ts.sum(bytearray(b"\1\2")) == 3
    with refused(TypeError, "has dtype |S3; supported"):
        ts.exp(b"abc")


def test_dlpack() -> None:
    """Objects that have `__dlpack__` alone: TypeError that names np.from_dlpack."""
    with refused(TypeError, "exp: argument x is a OnlyDlpack; pass np.from_dlpack(...) of it"):
        ts.exp(OnlyDlpack())
    np.testing.assert_array_equal(ts.exp(np.from_dlpack(OnlyDlpack())), ts.exp(X))


def test_no_array() -> None:
    """None, dicts, sets, ragged lists: TypeError, or ValueError with NumPy's own reason."""
    with refused(TypeError, "exp: argument x is None, not an array"):
        ts.exp(None)
    for given in ({1.0: 2}, {1.0}):
        with refused(TypeError, "exp: argument x has dtype object"):
            ts.exp(given)
    with pytest.raises(ValueError, match=r"^exp: argument x: .* inhomogeneous shape"):
        ts.exp([[1.0, 2.0], [3.0]])
