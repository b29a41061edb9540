"""Sums that add to what is there, in partial results: what has no term stays as it is."""

import numpy as np
import pytest

from gen.ir.interpret.interp import run
from gen.poly.prove import prove
from gen.schedule.examples import BELOW

from .support import assert_same, schedule, start

ADDED = """\
def added(m, n, x: float32[m, n], y: InOut[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j)):
                y[i] = combine.sum(y[i], x[i, j])
"""

STEPS = {
    "parts": "- split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_1}",
    "vectors": "- vectorize: {loop: y.j, width: 4, accumulators: 2}",
    "outer": "- split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_0}",
    "whole": "- rfactor: {block: y, loop: y.j}",
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("text", [BELOW, ADDED])
def test_what_has_no_term_keeps_the_sign_of_its_zero(text: str, steps: str) -> None:
    plain = start(text)
    state = schedule(plain, steps)[-1].state
    prove(plain.kernel, state)
    assert_same(plain.kernel, state.kernel)
    for n in (0, 1, 2):
        rows = n if text is BELOW else 3
        x = np.zeros((rows, n), np.float32)
        y = np.full(rows, -0.0, np.float32)
        sizes = {"n": n} if text is BELOW else {"m": rows, "n": n}
        before, after = (
            run(k, {"x": x, "y": y.copy()}, {}, dims=sizes)["y"]
            for k in (plain.kernel, state.kernel)
        )
        assert np.array_equal(np.signbit(before), np.signbit(after)), (n, before, after)
