"""Positions that data says, held inside an axis: remainders, clamps, quotients and choices of them,
of each type. What converts a size to a type that may not hold it holds nothing.
"""

import pytest

from .script import accept, block, kernel, nest, refusal

SIGNATURE = (
    "m, n, b: int8[n], w: uint8[n], q: int32[n], p: int64[n], u: uint64[n], x: float32[m],"
    " y: Out[float32[n]]"
)


def reading(index: str, assume: str) -> None:
    inner = block("y", "i=y.i", f"y[i] = x[{index}]")
    tree = kernel(SIGNATURE, nest("for y.i in range(n)", inner), assume=assume)
    accept(tree, tree)


def refused(index: str, assume: str) -> str:
    inner = block("y", "i=y.i", f"y[i] = x[{index}]")
    tree = kernel(SIGNATURE, nest("for y.i in range(n)", inner), assume=assume)
    return refusal(tree, tree).message


@pytest.mark.parametrize(
    ("index", "assume"),
    [
        *((f"int64({data}[i]) % m", "m >= 1") for data in "bwqu"),
        ("p[i] % m", "m >= 1"),
        ("int64(u[i] % uint64(m))", "m >= 1"),
        ("int64(min(u[i], uint64(m - 1)))", "m >= 1"),
        ("int64(max(min(u[i], uint64(m - 1)), uint64(0)))", "m >= 1"),
        ("int64(w[i] % uint8(m))", "1 <= m and m <= 255"),
        ("int64(b[i] % int8(m))", "1 <= m and m <= 127"),
        ("int64(min(w[i], uint8(m - 1)))", "1 <= m and m <= 256"),
        ("p[i] % m // 2", "m >= 1"),
        ("(p[i] % m + 1) // 2", "m >= 1"),
        ("(int64(w[i]) - 255) // 2 + m - 1", "m >= 129"),
        ("0 if p[i] > 3 else p[i] % m", "m >= 1"),
        ("min(p[i] % max(p[i], 1), m - 1)", "m >= 1"),
    ],
)
def test_positions_that_are_held_inside(index: str, assume: str) -> None:
    reading(index, assume)


@pytest.mark.parametrize(
    ("index", "assume", "example"),
    [
        ("p[i] % m", "m >= 0", "(for example: m=0"),
        ("p[i] % (m + 1)", "m >= 1", "[1] (for example: m=1"),
        ("int64(u[i] % uint64(m + 1))", "m >= 1", "[1] (for example: m=1"),
        ("int64(min(u[i], uint64(m)))", "m >= 1", "[1] (for example: m=1"),
        ("int64(min(u[i], uint64(m - 2)))", "m >= 1", "(for example: m=1"),  # the largest uint64
        ("int64(u[i])", "m >= 1", "(for example: m=1"),
        ("min(int64(u[i]), m - 1)", "m >= 1", "[-1] (for example: m=1"),  # wraps around
        ("int64(u[i]) // 2", "m >= 1", "(for example: m=1"),
        ("int64(w[i]) // 2", "m >= 1", "[127] (for example: m=1"),
        ("(int64(w[i]) - 255) // 2 + m - 1", "m >= 128", "[-1] (for example: m=128"),
        ("int64(w[i] % uint8(m))", "m >= 1", "[255] (for example: m=1"),
        ("int64(b[i] % int8(m))", "1 <= m and m <= 128", "[-128] (for example: m=1"),
        ("int64(min(w[i], uint8(m - 1)))", "0 <= m and m <= 256", "(for example: m=0"),
        ("0 - p[i] % m", "m >= 2", "[-1] (for example: m=2"),
        ("0 if p[i] > 3 else p[i]", "m >= 1", "(for example: m=1"),
        ("p[i] % (m - 1)", "m >= 1", "(for example: m=1"),
        ("p[i] % (m - 5)", "m >= 1", "[-1] (for example: m=1"),
        ("p[i] % p[i]", "m >= 1", "(for example: m=1"),
        ("p[i] % min(p[i], m)", "m >= 1", "(for example: m=1"),
    ],
)
def test_positions_that_are_not(index: str, assume: str, example: str) -> None:
    message = refused(index, assume)
    assert "by an index that is not affine, outside its bounds, at" in message
    assert example in message
