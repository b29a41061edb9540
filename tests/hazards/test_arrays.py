"""Inputs in any memory layout"""

import mmap
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tilesmith as ts

from .support import KERNELS, SHAPE, Array, assert_close, every_kernel, numbers, refused


def _agrees(kernel: str, layout: Callable[[Array], Array]) -> None:
    x = numbers()
    laid_out = layout(x)
    assert np.array_equal(laid_out, x) and laid_out is not x
    assert_close(KERNELS[kernel](laid_out), KERNELS[kernel](x))


@every_kernel
def test_negative_strides(kernel: str) -> None:
    """Negative strides, as of `x[::-1]`: read where they are."""
    _agrees(kernel, lambda x: x[::-1, ::-1].copy()[::-1, ::-1])
    _agrees(kernel, lambda x: x[:, ::-1].copy()[:, ::-1])


@every_kernel
def test_wide_strides(kernel: str) -> None:
    """Strides of several elements, as of `x[::2]`: read where they are; where code wants
    neighbours, a block of rows at a time is packed.
    """

    def wide(x: Array) -> Array:
        memory = np.zeros((2 * SHAPE[0], 3 * SHAPE[1]), x.dtype)
        memory[::2, ::3] = x
        return memory[::2, ::3]

    _agrees(kernel, wide)


@every_kernel
def test_fortran_order(kernel: str) -> None:
    """Fortran order: as C order; new results of the input's shape take the input's order, as
    NumPy's do.
    """
    _agrees(kernel, np.asfortranarray)
    x = np.asfortranarray(numbers())
    assert ts.exp(x).strides == np.exp(x).strides


@every_kernel
def test_strides_of_0(kernel: str) -> None:
    """Strides of 0, as of `np.broadcast_to`: as the array written out."""
    x = numbers()
    for one in (x[:1], x[:, :1], x[:1, :1]):
        repeated = np.broadcast_to(one, SHAPE)
        assert 0 in repeated.strides
        assert_close(KERNELS[kernel](repeated), KERNELS[kernel](repeated.copy()))


@every_kernel
def test_overlapping_windows(kernel: str) -> None:
    """Elements that are several elements of the array, as of `sliding_window_view`: as the array
    written out.
    """
    windows = sliding_window_view(numbers().ravel()[: SHAPE[0] + SHAPE[1] - 1], SHAPE[1])
    assert windows.shape == SHAPE
    assert_close(KERNELS[kernel](windows), KERNELS[kernel](windows.copy()))


@every_kernel
def test_misaligned(kernel: str) -> None:
    """Misaligned memory and fields of packed records: copied a block at a time to where it is
    aligned.
    """

    def misaligned(x: Array) -> Array:
        memory = np.zeros(x.nbytes + 1, np.uint8)
        view = memory[1:].view(x.dtype).reshape(x.shape)
        view[...] = x
        assert not view.flags.aligned
        return view

    def second(x: Array) -> Array:
        records = np.zeros(x.shape, np.dtype([("tag", "i1"), ("value", x.dtype)]))
        records["value"] = x
        return records["value"]

    def first(x: Array) -> Array:  # element 0 is aligned, but elements are 5 bytes apart
        records = np.zeros(x.shape, np.dtype([("value", x.dtype), ("tag", "i1")]))
        records["value"] = x
        return records["value"]

    for layout in (misaligned, second, first):
        _agrees(kernel, layout)


@every_kernel
def test_foreign_byte_order(kernel: str) -> None:
    """Big-endian arrays: converted a block at a time, never misread; new results are native."""
    _agrees(kernel, lambda x: x.astype(x.dtype.newbyteorder("S")))


@every_kernel
def test_read_only(kernel: str) -> None:
    """Read-only inputs: read."""

    def locked(x: Array) -> Array:
        x = x.copy()
        x.flags.writeable = False
        return x

    _agrees(kernel, locked)


def test_zero_size() -> None:
    """Arrays of size 0: results of the shape that follows, of what a kernel makes of nothing."""
    assert ts.exp(np.ones((3, 0, 2))).shape == (3, 0, 2)
    assert ts.softmax(np.ones((3, 0))).shape == (3, 0)
    assert ts.sum(np.ones((3, 0)), axis=-1).tolist() == [0, 0, 0]
    assert ts.matmul(np.ones((2, 0)), np.ones((0, 3))).tolist() == [[0] * 3] * 2
    assert ts.blur(np.ones((0, 5))).shape == (0, 5)
    assert ts.cumsum(np.ones((0, 2**40), "f"), axis=0).shape == (0, 2**40)


def test_zero_dimensional() -> None:
    """Arrays of 0 dimensions and scalars: a NumPy scalar comes back, as from NumPy's functions; a
    kernel that needs an axis says so.
    """
    for given in (1.5, np.float64(1.5), np.array(1.5)):
        assert type(ts.exp(given)) is np.float64 and ts.exp(given) == ts.exp(np.array([1.5]))[0]
    assert type(ts.sum(np.ones(3, "f"))) is np.float32
    assert ts.sum(2.0) == 2.0
    with refused(ValueError, "softmax: argument x must have the axes (n,) at its end"):
        ts.softmax(1.5)


def test_many_axes() -> None:
    """64 axes, the most that NumPy has: as fewer."""
    x = numbers().reshape(*[1] * 31, 20, *[1] * 31, 24)
    assert x.ndim == 64
    np.testing.assert_array_equal(ts.exp(x).reshape(SHAPE), ts.exp(numbers()))
    np.testing.assert_array_equal(ts.softmax(x).reshape(SHAPE), ts.softmax(numbers()))


def _without_memory(elements: int) -> Array:
    """Zeros of which a page takes memory only once it is written to."""
    no_reserve = 0x4000  # MAP_NORESERVE of Linux, which Python 3.11 does not name
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    return np.frombuffer(mmap.mmap(-1, 4 * elements, flags=flags), np.float32)


def test_more_than_2_to_the_31_elements() -> None:
    """More than 2**31 elements, or strides past 2**31: sizes and addresses are of 64 bits
    everywhere.
    """
    n = 2**31 + 77
    x = _without_memory(n)
    x[5], x[-2] = 1, 3
    assert ts.argmax(x) == n - 2
    far, out = _without_memory(7 * 2**29), _without_memory(5 * 2**30)
    few = far[:: 2**29 + 3]
    few[:] = np.arange(len(few))
    into = out[:: 2**30][: len(few)]
    some = few[: len(into)]
    np.testing.assert_array_equal(ts.exp(some, out=into), ts.exp(some.copy()))
    rows = as_strided(far, (3, 5), (4 * (2**31 + 9), 4))
    rows[...] = np.arange(15).reshape(3, 5)
    for name in ("softmax", "transpose", "blur"):
        np.testing.assert_array_equal(getattr(ts, name)(rows), getattr(ts, name)(rows.copy()))
    np.testing.assert_array_equal(ts.matmul(rows, rows.T), ts.matmul(rows.copy(), rows.T.copy()))
