"""What the specs of the tests compute, in NumPy, where no expression says it; and fit inputs.

`REFERENCES[kernel]` takes the kernel's arrays and scalars by name (arrays are its own to change,
and those that are only written are not given) and returns its outputs by name. `INPUTS[kernel]`
makes arrays fit for it where `drawn` has no word for that.
"""

import binascii
import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]

# ---------------------------------------------------------------- grids


def jacobi_1d(a: Array, b: Array, steps: int) -> Arrays:
    mean = np.full(3, 1 / 3)
    for _ in range(steps if len(a) > 2 else 0):
        b[1:-1] = np.convolve(a, mean, "valid")
        a[1:-1] = np.convolve(b, mean, "valid")
    return {"a": a, "b": b}


def jacobi_2d(a: Array, b: Array, steps: int) -> Arrays:
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5
    for _ in range(steps if len(a) > 2 else 0):
        b[1:-1, 1:-1] = scipy.signal.convolve2d(a, cross, "valid")
        a[1:-1, 1:-1] = scipy.signal.convolve2d(b, cross, "valid")
    return {"a": a, "b": b}


def seidel_2d(a: Array, steps: int) -> Arrays:
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            for j in range(1, len(a) - 1):
                a[i, j] = np.mean(a[i - 1 : i + 2, j - 1 : j + 2])
    return {"a": a}


def heat_3d(a: Array, b: Array, steps: int) -> Arrays:
    star = np.zeros((3, 3, 3))
    star[1, 1], star[1, :, 1], star[:, 1, 1] = 1 / 8, 1 / 8, 1 / 8
    star[1, 1, 1] = 1 / 4
    for _ in range(steps if len(a) > 2 else 0):
        b[1:-1, 1:-1, 1:-1] = scipy.signal.convolve(a, star, "valid", "direct")
        a[1:-1, 1:-1, 1:-1] = scipy.signal.convolve(b, star, "valid", "direct")
    return {"a": a, "b": b}


def fdtd_2d(source: Array, ex: Array, ey: Array, hz: Array) -> Arrays:
    for value in source:
        ey[0] = value
        ey[1:] -= np.diff(hz, axis=0) / 2
        ex[:, 1:] -= np.diff(hz, axis=1) / 2
        hz[:-1, :-1] -= 0.7 * (np.diff(ex, axis=1)[:-1] + np.diff(ey, axis=0)[:, :-1])
    return {"ex": ex, "ey": ey, "hz": hz}


def adi(u: Array, steps: int, x: float, y: float) -> Arrays:
    for _ in range(steps if len(u) > 2 else 0):
        v = u.copy()
        v[:, 1:-1] = _half_step(u, x, y)
        u[1:-1] = _half_step(v.T, y, x).T
    return {"u": u}


def _half_step(u: Array, x: float, y: float) -> Array:
    """The inner columns, implicit along the first axis, where they end in 1."""
    n = len(u)
    second = scipy.linalg.toeplitz([-2, 1] + [0] * (n - 4))[: n - 2, : n - 2]
    right = u[1:-1, 1:-1] + y * np.diff(u[1:-1], 2, axis=1)
    right[[0, -1]] += x if n > 3 else 2 * x
    inside = np.linalg.solve(np.eye(n - 2) - x * second, right)
    return np.pad(inside, [(1, 1), (0, 0)], constant_values=1)


def deriche(x: Array, alpha: float) -> Arrays:
    e = np.exp(-alpha)
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - e**2)
    back = [1, -2 * e, e**2]

    def smoothed(x: Array) -> Array:
        ahead = scipy.signal.lfilter([k, k * e * (alpha - 1)], back, x)
        behind = scipy.signal.lfilter([0, k * e * (alpha + 1), -k * e**2], back, x[:, ::-1])
        return np.asarray(ahead + behind[:, ::-1])

    return {"y": smoothed(smoothed(x).T).T if x.size else x}


# ---------------------------------------------------------------- matrices


def lu(a: Array) -> Arrays:
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return {"a": a}


