"""PolyBench's kernels in NumPy, as one writes them there: whole rows, columns and grids at once.

Those whose spec has an oracle are that; these are the others. Each takes its kernel's arrays and
scalars by name, may change what it is given, and returns its outputs.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.linalg
import scipy.signal
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]


def adi(u: Array, steps: int, x: float, y: float) -> Arrays:
    for _ in range(steps):
        v = _implicit(u, x, y)
        u[...] = _implicit(v.T, y, x, u)
    return {"u": u}


def _implicit(u: Array, x: float, y: float, kept: Array | None = None) -> Array:
    """Half a step: implicit along the first axis of the result, all columns inside at once."""
    n = len(u)
    p, q = np.zeros((n, n)), np.zeros((n, n))
    q[0] = 1
    for j in range(1, n - 1):
        below = 1 + 2 * x - x * p[j - 1, 1:-1]
        p[j, 1:-1] = x / below
        right = y * u[j, :-2] + (1 - 2 * y) * u[j, 1:-1] + y * u[j, 2:]
        q[j, 1:-1] = (right + x * q[j - 1, 1:-1]) / below
    v = np.ones((n, n)) if kept is None else kept.T.copy()
    v[0, 1:-1] = v[-1, 1:-1] = 1
    for j in range(n - 2, 0, -1):
        v[j, 1:-1] = p[j, 1:-1] * v[j + 1, 1:-1] + q[j, 1:-1]
    return v if kept is None else v.T


def correlation(x: Array) -> Arrays:
    spread = np.std(x, axis=0)
    z = (x - np.mean(x, axis=0)) / (np.sqrt(len(x)) * np.where(spread > 0.1, spread, 1))
    c = z.T @ z
    np.fill_diagonal(c, 1)
    return {"c": c}


def deriche(x: Array, alpha: float) -> Arrays:
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - e**2)
    back = [1, -2 * e, e**2]

    def smoothed(x: Array, axis: int) -> Array:
        ahead = scipy.signal.lfilter([k, k * e * (alpha - 1)], back, x, axis)
        turned = np.flip(x, axis)
        behind = scipy.signal.lfilter([0, k * e * (alpha + 1), -k * e**2], back, turned, axis)
        return np.asarray(ahead + np.flip(behind, axis))

    return {"y": smoothed(smoothed(x, 1), 0)}


def fdtd_2d(source: Array, ex: Array, ey: Array, hz: Array) -> Arrays:
    for value in source:
        ey[0] = value
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return {"ex": ex, "ey": ey, "hz": hz}


def floyd_warshall(path: Array) -> Arrays:
    for k in range(len(path)):
        np.minimum(path, path[:, k, None] + path[k], out=path)
    return {"path": path}


def gemver(
    a: Array, u1: Array, v1: Array, u2: Array, v2: Array, y: Array, z: Array,
    alpha: float, beta: float,
) -> Arrays:  # fmt: skip
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x = beta * (y @ a) + z
    return {"a": a, "x": x, "w": alpha * (a @ x)}


def gramschmidt(a: Array) -> Arrays:
    q, r = np.zeros_like(a), np.zeros((a.shape[1],) * 2)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
    return {"a": a, "q": q, "r": r}


def heat_3d(a: Array, b: Array, steps: int) -> Arrays:
    for _ in range(steps):
        _heat(a, b)
        _heat(b, a)
    return {"a": a, "b": b}


def _heat(a: Array, b: Array) -> None:
    inside = a[1:-1, 1:-1, 1:-1]
    b[1:-1, 1:-1, 1:-1] = (
        inside
        + 0.125 * (a[2:, 1:-1, 1:-1] - 2 * inside + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2 * inside + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2 * inside + a[1:-1, 1:-1, :-2])
    )


def jacobi_1d(a: Array, b: Array, steps: int) -> Arrays:
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3
    return {"a": a, "b": b}


def jacobi_2d(a: Array, b: Array, steps: int) -> Arrays:
    for _ in range(steps):
        for x, y in ((a, b), (b, a)):
            around = x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            y[1:-1, 1:-1] = (x[1:-1, 1:-1] + around) / 5
    return {"a": a, "b": b}


def lu(a: Array) -> Arrays:
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return {"a": a}


def ludcmp(a: Array, b: Array) -> Arrays:
    lu(a)
    y = scipy.linalg.solve_triangular(a, b, lower=True, unit_diagonal=True)
    return {"a": a, "x": scipy.linalg.solve_triangular(a, y)}


def nussinov(base: Array) -> Arrays:
    n = len(base)
    most = np.zeros((n, n), np.int32)
    pairs = base[:, None] + base == 3
    for i in range(n - 2, -1, -1):
        for j in range(i + 1, n):
            pair = most[i + 1, j - 1] + (pairs[i, j] and i < j - 1)
            most[i, j] = max(pair, np.max(most[i, i:j] + most[i + 1 : j + 1, j]))
    return {"most": most}


def seidel_2d(a: Array, steps: int) -> Arrays:
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            above, below = a[i - 1], a[i + 1]
            row = above[:-2] + above[1:-1] + above[2:] + a[i, 1:-1] + a[i, 2:]
            row += below[:-2] + below[1:-1] + below[2:]
            a[i, 1:-1] = scipy.signal.lfilter([1 / 9], [1, -1 / 9], row, zi=[a[i, 0] / 9])[0]
    return {"a": a}


FORMS: Mapping[str, Callable[..., Arrays]] = {
    f.__name__: f
    for f in (
        adi, correlation, deriche, fdtd_2d, floyd_warshall, gemver, gramschmidt, heat_3d,
        jacobi_1d, jacobi_2d, lu, ludcmp, nussinov, seidel_2d,
    )
}  # fmt: skip
