"""Element types"""

import ml_dtypes
import numpy as np
import pytest

import tilesmith as ts

from .support import KERNELS, every_kernel, numbers, python, refused


@every_kernel
def test_promotion(kernel: str) -> None:
    """float32 with float64: computed in float64, as by NEP 50."""
    result = KERNELS[kernel](numbers("d"))
    assert result.dtype == (np.int64 if "argmax" in kernel else np.float64)


def test_integers() -> None:
    """Integers and bools, where a kernel has floats alone: float32 where that holds them all, else
    float64.
    """
    for dtype in ("bool", "int8", "uint8", "int16", "uint16"):
        assert ts.softmax(np.ones(3, dtype)).dtype == np.float32
    for dtype in ("int32", "uint32", "int64", "uint64"):
        assert ts.softmax(np.ones(3, dtype)).dtype == np.float64
    assert ts.matmul(np.ones((2, 2), "i8"), np.ones((2, 2), "f4")).dtype == np.float64


def test_python_numbers() -> None:
    """Python numbers: they take the other arguments' dtype (NEP 50); alone they are float64.
    NumPy's scalars have their own.
    """
    x = np.ones((2, 3), "f4")
    assert ts.clamp(x, 0.1, 0.9).dtype == np.float32
    assert ts.clamp(x, np.float64(0.1), 0.9).dtype == np.float32  # scalar parameters convert
    assert type(ts.exp(1)) is np.float64 and type(ts.exp(np.float32(1))) is np.float32


@pytest.mark.parametrize("given", [[1.0, 2.0], (1.0, 2.0), range(1, 3), [np.float64(1), 2]])
def test_sequences(given: object) -> None:
    """Lists, tuples and ranges: as np.asarray makes of them, so floats are float64."""
    np.testing.assert_array_equal(ts.softmax(given), ts.softmax(np.array([1.0, 2.0])))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(dtype: type) -> None:
    """float16 and bfloat16, where a kernel has them not: computed in float32, and results are
    float32.
    """
    x = np.random.default_rng(3).standard_normal((5, 5)).astype(dtype)
    single = x.astype(np.float32)
    for kernel in (ts.sin, ts.min, ts.cumsum, ts.norm, ts.blur):
        result = kernel(x)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, kernel(single))
    assert ts.argmax(x) == ts.argmax(single)
    for other in (np.float32, np.float64):
        result = ts.matmul(x, single.astype(other))
        assert result.dtype == other
        np.testing.assert_array_equal(result, ts.matmul(single, single.astype(other)))
    assert ts.exp(x).dtype == ts.max(x).dtype == dtype
    with refused(TypeError, f"histogram: argument x has dtype {x.dtype}; supported: uint8"):
        ts.histogram(x)


def test_both_half_types() -> None:
    """float16 with bfloat16: TypeError, as NumPy has no common type of them."""
    x = np.ones((2, 2), np.float16)
    with refused(TypeError, "matmul: arrays of float16, bfloat16 have no common dtype"):
        ts.matmul(x, x.astype(ml_dtypes.bfloat16))


def test_bool_masks() -> None:
    """A bool mask, which PyTorch's attention takes: numbers 0 and 1, as all bools are, which
    masked_attention adds; the mask that hides is np.where(mask, 0, -np.inf).
    """
    q, k, v = np.random.default_rng(4).standard_normal((3, 4, 4)).astype("f")
    mask = np.tri(4, dtype=bool)
    np.testing.assert_array_equal(
        ts.masked_attention(q, k, v, mask), ts.masked_attention(q, k, v, mask.astype("f"))
    )
    hidden = ts.masked_attention(q, k, v, np.where(mask, 0, -np.inf).astype("f"))
    np.testing.assert_allclose(hidden, ts.attention(q, k, v, lookahead=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "longdouble", "U3", "T", "S3", "M8[s]", "V4"])
def test_other_types(dtype: str) -> None:
    """Types that a kernel does not have, and that none of its types holds: TypeError with those
    that it has.
    """
    x = np.zeros(3, dtype)
    with refused(
        TypeError, f"softmax: argument x has dtype {x.dtype}; supported: float32, float64"
    ):
        ts.softmax(x)


def test_other_types_without_ml_dtypes() -> None:
    """The types that an error names: all of the kernel's, bfloat16 without ml_dtypes, too."""
    done = python("import sys; assert 'ml_dtypes' not in sys.modules; ts.log(np.array(['one']))")
    message = "log: argument x has dtype <U3; supported: float32, float64, float16, bfloat16"
    assert done.stderr.rstrip().endswith(message), done.stderr


@pytest.mark.parametrize("given", [np.array([1, None]), [1.0, "a", None], 10**400, [object()]])
def test_objects(given: object) -> None:
    """Arrays of objects: TypeError that names the conversion."""
    advice = "convert it first, for example by np.asarray(..., dtype=np.float64)"
    with refused(TypeError, f"softmax: argument x has dtype object; {advice}"):
        ts.softmax(given)


def test_scalar_parameters() -> None:
    """Scalar parameters: any real number, NumPy's too; anything else: TypeError; one too large:
    OverflowError.
    """
    x = np.array([-1.0, 2.0])
    for low in (0, 0.0, np.float32(0), np.int8(0), np.array(0.0), False):
        assert ts.clamp(x, low).tolist() == [0, 2]
    for low in ("0", None, [0], 1j):
        message = f"^clamp: scalar low must convert to float64, got {type(low).__name__}$"
        with pytest.raises(TypeError, match=message):
            ts.clamp(x, low)
    with refused(OverflowError, "clamp: scalar low: int too large to convert to float"):
        ts.clamp(x, 10**400)
    with refused(TypeError, "trmm: scalar unit_diagonal must convert to bool, got int"):
        ts.trmm(np.ones((2, 2)), np.ones((2, 2)), unit_diagonal=1)


def test_words() -> None:
    """Scalars that are words, as `activation` of `linear`: TypeError and ValueError for others."""
    known = "'none' or 'relu' or 'gelu' or 'gelu_tanh' or 'silu' or 'sigmoid' or 'tanh'"
    x = np.array([-1.0, 2.0])
    assert ts.linear(x, np.eye(2), np.zeros(2), np.str_("relu")).tolist() == [0, 2]
    for word in (1, None, True, b"relu"):
        message = f"^linear: activation must be {known}, got {type(word).__name__}$"
        with pytest.raises(TypeError, match=message):
            ts.linear(x, np.eye(2), np.zeros(2), activation=word)
    with refused(ValueError, f"linear: activation must be {known}, got 'ReLU'"):
        ts.linear(x, np.eye(2), np.zeros(2), activation="ReLU")