def ludcmp(a: Array, b: Array) -> Arrays:
    return {"x": np.linalg.solve(a, b), **lu(a)}


def durbin(r: Array) -> Arrays:
    matrix = scipy.linalg.toeplitz([1, *r[:-1]]) if len(r) else np.ones((0, 0))
    return {"y": np.linalg.solve(matrix, -r)}


def trisolv(l: Array, b: Array) -> Arrays:  # noqa: E741
    return {"x": np.linalg.solve(np.tril(l), b)}


def gramschmidt(a: Array) -> Arrays:
    q, r = np.linalg.qr(a)
    signs = np.sign(np.diag(r))
    q, r = q * signs, r * signs[:, None]
    return {"q": q, "r": r, "a": q * np.diag(r)}


def gemver(
    a: Array, u1: Array, v1: Array, u2: Array, v2: Array, y: Array, z: Array,
    alpha: float, beta: float,
) -> Arrays:  # fmt: skip
    a = a + np.outer(u1, v1) + np.outer(u2, v2)
    x = beta * y @ a + z
    return {"a": a, "x": x, "w": alpha * a @ x}


def correlation(x: Array) -> Arrays:
    spread = np.std(x, axis=0)
    z = (x - np.mean(x, axis=0)) / np.where(spread > 0.1, spread, 1)
    c = z.T @ z / len(x)
    np.fill_diagonal(c, 1)
    return {"c": c}


def tridiagonal(a: Array, b: Array, c: Array, d: Array) -> Arrays:
    x = np.zeros_like(b)
    for place in np.ndindex(b.shape[1:]):
        a1, b1, c1, d1 = (v[:, *place] for v in (a, b, c, d))
        x[:, *place] = np.linalg.solve(np.diag(b1) + np.diag(a1[1:], -1) + np.diag(c1[:-1], 1), d1)
    return {"x": x}


def lu_pivoted(a: Array) -> Arrays:
    return dict(zip(("a", "pivot"), scipy.linalg.lu_factor(a), strict=True))


# ---------------------------------------------------------------- paths, sequences, data


def matrix_chain(p: Array) -> Arrays:
    n = len(p) - 1
    cost = np.zeros((n, n))
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            parts = cost[i, i:j] + cost[i + 1 : j + 1, j]
            cost[i, j] = np.min(parts + p[i] * p[i + 1 : j + 1] * p[j + 1])
    return {"cost": cost}


def small_network(x: Array, weight: Array, bias: Array, dense: Array) -> Arrays:
    h, w = dense.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 1)]), (3, 3), (2, 3)
    )
    inner = np.moveaxis(windows[:, :, : 2 * h, : 2 * w], 1, 3)
    maps = np.maximum(np.tensordot(inner, weight, ([3, 4, 5], [1, 2, 3])) + bias, 0)
    pools = maps.reshape(len(x), h, 2, w, 2, len(bias)).max((2, 4))
    return {"y": np.tensordot(pools, dense, ([3, 1, 2], [1, 2, 3]))}


def floyd_warshall(path: Array) -> Arrays:
    for k in range(len(path)):
        path = np.minimum(path, path[:, k, None] + path[k])
    return {"path": path}


def nussinov(base: Array) -> Arrays:
    """By what the last base of a piece does: nothing, or pair with the one at k."""

    @cache
    def most(i: int, j: int) -> int:
        if j <= i:
            return 0
        partners = (k for k in range(i, j - 1) if base[k] + base[j] == 3)
        return max([most(i, j - 1), *(most(i, k - 1) + most(k + 1, j - 1) + 1 for k in partners)])

    n = len(base)
    table = [[most(i, j) for j in range(n)] for i in range(n)]
    return {"most": np.array(table, int).reshape(n, n)}


def lstm(x: Array, w: Array, u: Array, bias: Array, hidden: Array, cell: Array) -> Arrays:
    y = []
    for value in x:
        enter, forget, new, leave = w @ value + u @ hidden + bias
        cell = cell * scipy.special.expit(forget) + scipy.special.expit(enter) * np.tanh(new)
        hidden = scipy.special.expit(leave) * np.tanh(cell)
        y.append(hidden)
    return {"hidden": hidden, "cell": cell, "y": np.array(y).reshape(len(x), len(hidden))}


