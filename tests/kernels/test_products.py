"""What is particular to products of matrices, attention and recurrences."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

import tilesmith as ts

Array = NDArray[Any]
RNG = np.random.default_rng(7)
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def random(*shape: int, dtype: Any = np.float64) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


# ---------------------------------------------------------------- products


@pytest.mark.parametrize(
    ("m", "k", "n", "left", "right"),
    [
        (520, 70, 100, True, False),
        (520, 70, 100, True, True),
        (7, 200, 90, False, True),
        (40, 64, 1, False, True),
        (300, 20, 9, True, True),
    ],
)
@both_types
def test_views_of_matrices_are_not_copied(
    m: int, k: int, n: int, left: bool, right: bool, dtype: Any
) -> None:
    a = random(k, m, dtype=dtype).T if left else random(m, k, dtype=dtype)
    b = random(n, k, dtype=dtype).T if right else random(k, n, dtype=dtype)
    np.testing.assert_allclose(ts.matmul(a, b), a @ b, rtol=0, atol=2e-4)
    assert not ts.last_call()["packed"] and not ts.last_call()["copied"]


def test_vectors_and_stacks_of_matrices() -> None:
    a, x = random(2, 30, 40), random(2, 1, 40)
    np.testing.assert_allclose(ts.matvec(a, x[:, 0]), (a @ x.mT)[..., 0], rtol=1e-12)
    np.testing.assert_allclose(ts.matvec(a[0].T, a[0, :, 3]), a[0, :, 3] @ a[0], rtol=1e-10)
    many = random(5, 1, 17, 16), random(3, 16, 18)
    np.testing.assert_allclose(ts.matmul(*many), np.matmul(*many), rtol=1e-10)


@pytest.mark.parametrize("m", [3, 70])
def test_a_triangle_is_all_that_is_read(m: int) -> None:
    a, b = random(m, m), random(m, 37)
    a[np.triu_indices(m, 1)] = np.nan
    lower = np.tril(a)
    np.testing.assert_allclose(ts.trmm(a, b), lower @ b, rtol=1e-9)
    upper = ts.trmm(a.T[::-1, ::-1], b[::-1])[::-1]
    np.testing.assert_allclose(upper, lower.T @ b, rtol=1e-9)
    np.fill_diagonal(a, np.nan)
    np.fill_diagonal(lower, 1)
    np.testing.assert_allclose(ts.trmm(a, b, unit_diagonal=True), lower @ b, rtol=1e-9)


@pytest.mark.parametrize(("m", "n"), [(3, 1), (70, 1), (3, 5), (70, 37)])
@both_types
def test_triangles_are_solved_with(m: int, n: int, dtype: Any) -> None:
    """All that SciPy's function solves, by views, as the documentation has them."""
    a = (random(m, m) / m + 2 * np.eye(m)).astype(dtype)
    b, right = random(m, n, dtype=dtype), random(n, m, dtype=dtype)
    solve, close = scipy.linalg.solve_triangular, {"rtol": 0, "atol": 100 * np.finfo(dtype).eps}
    lower, upper = np.tril(a), np.triu(a)
    ours = ts.triangular_solve
    for found, expected in (
        (ours(a, b), solve(a, b, lower=True)),
        (ours(a[::-1, ::-1], b[::-1])[::-1], solve(a, b)),
        (ours(a.T, b), solve(a, b, trans=1)),
        (ours(a.T[::-1, ::-1], b[::-1])[::-1], solve(a, b, trans=1, lower=True)),
        (ours(a.T, right.T).T, right @ np.linalg.inv(upper)),
        (ours(a.T[::-1, ::-1], right.T[::-1])[::-1].T, right @ np.linalg.inv(lower)),
        (ours(a, b, unit_diagonal=True), solve(a, b, lower=True, unit_diagonal=True)),
    ):
        np.testing.assert_allclose(found, expected, **close)
    a[np.triu_indices(m, 1)] = np.nan
    np.testing.assert_allclose(ours(a, b), solve(lower, b, lower=True), **close)
    np.fill_diagonal(a, np.nan)
    one = solve(lower, b, lower=True, unit_diagonal=True)
    np.testing.assert_allclose(ours(a, b, unit_diagonal=True), one, **close)
    np.testing.assert_allclose(ours(np.zeros((2, 0, 0)), np.zeros((2, 0, 3))), np.zeros((2, 0, 3)))


