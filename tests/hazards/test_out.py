"""What is written: out="""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tilesmith as ts

from .support import KERNELS, SHAPE, assert_close, every_kernel, numbers, refused

SAME_SHAPE = ("exp", "softmax", "cumsum along axis 0", "blur", "layer_norm")
same_shape = pytest.mark.parametrize("kernel", SAME_SHAPE)


@every_kernel
def test_any_layout(kernel: str) -> None:
    """`out=` in any memory layout, misaligned or big-endian: written where it is, and returned."""
    expected = KERNELS[kernel](numbers())
    shape, dtype = expected.shape, expected.dtype
    wide = np.zeros([2 * n for n in shape], dtype)
    memory = np.zeros(expected.nbytes + 1, np.uint8)
    for out in (
        np.zeros(shape, dtype, order="F"),
        wide[tuple(slice(None, None, -2) for _ in shape)],
        memory[1:].view(dtype).reshape(shape),
        np.zeros(shape, dtype.newbyteorder("S")),
    ):
        assert KERNELS[kernel](numbers(), out=out) is out
        np.testing.assert_array_equal(out, expected)


@every_kernel
def test_what_cannot_be_written(kernel: str) -> None:
    """A read-only `out=`, or one whose elements share memory: ValueError; nothing is written."""
    right = KERNELS[kernel](numbers())
    locked = np.full(right.shape, 7, right.dtype)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match=r": out \(\w+\) is read-only$"):
        KERNELS[kernel](numbers(), out=locked)
    shared = as_strided(np.full(right.size, 7, right.dtype), right.shape, [0] * right.ndim)
    with pytest.raises(ValueError, match=r": out \(\w+\) has several elements in one place$"):
        KERNELS[kernel](numbers(), out=shared)
    assert (locked == 7).all() and (shared == 7).all()


@every_kernel
def test_interleaved(kernel: str) -> None:
    """`out=` whose rows lie between each other's elements, no two in one place: written where it
    is, by any number of threads.
    """
    expected = KERNELS[kernel](numbers())
    m, n = (1, *expected.shape)[-2:]
    for steps in ((m + 1, m), (n, n + 1), (-m - 1, m), (n, -n - 1), (3 * m + 1, 3 * m)):
        places = sum(i * step for i, step in zip(np.indices((m, n)), steps, strict=True))
        memory = np.full(np.ptp(places) + 1, 7, expected.dtype)
        first = memory[-places.min() :]
        strides = [step * expected.itemsize for step in steps[-expected.ndim :]]
        out = as_strided(first, expected.shape, strides)
        for threads in (1, 3):
            assert KERNELS[kernel](numbers(), out=out, num_threads=threads) is out
            np.testing.assert_array_equal(out, expected)
        between = np.delete(memory, (places - places.min()).ravel())
        assert (between == 7).all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), min_size=1, max_size=3))
def test_refused_only_where_shared(axes: list[tuple[int, int]]) -> None:
    """`out=` of any strides: refused only where two elements do share memory."""
    shape, steps = zip(*axes, strict=True)
    places = [sum(map(int.__mul__, at, steps)) for at in itertools.product(*map(range, shape))]
    memory = np.full(max(places) - min(places) + 1, 7.0)
    out = as_strided(memory[-min(places) :], shape, [8 * step for step in steps])
    x = np.arange(1.0, len(places) + 1).reshape(shape)
    if len(set(places)) == len(places):
        assert ts.exp(x, out=out) is out
        np.testing.assert_array_equal(out, ts.exp(x))
    else:
        with refused(ValueError, "exp: out (y) has several elements in one place"):
            ts.exp(x, out=out)
        assert (memory == 7).all()


@every_kernel
def test_wrong_shape(kernel: str) -> None:
    """`out=` of another shape: ValueError with both shapes. It takes no part in broadcasting."""
    right = KERNELS[kernel](numbers())
    for shape in ((*right.shape, 1), (1, *right.shape), (right.shape[0] + 1, *right.shape[1:]), ()):
        message = f" must have shape {right.shape}, got {shape}"
        with pytest.raises(ValueError, match=r": out \(\w+\)" + re.escape(message) + "$"):
            KERNELS[kernel](numbers(), out=np.zeros(shape, right.dtype))


@every_kernel
def test_wrong_dtype(kernel: str) -> None:
    """`out=` of another dtype: TypeError with both; nothing is cast."""
    right = KERNELS[kernel](numbers())
    for dtype in ("float16", "int32", "complex64", "float64"):
        if right.dtype != dtype:
            with refused(TypeError, f"must have dtype {right.dtype}, got {dtype}"):
                KERNELS[kernel](numbers(), out=np.zeros(right.shape, dtype))


