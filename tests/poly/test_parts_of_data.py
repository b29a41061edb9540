"""Positions that are quotients and remainders of one number that data says: the axis was cut."""

from pathlib import Path

import pytest

from gen import language as specs
from gen.ir.nodes import Kernel
from gen.pipeline import schedule
from gen.poly.certificate import Source
from gen.poly.prove import prove
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "n, l, x: float32[l], at: int64[n], y: Out[float32[n]]"
HELD = "min(max(at[i], 0), l - 1)"
OTHER = "min(max(at[n - 1 - i], 0), l - 1)"
SPECS = Path(__file__).parent / "specs"


def plain(index: str = HELD) -> Kernel:
    inner = block("y", "i=y.i", f"y[i] = x[{index}]")
    return kernel(SIGNATURE, nest("for y.i in range(n)", inner), assume="l >= 1")


def cut(outer: str, within: str, place: str = "k // 4, k % 4") -> Kernel:
    """The array by fours, and read from there."""
    copy = block("t", "k=t.k", f"t[{place}] = x[k]", "origin=None")
    read = block("y", "i=y.i", f"y[i] = t[{outer}, {within}]")
    both = nest("for t.k in range(l)", copy), nest("for y.i in range(n)", read)
    return kernel(SIGNATURE, *both, temporaries="t=float32[(l + 3) // 4, 4]", assume="l >= 1")


INPUT = Source(initial=True)
SOURCES = {"t_0": INPUT, "y_0": Source(("t",)), "y_1": INPUT, "y_2": INPUT}


def test_a_gather_from_an_axis_that_was_cut() -> None:
    accept(plain(), cut(f"{HELD} // 4", f"{HELD} % 4"), **SOURCES)
    twice = plain("at[i] % l")
    accept(twice, cut("at[i] % l // 4", "at[i] % l % 4"), **SOURCES)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (cut(f"{HELD} // 4", f"{HELD} % 2"), "y[i=0] needs x["),
        (cut(f"{HELD} // 4", f"{HELD} // 2 % 4"), "y[i=0] needs x["),
        (cut(f"{HELD} // 8", f"{HELD} % 4"), "y[i=0] needs x["),
        (cut(f"{HELD} // 4", f"{HELD} % 5"), "outside its bounds"),
        (cut(f"{HELD} // 2", f"{HELD} % 4"), "outside its bounds"),
        (cut(f"{OTHER} // 4", f"{OTHER} % 4"), "needs at["),
        (cut(f"{HELD} // 4", f"{OTHER} % 4"), "block 'y' computes"),
        (cut(f"{HELD} // 4", f"({HELD} + 1) % 4"), "block 'y' computes"),
        (cut(f"{HELD} // 4", f"{HELD} % 4", "k // 4, 3 - k % 4"), "y[i=0] needs x["),
        (cut(f"{HELD} // 4", f"{HELD} % 4", "k // 4, k % 3"), "overwrites it in between"),
    ],
)
def test_another_element(tree: Kernel, reason: str) -> None:
    assert reason in refusal(plain(), tree, **SOURCES).message


def test_a_copy_of_columns_in_another_layout() -> None:
    spec = specs.load(SPECS / "gathered_layout.yaml")
    assert schedule(spec, specs.choices(spec)[0], Cpu(Level.V3), prove)
