"""Scalars with which index arithmetic stays in 64 bits: found when code is made, asked at calls."""

from pathlib import Path

import numpy as np
import pytest

import gen
from gen import spec as specs
from gen.lower.scalar_limits import smallest
from gen.lower.target import Level, Target
from gen.pipeline import limits_of, schedule
from gen.show import unproved

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
    assert str(refusal.value) == (
        f"reach: scalar s must be from {-limit} to {limit}, or indices would leave 64 bits,"
        f" got {wrong}"
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
        ("attention", {"lookahead": (2**62, 2**62)}),  # whose default is 2**62
        ("depthwise_conv2d", dict.fromkeys(("dilation", "padding", "stride"), (2**30, 2**14))),
        ("cross_entropy", {}),  # its int64 is compared with data alone
    ],
)
def test_shipped(name: str, limits: dict[str, tuple[int, ...]]) -> None:
    spec = specs.load(SHIPPED / f"{name}.yaml")
    variants = schedule(spec, specs.choices(spec)[0], Target(Level.V2), unproved)
    assert limits_of(variants) == limits


def test_the_smallest_of_several() -> None:
    assert smallest([{"s": (8, 2)}, {}, {"s": (4, 4), "t": (1, 1)}]) == {"s": (4, 2), "t": (1, 1)}