@pytest.mark.parametrize("out", [[0.0] * 24, 1.0, "out", memoryview(bytearray(8))])
def test_wrong_type(out: Any) -> None:
    """`out=` that is no array: TypeError; a tuple of the wrong length: ValueError."""
    with refused(TypeError, f"exp: out (y) must be an ndarray, got {type(out).__name__}"):
        ts.exp(np.ones(24), out=out)
    with refused(ValueError, "exp: out must be an array or a tuple of 1, got a tuple of 2"):
        ts.exp(np.ones(24), out=(None, None))


@same_shape
def test_the_input_itself(kernel: str) -> None:
    """`out=` the very input: right; kernels that are proved to run in place copy nothing."""
    x = numbers()
    expected = KERNELS[kernel](x)
    assert KERNELS[kernel](x, out=x) is x
    np.testing.assert_array_equal(x, expected)
    assert ts.last_call()["copied"] is (kernel == "blur")


@same_shape
@pytest.mark.parametrize("shift", [1, -1, 24, -25])
def test_parts_of_the_input(kernel: str, shift: int) -> None:
    """`out=` that overlaps an input in part, in any direction: right, by way of a temporary."""
    memory = np.random.default_rng(1).standard_normal(SHAPE[0] * SHAPE[1] + 60).astype("f")
    size = SHAPE[0] * SHAPE[1]
    x = memory[30 : 30 + size].reshape(SHAPE)
    out = memory[30 + shift : 30 + shift + size].reshape(SHAPE)
    expected = KERNELS[kernel](x)
    KERNELS[kernel](x, out=out)
    np.testing.assert_array_equal(out, expected)


@same_shape
def test_other_orders_of_the_input(kernel: str) -> None:
    """`out=` the input transposed or reversed: right, by way of a temporary."""
    for view in (lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::-1, ::-1].T):
        x = np.random.default_rng(2).standard_normal((20, 20)).astype("f")
        if kernel == "layer_norm":
            weight = np.ones(20, "f")
            call = lambda x, w=weight, **o: ts.layer_norm(x, w, w, **o)  # noqa: E731
        else:
            call = KERNELS[kernel]
        expected = call(x)
        assert_close(call(x, out=view(x)), expected)


def test_any_input() -> None:
    """`out=` that overlaps an input which is not the first, or the first in place and another in
    part: right.
    """
    memory = np.random.default_rng(3).standard_normal((3, 16, 16)).astype("f")
    expected = memory[0] @ memory[1]
    for where in (lambda m: m[0], lambda m: m[1], lambda m: m[1].T, lambda m: m[1, ::-1]):
        a, b = fresh = memory[:2].copy()
        np.testing.assert_allclose(
            ts.matmul(a, b, out=where(fresh)), expected, rtol=1e-4, atol=1e-4
        )
    flat, bias = memory[:2].ravel(), memory[2, 0]
    x, weight = flat[:256].reshape(16, 16), flat[248:264]  # x ends within the weight
    expected = ts.layer_norm(x, weight, bias)
    np.testing.assert_array_equal(ts.layer_norm(x, weight, bias, out=x), expected)


def test_beside_the_input() -> None:
    """`out=` between the elements of an input, as the other half of each row: nothing is copied."""
    image = np.random.default_rng(4).standard_normal((20, 30, 4))
    for x, out in (
        (image[..., 0], image[..., 3]), (image[:, :15], image[:, 15:]), (image[::2], image[1::2]),
    ):  # fmt: skip
        x[...] = 1.5
        expected = ts.exp(x.copy())
        np.testing.assert_array_equal(ts.exp(x, out=out), expected)
        assert not ts.last_call()["copied"]


def test_the_bits_are_the_same() -> None:
    """Results with and without `out=`: the same to the last bit where all arrays are aligned, their
    axes lie in one order, and those without a gap between them in the inputs have none in `out=`;
    else within the kernel's accuracy, as a call may then run another schedule.
    """
    x = np.random.default_rng(5).standard_normal((130, 70)).astype("f")
    for kernel in (ts.softmax, ts.cumsum, lambda x, **o: ts.sum(x, axis=0, **o)):
        fresh = kernel(x)
        strided = np.zeros([2 * n for n in fresh.shape], "f")
        out = strided[tuple(slice(None, None, -2) for _ in fresh.shape)]
        np.testing.assert_array_equal(kernel(x, out=out), fresh)
    x = x[:12, :5].copy().reshape(4, 3, 5)  # 12 rows, or 4 times 3 with gaps
    within = np.zeros((4, 3, 10), "f")[..., ::2]
    np.testing.assert_array_equal(ts.softmax(x, out=within), ts.softmax(x))
    between = np.zeros((4, 4, 5), "f")[:, :3]
    np.testing.assert_allclose(ts.softmax(x, out=between), ts.softmax(x), rtol=1e-6)
