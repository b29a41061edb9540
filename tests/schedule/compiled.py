"""Schedules compiled and run: all of a test file in one library, which costs one compiler run."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gen.ir.interpret.evaluate import numpy_dtype
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Intent
from gen.lower.finish import Finished, finish
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.targets.c.library import Compiled, build
from gen.targets.cpu import jit
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import Array, inputs, schedule

Reference = Callable[..., Mapping[str, Array]]
"""From the arguments' values, and the scalars, to what the outputs must hold."""


@dataclass(frozen=True)
class Case:
    """Steps on a plain schedule, and what that computes, in NumPy."""

    plain: Scheduled
    steps: str
    reference: Reference


def compile_all(cases: Mapping[str, Case], level: Level) -> dict[str, Compiled]:
    """Each case scheduled, lowered and proved, and all of them compiled together."""
    kernels = {}
    for name, case in cases.items():
        state = schedule(case.plain, case.steps)[-1].state if case.steps else case.plain
        lowered = lower(state, Cpu(level).lowering)
        prove(case.plain.kernel, lowered)
        kernels[name] = replace(lowered.kernel, name=re.sub(r"\W", "_", name))
    parts = [
        emit_kernel(
            k.name,
            "jit",
            (Finished("0", finish(k, Cpu(level).finishing)),),
            level,
            packed=[p.buffer.name for p in k.parameters],
        )
        for k in kernels.values()
    ]
    source = emit_file("schedules", parts, level)
    library = build(source, jit.compiler_command(level, ("-O1",)))  # half of the time
    result = {}
    for name, kernel in kernels.items():
        symbol = f"ts_{kernel.name}_jit_{level.value}"
        found = re.search(rf"extern const ts_variant {symbol}\[(\d+)\]", source)
        assert found
        result[name] = Compiled(kernel, source, library, symbol, int(found[1]))
    return result


def assert_right(
    case: Case,
    compiled: Compiled,
    sizes: Iterable[int],
    scalars: Mapping[str, float] | None = None,
) -> None:
    """The compiled kernel against its reference, at all combinations of the sizes."""
    kernel = case.plain.kernel
    for values in product(sizes, repeat=len(kernel.dims)):
        dims = dict(zip(kernel.dims, values, strict=True))
        arrays = inputs(kernel, dims)
        wanted = case.reference(**{n: a.copy() for n, a in arrays.items()}, **(scalars or {}))
        for p in kernel.parameters:
            if p.intent is Intent.OUT:
                shape = [value(e, dims) for e in p.buffer.shape]
                arrays[p.buffer.name] = np.full(shape, 77, numpy_dtype(p.buffer.dtype))
        compiled(arrays, scalars, dims=dims, threads=2)
        for name, array in wanted.items():
            np.testing.assert_allclose(
                arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {dims}"
            )
