"""SciPy: special functions, filters, BLAS. What has no `out=` allocates its result."""

import numpy as np
import scipy
import scipy.linalg.blas
import scipy.ndimage
import scipy.special

from ..worker import Array, Call

VERSION = scipy.__version__


def _softmax(out: Array | None, x: Array) -> Call:
    return lambda: scipy.special.softmax(x, axis=-1)


def _gelu(out: Array | None, x: Array) -> Call:
    def call() -> Array:
        y = scipy.special.ndtr(x, out=out)
        return np.multiply(y, x, out=y)

    return call


def _blur(out: Array | None, x: Array) -> Call:
    return lambda: scipy.ndimage.uniform_filter(x, size=3, mode="nearest", output=out)


def _unsharp(out: Array | None, x: Array) -> Call:
    blur = _blur(out, x)

    def call() -> Array:
        y = blur()
        return np.subtract(2 * x, y, out=y)

    return call


def _sobel(out: Array | None, x: Array) -> Call:
    across = np.empty_like(x)

    def call() -> Array:
        down = scipy.ndimage.sobel(x, axis=0, mode="nearest", output=out)
        scipy.ndimage.sobel(x, axis=1, mode="nearest", output=across)
        return np.multiply(np.hypot(down, across, out=down), np.float32(1 / np.sqrt(32)), out=down)

    return call


def _matmul(out: Array | None, a: Array, b: Array) -> Call:
    """Fortran order: the transposed product of the transposed matrices is the product."""
    into = np.empty((a.shape[0], b.shape[1]), a.dtype) if out is None else out

    def call() -> Array:
        product: Array = scipy.linalg.blas.sgemm(1.0, b.T, a.T, c=into.T, overwrite_c=1)
        return product.T

    return call


KERNELS = {
    "softmax": _softmax,
    "gelu": _gelu,
    "blur": _blur,
    "unsharp": _unsharp,
    "sobel": _sobel,
    "matmul": _matmul,
}
