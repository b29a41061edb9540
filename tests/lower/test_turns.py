"""At the edges of arrays, tiles that are turned are walked row by row."""

import numpy as np

from gen.ir.algebra import TRUE
from gen.ir.interpret.interp import run
from gen.ir.nodes import LoopKind
from gen.ir.text.parser import from_text
from gen.ir.walk import blocks, loops
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

TURNED = """\
def transposed(m, n, x: float32[m, n], y: Out[float32[n, m]]):
    for y.j in range((n + 3)//4):
        for y.i in range((m + 3)//4):
            with allocate(t=float32[4, 4] @ register):
                for t.a in unrolled(4):
                    for t.l in vectorized(4):
                        with block("t", a=spatial(y.i*4 + t.a, m), l=spatial(y.j*4 + t.l, n),
                                   where=y.i*4 + t.a < m and y.j*4 + t.l < n):
                            t[a % 4, l % 4] = x[a, l]
                for y.a in unrolled(4):
                    for y.l in vectorized(4):
                        with block("y", a=spatial(y.j*4 + y.a, n), l=spatial(y.i*4 + y.l, m),
                                   where=y.j*4 + y.a < n and y.i*4 + y.l < m,
                                   annotations={"stream": 1}):
                            y[a, l] = t[l % 4, a % 4]
"""
KEPT = TURNED.replace("t[l % 4, a % 4]", "t[a % 4, l % 4]")  # rows are read as they were written


def kinds(text: str, var: str) -> list[tuple[LoopKind, bool]]:
    """Of the loop's copies: the kind, and whether what is in them is streamed."""
    kernel = lower(Scheduled(from_text(text), {}), Cpu(Level.V2).lowering).kernel
    copies = [loop for loop in loops(kernel.body) if loop.var == var]
    return [(c.kind, any(b.annotations for b in blocks(c))) for c in copies]


def test_what_has_guards_is_a_loop_that_ends_with_them() -> None:
    whole, edge = (LoopKind.UNROLLED, True), (LoopKind.SERIAL, False)
    assert kinds(TURNED, "y.a") == [whole, whole, edge, edge]
    assert [kind for kind, _ in kinds(TURNED, "t.a")] == [
        LoopKind.UNROLLED,
        LoopKind.SERIAL,
        LoopKind.UNROLLED,
        LoopKind.SERIAL,
    ]
    kernel = lower(Scheduled(from_text(TURNED), {}), Cpu(Level.V2).lowering).kernel
    *_, corner = [loop for loop in loops(kernel.body) if loop.var == "y.a"]
    assert all(b.predicate != TRUE for b in blocks(corner))  # the lanes' guard is left


def test_other_tiles_stay_unrolled() -> None:
    assert all(kind is LoopKind.UNROLLED for kind, _ in kinds(KEPT, "y.a"))


def test_nothing_is_lost() -> None:
    kernel = lower(Scheduled(from_text(TURNED), {}), Cpu(Level.V2).lowering).kernel
    for m in (0, 1, 3, 4, 5, 9):
        for n in (0, 1, 4, 7):
            x = np.arange(m * n, dtype="f").reshape(m, n)
            np.testing.assert_array_equal(run(kernel, {"x": x})["y"], x.T)
