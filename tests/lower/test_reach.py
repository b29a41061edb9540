"""Loops around tiles end where the guards of all that is in them do."""

import numpy as np

from gen.ir.interpret.interp import run
from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

TILED = """\
def copied(n, p, x: float32[n], y: Out[float32[n]]):
    assume(p < 4)
    for y.b in range((n + p + 31) // 32):
        for y.c in range(8):
            for y.u in unrolled(2):
                for y.l in vectorized(2):
                    with block("y", i=spatial(y.b*32 + y.c*4 + y.u*2 + y.l - p, n),
                               where=0 <= y.b*32 + y.c*4 + y.u*2 + y.l - p and
                                     y.b*32 + y.c*4 + y.u*2 + y.l - p < n):
                        y[i] = x[i]
"""


def lowered(text: str) -> Kernel:
    return lower(Scheduled(from_text(text), {}), Cpu(Level.V3).lowering).kernel


def test_a_tail_ends_with_the_last_iteration_that_does_something() -> None:
    text = to_text(lowered(TILED))
    assert "min(8, (n + p + 3) // 4 - y.b * 8)" in text  # the tail's end
    assert "min(8, (n + p) // 4 - y.b * 8)" in text  # the full part's, where it was


def test_nothing_is_lost() -> None:
    kernel = lowered(TILED)
    for n in (0, 1, 3, 4, 5, 31, 32, 33, 70):
        for p in range(4):
            x = np.arange(n, dtype="f")
            np.testing.assert_array_equal(run(kernel, {"x": x}, dims={"p": p})["y"], x)


SEVERAL = """\
def several(n, x: float32[n, 2], y: Out[float32[n, 2]], z: Out[float32[n + 3, 2]]):
    for i in range(n + 3):
        for j in range(2):
            with block("y", i=spatial(i, n), j=spatial(j), where=i < n):
                y[i, j] = x[i, j]
            with block("z", i=spatial(i), j=spatial(j)):
                z[i, j] = 1.0
"""


def test_a_guard_of_one_block_is_no_bound_for_others() -> None:
    kernel = lowered(SEVERAL)
    for n in (0, 1, 4):
        x = np.arange(2 * n, dtype="f").reshape(n, 2)
        got = run(kernel, {"x": x})
        np.testing.assert_array_equal(got["y"], x)
        np.testing.assert_array_equal(got["z"], np.ones((n + 3, 2)))
