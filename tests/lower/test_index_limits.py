"""Scalars with which index arithmetic stays in 64 bits: found when code is made, asked at calls."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gen
from gen import language as specs
from gen.display.text import unproved
from gen.errors import TilesmithError
from gen.ir.algebra import index
from gen.ir.nodes import Binary, BinaryOp, Var
from gen.ir.text.print_expr import expr_to_text
from gen.lower.index_limits import _MOST, Limits, _last, check, smallest
from gen.lower.ranges import Known, range_between, range_of
from gen.lower.variants import limits_of
from gen.pipeline import schedule
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.proofs import proofs

SHIPPED = Path(__file__).parents[2] / "kernels_spec"

ONE = """tilesmith: 1
kernel: reach
doc: A read at an offset.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
scalars: {s: {type: int64}}
compute: |
"""


def written(compute: str, folder: Path) -> Path:
    path = folder / "reach.yaml"
    path.write_text(ONE + "".join(f"  {line}\n" for line in compute.splitlines()))
    return path


READ = "for i in range(n):\n    y[i] = x[i + {0}] if i + {0} < n and i + {0} >= 0 else 0"
TAKEN = "for i in range(n):\n    y[i] = x[i] if i * s * s < n else 0"
SUMMED = "y[i] = sum(x[j] for j in range(min(max(n - s, 0), n)))"


@pytest.mark.parametrize(
    ("compute", "limit", "fits", "wrong"),
    [
        (READ.format("2 * s"), 2**61, (1, -1, 2**61, -(2**61)), 2**62 + 2**40),
        (READ.format("s"), 2**62, (2, -2, 2**62, -(2**62)), 2**63 - 1),
        (SUMMED, 2**62, (2, -1, 2**62, -(2**62)), -(2**63)),
        (TAKEN, 2**15, (1, 2, 2**15), 2**16),
    ],
)
def test_calls_refuse_what_would_leave_64_bits(
    compute: str, limit: int, fits: tuple[int, ...], wrong: int, tmp_path: Path
) -> None:
    kernel = gen.compile(written(compute, tmp_path), level="v2")
    x = np.arange(1, 6, dtype=np.float32)
    for s in fits:
        at = [k + (2 if "2 * s" in compute else 1) * s for k in range(5)]
        expected = [x[k] if 0 <= k < 5 else 0 for k in at]
        if compute == SUMMED:
            expected = [x[: min(max(5 - s, 0), 5)].sum()] * 5
        elif compute == TAKEN:
            expected = [x[k] if k * s * s < 5 else 0 for k in range(5)]
        np.testing.assert_array_equal(kernel(x, s=s), np.float32(expected))
    with pytest.raises(ValueError) as refusal:
        kernel(x, s=wrong)
    bound = f"at most {limit}" if wrong > 0 else f"at least {-limit}"
    assert str(refusal.value) == (
        f"reach: scalar s must be {bound}, or indices would leave 64 bits, got {wrong}"
    )


@pytest.mark.parametrize(
    ("at", "largest"),
    [
        ("min(i * 1099511627776, n - 1)", 2**22),
        ("min(max(i * i * i, 0), n - 1)", 2**20),
        ("min(i * 1099511627776 // 3, n - 1)", 2**22),
        ("min(min((i + 2) * 2251799813685248, n * 2251799813685248), n - 1)", 2**10),
        ("i * 1099511627776 % n", 2**22),
        ("min(max(min(max(p[i], 0), n - 1) * 1099511627776, 0), n - 1)", 2**22),
        ("min(max(n * n * n - i, 0), n - 1)", 2**20),
    ],
)
def test_calls_refuse_sizes_with_which_numbers_would_leave_64_bits(
    at: str, largest: int, tmp_path: Path
) -> None:
    text = ONE.replace("  y: {", '  p: {type: "int64[n]"}\n  y: {').replace("(n)->", "(n),(n)->")
    text = text.replace("scalars: {s: {type: int64}}", "constraints: [n >= 1]")
    unused = "" if "p[" in at else " + 0 * float32(p[i])"
    path = tmp_path / "reach.yaml"
    path.write_text(f"{text}  for i in range(n):\n    y[i] = x[{at}]{unused}\n")
    kernel = gen.compile(path, level="v2")
    x, p = np.arange(5, dtype=np.float32), np.zeros(5, np.int64)
    i = np.arange(5)
    given = {"i": i, "n": 5, "p": p, "min": np.minimum, "max": np.maximum}
    np.testing.assert_array_equal(kernel(x, p), x[eval(at, given)])
    (loaded,) = kernel._compiled.values()
    assert loaded.compiled.limits.largest == largest
    too_large = np.broadcast_to(np.float32(1), (largest + 1,))
    with pytest.raises(ValueError) as refusal:
        loaded.compiled.bound({"x": too_large, "p": too_large.astype(np.int64), "y": too_large}, {})
    assert str(refusal.value) == (
        f"reach: a size of {largest + 1} is more than its indices allow: {largest}"
    )


def test_remainders_are_computed_of_no_larger_numbers(tmp_path: Path) -> None:
    """Than the limits know of: `-s % 1000` is not computed as `999 * s % 1000`."""
    zero = "(s + (-s) % 1000) - 1000 * ((s + 999) // 1000)"
    kernel = gen.compile(written(f"y[i] = x[{zero}] + 0 * x[i]", tmp_path), level="v2")
    for s in (1, 10**16 + 7, 2**60 + 12345, 2**61 - 1):
        np.testing.assert_array_equal(kernel(np.arange(5, dtype=np.float32), s=s), 0)


def test_a_divisor_that_is_added_before_has_room(tmp_path: Path) -> None:
    """`(3*s - 1) // c` is computed as `(3*s + c - 1) // c - 1`."""
    place = f"min(max((3 * s - 1) // {2**62}, 0), i)"
    kernel = gen.compile(written(f"y[i] = x[{place}] + 0 * x[i]", tmp_path), level="v2")
    for s in (1, 2**60, -(2**60)):
        np.testing.assert_array_equal(kernel(np.arange(5, dtype=np.float32), s=s), 0)
    with pytest.raises(ValueError, match="scalar s must be at most"):
        kernel(np.arange(5, dtype=np.float32), s=2**61)


@pytest.mark.parametrize(
    "compute",
    [
        "for i in range(n):\n    y[i] = x[max(min(i - 9223372036854775807, n - 1), 0)]",
        "for i in range(n):\n    y[i] = x[i] if i * 4611686018427387904 * 4 < n else 0",
        "for i in range(n):\n    y[i] = x[i * 36028797018963968 % n]",
    ],
)
def test_numbers_that_leave_64_bits_by_themselves(compute: str, tmp_path: Path) -> None:
    path = written(compute, tmp_path)
    path.write_text(path.read_text().replace("scalars: {s: {type: int64}}\n", ""))
    with pytest.raises(TilesmithError) as error:
        gen.compile(path, level="v2")(np.ones(2, np.float32))
    assert "error: the index arithmetic of block 'y' leaves 64 bits at sizes of 1024" in str(
        error.value
    )
    assert "y[i] = x[" in str(error.value) and "^" in str(error.value)
    assert error.value.hint == "use smaller numbers"
    (proof,) = proofs(specs.load(path), [Cpu(Level.V2)])
    assert proof.refused and "leaves 64 bits at sizes of 1024" in proof.detail


def test_products_of_sizes_are_worked_out(tmp_path: Path) -> None:
    path = written("y[i] = x[i]", tmp_path)
    path.write_text(
        path.read_text()
        .replace("scalars: {s: {type: int64}}\n", "")
        .replace("(n)->(n)", "(a, b, c)->(a, b, c)")
        .replace("T[n]", "T[a, b, c]")
        .replace("y[i] = x[i]", "y[i, j, k] = x[i, j, k]")
        + "recipes: [{target: cpu, variants: [{steps: [{fuse: {loops: [y.i, y.j, y.k]}}]}]}]\n"
    )
    kernel = gen.compile(path, level="v2")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(kernel(x), x)
    (loaded,) = kernel._compiled.values()
    limits = loaded.compiled.limits
    assert [expr_to_text(p) for p in limits.products] == ["a * b * c"]
    check("k", limits, {}, {"a": 2**20, "b": 2**20, "c": 2**19})
    with pytest.raises(ValueError) as refusal:
        check("k", limits, {}, {"a": 2**20, "b": 2**20, "c": 2**19 + 1})
    assert str(refusal.value) == (
        f"k: a * b * c is too large for a = {2**20}, b = {2**20}, c = {2**19 + 1}"
    )


def test_what_is_no_index_has_no_limit(tmp_path: Path) -> None:
    path = written("y[i] = x[i] if s > 3 else 0", tmp_path)
    x = np.ones(2, np.float32)
    assert gen.compile(path, level="v2")(x, s=2**63 - 1).tolist() == [1, 1]


def test_a_size_that_takes_no_memory(tmp_path: Path) -> None:
    path = written(READ.format("s"), tmp_path)
    x = np.broadcast_to(np.float32(1), (2**48,))
    kernel = gen.compile(path, level="v2")
    kernel(np.ones(1, np.float32), s=0)
    (loaded,) = kernel._compiled.values()
    with pytest.raises(ValueError, match=f"reach: a size of {2**48} is more than its indices"):
        loaded.compiled.bound({"x": x, "y": x}, {"s": 0})


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("attention", Limits(2**34, {"lookahead": (2**62, 2**62)})),  # whose default is 2**62
        (
            "depthwise_conv2d",
            Limits(
                2**31,
                dict.fromkeys(("dilation", "padding", "stride"), (2**30, 2**30)),
                ("n * c * ((oh + 7) // 8)",),
            ),
        ),
        ("cross_entropy", Limits()),  # its int64 is compared with data alone
        ("transpose", Limits(2**40)),
    ],
)
def test_shipped(name: str, limits: Limits) -> None:
    spec = specs.load(SHIPPED / f"{name}.yaml")
    variants = schedule(spec, specs.choices(spec)[0], Cpu(Level.V4), unproved)
    found = limits_of(variants)
    assert replace(found, products=tuple(map(expr_to_text, found.products))) == limits


def test_the_smallest_of_several() -> None:
    a, b = Limits(2**9, {"s": (8, 2)}), Limits(2**8, {"s": (4, 4), "t": (1, 1)})
    assert smallest([a, Limits(), b]) == Limits(2**8, {"s": (4, 2), "t": (1, 1)})


@pytest.mark.parametrize("op", [BinaryOp.MIN, BinaryOp.MAX])
def test_the_sides_of_a_minimum_fit_together(op: BinaryOp) -> None:
    """Which is taken may be decided by their difference."""
    side = Binary(BinaryOp.MUL, Var("n"), index(2**31))
    known: Known = {Var("n"): range_between(0, 2**31)}
    assert range_of(side, known).peak == 2**62
    assert range_of(Binary(op, side, side), known).peak == 2**63


@pytest.mark.parametrize("end", [1, 30, 33, 63])
@pytest.mark.parametrize("growth", [0.1, 1, 2, 7])
def test_the_last_that_fits_is_found_wherever_it_is(end: int, growth: float) -> None:
    """However fast peaks grow: the largest that fits, or more, at k."""

    def peak(e: int, k: int) -> int:
        return _MOST * 2 ** round(growth * (e - k)) if e > k else _MOST >> round(growth * (k - e))

    found = [_last(lambda e, k=k: peak(e, k) + (e > k), end) for k in range(-1, end)]
    assert found == [*range(-1, end)]


@pytest.mark.parametrize("most", range(20, 45))
def test_where_peaks_double_three_answers_tell(most: int) -> None:
    asked = list[int]()

    def peak(e: int) -> int:
        asked.append(e)
        return 2 ** (e + 62 - most)

    assert _last(peak, 63) == most
    assert len(asked) <= 3


def test_the_sides_of_a_comparison_fit_together() -> None:
    """What fits alone need not fit beside the other side of a comparison."""
    text = ONE.replace("scalars: {s: {type: int64}}\n", "")
    text += "  for i in range(n):\n    y[i] = x[i] if i * 32768 < n * 32768 - 7 else 0\n"
    spec = specs.loads(text, "reach.yaml")
    limits = limits_of(schedule(spec, specs.choices(spec)[0], Cpu(Level.V4), unproved))
    assert limits.largest == 2**46
