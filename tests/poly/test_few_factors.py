"""Products of a size and what is one of few numbers: halves, gates, planes of one array."""

from pathlib import Path

import numpy as np
import pytest

from gen.ir.nodes import Kernel
from gen.trial import notebook

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "m, n, x: float32[n], y: Out[float32[3, m]]"


def reading(index: str, assume: str = "3 * m <= n", numbers: str = "range(3)") -> Kernel:
    inner = block("y", "p=y.p, j=y.j", f"y[p, j] = x[{index}]")
    loops = nest(f"for y.p in {numbers}", "for y.j in range(m)", inner)
    return kernel(SIGNATURE, loops, assume=assume)


@pytest.mark.parametrize(
    ("product", "same"),
    [
        ("p * m + j", "j if p == 0 else (j + m if p == 1 else j + 2 * m)"),
        ("m * p + j", "p * m + j"),
        ("(2 - p) * m + j", "j + 2 * m if p == 0 else (j + m if p == 1 else j)"),
        ("p * (n // 3) + j", "j if p == 0 else (j + n // 3 if p == 1 else j + 2 * (n // 3))"),
        ("p * (j + p)", "0 if p == 0 else (j + 1 if p == 1 else 2 * j + 4)"),
        ("(p - 1) * (p - 1) * j", "j if p == 0 else (0 if p == 1 else j)"),
        ("(p - 1) * j + n // 3", "n // 3 - j if p == 0 else (n // 3 if p == 1 else n // 3 + j)"),
    ],
)
def test_a_product_in_pieces(product: str, same: str) -> None:
    """`same` has no product of two that are no numbers, so that isl alone says what it is."""
    assume = "3 * m + 3 <= n"
    accept(reading(product, assume), reading(same, assume))
    accept(reading(same, assume), reading(product, assume))


@pytest.mark.parametrize(
    ("index", "place"),
    [
        ("p * (m + 1) + j", "at [4]"),
        ("(p + 1) * m + j", "at [3]"),
        ("(p - 1) * m + j", "at [-1]"),
    ],
)
def test_what_is_outside_is_named(index: str, place: str) -> None:
    reason = refusal(reading(index), reading(index)).reason
    assert "reads 'x' outside its bounds" in reason and place in reason


def storing(
    place: str, order: tuple[str, str] = ("for y.p in range(3)", "for y.j in range(m)")
) -> Kernel:
    inner = block("y", "p=y.p, j=y.j", f"y[{place}] = x[p, j]")
    return kernel("m, x: float32[3, m], y: Out[float32[3 * m]]", nest(*order, inner))


def test_stores_are_told_apart() -> None:
    turned = ("for y.j in parallel(m)", "for y.p in range(3)")
    accept(storing("p * m + j"), storing("p * m + j", turned))
    accept(storing("p * m + j"), storing("m * p + j"))


def test_stores_that_leave_a_gap_or_meet_are_refused() -> None:
    gap = storing("p * (m - 1) + j")
    assert "unwritten" in refusal(gap, gap).reason
    meet = storing("min(p, 1) * m + j")
    assert "unwritten" in refusal(meet, meet).reason


@pytest.mark.parametrize("index", ["p * m + j", "(p - 17) * m + 17 * m + j"])
def test_a_factor_of_more_numbers_is_not_known(index: str) -> None:
    """Above 16, and below -16."""
    inner = block("y", "p=y.p, j=y.j", f"y[p, j] = x[{index}]")
    loops = nest("for y.p in range(18)", "for y.j in range(m)", inner)
    plain = kernel("m, n, x: float32[n], y: Out[float32[18, m]]", loops, assume="18 * m <= n")
    assert "by an index that is not affine" in refusal(plain, plain).reason


def test_the_rules_of_a_spec_know_halves(tmp_path: Path) -> None:
    (tmp_path / "halves.yaml").write_text(HALVES)
    called = notebook.compile(tmp_path / "halves.yaml")
    for n in range(0, 21, 2):
        x, w = np.arange(3.0 * n).reshape(3, n), np.arange(n // 2) + 1.0
        turned = np.concatenate([-x[:, n // 2 :] * w, x[:, : n // 2] * w], axis=1)
        np.testing.assert_array_equal(called(x, w), turned)


HALVES = """\
tilesmith: 1
kernel: turned_halves
doc: Each row's second half negated, then its first, times weights.
signature: (m,n),(h)->(m,n)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[m, n]"}
  w: {type: "T[h]"}
  y: {type: "T[m, n]", intent: out}
constraints: [n == 2 * h]
compute: |
  for i in range(m):
      for p in range(2):
          for j in range(h):
              y[i, p * h + j] = (2 * p - 1) * x[i, (1 - p) * h + j] * w[j]
"""
