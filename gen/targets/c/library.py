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
from . import processor

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
        ("device", ctypes.c_void_p),
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
    ) -> tuple[_Variant, _Call, object]:
        """The variant that runs, the call, and what must live as long as that: arguments and errors
        as of a call.
        """
        kernel = self.kernel
        for p in kernel.parameters:
            _check(p.buffer.name, arrays[p.buffer.name], p.buffer.dtype.value)
        given = [arrays[p.buffer.name] for p in kernel.parameters]
        sizes = _sizes(kernel, given, dims or {})
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
        if stream is not None:
            return (-1.0, -1.0) if stream else (math.inf, math.inf)
        library = opened(self.library)
        library.ts_stream_above.restype = library.ts_prefetch_above.restype = ctypes.c_double
        return library.ts_stream_above(threads), library.ts_prefetch_above()

    def _table(self) -> "ctypes.Array[_Variant]":
        return (_Variant * self.variants).in_dll(opened(self.library), self.symbol)

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
        raise TilesmithError(f"a stride of '{name}' is not a whole number of elements")


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


def compiler_command(flags: Sequence[str]) -> tuple[str, ...]:
    """Of the C compiler, with flags after those that all targets share."""
    return (*shlex.split(os.environ.get("CC", "cc")), *FLAGS, *flags, f"-I{RUNTIME}")


def build(source: str, command: Sequence[str]) -> Path:
    """The shared library of a C source and the runtime's own, from the cache if it is there."""

    def others() -> tuple[str, ...]:
        shared = runtime(tuple(command), _SOURCES)
        return "-include", str(shared / _HEADER), *map(str, sorted(shared.glob("*.o")))

    return shared_library(source, command, _runtime_digest(), others)


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
        done = subprocess.run(
            [*command, "-shared", str(path), *more, "-o", str(made), "-lm"],
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


@cache
def _runtime_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("ts_*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def opened(path: Path) -> ctypes.CDLL:
    """The library; what is loaded stays, and is found again by the system."""
    return ctypes.CDLL(str(path))
