"""Reductions over any axes: shapes, values and errors, as NumPy has them."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest
import scipy.special

import tilesmith as ts

RNG = np.random.default_rng(8)
KERNELS = {
    "sum": (ts.sum, np.sum),
    "mean": (ts.mean, np.mean),
    "max": (ts.max, np.max),
    "min": (ts.min, np.min),
    "prod": (ts.prod, np.prod),
    "var": (ts.var, np.var),
    "logsumexp": (ts.logsumexp, scipy.special.logsumexp),
}
AXES: list[Any] = [None, 0, -1, 1, (), (0,), (1, 0), (0, 2), (-1, 0), (2, 1, 0)]


def layouts(x: Any) -> dict[str, Any]:
    return {
        "C": x,
        "Fortran": np.asfortranarray(x),
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "reversed": x[::-1, :, ::-1].copy()[::-1, :, ::-1],
        "transposed": x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    }


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(name: str, axis: Any, keepdims: bool) -> None:
    ours, numpys = KERNELS[name]
    x = RNG.standard_normal((3, 4, 37)).astype("f")
    expected = numpys(x.astype("d"), axis=axis, keepdims=keepdims)
    for layout, given in layouts(x).items():
        result = ours(given, axis=axis, keepdims=keepdims)
        assert np.shape(result) == expected.shape and result.dtype == np.float32, layout
        np.testing.assert_allclose(result, expected, rtol=4e-6, atol=2e-6)
        out = np.empty(expected.shape, "f")
        assert ours(given, axis=axis, keepdims=keepdims, out=out) is out
        np.testing.assert_array_equal(out, result)


def test_all_is_what_no_axis_means() -> None:
    x = RNG.standard_normal((5, 7))
    assert ts.sum(x) == ts.sum(x, axis=None) == ts.sum(x.ravel())
    assert isinstance(ts.sum(x), np.float64)
    assert ts.sum(x[0]) == ts.sum(x[0], axis=0) == ts.sum(list(x[0]))
    assert ts.sum(3.0) == 3.0 and ts.max(np.array(3.0)) == 3.0
    assert ts.sum(x, keepdims=True).shape == (1, 1)


def test_positions_are_of_the_array_as_it_is_written() -> None:
    x = RNG.permutation(60).reshape(3, 4, 5).astype("f")
    for given in layouts(x).values():
        assert ts.argmax(given) == np.argmax(x)
        for axis, keepdims in itertools.product((None, 0, 1, -1), (False, True)):
            expected = np.argmax(x, axis=axis, keepdims=keepdims)
            result = ts.argmax(given, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(result, expected)
            assert np.shape(result) == expected.shape


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_nothing(shape: tuple[int, ...]) -> None:
    x = np.empty(shape)
    for axis in (None, 0, -1, tuple(range(len(shape)))):
        np.testing.assert_array_equal(ts.sum(x, axis=axis), np.sum(x, axis=axis))
        size = (
            np.size(x) if axis is None else np.prod([np.shape(x)[a] for a in np.atleast_1d(axis)])
        )
        if size:
            assert ts.max(x, axis=axis).shape == np.max(x, axis=axis).shape
        elif np.sum(x, axis=axis).size:
            with pytest.raises(ValueError, match="max: dim n must be at least 1, got 0"):
                ts.max(x, axis=axis)


def test_no_copy_where_axes_follow_each_other_in_memory() -> None:
    x = np.asfortranarray(RNG.standard_normal((40, 50, 60)))
    for axis in (None, (0, 1), (1, 2)):
        ts.sum(x, axis=axis)
        record = ts.last_call()
        assert record is not None and not record["copied"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: ts.sum(x, axis=3), np.exceptions.AxisError,
         "sum: argument x: axis 3 is out of bounds for array of dimension 3"),
        (lambda x: ts.sum(x, axis=(0, -4)), np.exceptions.AxisError,
         "sum: argument x: axis -4 is out of bounds for array of dimension 3"),
        (lambda x: ts.sum(x, axis=(1, -2)), ValueError, "sum: axis 1 is given twice"),
        (lambda x: ts.sum(x, axis=[0, 1]), TypeError,
         "sum: axis must be an integer, a tuple of integers or None, got list"),
        (lambda x: ts.argmax(x, axis=1.0, keepdims=True), TypeError,
         "argmax: axis must be an integer or None, got float"),
        (lambda x: ts.sum(x, axis=(0, None)), TypeError,
         "sum: axis must be a tuple of integers, got NoneType"),
        (lambda x: ts.argmax(x, axis=(0, 1)), TypeError,
         "argmax: axis must be an integer or None, got tuple: a position along several axes is no"
         " single index"),
        (lambda x: ts.sum(x, axis=1, keepdims=True, out=np.empty((2, 4))), ValueError,
         "sum: out must have shape (2, 1, 4), as keepdims keeps the axes, got (2, 4)"),
        (lambda x: ts.sum(x, axis=1, keepdims=True, out=[1]), TypeError,
         "sum: out must be an ndarray, got list"),
        (lambda x: ts.sum(np.ma.masked_array(x, x > 0)), TypeError,
         "sum: argument x is a masked array"),
        (lambda x: ts.softmax(x, keepdims=True), TypeError,
         "unexpected keyword argument 'keepdims'"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        call(RNG.standard_normal((2, 3, 4)))
    assert message in str(info.value)


# ---------------------------------------------------------------- long ones, of any strides

LONG = 2**20 + 5
ROUNDED = {"sum": 8e-7, "mean": 8e-7, "var": 2e-6, "logsumexp": 2e-6, "norm": 2e-6}


def columns(x: Any) -> dict[str, tuple[Any, int | None]]:
    """Arrays that hold x along an axis which is not the last one of memory, and that axis."""
    n = len(x)
    tall = np.empty((n, 3), "f")
    tall[...] = x[:, None]
    return {
        "tall": (tall, 0),
        "wide": (tall.T, 1),
        "column": (tall[:, 1], None),
        "reversed": (x[::-1], None),
        "tall, reversed": (tall[::-1], 0),
        "broadcast": (np.broadcast_to(x[:, None], (n, 2)), 0),
        "all": (np.broadcast_to(x, (1, n)).T, None),
        "contiguous": (x, None),
    }


@pytest.mark.parametrize("name", ROUNDED)
def test_long_sums_are_as_exact_in_any_layout(name: str) -> None:
    """Added one after the other, the sum of tenths is 1e-3 off, and more for more."""
    ours, numpys = {**KERNELS, "norm": (ts.norm, np.linalg.norm)}[name]
    for x in (RNG.random(LONG, "f"), np.full(LONG, 0.1, "f")):
        if name == "var" and x[0] == x[1]:
            continue
        expected = numpys(x.astype("d"))
        for layout, (given, axis) in columns(x).items():
            np.testing.assert_allclose(
                ours(given, axis=axis), expected, rtol=ROUNDED[name], err_msg=layout
            )


@pytest.mark.parametrize("name", ["sum", "mean", "norm", "logsumexp"])
def test_an_array_that_is_one_number(name: str) -> None:
    tenths = np.broadcast_to(np.float32(0.1), 2**24)
    exact = {
        "sum": 2**24 * 0.1,
        "mean": 0.1,
        "norm": 2**12 * 0.1,
        "logsumexp": 24 * np.log(2) + 0.1,
    }
    ours = ts.norm if name == "norm" else KERNELS[name][0]
    np.testing.assert_allclose(ours(tenths), exact[name], rtol=2e-6)


@pytest.mark.thorough
def test_as_many_ones_as_float32_cannot_count() -> None:
    """2**28 of them: one after the other, they are 2**24."""
    ones = np.empty((2**28, 1), "f")
    ones[...] = 1
    for x in (ones, ones[::-1], np.broadcast_to(np.float32(1), ones.shape)):
        assert ts.sum(x) == ts.sum(x, axis=0)[0] == 2**28
        assert ts.mean(x) == 1 and ts.norm(x) == 2**14


@pytest.mark.parametrize("n", [2048, 70_000, 2**20 + 5])
def test_norms_of_long_rows(n: int) -> None:
    x = 10 + RNG.random(n, "f")
    ones, zeros = np.ones(n, "f"), np.zeros(n, "f")
    exact = (x - np.mean(x, dtype="d")) / np.sqrt(np.var(x, dtype="d") + 1e-5)
    np.testing.assert_allclose(ts.layer_norm(x, ones, zeros), exact, atol=2e-5)
    for k in (1, 7):
        y = ts.group_norm(
            np.repeat(x[None, None, None], k, axis=2), ones[None, :k], zeros[None, :k]
        )
        np.testing.assert_allclose(y, np.broadcast_to(exact, y.shape), atol=2e-5)


# ---------------------------------------------------------------- threads


def test_threads_inside() -> None:
    before = ts.get_num_threads()
    with ts.threads(1):
        assert ts.get_num_threads() == 1
        inner = ts.threads(3)
        with inner, inner:
            assert ts.get_num_threads() == 3
        assert ts.get_num_threads() == 1
    assert ts.get_num_threads() == before


def test_threads_of_other_python_threads_are_theirs() -> None:
    seen: list[int] = []
    with ts.threads(5):
        other = threading.Thread(target=lambda: seen.append(ts.get_num_threads()))
        other.start()
        other.join()
    assert seen == [ts.get_num_threads()]


def test_threads_go_back_after_an_error() -> None:
    before = ts.get_num_threads()
    with pytest.raises(KeyError), ts.threads(1):
        raise KeyError
    assert ts.get_num_threads() == before


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (0, ValueError, "threads: num_threads must be from 1 to 1024, got 0"),
        (1.5, TypeError, "threads: num_threads must be an integer, got float"),
    ],
)
def test_counts_of_threads_are_checked(count: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as info:
        ts.threads(count)
    assert str(info.value) == message


@pytest.mark.parametrize("n", [70_000, 2_000_003, 1 << 24])
def test_long_sums_round_as_seldom_as_numpys(n: int) -> None:
    """In pieces, whose sums are in blocks: of one sign, the error is that of few roundings."""
    x = np.random.default_rng(n).random(n, dtype="f")
    exact = np.sum(x, dtype="d")
    for got, wanted in ((ts.sum(x), exact), (ts.mean(x), exact / n)):
        assert abs(float(got) - wanted) <= 2 * np.finfo("f").eps * wanted


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_long_rows_are_the_same_on_any_number_of_threads(threads: int) -> None:
    x = RNG.standard_normal((3, 200_000)).astype("f")
    for name in ("sum", "mean", "max", "min", "prod"):
        kernel, _ = KERNELS[name]
        np.testing.assert_array_equal(
            kernel(x, axis=1, num_threads=threads), [kernel(row, num_threads=1) for row in x]
        )
    np.testing.assert_array_equal(ts.argmax(x, axis=1, num_threads=threads), x.argmax(axis=1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("n", [1, 5, 31, 32, 33, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint64])
def test_the_first_of_equals_wins_wherever_it_is(name: str, n: int, dtype: Any) -> None:
    """Ties within a vector, between vectors and between groups of them; rows that only rise; rows
    of the value that nothing is less (greater) than; NaNs, of which the first wins.
    """
    rng = np.random.default_rng(n)
    few = rng.integers(0, 3, (40, n)).astype(dtype)
    rising = np.sort(rng.integers(0, 50, (9, n)), axis=1).astype(dtype)
    real = np.issubdtype(dtype, np.floating)
    limits = (-np.inf, np.inf) if real else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    least = np.array([[limit] * n for limit in limits], dtype)
    rows = [few, rising, rising[:, ::-1], np.zeros((9, n), dtype), least]
    if real:
        holes = few.copy()
        holes[rng.random(holes.shape) < 2 / n] = np.nan
        rows.append(holes)
        rows.append(np.where(np.isnan(holes), holes, dtype(limits[0])))
    for x in rows:
        expected = getattr(np, name)(x, axis=1)
        assert (getattr(ts, name)(x, axis=1) == expected).all()
        one_by_one = [getattr(ts, name)(row) for row in x]
        assert (np.array(one_by_one) == expected).all()
        assert (getattr(ts, name)(np.asfortranarray(x), axis=1) == expected).all()


@pytest.mark.parametrize("m", [17, 20, 993, 995, 3973])
def test_packed_rows_have_the_bits_of_others(m: int) -> None:
    """Blocks of rows that are packed are never so few that another order of sums is taken."""
    x = np.random.default_rng(m).standard_normal((m, 33)).astype(np.float32)
    swapped, apart = x.astype(x.dtype.newbyteorder()), np.zeros((m, 66), np.float32)[:, ::2]
    assert (ts.sum(x, axis=1) == ts.sum(swapped, axis=1)).all()
    assert ts.last_call()["packed"]
    assert (ts.softmax(x) == ts.softmax(x, out=apart)).all()
    assert ts.last_call()["packed"]
