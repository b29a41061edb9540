"""What the emulator counts, beside what is computed by hand."""

import numpy as np
import pytest

from gen.targets.cuda.emulator.counts import AccessCount, table, totals
from gen.targets.cuda.emulator.library import Settings

from .emulated import KERNELS, emulator, launched

COUNTED = Settings(counted=True)
LINES = (KERNELS / "patterns.cu").read_text("utf-8").splitlines()


def at(counts: tuple[AccessCount, ...], text: str, array: str) -> AccessCount:
    """Of the access in the line that begins so; and there is one."""
    line = next(k for k, said in enumerate(LINES, 1) if said.lstrip().startswith(text))
    (found,) = (c for c in counts if c.line == line and c.array == array)
    return found


@pytest.fixture(scope="module")
def patterns() -> tuple[AccessCount, ...]:
    arguments = {
        "x": np.zeros(100, np.float32),
        "d": np.zeros(40),
        "b": np.zeros(40, np.int8),
        "y": np.zeros(40, np.float32),
    }
    return launched(emulator("patterns"), "patterns", (1, 1, 1), (40, 1, 1), arguments, (), COUNTED)


# Warps of 32 and of 8 lanes: instructions, idle lanes, sectors asked for, sectors needed.
GLOBAL = {
    "float sum = xs[0]": ("x", (2, 24, 1 + 1, 1 + 1)),
    "sum += xs[t];": ("x", (2, 24, 4 + 1, 4 + 1)),
    "sum += xs[t + 1]": ("x", (2, 24, 5 + 2, 4 + 1)),
    "sum += xs[2 * t]": ("x", (2, 24, 8 + 2, 4 + 1)),
    "sum += xs[t / 2]": ("x", (2, 24, 2 + 1, 2 + 1)),
    "sum += xs[64 - t]": ("x", (2, 24, 5 + 2, 4 + 1)),  # elements 33 to 64, and 25 to 32
    "sum += (float)ds[t]": ("d", (2, 24, 8 + 2, 8 + 2)),
    "sum += (float)bs[t]": ("b", (2, 24, 1 + 1, 1 + 1)),
    # Of 32 and of 8 lanes 21 and 5 pass once, 10 and 3 twice.
    "sum += xs[t + 8 * k]": ("x", (4, 128 - 21 - 5 - 10 - 3, 4 + 4 + 1 + 1, 3 + 2 + 1 + 1)),
    "ys[t] = sum": ("y", (2, 24, 4 + 1, 4 + 1)),
}


@pytest.mark.parametrize("line", GLOBAL)
def test_sectors(patterns: tuple[AccessCount, ...], line: str) -> None:
    array, expected = GLOBAL[line]
    count = at(patterns, line, array)
    assert (count.instructions, count.idle, count.asked, count.needed) == expected
    assert (count.passes, count.conflicts, count.shared) == (0, 0, False)
    assert count.write == (array == "y")


@pytest.fixture(scope="module")
def banks() -> tuple[AccessCount, ...]:
    arguments = {"y": np.zeros(32, np.float32)}
    return launched(emulator("patterns"), "banks", (1, 1, 1), (32, 1, 1), arguments, ["y"], COUNTED)


# Instructions, passes, conflicts. Elements of 8 bytes take a pass for each half of a warp.
SHARED = {
    "f[t + 32 * k] = ": ("f", (32, 32, 0)),
    "d[t + 32 * k] = ": ("d", (32, 64, 0)),
    "float sum = f[0]": ("f", (1, 1, 0)),
    "sum += f[t];": ("f", (1, 1, 0)),
    "sum += f[2 * t]": ("f", (1, 2, 1)),
    "sum += f[32 * t]": ("f", (1, 32, 31)),
    "sum += f[t % 4 * 33]": ("f", (1, 1, 0)),
    "sum += (float)d[t]": ("d", (1, 2, 0)),
    "sum += (float)d[2 * t]": ("d", (1, 4, 2)),
    "sum += (float)d[32 * t]": ("d", (1, 32, 30)),
    "sum += (float)b[t]": ("b", (1, 1, 0)),
    "sum += (float)b[32 * t]": ("b", (1, 8, 7)),
}


