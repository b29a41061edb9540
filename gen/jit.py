"""Lowered kernels compiled into a shared library and called on NumPy arrays.

Input: a lowered Kernel and a level. Output: a callable. The library is built with the C compiler
that `CC` names (else `cc`), with the flags that wheels are built with, and kept in a cache folder
under a name that is the digest of everything that goes into it.
"""

import ctypes
import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from .emit.c import LoweredVariant, emit_file, emit_kernel
from .errors import TilesmithError
from .ir.nodes import Kernel
from .lower.target import Level, Target

RUNTIME = Path(__file__).parent / "runtime"
FLAGS = (
    "-std=c11",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp",
    "-fPIC",
)
_SOURCES = ("ts_threads.c", "ts_workspace.c")

Array = NDArray[np.generic]


class _Call(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("scalars", ctypes.c_void_p),
        ("threads", ctypes.c_int),
    )


class _Variant(ctypes.Structure):
    _fields_ = (
        ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Call))),
        ("when", ctypes.c_void_p),
        ("unit", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
    )


@final
@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled kernel. source: its C; library: the file."""

    kernel: Kernel
    source: str
    library: Path

    def __call__(
        self,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, float | int] | None = None,
        *,
        dims: Mapping[str, int] | None = None,
        threads: int = 1,
    ) -> None:
        """Runs the kernel in place on all its arrays, OUT arrays included.

        arrays: by name, of the exact dtypes, with strides that are whole numbers of elements; an
            axis that vector code walks must have stride 1. dims: every size; those that a shape
            gives may be left out.
        Raises TilesmithError where an array does not fit, and MemoryError.
        """
        kernel = self.kernel
        sizes = dict(dims or {})
        for p in kernel.parameters:
            _check(p.buffer.name, arrays[p.buffer.name], p.buffer.dtype.value)
            for extent, size in zip(p.buffer.shape, arrays[p.buffer.name].shape, strict=True):
                if (name := getattr(extent, "name", None)) is not None:
                    sizes.setdefault(name, size)
        given = [arrays[p.buffer.name] for p in kernel.parameters]
        variant = _table(self.library, self.symbol).contents
        strides = [s // a.itemsize for a in given for s in a.strides]
        walked = [n if a.size else 0 for a in given for n in a.shape]
        for k, (stride, size) in enumerate(zip(strides, walked, strict=True)):
            if variant.unit >> k & 1 and stride != 1 and size > 1:
                raise TilesmithError(f"axis {k} of '{kernel.name}' has stride {stride}, not 1")
        call = _Call(
            (ctypes.c_void_p * len(given))(*(a.ctypes.data for a in given)),
            (ctypes.c_int64 * len(strides))(*strides),
            (ctypes.c_int64 * len(kernel.dims))(*(sizes[d] for d in kernel.dims)),
            ctypes.cast(_scalars(kernel, scalars or {}), ctypes.c_void_p),
            threads,
        )
        if variant.run(ctypes.byref(call)):
            raise MemoryError(f"'{kernel.name}' could not allocate its temporaries")

    @property
    def symbol(self) -> str:
        return self.source.rsplit("extern const ts_variant ", 1)[1].split("[", 1)[0]


def _check(name: str, array: Array, dtype: str) -> None:
    if array.dtype.name != dtype:
        raise TilesmithError(f"'{name}' has dtype {array.dtype.name}, expected {dtype}")
    if any(s % array.itemsize for s in array.strides):
        raise TilesmithError(f"a stride of '{name}' is no whole number of elements")


def _scalars(kernel: Kernel, given: Mapping[str, float | int]) -> "ctypes.Array[ctypes.c_int64]":
    words = (ctypes.c_int64 * max(1, len(kernel.scalars)))()
    for k, scalar in enumerate(kernel.scalars):
        value = given[scalar.name]
        kind = np.float64 if scalar.dtype.is_float else np.int64
        words[k] = int(np.asarray(value, kind).view(np.int64))
    return words


def compile_kernel(
    kernel: Kernel, level: Level, *, packable: bool = True, flags: Sequence[str] = ()
) -> Compiled:
    """Compiles a lowered kernel. flags: for the compiler, after the usual ones.

    Raises TilesmithError with the compiler's words where it refuses.
    """
    variants = (LoweredVariant("0", kernel),)
    part = emit_kernel(kernel.name, "jit", variants, level, packable=packable)
    source = emit_file(kernel.name, [part], level)
    command = (
        *shlex.split(os.environ.get("CC", "cc")),
        *FLAGS,
        *Target(level).flags,
        *flags,
        f"-I{RUNTIME}",
    )
    return Compiled(kernel, source, build(source, command))


def build(source: str, command: Sequence[str]) -> Path:
    """The shared library of a C source and the runtime's own, from the cache if it is there."""
    digest = hashlib.sha256("\0".join([source, *command, _runtime_digest()]).encode()).hexdigest()
    folder = _cache_folder()
    library = folder / f"{digest[:32]}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path, made = Path(scratch) / "kernel.c", Path(scratch) / "kernel.so"
        path.write_text(source, encoding="utf-8")
        sources = [str(path), *(str(RUNTIME / name) for name in _SOURCES)]
        done = subprocess.run(
            [*command, "-shared", *sources, "-o", str(made), "-lm"], capture_output=True, text=True
        )
        if done.returncode:
            raise TilesmithError(f"the C compiler refused the kernel:\n{done.stderr}")
        made.replace(library)
    return library


def _cache_folder() -> Path:
    if own := os.environ.get("TILESMITH_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilesmith"


@cache
def _runtime_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("ts_*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _library(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))


def _table(path: Path, symbol: str) -> "ctypes._Pointer[_Variant]":
    return ctypes.pointer(_Variant.in_dll(_library(path), symbol))
