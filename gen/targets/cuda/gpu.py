"""A kernel on this machine's GPU: its host side runs here, CuPy keeps its memory and launches.

Input: what `emit` made. Output: a `targets.target.Runnable`, which copies its arrays to the GPU and
back in each call.
"""

import ctypes
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from ...errors import KernelFault, TilesmithError
from ...ir.nodes import Intent, Kernel
from ...lower.index_limits import Limits
from ..c.invocation import Number
from ..c.library import (
    Array,
    Compiled,
    compiler_command,
    shared_library,
    variants_of,
)
from ..runtime import CUDA, RUNTIME, digest
from ..target import ArrayLayout
from .architectures import ARCHITECTURES
from .compilers import FLAGS, HEADERS, HOST_FLAGS

NO_GPU = (
    "there is no GPU that a kernel for cuda could run on: `tilesmith run --target cuda --emulate`"
    " runs it on the processor"
)
_ALIGNMENT = 256  # of what CuPy allocates, in bytes
_NO_MEMORY, _NOT_LAUNCHED = 1, 4  # ts_abi.h
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_void_p,
)
_RESERVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_IS_ZERO = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)


class _Launching(ctypes.Structure):
    """ts_device of ts_abi.h."""

    _fields_ = (("launch", _LAUNCH), ("reserve", _RESERVE), ("is_zero", _IS_ZERO))


def architectures() -> tuple[str, ...]:
    """Those whose code CuPy's current GPU runs, the best last. Raises TilesmithError where there is
    no GPU, or no CuPy.
    """
    capability = int(_cupy().cuda.Device().compute_capability)
    return tuple(a for a in ARCHITECTURES if int(a.removeprefix("sm_")) <= capability)


def _cupy() -> Any:
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        hint = "a GPU is used through CuPy: pip install cupy-cuda13x"
        raise TilesmithError(NO_GPU, hint=hint) from None
    try:
        cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        raise TilesmithError(NO_GPU, hint=f"CuPy says: {error}") from None
    return cupy


def load(
    kernel: Kernel,
    symbol: str,
    sources: Mapping[str, str],
    limits: Limits,
    scalars: Mapping[str, Number],
) -> "OnGpu":
    """What `emit` made for a kernel, whose table of variants is `symbol`, compiled and loaded.
    Raises TilesmithError with the compiler's words where it refuses, or where there is no GPU.
    """
    cupy = _cupy()
    device, host = ("".join(t for n, t in sources.items() if n.endswith(e)) for e in (".cu", ".c"))
    options = (*FLAGS, "--device-int128", *(f"-I{folder}" for folder in HEADERS))
    try:
        code, _ = cupy.cuda.compiler.compile_using_nvrtc(device, options, None, "kernel.cu")
    except RuntimeError as error:
        raise TilesmithError(f"NVRTC refused the kernel:\n{error}") from None
    module = cupy.cuda.function.Module()
    module.load(code)
    made = Compiled(kernel, host, _host_side(host), symbol, variants_of(host, symbol), limits)
    return OnGpu(made, scalars, module)


def _host_side(text: str) -> Path:
    headers = digest([*RUNTIME.glob("*.h"), *CUDA.glob("*.h")])
    return shared_library(text, compiler_command(HOST_FLAGS), headers)


