"""Products that are added are fused, and the values stay what they were but for rounding."""

import numpy as np
import pytest

from gen.ir.interpret.interp import run
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.contraction import contract

KERNEL = """\
def k(n, a: {type}[n], b: {type}[n], c: {type}[n], y: Out[{type}[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = {value}
"""


@pytest.mark.parametrize(
    ("value", "fused"),
    [
        ("a[i] * b[i] + c[i]", "fma(a[i], b[i], c[i])"),
        ("c[i] + a[i] * b[i]", "fma(a[i], b[i], c[i])"),
        ("a[i] * b[i] - c[i]", "fma(a[i], b[i], -c[i])"),
        ("c[i] - a[i] * b[i]", "fma(-a[i], b[i], c[i])"),
        ("c[i] - a[i]", "c[i] - a[i]"),
    ],
)
def test_sums_and_differences_of_products(value: str, fused: str) -> None:
    kernel = from_text(KERNEL.format(type="float32", value=value))
    new = contract(kernel)
    assert f"y[i] = {fused}\n" in to_text(new)
    given = {name: np.arange(k, k + 5, dtype="f") for k, name in enumerate("abc")}
    np.testing.assert_array_equal(run(new, given)["y"], run(kernel, given)["y"])


def test_integers_are_not_fused() -> None:
    kernel = from_text(KERNEL.format(type="int32", value="a[i] * b[i] - c[i]"))
    assert contract(kernel) == kernel


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("exp(a[i] * b[i] - max(a[i] * b[i], c[i]))", "exp(a[i] * b[i] - max(a[i] * b[i], c[i]))"),
        ("a[i] * b[i] + a[n - 1 - i] * b[0]", "a[i] * b[i] + a[n - 1 - i] * b[0]"),
        ("a[i] * b[i] + b[i] * c[i]", "fma(a[i], b[i], b[i] * c[i])"),
        ("sqrt(a[i] * c[i]) + a[i] * b[i]", "fma(a[i], b[i], sqrt(a[i] * c[i]))"),
    ],
)
def test_a_product_that_is_rounded_somewhere_is_fused_nowhere(value: str, kept: str) -> None:
    kernel = from_text(KERNEL.format(type="float32", value=value))
    assert f"y[i] = {kept}\n" in to_text(contract(kernel))


def test_a_shifted_exponential_is_at_most_one() -> None:
    """Fused alone, the difference is the product's rounding error, of which exp is infinite."""
    value = "exp(a[i] * b[i] - max(a[i] * b[i], a[i] * b[i]))"
    kernel = contract(from_text(KERNEL.format(type="float32", value=value)))
    given = {name: np.full(3, 1e19 / 3, "f") for name in "abc"}
    np.testing.assert_array_equal(run(kernel, given)["y"], np.ones(3, "f"))