def test_points_far_from_the_origin_keep_their_distances() -> None:
    x, y = random(20, 3, dtype=np.float32), random(30, 3, dtype=np.float32)
    far = np.float32(2**12)
    expected = np.sum(((x + far)[:, None].astype(float) - (y + far)[None]) ** 2, axis=-1)
    np.testing.assert_allclose(ts.sqdist(x + far, y + far), expected, rtol=1e-6)


# ---------------------------------------------------------------- attention


def attention(q: Array, k: Array, v: Array, mask: Array, scale: float) -> Array:
    scores = scale * (q @ k.mT) + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)


@pytest.mark.parametrize("lookahead", [0, 1, 40, -1])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (130, 130), (60, 200), (100, 20)])
def test_a_query_sees_what_lookahead_lets_it(m: int, n: int, lookahead: int) -> None:
    lookahead = max(n - m, 0) if lookahead < 0 else lookahead
    q, k, v = random(2, m, 33), random(2, n, 33), random(2, n, 18)
    seen = np.arange(n) <= np.arange(m)[:, None] + lookahead
    mask = np.where(seen, 0, -np.inf)
    expected = attention(q, k, v, mask, 0.3)
    got = ts.attention(q, k, v, scale=0.3, lookahead=lookahead)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    masked = ts.masked_attention(q, k, v, mask, scale=0.3)
    np.testing.assert_allclose(masked, expected, rtol=0, atol=1e-12)


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    q, k, v = random(50, 4), random(9, 4), random(9, 5)
    mask = np.zeros((50, 9))
    mask[3] = mask[49] = -np.inf
    got = ts.masked_attention(q, k, v, mask)
    assert not got[3].any() and not got[49].any() and got[4].all()


def test_large_scores_do_not_overflow() -> None:
    q, k = np.full((3, 4), 200, "f"), np.array([[200, 0, 0, 0], [100, 0, 0, 0]], "f")
    v = np.array([[1], [2]], "f")
    np.testing.assert_array_equal(ts.attention(q, k, v), np.ones((3, 1)))


# ---------------------------------------------------------------- recurrences


@both_types
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("t", "b", "d", "h"), [(1, 1, 1, 1), (9, 7, 20, 33), (4, 1, 5, 40)])
def test_lstm(t: int, b: int, d: int, h: int, transposed: bool, dtype: Any) -> None:
    x, state, cell = (random(*s, dtype=dtype) for s in ((t, b, d), (b, h), (b, h)))
    w_ih, w_hh = (random(4 * h, n, dtype=dtype) / dtype(n**0.5) for n in (d, h))
    b_ih, b_hh = random(4 * h, dtype=dtype), random(4 * h, dtype=dtype)
    weights = map(np.asfortranarray, (w_ih, w_hh)) if transposed else (w_ih, w_hh)
    y, c = ts.lstm(x, *weights, b_ih, b_hh, state, cell)
    for step, got in zip(x, y, strict=True):
        gates = np.split(step @ w_ih.T + b_ih + state @ w_hh.T + b_hh, 4, axis=-1)
        i, f, o = (1 / (1 + np.exp(-gates[k])) for k in (0, 1, 3))
        cell = f * cell + i * np.tanh(gates[2])
        state = o * np.tanh(cell)
        np.testing.assert_allclose(got, state, rtol=0, atol=500 * np.finfo(dtype).eps)
    np.testing.assert_allclose(c, cell, rtol=0, atol=1000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("m", [1, 3, 4, 31, 47, 200])
@pytest.mark.parametrize("k", [1, 15, 16, 33, 130])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 33, 70])
def test_matrices_in_every_orientation(m: int, k: int, n: int) -> None:
    """Few columns, and transposes on either side, each of which has a variant of its own."""
    rng = np.random.default_rng(m * k * n)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    exact = a.astype(float) @ b.astype(float)
    bound = (k + 2) * np.finfo(np.float32).eps * (abs(a).astype(float) @ abs(b).astype(float))
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        for right in (b, np.asfortranarray(b), np.repeat(b, 2, axis=1)[:, ::2]):
            assert (abs(ts.matmul(left, right) - exact) <= bound).all()
            assert (abs(ts.linear(left, right, np.zeros(n, np.float32)) - exact) <= bound).all()
