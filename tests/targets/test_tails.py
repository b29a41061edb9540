"""Sums over a tail compiled: what lies before a row's first term is in its first vector."""

import numpy as np
import pytest

from gen.lower.lower import lower
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.schedule.support import schedule, start
from tests.schedule.test_tails import TAIL

from .kernels import WARNINGS

RECIPES = [
    "- vectorize: {loop: y.k, width: 8}",
    "- vectorize: {loop: y.k, width: 4, accumulators: 2}",
    "- vectorize: {loop: y.k, width: 4, accumulators: 2}\n"
    "- cascade: {block: y_rf, loop: y.k_0, lengths: [2]}",
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_no_term_may_be_anything(level: Level, recipe: str) -> None:
    done = schedule(start(TAIL), recipe)[-1].state
    run = compile_kernel(lower(done, Cpu(level).lowering).kernel, level, flags=WARNINGS)
    for n in (0, 1, 7, 8, 9, 16, 31):
        a = np.full((n, n), np.nan, "f")
        a[np.triu_indices(n)] = 2
        y = np.zeros(n, "f")
        run({"a": a, "x": np.arange(n, dtype="f"), "y": y})
        np.testing.assert_array_equal(y, np.triu(np.full((n, n), 2.0)) @ np.arange(n))
