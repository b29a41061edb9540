"""Numba: the loops that one writes, parallel and with fastmath."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from ..worker import Array, Call, Maker

VERSION = numba.__version__

loops = njit(parallel=True, fastmath=True, nogil=True)


@loops
def _matmul(a, b, c):
    for i in prange(a.shape[0]):
        c[i, :] = 0
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@loops
def _linear(a, b, bias, c):
    for i in prange(a.shape[0]):
        c[i, :] = bias
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
        for j in range(b.shape[1]):
            c[i, j] = max(c[i, j], np.float32(0))


@loops
def _exp(x, y):
    for i in prange(x.size):
        y[i] = math.exp(x[i])


@loops
def _gelu(x, y):
    half, root = np.float32(0.5), np.float32(math.sqrt(0.5))
    for i in prange(x.size):
        y[i] = half * x[i] * (np.float32(1) + math.erf(x[i] * root))


@loops
def _clamp(x, y):
    for i in prange(x.size):
        y[i] = min(max(x[i], np.float32(0)), np.float32(1))


@loops
def _grey(rgb, y):
    r, g, b = np.float32(0.2125), np.float32(0.7154), np.float32(0.0721)
    for i in prange(rgb.shape[0]):
        y[i] = r * rgb[i, 0] + g * rgb[i, 1] + b * rgb[i, 2]


@loops
def _softmax(x, y):
    for i in prange(x.shape[0]):
        peak = x[i, 0]
        for j in range(x.shape[1]):
            peak = max(peak, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - peak)
            y[i, j] = e
            total += e
        scale = np.float32(1) / total
        for j in range(x.shape[1]):
            y[i, j] *= scale


@loops
def _layer_norm(x, weight, bias, y):
    n = x.shape[1]
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(n):
            total += x[i, j]
        mean = total / np.float32(n)
        square = np.float32(0)
        for j in range(n):
            d = x[i, j] - mean
            square += d * d
        scale = np.float32(1) / np.sqrt(square / np.float32(n) + np.float32(1e-5))
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


@loops
def _transpose(x, y):
    """In tiles of 32 x 32: both arrays' lines stay in the cache."""
    m, n = x.shape
    for tile in prange((n + 31) // 32):
        for i0 in range(0, m, 32):
            for j in range(tile * 32, min(tile * 32 + 32, n)):
                for i in range(i0, min(i0 + 32, m)):
                    y[j, i] = x[i, j]


@loops
def _cumsum(x, y):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total


@njit(inline="always", fastmath=True)
def _borders(column):
    column[0], column[-1] = column[1], column[-2]


@loops
def _blur(x, y):
    h, w = x.shape
    ninth = np.float32(1 / 9)
    for i in prange(h):
        column = np.empty(w + 2, np.float32)
        up, down = max(i - 1, 0), min(i + 1, h - 1)
        for j in range(w):
            column[j + 1] = x[up, j] + x[i, j] + x[down, j]
        _borders(column)
        for j in range(w):
            y[i, j] = (column[j] + column[j + 1] + column[j + 2]) * ninth


@loops
def _unsharp(x, y):
    h, w = x.shape
    ninth = np.float32(1 / 9)
    for i in prange(h):
        column = np.empty(w + 2, np.float32)
        up, down = max(i - 1, 0), min(i + 1, h - 1)
        for j in range(w):
            column[j + 1] = x[up, j] + x[i, j] + x[down, j]
        _borders(column)
        for j in range(w):
            blurred = (column[j] + column[j + 1] + column[j + 2]) * ninth
            y[i, j] = x[i, j] + x[i, j] - blurred


@loops
def _sobel(x, y):
    h, w = x.shape
    two = np.float32(2)
    for i in prange(h):
        smooth, slope = np.empty(w + 2, np.float32), np.empty(w + 2, np.float32)
        up, down = max(i - 1, 0), min(i + 1, h - 1)
        for j in range(w):
            smooth[j + 1] = x[up, j] + two * x[i, j] + x[down, j]
            slope[j + 1] = x[up, j] - x[down, j]
        _borders(smooth)
        _borders(slope)
        for j in range(w):
            across = smooth[j] - smooth[j + 2]
            along = slope[j] + two * slope[j + 1] + slope[j + 2]
            y[i, j] = np.sqrt((across * across + along * along) * np.float32(1 / 32))


COLUMNS = 256  # of a reduction over the first axis, at a time: their results stay in L1


@loops
def _sum_first(x, y):
    m, n = x.shape
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        first, last = block * COLUMNS, min(block * COLUMNS + COLUMNS, n)
        total = np.zeros(last - first, np.float32)
        for i in range(m):
            row = x[i, first:last]
            for j in range(row.size):
                total[j] += row[j]
        y[first:last] = total


@loops
def _mean_first(x, y):
    m, n = x.shape
    scale = np.float32(1) / np.float32(m)
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        first, last = block * COLUMNS, min(block * COLUMNS + COLUMNS, n)
        total = np.zeros(last - first, np.float32)
        for i in range(m):
            row = x[i, first:last]
            for j in range(row.size):
                total[j] += row[j]
        y[first:last] = total * scale


@loops
def _max_first(x, y):
    m, n = x.shape
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        first, last = block * COLUMNS, min(block * COLUMNS + COLUMNS, n)
        peak = x[0, first:last].copy()
        for i in range(1, m):
            row = x[i, first:last]
            for j in range(row.size):
                peak[j] = row[j] if row[j] > peak[j] else peak[j]
        y[first:last] = peak


@loops
def _argmax_first(x, y):
    m, n = x.shape
    for block in prange((n + COLUMNS - 1) // COLUMNS):
        first, last = block * COLUMNS, min(block * COLUMNS + COLUMNS, n)
        peak = x[0, first:last].copy()
        at = np.zeros(last - first, np.int32)
        for i in range(1, m):
            row = x[i, first:last]
            for j in range(row.size):
                better = row[j] > peak[j]
                peak[j] = row[j] if better else peak[j]
                at[j] = i if better else at[j]
        y[first:last] = at


@loops
def _sum_last(x, y):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total


@loops
def _mean_last(x, y):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total / np.float32(x.shape[1])


@loops
def _max_last(x, y):
    for i in prange(x.shape[0]):
        peak = x[i, 0]
        for j in range(x.shape[1]):
            peak = max(peak, x[i, j])
        y[i] = peak


@loops
def _argmax_last(x, y):
    for i in prange(x.shape[0]):
        best = 0
        for j in range(x.shape[1]):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best


def _into(function: Callable[..., Any]) -> Maker:
    """A loop nest that fills its last argument."""

    def make(out: Array | None, *arguments: Array) -> Call:
        assert out is not None, "the loops fill an array that they are given"
        function(*arguments, out)
        run = partial(function, *arguments, out)

        def call() -> Array:
            run()
            return out

        return call

    return make


_names = "matmul linear exp gelu clamp grey softmax layer_norm transpose cumsum blur unsharp sobel"
_over = [
    f"{name}_{place}" for name in ("sum", "mean", "max", "argmax") for place in ("first", "last")
]
KERNELS = {name: _into(globals()[f"_{name}"]) for name in [*_names.split(), *_over]}
