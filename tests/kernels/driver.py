"""Kernels and the calling engine as a program of their own: under sanitizers, corrupted on purpose,
or for another machine.

A call in the program's input: int64s (overload, threads, number of leading axes, their extents, the
dims), the scalars, and for each array int64s (bytes, offset of the first element, item size, the
strides of the leading axes and of the core axes) and its bytes. Its output: each array's bytes.
"""

import ctypes
import json
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from gen import language as specs
from gen.binding.descriptors import descriptors
from gen.binding.manifest import Entry, entry_from_json
from gen.commands.build import RUNTIME_SOURCES
from gen.ir.types import DType
from gen.language import choices
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.pipeline import generate
from gen.targets.c import library
from gen.targets.c.library import FLAGS
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from gen.targets.runtime import RUNTIME
from gen.trial.inputs import random_arrays
from gen.trial.sizes import edges
from tilesmith import _kernels

from .support import ROOT, SPECS, outputs

Array = NDArray[Any]
Arrays = Mapping[str, Array]

SANITIZE = (
    *("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    *("--param", "asan-instrumentation-with-call-threshold=0"),  # less code, the same checks
)


def c_file(kernel: str, level: Level) -> str:
    """The kernel's C."""
    return generated(kernel, level)[0]


def edge_calls(kernel: str, dtypes: Mapping[str, DType], level: Level) -> list[dict[str, Array]]:
    """Calls with sizes around the level's vectors; outputs hold what a kernel must write over."""
    spec, rng = SPECS[kernel], np.random.default_rng(5)
    lanes = Processor(level).lanes(next(iter(dtypes.values())).computed)
    calls = [random_arrays(spec, dtypes, sizes, rng) for sizes in edges(spec, lanes)]
    for arrays in calls:
        for name in outputs(spec):
            arrays[name][...] = 77
    return calls


def spread(array: Array) -> Array:
    """The same values, with a gap after each."""
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return wide[..., 0]


@cache
def generated(kernel: str, level: Level) -> tuple[str, Entry]:
    """The kernel's C and its entry, for this level alone: the build's, where its folder is at hand,
    as it is where tilesmith is installed editable. Else they are made, without the build's proof.
    """
    name, built = f"{kernel}.{level.value}.c", Path(_kernels.__file__).parent
    if (built / name).exists():
        text, fragment = (built / name).read_text(), (built / f"{kernel}.json").read_text()
        return text, replace(
            entry_from_json(json.loads(fragment)), levels=(level.value,), architectures={}
        )
    spec = specs.load(ROOT / "kernels_spec" / f"{kernel}.yaml")
    made = generate(spec, [Cpu(level)], _proved_elsewhere)
    return made.c_files[name], entry_from_json(made.manifest)


def _proved_elsewhere(plain: object, state: object, bench: object) -> None:
    pass


@final
@dataclass(frozen=True, slots=True)
class Program:
    """The driver linked with one kernel for one level; `runner` is what it runs under."""

    spec: KernelSpec
    path: Path
    runner: tuple[str, ...]

    def __call__(
        self, dtypes: Mapping[str, DType], calls: Sequence[Arrays], threads: int = 1
    ) -> list[tuple[Array, ...]]:
        """The outputs of each call. Raises AssertionError with what a failing program said."""
        given, made = self.path.with_suffix(".in"), self.path.with_suffix(".out")
        given.write_bytes(b"".join(_encoded(self.spec, dtypes, c, threads) for c in calls))
        done = subprocess.run(
            [*self.runner, self.path, given, made], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return _decoded(self.spec, made.read_bytes(), calls)


def build(
    kernel: str,
    level: Level,
    folder: Path,
    *,
    corrupt: Callable[[str], str] | None = None,
    flags: Sequence[str] = (),
    compiler: str = "cc",
    runner: Sequence[str] = (),
) -> Program:
    """Compiles the kernel's C, changed by `corrupt`, the engine and the driver; warnings count."""
    text, entry = generated(kernel, level)
    if corrupt is not None:
        right, text = text, corrupt(text)
        assert text != right, "nothing was corrupted"
    (folder / "kernel.c").write_text(text)
    (folder / "ts_kernels.c").write_text(descriptors([entry]))
    sources = [folder / "kernel.c", folder / "ts_kernels.c", Path(__file__).parent / "driver.c"]
    strict = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-std=gnu11")
    command = [compiler, *FLAGS, *strict, *Processor(level).flags, *flags, f"-I{RUNTIME}"]
    shared = library.runtime(tuple(command), tuple(RUNTIME_SOURCES))
    sources += sorted(shared.glob("*.o"))
    program = folder / "program"
    done = subprocess.run(
        [*command, *map(str, sources), "-o", str(program), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Program(SPECS[kernel], program, tuple(runner))


def _encoded(spec: KernelSpec, dtypes: Mapping[str, DType], arrays: Arrays, threads: int) -> bytes:
    sizes = oracle.sizes(spec, arrays)
    leading = [] if spec.loop_dim is None else [sizes[spec.loop_dim]]
    overload = choices(spec).index(dtypes)
    head = [overload, threads, len(leading), *leading, *(sizes[d] for d in spec.dims)]
    parts = [_integers(*head)]
    for s in spec.scalars:
        floating = DType(dtypes[s.element].value if s.element in dtypes else s.element).is_float
        parts.append(struct.pack("=d8x" if floating else "=q8x", s.default))  # a ts_scalar
    for a in spec.arguments:
        array = arrays[a.name]
        looped = bool(leading) and a.shape[:1] == (spec.loop_dim,)
        low, high = byte_bounds(array) if array.size else (0, 0)
        strides = array.strides if looped else (*[0] * len(leading), *array.strides)
        parts.append(_integers(high - low, array.ctypes.data - low if array.size else 0))
        parts.append(_integers(array.itemsize, *strides))
        parts.append(ctypes.string_at(low, high - low))
    return b"".join(parts)


def _integers(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def _decoded(spec: KernelSpec, data: bytes, calls: Sequence[Arrays]) -> list[tuple[Array, ...]]:
    results, at = [], 0
    for arrays in calls:
        after: dict[str, Array] = {}
        for a in spec.arguments:
            array = arrays[a.name]
            low, high = byte_bounds(array) if array.size else (0, 0)
            memory = np.frombuffer(data, np.uint8, high - low, at)
            at += high - low
            first = array.ctypes.data - low if array.size else 0
            after[a.name] = np.ndarray(
                array.shape, array.dtype, memory.tobytes(), first, array.strides
            )
        results.append(tuple(after[name] for name in outputs(spec)))
    assert at == len(data)
    return results
