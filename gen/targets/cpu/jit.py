"""Kernels compiled for a level of this machine, and which those are.

Input: a C source, or a lowered kernel, and a level. Output: a callable (`c.library`).
"""

import platform
from collections.abc import Collection, Mapping, Sequence

from ... import language as specs
from ...errors import TilesmithError
from ...ir.nodes import Kernel
from ...ir.types import DType
from ...language.formulas import oracle
from ...language.model import KernelSpec
from ...lower.finish import Finished, finish
from ...lower.index_limits import Limits, index_limits
from ..c import library
from ..c.library import Compiled, Loaded, compiled, opened, runtime_digest, shared_library
from ..runtime import RUNTIME
from .emit import source as source_of
from .levels import LEVELS, Level, Processor
from .passes.finishing import finishing


def compiler_command(level: Level, flags: Sequence[str]) -> tuple[str, ...]:
    """Of the C compiler, for a level."""
    return library.compiler_command((*Processor(level).flags, *flags))


def load(
    spec: KernelSpec,
    dtypes: Mapping[str, DType],
    source: str,
    level: Level,
    *,
    flags: Sequence[str] = (),
    limits: Limits | None = None,
) -> Loaded:
    """Compiles a kernel's C file and takes from it the kernel for one choice of dtypes.

    The file may hold other kernels, too. flags: for the compiler, after the usual ones. limits: of
    scalars that index. Raises TilesmithError with the compiler's words where it refuses.
    """
    symbol = f"ts_{spec.name}_{'_'.join(d.value for d in dtypes.values())}_{level}"
    kernel, command = specs.build(spec, dtypes), compiler_command(level, flags)
    made = compiled(kernel, symbol, source, command, limits or Limits())
    return Loaded(made, oracle.defaults(spec))


def lowest_level() -> Level:
    """The level that every machine of this one's family runs."""
    return Level.NEON if platform.machine() in ("aarch64", "arm64") else Level.V2


def native_level() -> Level:
    """The best level that this machine runs. Raises TilesmithError where it runs none."""
    asked = (RUNTIME / "ts_levels.c").read_text("ascii")  # which is quickly compiled by itself
    made = shared_library(asked, compiler_command(lowest_level(), ()), runtime_digest())
    found = int(opened(made).ts_best_level())
    if found < 0:
        raise TilesmithError("this machine runs none of the levels that kernels are made for")
    return Level(LEVELS[found])


def compile_kernel(
    kernel: Kernel,
    level: Level,
    *,
    packed: Collection[str] | None = None,
    shared: Collection[str] = (),
    flags: Sequence[str] = (),
) -> Compiled:
    """Compiles a lowered kernel. packed: arrays that are only given with the unit strides that the
    code needs, by default all; shared: those that may be one array with another, as `in_place` has
    them; flags: for the compiler, after the usual ones.

    Raises TilesmithError with the compiler's words where it refuses.
    """
    arrays = [p.buffer.name for p in kernel.parameters]
    done = Finished("0", finish(kernel, finishing(Processor(level))), shared=frozenset(shared))
    source = source_of(
        kernel.name, {"jit": [done]}, level, packed=arrays if packed is None else packed
    )
    symbol, limits = f"ts_{kernel.name}_jit_{level}", index_limits([(kernel, None)])
    return compiled(kernel, symbol, source, compiler_command(level, flags), limits)
