"""NaN, infinity and nothing"""

import numpy as np
import pytest

import tilesmith as ts

from .support import refused


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("place", [0, 7, 40, 99])
def test_nan(dtype: str, place: int) -> None:
    """NaN: as in NumPy: a maximum with a NaN is NaN, argmax names the first NaN, what is far from
    it is untouched.
    """
    x = np.linspace(-3, 3, 100, dtype=dtype)
    x[place] = np.nan
    assert np.isnan(ts.max(x)) and np.isnan(ts.sum(x)) and np.isnan(ts.mean(x))
    assert ts.argmax(x) == place == np.argmax(x)
    np.testing.assert_array_equal(np.isnan(ts.cumsum(x)), np.isnan(np.cumsum(x)))
    assert np.isnan(ts.exp(x)).nonzero()[0].tolist() == [place]
    assert np.isnan(ts.clamp(x, -1, 1)).nonzero()[0].tolist() == [place]
    assert np.isnan(ts.softmax(x)).all()


def test_infinity() -> None:
    """Infinities, zeros with a sign and subnormal numbers: as in NumPy; no flag or rounding mode of
    the processor is changed.
    """
    x = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e308])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ts.exp(x), np.exp(x))
    assert ts.sum(x[:2]) != ts.sum(x[:2])
    assert ts.max(x) == np.inf and ts.clamp(x, 0)[4] == 5e-324
    with np.errstate(under="raise"):  # a kernel that flushed subnormals would leave that set
        assert np.float64(5e-324) * 1.0 == 5e-324


def test_empty_reductions() -> None:
    """Reductions over nothing: sums are 0, means NaN, max and argmax a ValueError, as in NumPy;
    without results they pass.
    """
    nothing = np.ones((3, 0))
    assert ts.sum(nothing) == 0 and ts.sum(nothing, axis=-1).tolist() == [0] * 3
    assert np.isnan(ts.mean(nothing, axis=-1)).all()
    for name in ("max", "argmax"):
        with refused(ValueError, f"{name}: dim n must be at least 1, got 0"):
            getattr(ts, name)(nothing, axis=-1)
        assert getattr(ts, name)(nothing, axis=0).shape == np.max(nothing, axis=0).shape == (0,)
