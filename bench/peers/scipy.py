"""SciPy: special functions, filters, BLAS. What has no `out=` allocates its result."""

import numpy as np
import scipy
import scipy.linalg.blas
import scipy.ndimage
import scipy.spatial.distance
import scipy.special

from ..worker import Array, Call, Maker

VERSION = scipy.__version__


def _softmax(out: Array | None, x: Array) -> Call:
    return lambda: scipy.special.softmax(x, axis=-1)


def _gelu(out: Array | None, x: Array) -> Call:
    def call() -> Array:
        y = scipy.special.ndtr(x, out=out)
        return np.multiply(y, x, out=y)

    return call


def _sigmoid(out: Array | None, x: Array) -> Call:
    return lambda: scipy.special.expit(x, out=out)


def _silu(out: Array | None, x: Array) -> Call:
    def call() -> Array:
        y = scipy.special.expit(x, out=out)
        return np.multiply(y, x, out=y)

    return call


def _log_softmax(out: Array | None, x: Array) -> Call:
    return lambda: scipy.special.log_softmax(x, axis=-1)


def _logsumexp(axis: int) -> Maker:
    def make(out: Array | None, x: Array) -> Call:
        return lambda: scipy.special.logsumexp(x, axis=axis)

    return make


def _cross_entropy(out: Array | None, x: Array, target: Array) -> Call:
    rows = np.arange(len(target))
    return lambda: scipy.special.logsumexp(x, axis=-1) - x[rows, target]


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


def _trmm(out: Array | None, a: Array, b: Array) -> Call:
    """By columns, as BLAS has it: the transposed triangle times from the right."""
    return lambda: scipy.linalg.blas.strmm(1.0, a.T, b.T, side=1, lower=0).T


def _triangular_solve(out: Array | None, a: Array, b: Array) -> Call:
    return lambda: scipy.linalg.solve_triangular(a, b, lower=True, check_finite=False)


def _sqdist(out: Array | None, x: Array, y: Array) -> Call:
    x, y = x.astype(np.float64), y.astype(np.float64)  # which it would do in each call
    return lambda: scipy.spatial.distance.cdist(x, y, "sqeuclidean")


def _gaussian(out: Array | None, x: Array) -> Call:
    return lambda: scipy.ndimage.gaussian_filter(x, 1, mode="nearest", output=out)


KERNELS = {
    "softmax": _softmax,
    "gelu": _gelu,
    "blur": _blur,
    "unsharp": _unsharp,
    "gaussian": _gaussian,
    "sobel": _sobel,
    "matmul": _matmul,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "log_softmax": _log_softmax,
    "logsumexp_first": _logsumexp(0),
    "logsumexp_last": _logsumexp(-1),
    "cross_entropy": _cross_entropy,
    "triangular_solve": _triangular_solve,
    "trmm": _trmm,
    "sqdist": _sqdist,
}
