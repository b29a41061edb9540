"""C compiled into a shared library, and its kernels called on NumPy arrays.

Input: a C source with tables of variants (ts_abi.h), and a compiler's command. Output: callables.
The library is built with the C compiler that `CC` names (else `cc`), with the flags that wheels are
built with, and kept in a cache folder under a name that is the digest of all that goes into it.
"""

import ctypes
import hashlib
import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from ...cache import cache_folder
from ...errors import TilesmithError
from ...ir.interpret.sizes import found
from ...ir.nodes import Kernel
from ...lower.index_limits import Limits, check
from ..runtime import RUNTIME
from ..target import ArrayLayout
from . import processor
from .invocation import (
    CallFrame,
    CCall,
    Number,
    PreparedCall,
    TableEntry,
    axes_of,
    check_layouts,
    frame,
    layouts_of,
    strided,
)

FLAGS = (
    "-std=gnu11",  # as Meson builds it
    "-Werror=implicit-function-declaration",  # it would pass anything and return an int
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-pthread",
    "-fPIC",
)
_SOURCES = ("ts_cache.c", "ts_levels.c", "ts_pool.c", "ts_threads.c", "ts_workspace.c")
_HEADER = "ts_precompiled.h"

Array = NDArray[np.generic]


@final
@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel. kernel: gives its signature; source: its C; symbol: of its table of
    `variants` variants in the file `library`; limits: of sizes and scalars.
    """

    kernel: Kernel
    source: str
    library: Path
    symbol: str
    variants: int
    limits: Limits = field(default_factory=Limits)

    def __call__(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Number] | None = None,
        *,
        dims: Mapping[str, int] | None = None,
        threads: int = 1,
        stream: bool | None = None,
        variant: str | None = None,
    ) -> None:
        """Runs the first variant that takes these sizes, in place on all arrays, OUT ones included.

        arrays: by name, of the exact dtypes, with strides that are whole numbers of elements; an
            axis that vector code walks must have stride 1. dims: every size; those that a shape
            gives may be left out. stream: whether stores that may pass the caches by do so, by
            default by the sizes. variant: the one to run, by its name, whatever it takes.
        Raises TilesmithError where an array does not fit, ValueError where a scalar would take
        indices out of 64 bits, and MemoryError.
        """
        self.bound(arrays, scalars, dims=dims, threads=threads, stream=stream, variant=variant)()

    def bound(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Number] | None = None,
        *,
        dims: Mapping[str, int] | None = None,
        threads: int = 1,
        stream: bool | None = None,
        variant: str | None = None,
    ) -> Callable[[], None]:
        """The call with everything checked and found beforehand: what it takes is the kernel's."""
        chosen, call, kept = self.prepared(
            arrays, scalars or {}, dims=dims, threads=threads, stream=stream, variant=variant
        )

        def run(keep: object = kept) -> None:  # the call holds their addresses alone
            if chosen.run(ctypes.byref(call)):
                raise MemoryError(f"'{self.kernel.name}' could not allocate its temporaries")

        return run

    def variant(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Number] | None = None,
        *,
        dims: Mapping[str, int] | None = None,
    ) -> str:
        """The name of the variant that the call runs, as `names` has it."""
        chosen, _, _ = self.prepared(arrays, scalars or {}, dims=dims, stream=False)
        return str(chosen.name.decode())

    @property
    def names(self) -> tuple[str, ...]:
        """The variants' names, in the order in which they are tried."""
        return tuple(v.name.decode() for v in self._table())

    def prepared(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Number],
        *,
        dims: Mapping[str, int] | None = None,
        threads: int = 1,
        stream: bool | None = None,
        variant: str | None = None,
    ) -> tuple[TableEntry, CCall, object]:
        """The variant that runs, the call, and what must live as long as that: arguments and errors
        as of a call.
        """
        layouts = layouts_of(self.kernel, arrays)
        limits = self._limits(threads, stream)
        found = self._frame(layouts, scalars, dims or {}, threads, limits)
        chosen = self._chosen(found, layouts, scalars, variant)
        self._check_unit(layouts, int(chosen.unit))
        given = [arrays[p.buffer.name] for p in self.kernel.parameters]
        call, kept = found.call([a.ctypes.data for a in given], scalars)
        return chosen, call, (given, found, kept)

    def refused(
        self,
        layouts: Sequence[ArrayLayout],
        scalars: Mapping[str, Number],
        dims: Mapping[str, int],
    ) -> dict[int, int]:
        """The arguments, by number, that no variant takes as they lie, and the axis of each that
        must have stride 1. Raises as a call.
        """
        found = self._frame(layouts, scalars, dims, 1, (math.inf, math.inf))
        chosen = self._chosen(found, layouts, scalars, None)
        return axes_of(layouts, strided(layouts) & int(chosen.unit))

    def laid_out(
        self,
        layouts: Sequence[ArrayLayout],
        scalars: Mapping[str, Number],
        dims: Mapping[str, int],
        threads: int,
    ) -> PreparedCall:
        """The call for arrays that lie so, wherever they are. scalars: of calls the int64 ones are
        the same. Raises as a call.
        """
        found = self._frame(layouts, scalars, dims, threads, self._limits(threads, None))
        chosen = self._chosen(found, layouts, scalars, None)
        self._check_unit(layouts, int(chosen.unit))
        return PreparedCall(found, chosen.run)

    def _frame(
        self,
        layouts: Sequence[ArrayLayout],
        scalars: Mapping[str, Number],
        dims: Mapping[str, int],
        threads: int,
        limits: tuple[float, float],
    ) -> CallFrame:
        check_layouts(self.kernel, layouts)
        sizes = _sizes(self.kernel, layouts, dims)
        check(self.kernel.name, self.limits, scalars, sizes)
        return frame(self.kernel, layouts, sizes, threads, limits)

    def _limits(self, threads: int, stream: bool | None) -> tuple[float, float]:
        """The bytes above which a call stores past the caches, and reads ahead."""
        if stream is not None:
            return (-1.0, -1.0) if stream else (math.inf, math.inf)
        library = opened(self.library)
        library.ts_stream_above.restype = library.ts_prefetch_above.restype = ctypes.c_double
        return library.ts_stream_above(threads), library.ts_prefetch_above()

    def _table(self) -> "ctypes.Array[TableEntry]":
        return (TableEntry * self.variants).in_dll(opened(self.library), self.symbol)

    def _chosen(
        self,
        found: CallFrame,
        layouts: Sequence[ArrayLayout],
        scalars: Mapping[str, Number],
        name: str | None,
    ) -> TableEntry:
        """The variant of that name, or the first one for these sizes, one whose unit strides there
        are if there is one.
        """
        table = self._table()
        if name is not None:
            return next(v for v in table if v.name == name.encode())
        call, keep = found.call([0] * len(layouts), scalars)  # conditions read no array
        fit = [v for v in table if not v.when or v.when(ctypes.byref(call))]
        del keep
        return next((v for v in fit if not v.unit & strided(layouts)), fit[0])

    def _check_unit(self, layouts: Sequence[ArrayLayout], unit: int) -> None:
        if wrong := unit & strided(layouts):
            axis = (wrong & -wrong).bit_length() - 1
            raise TilesmithError(f"axis {axis} of '{self.kernel.name}' does not have stride 1")


