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
