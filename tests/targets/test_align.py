"""Loops that begin with lines: right wherever arrays begin, and stored in whole lines."""

import numpy as np
import pytest

from gen.ir.interpret.interp import run
from gen.ir.rules.expressions import IRError
from gen.ir.rules.verify import verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.lower import lower
from gen.poly.prove import prove
from gen.schedule.examples import SCALE
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.schedule.support import schedule, start

from .kernels import WARNINGS

STEPS = "- align: {loop: y.j, buffer: y}\n- vectorize: {loop: y.j, width: 16}\n"


def test_a_phase_prints_and_parses() -> None:
    kernel = schedule(start(SCALE), STEPS)[-1].state.kernel
    assert "y_phase: Phase[y, 16]" in to_text(kernel)
    assert from_text(to_text(kernel)) == kernel


@pytest.mark.parametrize("phase", ["Phase[z, 16]", "Phase[y, 0]"])
def test_a_phase_is_of_an_argument(phase: str) -> None:
    text = SCALE.replace("):", f", p: {phase}):", 1)
    with pytest.raises(IRError, match="phase 'p' is of no argument, or of no positive size"):
        verify(from_text(text))


def test_the_interpreter_takes_any_phase() -> None:
    kernel = schedule(start(SCALE), STEPS)[-1].state.kernel
    x = np.arange(38, dtype="f").reshape(2, 19)
    for seed in range(8):
        np.testing.assert_array_equal(run(kernel, {"x": x}, seed=seed)["y"], 2 * x)


def test_right_wherever_arrays_begin(level: Level) -> None:
    plain = from_text(SCALE)
    state = schedule(start(SCALE), STEPS + "- stream: {block: y}\n")[-1].state
    done = lower(state, Cpu(level).lowering)
    prove(plain, done)
    kernel = compile_kernel(done.kernel, level, flags=WARNINGS)
    whole = "% TS_BYTES == 0" in kernel.source
    assert whole is (level is not Level.V2)
    room = np.zeros(4096, "f")
    first = -(room.ctypes.data // 4) % 16
    for offset in range(16):
        for rows, n in ((3, 1), (3, 15), (2, 16), (3, 47), (2, 64)):
            for stream in (True, False):
                x = np.arange(rows * n, dtype="f").reshape(rows, n)
                room[:] = 7
                y = room[first + 16 + offset :][: rows * n].reshape(rows, n)
                kernel({"x": x, "y": y}, stream=stream)
                np.testing.assert_array_equal(y, 2 * x)
                assert (room[: first + 16 + offset] == 7).all()
                assert (room[first + 16 + offset + rows * n :] == 7).all()
