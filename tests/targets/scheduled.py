"""Schedules of scripts, lowered, proved once more, compiled, and compared with NumPy."""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gen.ir.nodes import Intent, Kernel
from gen.lower.lower import lower
from gen.poly.prove import prove
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.schedule.support import inputs, schedule, start

from .kernels import WARNINGS

Array = NDArray[np.float32]
LEVEL = Level.V2


def lowered(text: str, steps: str) -> Kernel:
    """The lowered tree, proved once more."""
    plain = start(text)
    state = lower(schedule(plain, steps)[-1].state, Cpu(LEVEL).lowering)
    prove(plain.kernel, state)
    return state.kernel


def agrees(
    text: str,
    steps: str,
    wanted: Callable[..., Array],
    sizes: Iterable[int] = (0, 1, 2, 3, 4, 5, 8, 9),
    threads: int = 1,
) -> str:
    """Whether the compiled schedule computes what NumPy does of the inputs; gives the C source.

    Arrays hold small integers, so that sums in any order are equal.
    """
    plain = start(text).kernel
    kernel = compile_kernel(lowered(text, steps), LEVEL, flags=WARNINGS)
    for values in product(sizes, repeat=len(plain.dims)):
        dims = dict(zip(plain.dims, values, strict=True))
        arrays = inputs(plain, dims)
        results = {
            p.buffer.name: wanted(*(arrays[a].copy() for a in sorted(arrays)))
            for p in plain.parameters
            if p.intent is not Intent.IN
        }
        given = {**{name: np.full_like(r, np.nan) for name, r in results.items()}, **arrays}
        kernel(given, dims=dims, threads=threads)
        for name, result in results.items():
            np.testing.assert_array_equal(given[name], result, err_msg=f"{name} at {dims}")
    return kernel.source
