"""Calls that people write fused, beside NumPy and SciPy as these would write them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

import tilesmith as ts

Array = NDArray[Any]
RNG = np.random.default_rng(17)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def normal(dtype: Any, *shape: int) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def close(got: Any, exact: Any, scale: float = 1.0) -> None:
    """Within a few units of the type, relative to the largest."""
    assert got.shape == np.shape(exact)
    off = np.max(np.abs(got - exact), initial=0)
    assert off <= scale * np.finfo(got.dtype).eps * max(1, np.max(np.abs(exact), initial=0))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "none": lambda v: v,
    "relu": lambda v: np.maximum(v, 0),
    "gelu": lambda v: v * scipy.special.ndtr(v),
    "gelu_tanh": lambda v: 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
    "silu": lambda v: v * scipy.special.expit(v),
    "sigmoid": scipy.special.expit,
    "tanh": np.tanh,
}


@DTYPES
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear(activation: str, dtype: Any) -> None:
    """Of few rows, of some and of many; of full tiles and of what is left of them."""
    for m, k, n in ((1, 5, 3), (2, 70, 130), (17, 9, 33), (64, 20, 96), (67, 31, 45)):
        x, weight, bias = normal(dtype, m, k), normal(dtype, k, n), normal(dtype, n)
        exact = ACTIVATIONS[activation](x.astype(float) @ weight.astype(float) + bias)
        close(ts.linear(x, weight, bias, activation=activation), exact, 2 * k + 20)
    with_nan = np.where(np.arange(m)[:, None] == 3, np.nan, x)
    rows = np.isnan(ts.linear(with_nan, weight, bias, activation)).all(axis=1)
    assert rows.tolist() == [i == 3 for i in range(m)]


@DTYPES
@pytest.mark.parametrize("shape", [(1, 1), (5, 33), (40, 7), (3, 700)])
def test_norms_of_a_sum(shape: tuple[int, int], dtype: Any) -> None:
    x, residual = normal(dtype, *shape), normal(dtype, *shape)
    weight, bias = normal(dtype, shape[1]), normal(dtype, shape[1])
    total = x.astype(float) + residual
    normed, sums = ts.add_layer_norm(x, residual, weight, bias)
    deviation = np.sqrt(total.var(1, keepdims=True) + 1e-5)
    close(normed, (total - total.mean(1, keepdims=True)) / deviation * weight + bias, 400)
    assert np.array_equal(sums, x + residual)
    normed, sums = ts.add_rms_norm(x, residual, weight)
    close(normed, total / np.sqrt((total**2).mean(1, keepdims=True) + 1e-6) * weight, 40)
    assert np.array_equal(sums, x + residual)
    into = residual.copy()
    _, sums = ts.add_rms_norm(x, into, weight, out=(None, into))
    assert sums is into and np.array_equal(into, x + residual)


@DTYPES
def test_mean_and_variance(dtype: Any) -> None:
    x = normal(dtype, 6, 5, 70) + dtype(3)
    for axis in (0, 1, -1):
        for ddof in (0, 1):
            mean, variance = ts.mean_var(x, axis=axis, ddof=ddof)
            close(mean, x.astype(float).mean(axis), 8)
            close(variance, x.astype(float).var(axis, ddof=ddof), 40)
    with np.errstate(invalid="ignore"):
        assert all(np.isnan(r).all() for r in ts.mean_var(np.ones((2, 0), dtype)))


@DTYPES
def test_axpby(dtype: Any) -> None:
    x, y = normal(dtype, 3, 40), normal(dtype, 40)
    close(ts.axpby(x, y, 2.5, b=-0.5), 2.5 * x.astype(float) - 0.5 * y, 4)
    assert np.array_equal(ts.axpby(x, y), x + y)


@DTYPES
def test_rope_turns_pairs(dtype: Any) -> None:
    """Pairs are complex numbers; each is multiplied by one of length 1."""
    for half in (1, 5, 16, 64):
        x = normal(dtype, 2, 3, 9, 2 * half)
        angle = RNG.uniform(0, 100, (9, half))
        z = (x[..., :half] + 1j * x[..., half:].astype(complex)) * np.exp(1j * angle)
        turned = ts.rope(x, np.cos(angle).astype(dtype), np.sin(angle).astype(dtype))
        close(turned, np.concatenate([z.real, z.imag], axis=-1), 8)
        close(ts.rope(x, *(f(angle).astype(dtype) for f in (np.cos, np.sin)), out=x), turned, 0)


@DTYPES
@pytest.mark.parametrize("size", [2, 32, 64, 34])
def test_products_with_quantised_weights(size: int, dtype: Any) -> None:
    for rows, groups in ((1, 1), (7, 3), (64, 16)):
        x, scale = normal(dtype, groups, size), normal(dtype, rows, groups)
        weight = RNG.integers(-128, 128, (rows, groups, size)).astype(np.int8)
        exact = np.einsum("mgk,mg,gk->m", weight.astype(float), scale, x)
        close(ts.matvec_int8(weight, scale, x), exact, 4 * groups * size)
        four = RNG.integers(-8, 8, (rows, groups, size))
        low, high = (part + 8 for part in np.split(four, 2, axis=-1))
        packed = (low | high << 4).astype(np.uint8)
        exact = np.einsum("mgk,mg,gk->m", four.astype(float), scale, x)
        close(ts.matvec_int4(packed, scale, x), exact, 4 * groups * size)


def test_scans_of_all_types() -> None:
    for dtype in (np.int8, np.uint16, np.int64, np.uint64, np.float32, bool):
        x = RNG.integers(0, 3, (5, 67)).astype(dtype)
        got = ts.cumprod(x)
        assert got.dtype == np.cumprod(x, axis=-1).dtype
        assert np.array_equal(got, np.cumprod(x, axis=-1))
        assert np.array_equal(ts.cumprod(x, axis=0), np.cumprod(x, axis=0))
    for x in (RNG.integers(-9, 9, (4, 71)), normal(np.float64, 4, 71)):
        behind = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
        for got, exact in (
            (ts.exclusive_cumsum(x), np.cumsum(x, axis=1) - x),
            (ts.reverse_cumsum(x), behind),
        ):
            assert got.dtype == x.dtype
            np.testing.assert_allclose(got, exact, atol=1e-13)


# ---------------------------------------------------------------- poolings


def windows(x: Array, size: int, stride: int, padding: int, border: float) -> Iterator[Array]:
    """For each place of the result, in order, its window."""
    wide = np.pad(x, [(0, 0), (padding, padding), (padding, padding)], constant_values=border)
    for i in range(0, wide.shape[1] - size + 1, stride):
        for j in range(0, wide.shape[2] - size + 1, stride):
            yield wide[:, i : i + size, j : j + size]


@DTYPES
@pytest.mark.parametrize(
    ("size", "stride", "padding"),
    [(2, 2, 0), (3, 2, 1), (3, 1, 1), (1, 3, 0), (5, 4, 2), (4, 2, 0)],
)
def test_poolings(size: int, stride: int, padding: int, dtype: Any) -> None:
    options = {"size": size, "stride": stride, "padding": padding}
    for m, h, w in ((2, 5, 5), (2, 9, 40), (2, 6, 131), (33, 4, 140), (16, 6, 5), (17, 9, 40)):
        x = normal(dtype, m, h, w)
        largest = [v.max((1, 2)) for v in windows(x, size, stride, padding, -np.inf)]
        means = [v.mean((1, 2), dtype=float) for v in windows(x, size, stride, padding, 0)]
        got = ts.max_pool2d(x, **options)
        assert np.array_equal(got.reshape(m, -1), np.transpose(largest))
        assert got.shape[1] == (h + 2 * padding - size) // stride + 1
        close(ts.avg_pool2d(x, **options).reshape(m, -1), np.transpose(means), 30)
    x[1, 3, 17] = np.nan
    bad = [np.isnan(v).any((1, 2)) for v in windows(x, size, stride, padding, 0)]
    for pooled in (ts.max_pool2d(x, **options), ts.avg_pool2d(x, **options)):
        assert np.array_equal(np.isnan(pooled).reshape(m, -1), np.transpose(bad))


def test_poolings_refuse() -> None:
    x = np.ones((4, 4))
    for options, message in (
        ({"size": 5}, "needs size <= h + 2 * padding"),
        ({"padding": 2}, "needs 2 * padding <= size"),
        ({"stride": 0}, "needs stride >= 1"),
    ):
        with pytest.raises(ValueError, match=message.replace("+", r"\+").replace("*", r"\*")):
            ts.max_pool2d(x, **options)