@final
@dataclass(frozen=True, slots=True)
class Loaded:
    """A compiled kernel and the defaults of its scalars (see `targets.target.Runnable`)."""

    compiled: Compiled
    scalars: Mapping[str, Number]
    where: ClassVar[str] = "on one thread, median of 7"

    @property
    def names(self) -> tuple[str, ...]:
        return self.compiled.names

    def with_scalars(self, scalars: Mapping[str, Number]) -> "Loaded":
        return replace(self, scalars=scalars)

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.bound(arrays, sizes)()

    def variant(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
        return self.compiled.variant(arrays, self.scalars, dims=sizes)

    @property
    def machine(self) -> str:
        return processor.name()

    def bound(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number] | None = None,
        threads: int = 1,
        resident: bool = False,
    ) -> Callable[[], None]:
        given = {**self.scalars, **(scalars or {})}
        return self.compiled.bound(arrays, given, dims=sizes, threads=threads)

    def refused(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
    ) -> dict[int, int]:
        return self.compiled.refused(layouts, scalars, sizes)

    def laid_out(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
        threads: int,
    ) -> PreparedCall:
        return self.compiled.laid_out(layouts, scalars, sizes, threads)

    def traffic(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[str, ...]:
        return ()

    def weight(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        return None


def compiled(
    kernel: Kernel, symbol: str, source: str, command: Sequence[str], limits: Limits
) -> Compiled:
    """A kernel of a C file, whose table of variants is `symbol`. The file may hold others, too.

    kernel: any tree of it, for its signature. command: of the C compiler, without files. Raises
    TilesmithError with the compiler's words where it refuses.
    """
    variants = variants_of(source, symbol)
    return Compiled(kernel, source, build(source, command), symbol, variants, limits)


def variants_of(source: str, symbol: str) -> int:
    """How many the table has. Raises TilesmithError where there is no such table."""
    found = re.search(rf"extern const ts_variant {symbol}\[(\d+)\]", source)
    if found is None:
        raise TilesmithError(f"there is no table {symbol} in the C source")
    return int(found[1])


def _sizes(
    kernel: Kernel, layouts: Sequence[ArrayLayout], dims: Mapping[str, int]
) -> Mapping[str, int]:
    shapes = ((p.buffer.shape, x.shape) for p, x in zip(kernel.parameters, layouts, strict=True))
    return {**found(shapes, kernel.dims), **dims}


def compiler_command(flags: Sequence[str]) -> tuple[str, ...]:
    """Of the C compiler, with flags after those that all targets share."""
    return (*shlex.split(os.environ.get("CC", "cc")), *FLAGS, *flags, f"-I{RUNTIME}")


def build(source: str, command: Sequence[str]) -> Path:
    """The shared library of a C source and the runtime's own, from the cache if it is there."""

    def others() -> tuple[str, ...]:
        shared = runtime(tuple(command), _SOURCES)
        return "-include", str(shared / _HEADER), *map(str, sorted(shared.glob("*.o")))

    return shared_library(source, command, runtime_digest(), others)


def shared_library(
    source: str,
    command: Sequence[str],
    headers: str,
    others: Callable[[], tuple[str, ...]] = tuple,
) -> Path:
    """The shared library of a C source, from the cache if it is there. headers: a digest of what it
    includes; others: what the compiler takes besides. Raises TilesmithError with its words.
    """
    digest = hashlib.sha256("\0".join([source, *command, headers]).encode()).hexdigest()
    folder = cache_folder()
    library = folder / f"{digest[:32]}.so"
    if library.exists():
        return library
    more = others()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path, made = Path(scratch) / "kernel.c", Path(scratch) / "kernel.so"
        path.write_text(source, encoding="utf-8")
        _run("the kernel", None, [*command, "-shared", str(path), *more, "-o", str(made), "-lm"])
        made.replace(library)
    return library


def runtime(command: tuple[str, ...], sources: tuple[str, ...]) -> Path:
    """A folder with what all builds by a command share: the runtime's objects, and its headers
    precompiled, from the cache if it is there.
    """
    digest = hashlib.sha256("\0".join([*command, *sources, runtime_digest()]).encode())
    folder = cache_folder() / f"runtime-{digest.hexdigest()[:32]}"
    if folder.exists():
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        shutil.copy(RUNTIME / _HEADER, made)
        header, paths = made / _HEADER, [str(RUNTIME / name) for name in sources]
        both = (["-x", "c-header", str(header), "-o", f"{header}.gch"], ["-c", *paths])
        _run("the runtime", made, *([*command, *work] for work in both))
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
    return folder


def _run(what: str, folder: Path | None, *commands: Sequence[str]) -> None:
    """Runs the commands at the same time. Raises TilesmithError with the compiler's words."""
    try:
        started = [
            subprocess.Popen(c, cwd=folder, stderr=subprocess.PIPE, text=True) for c in commands
        ]
    except FileNotFoundError:
        hint = "install one, such as gcc or clang, or name another by CC"
        raise TilesmithError(f"there is no C compiler {commands[0][0]!r}", hint=hint) from None
    errors = [each.communicate()[1] for each in started]
    if any(each.returncode for each in started):
        raise TilesmithError(f"the C compiler refused {what}:\n{''.join(errors)}")


@cache
def runtime_digest() -> str:
    """A digest of the runtime's C, by which libraries are kept."""
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("ts_*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def opened(path: Path) -> ctypes.CDLL:
    """The library; what is loaded stays, and is found again by the system."""
    return ctypes.CDLL(str(path))
