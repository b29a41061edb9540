"""Special values of kernels, and arguments that are out of range."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import tilesmith as ts

SPECIALS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, -1e-310, 1.0, -1.0, 800.0, -800.0])
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "exp": (ts.exp, np.exp),
    "log": (ts.log, np.log),
    "log1p": (ts.log1p, np.log1p),
    "expm1": (ts.expm1, np.expm1),
    "tanh": (ts.tanh, np.tanh),
    "sin": (ts.sin, np.sin),
    "cos": (ts.cos, np.cos),
    "sigmoid": (ts.sigmoid, scipy.special.expit),
    "softplus": (ts.softplus, lambda x: np.logaddexp(x.dtype.type(0), x)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, dtype: Any) -> None:
    """Alone, which is a tail, and in vectors."""
    ours, numpys = FUNCTIONS[name]
    for x in (SPECIALS.astype(dtype), np.tile(SPECIALS.astype(dtype), 9)):
        with np.errstate(all="ignore"):
            expected = numpys(x)
        result = ours(x)
        np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
        zero = (expected == 0) & (result == 0)
        np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", ["silu", "gelu_tanh"])
def test_activations_of_large_arguments(name: str) -> None:
    x = np.array([-1e4, -800.0, 800.0, 1e4, np.inf, np.nan], "f")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(getattr(ts, name)(x), [0, 0, 800, 1e4, np.inf, np.nan])


def test_softplus_takes_beta_of_either_sign() -> None:
    x = np.linspace(-50, 50, 77)
    for beta in (0.5, 2.0, -1.5):
        np.testing.assert_allclose(
            ts.softplus(x, beta=beta), np.logaddexp(0, beta * x) / beta, rtol=1e-14, atol=1e-30
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_one_special_value_among_many(special: float, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    pairs = {
        "min": np.min, "max": np.max, "argmin": np.argmin, "argmax": np.argmax, "prod": np.prod,
        "sum": np.sum, "var": np.var, "norm": np.linalg.norm, "logsumexp": scipy.special.logsumexp,
    }  # fmt: skip
    for place in (0, 17, 130, 255):
        x = (1 + 0.01 * rng.random((256, 3))).astype(dtype)
        x[place] = special
        for name, numpys in pairs.items():
            for given, axis in ((x, 0), (np.ascontiguousarray(x.T), 1)):
                with np.errstate(all="ignore"):
                    expected = numpys(given, axis=axis)
                np.testing.assert_allclose(
                    getattr(ts, name)(given, axis=axis), expected, rtol=1e-4, err_msg=name
                )


def test_rows_of_minus_infinity() -> None:
    x = np.array([[-np.inf, -np.inf], [-np.inf, 0.0], [np.inf, 0.0]])
    with np.errstate(all="ignore"):
        for name in ("logsumexp", "log_softmax"):
            expected = getattr(scipy.special, name)(x, axis=-1)
            np.testing.assert_array_equal(getattr(ts, name)(x, axis=-1), expected)


@pytest.mark.parametrize("ddof", [0, 1, 1.5, 3, 4])
def test_variances_of_few(ddof: float) -> None:
    x = np.arange(12.0).reshape(3, 4) ** 2
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if ddof >= 3 else _quiet():
        expected = np.var(x, axis=0, ddof=ddof)
    np.testing.assert_allclose(ts.var(x, axis=0, ddof=ddof), expected, rtol=1e-15)
    assert np.isnan(ts.var(np.empty(0)))


def _quiet() -> Any:
    import contextlib

    return contextlib.nullcontext()


def test_variance_does_not_cancel() -> None:
    x = 1e6 + np.random.default_rng(4).standard_normal((1000, 3))
    np.testing.assert_allclose(ts.var(x, axis=0), np.var(x, axis=0), rtol=1e-12)


def test_targets_of_cross_entropy() -> None:
    """A class, none (which is read nowhere), and those that are left out."""
    x = np.log(np.array([[0.25, 0.75]] * 7))
    target = np.array([0, 1, 2, -1, 2**62, -(2**63), -100])
    loss = ts.cross_entropy(x, target)
    np.testing.assert_allclose(loss, [*-np.log([0.25, 0.75]), *[np.nan] * 4, 0], rtol=1e-14)
    np.testing.assert_allclose(ts.cross_entropy(x[:1], [1], ignore_index=1), [0])
    with pytest.raises(TypeError, match="argument target has dtype float64; supported: int64"):
        ts.cross_entropy(x, target.astype(float))
    with pytest.raises(ValueError, match="dim n must be at least 1"):
        ts.cross_entropy(np.empty((2, 0)), [0, 0])


def test_classes_along_another_axis() -> None:
    """As torch has them: (batch, classes, positions)."""
    x = np.random.default_rng(5).standard_normal((2, 5, 7))
    target = np.random.default_rng(6).integers(0, 5, (2, 7))
    expected = ts.cross_entropy(np.moveaxis(x, 1, -1).copy(), target)
    np.testing.assert_allclose(ts.cross_entropy(x, target, axis=1), expected, rtol=1e-14)


def test_products_and_sums_broadcast() -> None:
    x, y, z = np.arange(4.0), np.ones((3, 1)), np.full((2, 1, 4), 2.0)
    np.testing.assert_array_equal(ts.multiply_add(x, y, z, a=3), 3 * x + y * z)
    np.testing.assert_array_equal(ts.multiply_add(x, y, 5.0), x + 5 * y)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 4099])
def test_histograms(size: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, (3, size)).astype(np.uint8)
    x[0] = 255
    expected = [np.bincount(row, minlength=256) for row in x]
    np.testing.assert_array_equal(ts.histogram(x), expected)
    np.testing.assert_array_equal(ts.histogram(x[:, ::-1]), expected)
    with pytest.raises(TypeError, match="argument x has dtype float64; supported: uint8"):
        ts.histogram(x.astype(float))
