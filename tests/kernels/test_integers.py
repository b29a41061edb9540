"""Reductions of integers and bools: values, types of results and wrapping, as NumPy has them."""

from typing import Any

import numpy as np
import pytest

import tilesmith as ts

RNG = np.random.default_rng(9)
INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
REDUCTIONS = {
    "sum": (ts.sum, np.sum),
    "prod": (ts.prod, np.prod),
    "min": (ts.min, np.min),
    "max": (ts.max, np.max),
}
AXES: list[Any] = [None, 0, 1, 2, (0, 2), (1, 2)]


def random(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Over the whole range, its ends included."""
    if np.dtype(dtype).kind == "b":
        return RNG.random(shape) < 0.5
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
    x.flat[:2] = info.min, info.max
    return x


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_and_types(name: str, dtype: Any) -> None:
    ours, numpys = REDUCTIONS[name]
    for shape in ((1, 1, 1), (3, 5, 131), (33, 2, 70)):
        x = random(dtype, shape)
        for given in (x, x.transpose(2, 0, 1), x[:, :, ::2]):
            for axis in AXES:
                expected = numpys(given, axis=axis)
                result = ours(given, axis=axis)
                assert result.dtype == expected.dtype
                np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_bools_are_counted(name: str) -> None:
    ours, numpys = REDUCTIONS[name]
    for x in (random(bool, (40, 131)), np.ones((3, 70), bool)):
        for axis in (None, 0, 1):
            expected = numpys(x, axis=axis)
            assert ours(x, axis=axis).dtype == expected.dtype == np.int64
            np.testing.assert_array_equal(ours(x, axis=axis), expected)


def test_sums_of_narrow_integers_do_not_wrap() -> None:
    x = np.full((300, 300), 255, np.uint8)
    assert ts.sum(x) == 300 * 300 * 255
    assert ts.sum(x, axis=0).tolist() == [300 * 255] * 300
    assert ts.sum(np.full(1000, -128, np.int8)) == -128000


def test_sums_of_wide_integers_wrap() -> None:
    x = np.full(3, 2**62, np.int64)
    assert ts.sum(x) == np.sum(x) == 3 * 2**62 - 2**64


def test_integers_are_exact_where_float64_is_not() -> None:
    x = np.array([2**53, 2**53 + 1, 2**53 - 1])
    assert ts.max(x) == 2**53 + 1 and ts.min(-x) == -(2**53) - 1
    assert ts.argmax(x) == ts.argmin(-x) == 1
    assert ts.argmax(x.astype("u8") + np.uint64(2**63)) == 1
    assert ts.cumsum(x)[-1] == 3 * 2**53


@pytest.mark.parametrize("dtype", [*INTEGERS, np.dtype(bool)], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "argmax", "argmin"])
def test_running_sums_and_places(name: str, dtype: Any) -> None:
    ours, numpys = getattr(ts, name), getattr(np, name)
    for shape in ((1, 2), (5, 131), (131, 5)):
        x = random(dtype, shape)
        for axis in (0, 1):
            expected = numpys(x, axis=axis)
            result = ours(x, axis=axis)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_nothing(name: str) -> None:
    ours, numpys = REDUCTIONS[name]
    nothing = np.empty((0, 3), np.int16)
    np.testing.assert_array_equal(ours(nothing, axis=1), numpys(np.ones((0, 3), "i2"), axis=1))
    if name in ("sum", "prod"):
        np.testing.assert_array_equal(ours(nothing, axis=0), numpys(nothing, axis=0))
        assert ours(nothing).dtype == np.int64
    else:
        with pytest.raises(ValueError, match=f"{name}: dim n must be at least 1, got 0"):
            ours(nothing, axis=0)


def test_the_type_of_out_is_that_of_the_sum() -> None:
    x = random(np.dtype("int16"), (3, 4))
    out = np.empty(3, np.int64)
    assert ts.sum(x, axis=1, out=out) is out
    with pytest.raises(TypeError, match=r"out \(y\) must have dtype int64, got int16"):
        ts.sum(x, axis=1, out=np.empty(3, np.int16))