@pytest.mark.parametrize("line", SHARED)
def test_banks(banks: tuple[AccessCount, ...], line: str) -> None:
    array, expected = SHARED[line]
    count = at(banks, line, array)
    assert (count.instructions, count.passes, count.conflicts) == expected
    assert (count.idle, count.asked, count.needed, count.shared) == (0, 0, 0, True)


def test_a_barrier_ends_instructions() -> None:
    arguments = {"x": np.zeros(32, np.float32), "y": np.zeros(32, np.float32)}
    counts = launched(
        emulator("patterns"), "halves", (1, 1, 1), (32, 1, 1), arguments, ["y"], COUNTED
    )
    assert [(c.instructions, c.idle, c.asked) for c in counts] == [(2, 32, 4), (2, 32, 4)]


@pytest.mark.parametrize(
    ("dtype", "pitch", "conflicts"),
    [("float32", 33, 0), ("float32", 32, 31 * 32), ("float64", 33, 0), ("float64", 32, 30 * 32)],
)
def test_transpose(dtype: str, pitch: int, conflicts: int) -> None:
    """A tile in rows of 33 has no conflicts; in rows of 32 each read has its 32 words in one bank,
    or its 16 in each half of a warp, which is 32 passes as well."""
    x, y = np.zeros((32, 32), dtype), np.zeros((32, 32), dtype)
    arguments = {"m": np.int32(32), "n": np.int32(32), "x": x, "y": y}
    kernel, symbol = emulator("transpose", PITCH=pitch), f"transpose_{dtype}_i32"
    counts = launched(kernel, symbol, (1, 1, 1), (32, 8, 1), arguments, ["y"], COUNTED)
    found = {(c.array, c.write): c for c in totals(counts)}
    reads = found["tile", False]
    assert (reads.instructions, reads.conflicts) == (32, conflicts)
    assert found["tile", True].conflicts == 0
    sectors = 32 * 32 * x.itemsize // 32
    for side in (found["x", False], found["y", True]):
        assert (side.asked, side.needed, side.idle) == (sectors, sectors, 0)


def test_matmul_reads_without_conflicts() -> None:
    a, c = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
    sizes = dict.fromkeys("mnk", np.int32(64))
    arguments = {**sizes, "a": a, "b": a.copy(), "c": c}
    counts = launched(
        emulator("matmul"), "matmul_i32", (2, 2, 1), (8, 8, 1), arguments, ["c"], COUNTED
    )
    found = {(c.array, c.write): c for c in totals(counts)}
    assert found["bs", False].conflicts == 0
    assert found["a", False].asked == 4 * 8 * 256 * 4 // 32  # blocks, steps, elements a step
    assert np.array_equal(c, a @ a)


def test_instructions_of_different_launches_are_apart_and_counts_are_of_one_call() -> None:
    x = np.zeros(64, np.float32)
    arguments = {"n": np.int32(64), "x": x, "y": np.zeros_like(x)}
    kernel, symbol = emulator("elementwise"), "elementwise_float32_i32"
    for _ in range(2):
        counts = launched(kernel, symbol, (1, 1, 1), (64, 1, 1), arguments, ["y"], COUNTED)
        assert [(c.launch, c.array, c.instructions) for c in counts] == [
            (symbol, "x", 2),
            (symbol, "y", 2),
        ]
    assert launched(kernel, symbol, (1, 1, 1), (64, 1, 1), arguments) == ()


TABLE = """\
                    instructions  idle lanes  sectors asked  needed  bank conflicts
banks
  write y                      1        0.0%              4       4
  read b (shared)              2        0.0%                                      7
  write b (shared)            32        0.0%                                      0
  read d (shared)              3        0.0%                                     32
  write d (shared)            32        0.0%                                      0
  read f (shared)              5        0.0%                                     32
  write f (shared)            32        0.0%                                      0
patterns
  read b                       2       37.5%              2       2
  read d                       2       37.5%             10      10
  read x                      16       45.5%             44      32
  write y                      2       37.5%              5       5
"""


def test_the_table(patterns: tuple[AccessCount, ...], banks: tuple[AccessCount, ...]) -> None:
    assert table((*patterns, *banks)) == TABLE.splitlines()