@final
@dataclass(frozen=True, slots=True)
class OnGpu:
    """A compiled kernel, the defaults of its scalars, and its functions for the GPU."""

    compiled: Compiled
    scalars: Mapping[str, Number]
    module: Any
    where: ClassVar[str] = "on a GPU, copies there and back included, median of 7"

    @property
    def names(self) -> tuple[str, ...]:
        return self.compiled.names

    def with_scalars(self, scalars: Mapping[str, Number]) -> "OnGpu":
        return replace(self, scalars=scalars)

    @property
    def machine(self) -> str:
        runtime = _cupy().cuda.runtime
        return str(runtime.getDeviceProperties(runtime.getDevice())["name"].decode())

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.bound(arrays, sizes)()

    def variant(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
        return self.compiled.variant(arrays, self.scalars, dims=sizes)

    def bound(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number] | None = None,
        threads: int = 1,
        resident: bool = False,
    ) -> Callable[[], None]:
        kernel, given = self.compiled.kernel, {**self.scalars, **(scalars or {})}
        variant, call, kept = self.compiled.prepared(arrays, given, dims=sizes, stream=False)
        told = " ".join(f"{name}={size}" for name, size in sizes.items())
        inputs = {p.buffer.name for p in kernel.parameters if p.intent is Intent.IN}
        ordered = [arrays[p.buffer.name] for p in kernel.parameters]
        written = [arrays[p.buffer.name] for p in kernel.parameters if p.buffer.name not in inputs]

        kept_there: list[Sequence[_Piece]] = []

        def run(keep: object = kept) -> None:  # the call holds their addresses alone
            cupy = _cupy()
            pieces = kept_there[0] if kept_there else _pieces(cupy, ordered, written)
            if resident:
                kept_there[:] = [pieces]
            addresses = [_there(pieces, array.ctypes.data) for array in ordered]
            call.data = (ctypes.c_void_p * len(addresses))(*addresses)
            launcher = _Launcher(cupy, self.module)
            device = launcher.device
            call.device = ctypes.cast(ctypes.pointer(device), ctypes.c_void_p).value
            status = variant.run(ctypes.byref(call))
            try:
                cupy.cuda.get_current_stream().synchronize()
            except RuntimeError as error:
                launcher.errors.append(error)
            if status == _NO_MEMORY:
                raise MemoryError(f"'{kernel.name}' could not allocate its temporaries")
            if status or launcher.errors:
                why = launcher.errors[0] if launcher.errors else "it was not launched"
                raise KernelFault(f"{kernel.name} at {told}: {why}")
            for piece in () if resident else pieces:
                piece.fetch()

        return run

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
    ) -> Callable[[Sequence[int], Mapping[str, Number]], None]:
        names = [p.buffer.name for p in self.compiled.kernel.parameters]

        def run(addresses: Sequence[int], given: Mapping[str, Number]) -> None:
            arrays = [x.at(address) for x, address in zip(layouts, addresses, strict=True)]
            self.bound(dict(zip(names, arrays, strict=True)), sizes, given, threads)()

        return run

    def traffic(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[str, ...]:
        return ()

    def weight(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        return None


@final
@dataclass(frozen=True, slots=True)
class _Launcher:
    """What a call's host side launches through. errors: what went wrong meanwhile."""

    cupy: Any
    module: Any
    errors: list[Exception] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)

    @property
    def device(self) -> _Launching:
        launch, reserve = _LAUNCH(self._launch), _RESERVE(self._reserve)
        return _Launching(launch, reserve, _IS_ZERO(self._is_zero))

    def _launch(self, _: int, symbol: bytes, grid: Any, block: Any, parameters: int) -> int:
        cuda, name = self.cupy.cuda, symbol.decode()
        self.errors.append(RuntimeError(f"{name} was not launched"))  # until it was
        try:
            function = self.module.get_function(name)
            stream = cuda.get_current_stream().ptr
            cuda.driver.launchKernel(function.ptr, *grid[:3], *block[:3], 0, stream, parameters, 0)
        except RuntimeError as error:
            self.errors[-1] = error
            return _NOT_LAUNCHED
        self.errors.pop()
        return 0

    def _is_zero(self, _: int, element: int) -> bool:
        runtime, value = self.cupy.cuda.runtime, ctypes.c_int32(1)
        try:
            self.cupy.cuda.get_current_stream().synchronize()
            runtime.memcpy(ctypes.addressof(value), element, 4, runtime.memcpyDeviceToHost)
        except RuntimeError as error:
            self.errors.append(error)
        return value.value == 0

    def _reserve(self, _: int, size: int) -> int | None:
        try:
            self.kept.append(self.cupy.cuda.alloc(max(size, 1)))
        except MemoryError:
            return None
        return int(self.kept[-1].ptr)


@final
@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the processor's memory, in bytes, and where the GPU has it."""

    lowest: int
    end: int
    memory: Any
    written: bool

    @property
    def there(self) -> Any:
        """The GPU's, aligned as the processor's is."""
        return self.memory + self.lowest % _ALIGNMENT

    def fetch(self) -> None:
        if self.written and self.end > self.lowest:
            self.there.copy_to_host(ctypes.c_void_p(self.lowest), self.end - self.lowest)


def _pieces(cupy: Any, arrays: Sequence[Array], written: Sequence[Array]) -> list[_Piece]:
    """Copies of the arrays' memory on the GPU; arrays that overlap do so there, too."""
    stretches: list[tuple[int, int]] = []
    for lowest, end in sorted(np.lib.array_utils.byte_bounds(a) for a in arrays if a.size):
        if stretches and lowest < stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(end, stretches[-1][1]))
        else:
            stretches.append((lowest, end))
    pieces = []
    for lowest, end in stretches:
        changed = any(lowest <= array.ctypes.data < end for array in written)
        memory = cupy.cuda.alloc(end - lowest + _ALIGNMENT)
        piece = _Piece(lowest, end, memory, changed)
        piece.there.copy_from_host(ctypes.c_void_p(lowest), end - lowest)
        pieces.append(piece)
    return pieces


def _there(pieces: Sequence[_Piece], address: int) -> int | None:
    """Where the GPU has what is at the address; None for an array of no elements."""
    for piece in pieces:
        if piece.lowest <= address < piece.end:
            return int(piece.there.ptr) + address - piece.lowest
    return None
