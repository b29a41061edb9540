"""Lowered kernels compiled into a shared library and called on NumPy arrays.

Input: a lowered Kernel and a level. Output: a callable. The library is built with the C compiler
that `CC` names (else `cc`), with the flags that wheels are built with, and kept in a cache folder
under a name that is the digest of everything that goes into it.
"""

import ctypes
import hashlib
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ... import language as specs
from ...errors import TilesmithError
from ...ir.interpret.sizes import found, value
from ...ir.nodes import Buffer, Kernel
from ...ir.types import DType
from ...ir.walk import externals, variables
from ...language.model import KernelSpec
from ...lower.index_limits import Limits, check, index_limits
from .emit import LoweredVariant, emit_file, emit_kernel
from .levels import Level, Target

RUNTIME = Path(__file__).parent / "runtime"
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
_SOURCES = ("ts_cache.c", "ts_levels.c", "ts_threads.c", "ts_workspace.c")
_HEADER = "ts_precompiled.h"

Array = NDArray[np.generic]
Number = complex  # and so int and float


class _Call(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("scalars", ctypes.c_void_p),
        ("threads", ctypes.c_int),
        ("stream_above", ctypes.c_double),
        ("prefetch_above", ctypes.c_double),
    )


class _Variant(ctypes.Structure):
    _fields_ = (
        ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Call))),
        ("when", ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(_Call))),
        ("unit", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
    )


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
        chosen, call, kept = self._found(
            arrays, scalars or {}, dims or {}, threads, stream, variant
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
        chosen, _, _ = self._found(arrays, scalars or {}, dims or {}, 1, None, None)
        return str(chosen.name.decode())

    @property
    def names(self) -> tuple[str, ...]:
        """The variants' names, in the order in which they are tried."""
        return tuple(v.name.decode() for v in self._table())

    def _found(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Number],
        dims: Mapping[str, int],
        threads: int,
        stream: bool | None,
        variant: str | None,
    ) -> tuple[_Variant, _Call, object]:
        """The variant that runs, the call, and what must live as long as that."""
        kernel = self.kernel
        for p in kernel.parameters:
            _check(p.buffer.name, arrays[p.buffer.name], p.buffer.dtype.value)
        given = [arrays[p.buffer.name] for p in kernel.parameters]
        sizes = _sizes(kernel, given, dims)
        check(kernel.name, self.limits, scalars, sizes)
        strides = [s // a.itemsize for a in given for s in a.strides]
        words = _scalars(kernel, scalars)
        call = _Call(
            (ctypes.c_void_p * len(given))(*(a.ctypes.data for a in given)),
            (ctypes.c_int64 * len(strides))(*strides),
            (ctypes.c_int64 * len(kernel.dims))(*(sizes[d] for d in kernel.dims)),
            ctypes.cast(words, ctypes.c_void_p),
            threads,
            *self._limits(threads, stream),
        )
        chosen = self._chosen(call, _strided(given), variant)
        _check_unit(kernel, given, int(chosen.unit))
        return chosen, call, (given, words)

    def _limits(self, threads: int, stream: bool | None) -> tuple[float, float]:
        """The bytes above which a call stores past the caches, and reads ahead."""
        library = _library(self.library)
        library.ts_stream_above.restype = library.ts_prefetch_above.restype = ctypes.c_double
        if stream is not None:
            return (-1.0, -1.0) if stream else (math.inf, math.inf)
        return library.ts_stream_above(threads), library.ts_prefetch_above()

    def _table(self) -> "ctypes.Array[_Variant]":
        return (_Variant * self.variants).in_dll(_library(self.library), self.symbol)

    def _chosen(self, call: _Call, strided: int, name: str | None) -> _Variant:
        """The variant of that name, or the first one for these sizes, one whose unit strides there
        are if there is one.
        """
        table = self._table()
        if name is not None:
            return next(v for v in table if v.name == name.encode())
        fit = [v for v in table if not v.when or v.when(ctypes.byref(call))]
        return next((v for v in fit if not v.unit & strided), fit[0])


@final
@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel compiled from a spec; its scalars have their defaults."""

    compiled: Compiled
    scalars: Mapping[str, Number]

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        """Runs the kernel as `Compiled` does."""
        self.compiled(arrays, self.scalars, dims=sizes)

    def variant(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
        """The name of the variant that the call runs."""
        return self.compiled.variant(arrays, self.scalars, dims=sizes)


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
    symbol = f"ts_{spec.name}_{'_'.join(d.value for d in dtypes.values())}_{level.value}"
    command = compiler_command(level, flags)
    compiled = _compiled(specs.build(spec, dtypes), source, symbol, command, limits or Limits())
    defaults = {s.name: s.default for s in spec.scalars if s.default is not None}
    return Loaded(compiled, defaults)


def lowest_level() -> Level:
    """The level that every machine of this one's family runs."""
    return Level.NEON if platform.machine() in ("aarch64", "arm64") else Level.V2


def native_level() -> Level:
    """The best level that this machine runs. Raises TilesmithError where it runs none."""
    found = int(_library(build("", compiler_command(lowest_level(), ()))).ts_best_level())
    if found < 0:
        raise TilesmithError("this machine runs none of the levels that kernels are made for")
    return tuple(Level)[found]


def shape_of(buffer: Buffer, sizes: Mapping[str, Any]) -> tuple[int, ...]:
    """An argument's shape for these sizes of the dims, and values of the scalars in it."""
    missing = {n for e in buffer.shape for n in variables(e)} - sizes.keys()
    if missing:
        raise TilesmithError(f"the shape of '{buffer.name}' needs more sizes than are given")
    return tuple(value(extent, sizes) for extent in buffer.shape)


def _sizes(kernel: Kernel, given: Sequence[Array], dims: Mapping[str, int]) -> Mapping[str, int]:
    shapes = ((p.buffer.shape, x.shape) for p, x in zip(kernel.parameters, given, strict=True))
    return {**found(shapes, kernel.dims), **dims}


def _strided(given: Sequence[Array]) -> int:
    """The axes, as bits, that have neither stride 1 nor extent at most 1."""
    axes = [
        (s // a.itemsize, n if a.size else 0)
        for a in given
        for s, n in zip(a.strides, a.shape, strict=True)
    ]
    return sum(1 << k for k, (stride, size) in enumerate(axes) if stride != 1 and size > 1)


def _check_unit(kernel: Kernel, given: Sequence[Array], unit: int) -> None:
    if wrong := unit & _strided(given):
        axis = (wrong & -wrong).bit_length() - 1
        raise TilesmithError(f"axis {axis} of '{kernel.name}' does not have stride 1")


def _check(name: str, array: Array, dtype: str) -> None:
    if array.dtype.name != dtype:
        raise TilesmithError(f"'{name}' has dtype {array.dtype.name}, expected {dtype}")
    if any(s % array.itemsize for s in array.strides):
        raise TilesmithError(f"a stride of '{name}' is no whole number of elements")


def _scalars(kernel: Kernel, given: Mapping[str, Number]) -> "ctypes.Array[ctypes.c_int64]":
    """As an array of ts_scalar: two words each."""
    words = (ctypes.c_int64 * max(2, 2 * len(kernel.scalars)))()
    for k, scalar in enumerate(kernel.scalars):
        floating = scalar.dtype.is_float or scalar.dtype.is_complex
        kind = np.complex128 if scalar.dtype.is_complex else np.float64 if floating else np.int64
        value = np.asarray(given[scalar.name], kind).reshape(1).view(np.int64)
        for position, word in enumerate(value.tolist()):
            words[2 * k + position] = word
    return words


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
    variants = (LoweredVariant("0", kernel, shared=frozenset(shared)),)
    arrays = [p.buffer.name for p in kernel.parameters]
    part = emit_kernel(
        kernel.name, "jit", variants, level, packed=arrays if packed is None else packed
    )
    source = emit_file(kernel.name, [part], level, externals(kernel))
    symbol = f"ts_{kernel.name}_jit_{level.value}"
    limits = index_limits([(kernel, None)])
    return _compiled(kernel, source, symbol, compiler_command(level, flags), limits)


def _compiled(
    kernel: Kernel, source: str, symbol: str, command: Sequence[str], limits: Limits
) -> Compiled:
    found = re.search(rf"extern const ts_variant {symbol}\[(\d+)\]", source)
    if found is None:
        raise TilesmithError(f"there is no table {symbol} in the C source")
    return Compiled(kernel, source, build(source, command), symbol, int(found[1]), limits)


def compiler_command(level: Level, flags: Sequence[str]) -> tuple[str, ...]:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    return (*compiler, *FLAGS, *Target(level).flags, *flags, f"-I{RUNTIME}")


def build(source: str, command: Sequence[str]) -> Path:
    """The shared library of a C source and the runtime's own, from the cache if it is there."""
    digest = hashlib.sha256("\0".join([source, *command, _runtime_digest()]).encode()).hexdigest()
    folder = cache_folder()
    library = folder / f"{digest[:32]}.so"
    if library.exists():
        return library
    shared = runtime(tuple(command), _SOURCES)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path, made = Path(scratch) / "kernel.c", Path(scratch) / "kernel.so"
        path.write_text(source, encoding="utf-8")
        objects = map(str, sorted(shared.glob("*.o")))
        header = ("-include", str(shared / _HEADER))
        done = subprocess.run(
            [*command, *header, "-shared", str(path), *objects, "-o", str(made), "-lm"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise TilesmithError(f"the C compiler refused the kernel:\n{done.stderr}")
        made.replace(library)
    return library


def runtime(command: tuple[str, ...], sources: tuple[str, ...]) -> Path:
    """A folder with what all builds by a command share: the runtime's objects, and its headers
    precompiled, from the cache if it is there.
    """
    digest = hashlib.sha256("\0".join([*command, *sources, _runtime_digest()]).encode())
    folder = cache_folder() / f"runtime-{digest.hexdigest()[:32]}"
    if folder.exists():
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        shutil.copy(RUNTIME / _HEADER, made)
        paths = [str(RUNTIME / name) for name in sources]
        for work in (
            ["-x", "c-header", str(made / _HEADER), "-o", str(made / f"{_HEADER}.gch")],
            ["-c", *paths],
        ):
            done = subprocess.run([*command, *work], cwd=made, capture_output=True, text=True)
            if done.returncode:
                raise TilesmithError(f"the C compiler refused the runtime:\n{done.stderr}")
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
    return folder


def cache_folder() -> Path:
    """Where libraries and proofs are kept: TILESMITH_CACHE, else the user's cache folder."""
    if own := os.environ.get("TILESMITH_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilesmith"


@cache
def _runtime_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("ts_*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _library(path: Path) -> ctypes.CDLL:
    """The library; what is loaded stays, and is found again by the system."""
    return ctypes.CDLL(str(path))
