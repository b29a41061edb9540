"""Kernels whose iterations depend on each other, and what they compute in NumPy."""

from collections.abc import Mapping

import numpy as np

from .support import Array

GAUSS_SEIDEL = """\
def gauss_seidel(m, n, x: InOut[float32[m, n]], b: int64, c: int64):
    assume(b >= 1)
    assume(c >= 1)
    for s.i in range(1, m):
        for s.j in range(1, n):
            with block("s", i=spatial(s.i), j=spatial(s.j)):
                x[i, j] = x[i - 1, j] + x[i, j - 1]
"""

JACOBI = """\
def jacobi(k, n, u: InOut[float32[k, n]]):
    for s.t in range(1, k):
        for s.i in range(1, n - 1):
            with block("s", t=spatial(s.t), i=spatial(s.i)):
                u[t, i] = u[t - 1, i - 1] + u[t - 1, i] + u[t - 1, i + 1]
"""

HEAT = """\
def heat(k, n, u: InOut[float32[k, n, n]]):
    for s.t in range(1, k):
        for s.i in range(1, n - 1):
            for s.j in range(1, n - 1):
                with block("s", t=spatial(s.t), i=spatial(s.i), j=spatial(s.j)):
                    u[t, i, j] = (u[t - 1, i - 1, j] + u[t - 1, i + 1, j] + u[t - 1, i, j - 1]
                        + u[t - 1, i, j + 1])
"""

SEIDEL = """\
def seidel(n, a: InOut[float32[n, n]], steps: int64):
    for a.t in range(steps):
        for a.i in range(1, n - 1):
            for a.j in range(1, n - 1):
                with block("a", t=spatial(a.t), i=spatial(a.i), j=spatial(a.j)):
                    a[i, j] = (a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1]
                        + a[i, j] + a[i, j + 1]
                        + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) * 0.125
"""

# Each layer of cells takes from the one below at the same time and from itself at the time before.
LSTM = """\
def lstm(k, n, h: InOut[float32[k, n]], c: InOut[float32[k, n]]):
    for c.t in range(1, k):
        for c.l in range(1, n):
            with block("c", t=spatial(c.t), l=spatial(c.l)):
                c[t, l] = c[t - 1, l] * 0.5 + h[t, l - 1] * 0.25 + h[t - 1, l]
            with block("h", t=spatial(c.t), l=spatial(c.l)):
                h[t, l] = tanh(c[t, l])
"""

FLOYD_WARSHALL = """\
def floyd_warshall(n, p: InOut[float32[n, n]]):
    for p.k in range(n):
        for p.i in range(n):
            for p.j in range(n):
                with block(
                    "p",
                    k=spatial(p.k),
                    i=spatial(p.i),
                    j=spatial(p.j),
                    where=p.i != p.k and p.j != p.k,
                ):
                    p[i, j] = min(p[i, j], p[i, k] + p[k, j])
"""

SUBSTITUTION = """\
def substitution(n, a: float32[n, n], y: InOut[float32[n]]):
    for y.i in range(n):
        for y.k in range(y.i):
            with block("y", i=spatial(y.i), k=spatial(y.k, i)):
                y[i] = y[i] - a[i, k] * y[k]
"""


CHOLESKY = """\
def cholesky(n, a: InOut[float32[n, n]]):
    for a.i in range(n):
        for a.j in range(a.i):
            for a.k in range(a.j):
                with block("a", i=spatial(a.i), j=spatial(a.j, i), k=reduction(a.k, j)):
                    a[i, j] = combine.sum(a[i, j], -(a[i, k] * a[j, k]))
            with block("a_1", i=spatial(a.i), j=spatial(a.j, i)):
                a[i, j] = a[i, j] / a[j, j]
        for a_2.k in range(a.i):
            with block("a_2", i=spatial(a.i), k=reduction(a_2.k, i)):
                a[i, i] = combine.sum(a[i, i], -(a[i, k] * a[i, k]))
        with block("a_3", i=spatial(a.i)):
            a[i, i] = sqrt(abs(a[i, i]) + 4.0)
"""
"""For any matrix: what a root is drawn of is above 0."""


def gauss_seidel(x: Array, b: int, c: int) -> Mapping[str, Array]:
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i - 1, j] + x[i, j - 1]
    return {"x": x}


def jacobi(u: Array) -> Mapping[str, Array]:
    for t in range(1, len(u)):
        u[t, 1:-1] = u[t - 1, :-2] + u[t - 1, 1:-1] + u[t - 1, 2:]
    return {"u": u}


def heat(u: Array) -> Mapping[str, Array]:
    for t in range(1, len(u)):
        v = u[t - 1]
        u[t, 1:-1, 1:-1] = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:]
    return {"u": u}


def lstm(h: Array, c: Array) -> Mapping[str, Array]:
    for t in range(1, h.shape[0]):
        for k in range(1, h.shape[1]):
            c[t, k] = c[t - 1, k] * 0.5 + h[t, k - 1] * 0.25 + h[t - 1, k]
            h[t, k] = np.tanh(c[t, k])
    return {"h": h, "c": c}


def seidel(a: Array, steps: int) -> Mapping[str, Array]:
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            for j in range(1, len(a) - 1):
                a[i, j] = a[i - 1 : i + 2, j - 1 : j + 2].sum() * 0.125
    return {"a": a}


def floyd_warshall(p: Array) -> Mapping[str, Array]:
    for k in range(len(p)):
        others = np.delete(np.arange(len(p)), k)
        p[np.ix_(others, others)] = np.minimum(
            p[np.ix_(others, others)], p[others, k : k + 1] + p[k : k + 1, others]
        )
    return {"p": p}


def substitution(a: Array, y: Array) -> Mapping[str, Array]:
    for i in range(len(y)):
        for k in range(i):
            y[i] -= a[i, k] * y[k]
    return {"y": y}


def cholesky(a: Array) -> Mapping[str, Array]:
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(abs(a[i, i] - a[i, :i] @ a[i, :i]) + 4)
    return {"a": a}


TEXTS = {
    cholesky: CHOLESKY,
    gauss_seidel: GAUSS_SEIDEL,
    jacobi: JACOBI,
    heat: HEAT,
    seidel: SEIDEL,
    lstm: LSTM,
    floyd_warshall: FLOYD_WARSHALL,
    substitution: SUBSTITUTION,
}
