"""Remainders and quotients by a size: what lies a few times around a ring of n."""

import pytest

from gen.ir.nodes import Kernel

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "n, x: float32[n], y: Out[float32[n]]"
INOUT = "n, x: float32[n], y: InOut[float32[n]]"


def reading(index: str, *, loop: str = "range(n)", signature: str = SIGNATURE) -> Kernel:
    inner = block("y", "i=y.i", f"y[i] = x[{index}]")
    return kernel(signature, nest(f"for y.i in {loop}", inner))


@pytest.mark.parametrize(
    ("remainder", "same"),
    [
        ("(i + 1) % n", "i + 1 if i + 1 < n else 0"),
        ("(i - 1) % n", "i - 1 if i > 0 else n - 1"),
        ("(i + n - 1) % n", "(i - 1) % n"),
        ("(n - i) % n", "n - i if i > 0 else 0"),
        ("(i + 2) % n", "0 if n == 1 else (i + 2 if i + 2 < n else i + 2 - n)"),
        ("(i + n) // n - 1", "0"),
        ("2 * i // n", "1 if 2 * i >= n else 0"),
    ],
)
def test_a_remainder_in_pieces(remainder: str, same: str) -> None:
    """`same` has no division by n, so that isl alone says what it is."""
    accept(reading(remainder), reading(same))
    accept(reading(same), reading(remainder))


@pytest.mark.parametrize(
    ("remainder", "other", "case"),
    [
        ("(i + 1) % n", "min(i + 1, n - 1)", "y[i=1] needs x[0]"),
        ("(i - 1) % n", "max(i - 1, 0)", "y[i=0] needs x[1]"),
        ("i // n", "i", "y[i=1] needs x[0]"),
    ],
)
def test_another_element(remainder: str, other: str, case: str) -> None:
    """The case has two elements; with one, all are the same."""
    found = refusal(reading(remainder), reading(other))
    assert found.reason.startswith(f"{case} as it was at the call from 'x'")


def test_a_divisor_that_may_be_zero() -> None:
    plain = reading("(i + 1) % (n - 1)")
    assert "by an index that is not affine, outside its bounds" in refusal(plain, plain).reason
    accept(*[reading("(i + 1) % (n - 1)", loop="range(2, n)", signature=INOUT)] * 2)


def test_many_times_around() -> None:
    """Which element is not known, but that it is one of them."""
    plain = reading("7 * i % n")
    accept(plain, plain)
    there = reading("7 * i % m", signature=f"m, {SIGNATURE}")
    assert "outside its bounds" in refusal(there, there).reason


def test_what_is_known_where_a_condition_is_read() -> None:
    """The condition on the input is evaluated where the later one does not hold, too: no bound that
    this one gives may be taken for one of what that reads.
    """
    more = "initialises=True, where=x[y.j // n] > 0.0 and y.j < n"
    inner = block("y", "i=y.i, j+=y.j", "y[i] = combine.sum(y[i], 1.0)", more)
    both = nest("for y.i in range(1)", "for y.j in range(m)", inner)
    tree = kernel("m, n, x: float32[n], y: Out[float32[1]]", both, assume="n >= 1")
    assert "may read 'x', by an index that is not affine, outside" in refusal(tree, tree).reason