def add_rows(at: Array, x: Array, y: Array) -> Arrays:
    inside = (at >= 0) & (at < len(y))
    np.add.at(y, at[inside], x[inside])
    return {"y": y}


def histogram(x: Array) -> Arrays:
    return {"count": np.bincount(x[(x >= 0) & (x < 256)], minlength=256)}


def csr_matvec(start: Array, column: Array, value: Array, x: Array) -> Arrays:
    columns = np.clip(column, 0, len(x) - 1)
    rows = [slice(*ends) for ends in itertools.pairwise(start)]
    return {"y": np.array([value[row] @ x[columns[row]] for row in rows])}


def crc16(x: Array, table: Array | None = None) -> Arrays:
    return {"crc": np.array([binascii.crc_hqx(row.tobytes(), 0xFFFF) for row in x], "u2")}


def resize(x: Array, p: int, q: int) -> Arrays:
    h, w = x.shape[1:]
    rows, columns = (np.arange(p) + 0.5) * h / p - 0.5, (np.arange(q) + 0.5) * w / q - 0.5
    at = np.meshgrid(rows, columns, indexing="ij")
    images = [scipy.ndimage.map_coordinates(im, at, order=1, mode="nearest") for im in x]
    return {"y": np.array(images).reshape(len(x), p, q)}


def mandelbrot(x: Array, y: Array, limit: int) -> Arrays:
    c, count = x + 1j * y[:, None], np.zeros((len(y), len(x)), "i4")
    z = np.zeros_like(c)
    for _ in range(limit):
        inside = np.abs(z) <= 2
        count += inside
        z = np.where(inside, z * z + c, z)
    return {"count": count}


def diffuse(b: Array, rate: float, tolerance: float, limit: int) -> Arrays:
    p, r, x, steps = np.pad(b, 1), b.copy(), np.zeros_like(b), 0
    left = start = np.sum(b**2)
    while steps < limit and not left <= tolerance**2 * start:
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        q = (1 + 4 * rate) * p[1:-1, 1:-1] - rate * around
        far = left / np.sum(p[1:-1, 1:-1] * q)
        x, r = x + far * p[1:-1, 1:-1], r - far * q
        still = np.sum(r**2)
        p[1:-1, 1:-1] = r + still / left * p[1:-1, 1:-1]
        left, steps = still, steps + 1
    return {"x": x, "steps": np.array(steps)}


REFERENCES: Mapping[str, Callable[..., Arrays]] = {
    f.__name__: f
    for f in (
        jacobi_1d, jacobi_2d, seidel_2d, heat_3d, fdtd_2d, adi, deriche, lu, ludcmp, durbin,
        trisolv, gramschmidt, gemver, correlation, floyd_warshall, nussinov, lstm, add_rows,
        histogram, csr_matvec, resize, mandelbrot, diffuse, tridiagonal, lu_pivoted, matrix_chain,
        small_network,
    )
} | {"floyd_warshall_apart": floyd_warshall, "crc16_table": crc16, "crc16_bits": crc16}  # fmt: skip

# ---------------------------------------------------------------- inputs

Inputs = Callable[[np.random.Generator, Arrays], Arrays]


def _bytes_table(_: np.random.Generator, given: Arrays) -> Arrays:
    return {"table": np.array([binascii.crc_hqx(bytes([b]), 0) for b in range(256)], "u2")}


INPUTS: Mapping[str, Inputs] = {
    "correlation": lambda _, given: {"x": np.hstack((given["x"][:, :1] / 100, given["x"][:, 1:]))},
    "crc16_table": _bytes_table,
    "mandelbrot": lambda rng, given: {  # of which no orbit comes near the circle
        name: rng.integers(-8, 5, given[name].shape).astype(given[name].dtype) / 4 for name in "xy"
    },
}
