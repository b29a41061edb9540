"""Positions made of data, whose sums may wrap around: bounds of the parts are none of the sum. So
may casts of uint64, of which those up to the largest index are themselves.
"""

import pytest

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "m, n, p: int64[n], q: int32[n], u: uint64[n], x: float32[m], y: Out[float32[n]]"
MOST = 2**63 - 1


def reading(index: str) -> str:
    inner = block("y", "i=y.i", f"y[i] = x[{index}]")
    return nest("for y.i in range(n)", inner)


@pytest.mark.parametrize(
    "index",
    [
        f"min((p[i] & {MOST}) + (p[i] & {MOST}), m - 1)",
        f"max(min(p[i], {2**62}) - max(p[i], {-(2**62)}), 0)",
        f"min(min(max(p[i], {2**62}), {MOST}) + 1, m - 1)",
        f"min(min(max(p[i], 0), {MOST}) - min(max(p[i], {-MOST}), 0), m - 1)",
        "min(int64(u[i]), m - 1)",
        f"int64(min(u[i] % uint64(m - 1), {MOST}))",
        f"min(int64(min(u[i], {MOST + 1})), m - 1)",
    ],
)
def test_sums_that_may_wrap_have_no_bounds(index: str) -> None:
    tree = kernel(SIGNATURE, reading(index), assume="m >= 1")
    assert "by an index that is not affine, outside its bounds" in refusal(tree, tree).reason


@pytest.mark.parametrize(
    "index",
    [
        f"min((p[i] & {2**40}) + (p[i] & 3), m - 1)",
        f"min(max(p[i] + {MOST}, 0), m - 1)",
        "min(max(int64(q[i]) - p[i], 0), m - 1)",
        "(p[i] * 3 - p[i]) % m",
        f"min(int64(min(u[i], {MOST})), m - 1)",
        f"int64(min(u[i] % uint64(m), {MOST}))",
    ],
)
def test_what_is_held_afterwards_has(index: str) -> None:
    tree = kernel(SIGNATURE, reading(index), assume="m >= 1")
    accept(tree, tree)
