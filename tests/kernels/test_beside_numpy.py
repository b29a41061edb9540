"""No kernel is less exact than what NumPy and SciPy give for the same arrays.

Errors are against one precision up, in units in the last place (or, of sums, relative to what the
terms add up to). Where both are within a few units of the exact result, neither is better: which of
them has the larger error depends on the arguments drawn.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tilesmith as ts

WITHIN = 2.5  # units in the last place

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": lambda x: np.log(np.abs(x)),
    "log1p": lambda x: np.log1p(np.abs(x)),
    "expm1": np.expm1,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "sigmoid": scipy.special.expit,
    "silu": lambda x: x * scipy.special.expit(x),
    "softplus": lambda x: np.logaddexp(x.dtype.type(0), x),
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "var": np.var,
    "norm": np.linalg.norm,
    "logsumexp": scipy.special.logsumexp,
}
ROWS: dict[str, Callable[..., Any]] = {
    "softmax": scipy.special.softmax,
    "log_softmax": scipy.special.log_softmax,
    "cumsum": np.cumsum,
}


def _wide(x: Any) -> Any:
    return x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)


def _units(result: Any, exact: Any, dtype: Any) -> float:
    """The largest error in units in the last place, of elements that are no subnormal numbers."""
    normal = np.isfinite(exact) & (np.abs(exact) > np.finfo(dtype).tiny)
    normal &= np.abs(exact) < np.finfo(dtype).max
    unit = np.spacing(np.abs(exact[normal]).astype(dtype)).astype(exact.dtype)
    return float(np.max(np.abs(result[normal] - exact[normal]) / unit))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal(20_000) * s for s in (1e-3, 1, 10)]).astype(dtype)
    numpys = ELEMENTWISE[name]
    given = np.abs(x) if name.startswith("log") else x
    with np.errstate(all="ignore"):
        exact = numpys(_wide(x))
        theirs = _units(numpys(x), exact, dtype)
    ours = _units(getattr(ts, name)(given), exact, dtype)
    assert ours <= max(theirs, WITHIN), f"{ours:.2f} units, NumPy {theirs:.2f}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", REDUCTIONS | ROWS)
def test_rows(name: str, axis: int, dtype: Any) -> None:
    """By the errors' root mean square, relative to the largest result; of products, to each."""
    rng = np.random.default_rng(2)
    shape = (2000, 400) if axis == 0 else (400, 2000)
    x = (1 + 0.1 * rng.standard_normal(shape)).astype(dtype)
    if name == "prod":
        x = np.exp(x - 1)
    numpys = (REDUCTIONS | ROWS)[name]
    exact = numpys(_wide(x), axis=axis)
    scale = (exact if name == "prod" else np.max(np.abs(exact))) * np.finfo(dtype).eps
    ours, theirs = (
        float(np.sqrt(np.mean(((f(x, axis=axis) - exact) / scale) ** 2)))
        for f in (getattr(ts, name), numpys)
    )
    assert ours <= max(1.2 * theirs, WITHIN), f"{ours:.2f} eps, NumPy {theirs:.2f}"


@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm", "logsumexp"])
@pytest.mark.parametrize("n", [5000, 65_535, 65_536, 1_000_003])
def test_long_rows(name: str, n: int) -> None:
    """Terms that are all rounded the same way are the worst case: what one accumulator makes of
    a million of them is off by 2e-3. NumPy adds by pairs of halves.
    """
    numpys = REDUCTIONS[name]
    for x in (np.full(n, 0.1, np.float32), np.random.default_rng(4).random(n, np.float32)):
        x[0] = 3
        exact = numpys(x.astype(np.float64))
        errors = [abs(float(f(x)) / exact - 1) for f in (numpys, getattr(ts, name))]
        assert errors[1] <= max(errors[0], 4e-6), f"{errors[1]:.1e}, NumPy {errors[0]:.1e}"


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_long_rows_of_exponentials(name: str) -> None:
    x = np.zeros(256_000, np.float32)
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    result = getattr(ts, name)(x)
    assert np.max(np.abs(result / exact - 1)) < 2e-6
