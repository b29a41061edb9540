"""axis= and the names of arguments"""

from typing import Any

import numpy as np
import pytest
from numpy.exceptions import AxisError

import tilesmith as ts

from .support import refused

ALONG_ONE = {"softmax": ts.softmax, "cumsum": ts.cumsum, "sum": ts.sum, "argmax": ts.argmax,
             "max": ts.max, "mean": ts.mean}  # fmt: skip


@pytest.mark.parametrize("name", ALONG_ONE)
@pytest.mark.parametrize("ndim", [1, 2, 3, 5])
def test_out_of_range(name: str, ndim: int) -> None:
    """`axis=` out of range, on every rank: AxisError with the axis and the number of axes."""
    x = np.ones((2, 3, 2, 1, 2)[:ndim])
    for axis in (ndim, -ndim - 1, 2**31 - 1, -(2**31), 2**70):
        with pytest.raises(AxisError, match=rf"^{name}: .*axis {axis} is out of bounds"):
            ALONG_ONE[name](x, axis=axis)
    for axis in range(-ndim, ndim):
        assert ALONG_ONE[name](x, axis=axis).dtype in (np.float64, np.int64)


@pytest.mark.parametrize("name", ALONG_ONE)
@pytest.mark.parametrize("axis", [1.0, True, np.bool_(1), "0", [0], np.array([0, 1])])
def test_no_integer(name: str, axis: Any) -> None:
    """`axis=` a float, a bool, a string, a list: TypeError that says what it may be."""
    expected = {"softmax": "an integer", "cumsum": "an integer", "argmax": "an integer or None"}
    what = expected.get(name, "an integer, a tuple of integers or None")
    with refused(TypeError, f"{name}: axis must be {what}, got {type(axis).__name__}"):
        ALONG_ONE[name](np.ones((2, 3)), axis=axis)


def test_by_position() -> None:
    """`axis=` by position: right after the arrays, as in NumPy and PyTorch; what follows is given
    by name, so that no axis is taken for a scalar.
    """
    x, weight = np.random.default_rng(2).standard_normal((4, 4, 4)), np.arange(4.0)
    np.testing.assert_array_equal(ts.sum(x, 0), ts.sum(x, axis=0))
    np.testing.assert_array_equal(ts.sum(x, (0, -1)), ts.sum(x, axis=(0, -1)))
    np.testing.assert_array_equal(ts.softmax(x, 1), ts.softmax(x, axis=1))
    np.testing.assert_allclose(ts.var(x, 1), np.var(x, 1), rtol=1e-12)
    np.testing.assert_allclose(ts.var(x, None, ddof=1), np.var(x, ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(
        ts.layer_norm(x, weight, weight, 0), ts.layer_norm(x, weight, weight, axis=0)
    )
    assert not np.array_equal(ts.softmax(x, 0), ts.softmax(x, 1))
    with refused(TypeError, "var() takes at most 2 positional arguments (3 given)"):
        ts.var(x, 1, 1)
    with refused(TypeError, "layer_norm: axis must be an integer, got float"):
        ts.layer_norm(x, weight, weight, 1e-5)
    with refused(TypeError, "softmax: axis must be an integer, got ndarray"):
        ts.softmax(x, x)


def test_numpy_integers() -> None:
    """`axis=` an integer of NumPy's: as Python's."""
    x = np.arange(6.0).reshape(2, 3)
    for axis in (np.int8(0), np.uint64(0), np.array(0)):
        np.testing.assert_array_equal(ts.sum(x, axis=axis), [3, 5, 7])
        np.testing.assert_array_equal(ts.cumsum(x, axis=axis), np.cumsum(x, axis=0))


def test_none() -> None:
    """`axis=None`: all axes, of a reduction, as nothing said; TypeError elsewhere."""
    assert ts.sum(np.ones((2, 3)), axis=None) == 6
    with refused(TypeError, "softmax: axis must be an integer, got NoneType"):
        ts.softmax(np.ones((2, 3)), axis=None)


def test_tuples() -> None:
    """`axis=` a tuple: of reductions, but for positions; one axis twice: ValueError."""
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(ts.sum(x, axis=(0, -1)), x.sum((0, 2)))
    np.testing.assert_array_equal(ts.sum(x, axis=()), x)
    with refused(ValueError, "sum: axis 2 is given twice"):
        ts.sum(x, axis=(2, -1))
    with refused(TypeError, "argmax: axis must be an integer or None, got tuple"):
        ts.argmax(x, axis=(0, 1))


def test_arrays_of_one_axis_beside_others() -> None:
    """`axis=` where an argument has its core axis alone, as layer_norm's weight: it is the axis of
    the arrays that have more.
    """
    x, weight = np.random.default_rng(1).standard_normal((3, 4, 5)), np.arange(4.0)
    expected = np.moveaxis(ts.layer_norm(np.moveaxis(x, 1, -1), weight, weight), -1, 1)
    np.testing.assert_allclose(ts.layer_norm(x, weight, weight, axis=1), expected)
    with refused(
        AxisError, "layer_norm: argument x: axis 3 is out of bounds for array of dimension 3"
    ):
        ts.layer_norm(x, weight, weight, axis=3)
    with refused(
        AxisError, "layer_norm: argument x: axis 1 is out of bounds for array of dimension 1"
    ):
        ts.layer_norm(weight, weight, weight, axis=1)


@pytest.mark.parametrize("name", ["matmul", "blur", "transpose", "linear", "exp"])
def test_several_core_axes(name: str) -> None:
    """`axis=` for kernels with several core axes, or none: TypeError, as for any name that a
    function does not have.
    """
    with refused(TypeError, f"{name}() got an unexpected keyword argument 'axis'"):
        getattr(ts, name)(*[np.ones((3, 3))] * {"matmul": 2, "linear": 3}.get(name, 1), axis=0)


def test_keywords_and_arguments() -> None:
    """Unknown keywords, missing or too many arguments: TypeError, as from functions of Python's."""
    x = np.ones(3)
    for call in (lambda: ts.softmax(x, axes=0), lambda: ts.softmax(), lambda: ts.exp(x, x),
                 lambda: ts.matmul(x), lambda: ts.softmax(x, 0, x), lambda: ts.softmax(x, x=x),
                 lambda: ts.exp(x, where=True), lambda: ts.exp(x, dtype="f4")):  # fmt: skip
        with pytest.raises(TypeError, match=r"^(softmax|matmul|exp)\(\) "):
            call()


def test_shapes_that_do_not_fit() -> None:
    """Shapes that do not fit: ValueError with kernel, argument, axis, expected and got."""
    a = np.ones((2, 3))
    with refused(
        ValueError,
        "matmul: argument b: dim k (axis 0) must be 3, as in the arguments before it, got 2",
    ):
        ts.matmul(a, a)
    hint = "; [:, None] makes a vector a column, [None, :] a row"
    with refused(
        ValueError,
        "matmul: argument b must have the axes (k, n) at its end, got shape (3,)" + hint,
    ):
        ts.matmul(a, np.ones(3))
    with refused(ValueError, "layer_norm: argument weight: dim n (axis 0) must be 3"):
        ts.layer_norm(a, np.ones(1), np.ones(3))
