"""Integers of data wrap, whatever is concluded from them: folded, narrowed, clamped, vectorized.

The extremes of int64 stand beside small numbers, so that each sum is met on both sides of an
overflow; what should come out is worked out here, in Python's integers.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gen
from gen import language as specs
from gen.ir.interpret import interp

SPEC = Path(__file__).parent / "wrapping.yaml"
VECTORIZED = """recipes:
  - target: cpu
    variants:
      - steps:
"""
LOOPS = ("order.i", "least.i", "between.k", "beside.k", "far.k", "at.i")
M = 7
LEAST, MOST = -(2**63), 2**63 - 1
EXTREMES = (LEAST, LEAST + 1, LEAST + 3, MOST, MOST - 2, MOST - 5, 0, 1, 4, -2)
PAIRS = list(product(EXTREMES, EXTREMES))
X, Z = np.array(PAIRS).T.copy()
P = np.resize(np.array([-(2**31), 2**31 - 1, 0, -3, -1], np.int32), len(X))
V = np.arange(1, M + 1, dtype=np.float32)


def wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def expected(s: int) -> dict[str, NDArray[np.generic]]:
    rows = []
    count = [0] * M
    for i, (x, z, p) in enumerate(zip(X.tolist(), Z.tolist(), P.tolist(), strict=True)):
        above, below = wrapped(x + 1), wrapped(z - 2)
        near, double = wrapped(wrapped(x + 5) - z), wrapped(wrapped(x * 2) + i)
        first, end = max(wrapped(x - 3), 0), min(wrapped(z + 3), M)
        beside = (k for k in range(M) if wrapped(k + x) <= z and k * 2 < 2 * p + 9)
        rows.append(
            (
                (x < above) + 2 * (wrapped(-x) <= wrapped(2 - x)),
                wrapped(min(x, above) - max(below, z)),
                V[first : max(end, 0)].sum(),
                sum(V[k] for k in beside),
                sum(V[k] for k in range(M) if k + s >= x),
                V[min(max(near, 0), M - 1)] + V[min(max(double, 0), M - 1)],
            )
        )
        if 0 <= wrapped(x + 3) < M:
            count[wrapped(x + 3)] += 1
    names = ("order", "least", "between", "beside", "far", "at")
    return {**dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)),
            "count": np.array(count)}  # fmt: skip


@pytest.mark.parametrize("vectorized", [False, True])
def test_compiled(vectorized: bool, tmp_path: Path) -> None:
    path, text = tmp_path / "wrapping.yaml", SPEC.read_text()
    if vectorized:
        steps = (f"          - vectorize: {{loop: {loop}, width: $lanes}}\n" for loop in LOOPS)
        text += VECTORIZED + "".join(steps)
    path.write_text(text)
    kernel = gen.compile(path)
    for s in (0, 2, 2**60 + 2, -3):
        results = kernel(X, Z, P, V, s=s)
        for (name, right), got in zip(expected(s).items(), results, strict=True):
            np.testing.assert_array_equal(got, right, err_msg=f"{name}, s = {s}")


def test_interpreted() -> None:
    spec = specs.load(SPEC)
    kernel = specs.build(spec, specs.choices(spec)[0])
    results = {name: np.zeros(right.shape, right.dtype) for name, right in expected(2).items()}
    arrays = {"x": X, "z": Z, "p": P, "v": V, **results}
    arrays |= {name: np.zeros(len(X), "f") for name in ("between", "beside", "far", "at")}
    for name, got in interp.run(kernel, arrays, {"s": 2}).items():
        if name in results:
            np.testing.assert_array_equal(got, expected(2)[name], err_msg=name)
