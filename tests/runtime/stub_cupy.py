"""What calls need of CuPy, over the processor's memory: a module to put where `import cupy` would.

Arrays have the attributes by which the binding reads them; `.data.ptr` is `FAR` above the memory,
so that nothing but a launch reads it. The driver's library is the stand-in's (standin/device.c).
"""

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

__version__ = "14"
FAR = 1 << 60
MOST_BYTES = 1 << 40  # that there are on a device


class Here(threading.local):
    device = 0
    stream = 0  # the current one of the first device; those of others are 1000 apart
    captured = False  # whether a graph is made of what the stream is given


here = Here()


class Pointer:
    """A place in memory, kept with it."""

    def __init__(self, ptr: int, memory: Any) -> None:
        self.ptr, self.memory = ptr, memory

    def __add__(self, offset: int) -> "Pointer":
        return Pointer(self.ptr + offset, self.memory)

    def copy_from_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(self.ptr - FAR, host, size)

    def copy_to_host(self, host: ctypes.c_void_p, size: int) -> None:
        ctypes.memmove(host, self.ptr - FAR, size)


class ndarray:
    """An array of a device: `host` is its memory as NumPy has it."""

    __module__ = "cupy"

    def __init__(self, shape: Any, dtype: Any, memptr: Pointer, strides: Any) -> None:
        self.host = _array_at(memptr, shape, np.dtype(dtype), strides)
        self.device = Device(here.device)

    @classmethod
    def of(cls, host: Any, device: int | None = None) -> "ndarray":
        array = cls.__new__(cls)
        array.host = np.asarray(host)
        _remember(array.host)
        array.device = Device(device)
        return array

    @property
    def data(self) -> Pointer:
        return Pointer(self.host.__array_interface__["data"][0] + FAR, self.host)

    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    itemsize = property(lambda self: self.host.itemsize)
    nbytes = property(lambda self: self.host.nbytes)

    @property
    def flags(self) -> SimpleNamespace:
        return SimpleNamespace(c_contiguous=self.host.flags.c_contiguous)

    def _like(self, host: Any) -> "ndarray":
        return ndarray.of(host, self.device.id)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getitem__(self, key: Any) -> "ndarray":
        return self._like(self.host[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        assert isinstance(value, ndarray) and value.device.id == self.device.id == here.device
        self.host[key] = value.host.copy()

    def astype(self, dtype: Any, order: str = "K") -> "ndarray":
        return self._like(self.host.astype(dtype, order=order))

    def copy(self) -> "ndarray":
        return self._like(self.host.copy())

    def item(self) -> Any:
        assert not here.captured
        return self.host.item()

    def reshape(self, *shape: Any) -> "ndarray":
        host = self.host.reshape(*shape)
        assert np.shares_memory(host, self.host) or self.device.id == here.device or not host.size
        return self._like(host)

    def __dlpack__(self, *, stream: int) -> Any:
        """A consumer's stream waits for this one."""
        waits.append((stream, here.stream))
        return self.host

    def transpose(self, *axes: Any) -> "ndarray":
        return self._like(self.host.transpose(*axes))

    def squeeze(self, axes: Any) -> "ndarray":
        return self._like(self.host.squeeze(axes))


waits: list[tuple[int, int]] = []
"""The streams that waited, and for which."""

memories: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""What arrays and memory of the pool lie in."""


def _remember(host: Any) -> None:
    while isinstance(host.base, np.ndarray):
        host = host.base
    memories[id(host)] = host


def empty(shape: Any, dtype: Any = float) -> ndarray:
    return _poisoned(np.empty(shape, dtype))


def empty_like(array: ndarray, dtype: Any = None) -> ndarray:
    return _poisoned(np.empty_like(array.host, dtype=dtype, order="K", subok=False))


def _poisoned(host: Any) -> ndarray:
    host.fill(np.nan if host.dtype.kind in "fc" else 77)
    return ndarray.of(host)


def full(shape: Any, value: Any, dtype: Any) -> ndarray:
    return ndarray.of(np.full(shape, value, dtype))


def _array_at(pointer: Pointer, shape: Any, dtype: Any, strides: Any) -> Any:
    if not pointer.ptr:
        return np.empty(shape, dtype)
    interface = {
        "data": (pointer.ptr - FAR, False),
        "shape": shape,
        "strides": strides,
        "typestr": dtype.str,
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface, memory=pointer.memory))


# ---------------------------------------------------------------- cupy.cuda


class Device:
    def __init__(self, number: int | None = None) -> None:
        self.id = here.device if number is None else number
        self.compute_capability = {0: "90", 1: "90", 7: "75"}[self.id]

    def __enter__(self) -> None:
        self.before = here.device
        _set_device(self.id)

    def __exit__(self, *_: object) -> None:
        _set_device(self.before)


def _set_device(number: int) -> None:
    here.device = number
    driver().stub_enter(number)


def _alloc(size: int) -> Pointer:
    if size > MOST_BYTES:
        raise MemoryError(f"Out of memory allocating {size} bytes")
    memory = np.full(max(size, 1), 0xAB, np.uint8)
    _remember(memory)
    return Pointer(memory.__array_interface__["data"][0] + FAR, memory)


class UnownedMemory:
    def __init__(self, ptr: int, size: int, owner: Any, device: int) -> None:
        self.ptr, self.owner = ptr, owner
        assert device == here.device and size >= 0


def from_dlpack(array: Any) -> ndarray:
    assert array.__dlpack_device__() == (2, here.device)
    return ndarray.of(array.__dlpack__(stream=here.stream))


class Module:
    """Machine code. refused: the kinds that cannot be loaded. find: gives the handle of a function,
    where that is not the driver's function of the name.
    """

    find: ClassVar[Callable[["Module", str], int] | None] = None
    refused: ClassVar[tuple[str, ...]] = ()
    loaded: ClassVar[list[str]] = []
    code = b""

    def load_file(self, path: str) -> None:
        self._load("binary", Path(path).read_bytes())

    def load(self, code: bytes) -> None:
        self._load("source", code)

    def _load(self, kind: str, code: bytes) -> None:
        if kind in self.refused:
            raise RuntimeError(f"the driver refuses this {kind}")
        self.kind, self.code = kind, code

    def get_function(self, name: str) -> SimpleNamespace:
        self.loaded.append(f"{self.kind} {name} on {here.device}")
        if self.find is not None:
            return SimpleNamespace(ptr=self.find(name))
        return SimpleNamespace(ptr=ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value)


compiled: list[tuple[str, tuple[str, ...]]] = []
"""Files, and the options that they were compiled with."""


def _compile_using_nvrtc(
    source: str, options: tuple[str, ...], arch: str | None, filename: str
) -> tuple[bytes, None]:
    compiled.append((filename, options))
    return source.encode(), None


attributes: list[int] = []
"""The handles of functions of which attributes were asked."""

cuda = SimpleNamespace(
    Device=Device,
    MemoryPointer=lambda memory, offset: Pointer(memory.ptr + offset, memory),
    UnownedMemory=UnownedMemory,
    alloc=_alloc,
    compiler=SimpleNamespace(compile_using_nvrtc=_compile_using_nvrtc),
    driver=SimpleNamespace(funcGetAttribute=lambda _, function: attributes.append(function)),
    function=SimpleNamespace(Module=Module),
    get_current_stream=lambda: SimpleNamespace(
        ptr=here.stream + 1000 * here.device, synchronize=lambda: None
    ),
    runtime=SimpleNamespace(
        eventCreateWithFlags=lambda _: [],
        eventDestroy=lambda _: None,
        eventDisableTiming=2,
        eventRecord=lambda event, stream: event.append(stream),
        getDevice=lambda: here.device,
        getDeviceCount=lambda: 2,
        driverGetVersion=lambda: 13000,
        getDeviceProperties=lambda _: {"name": b"A GPU of tests"},
        pointerGetAttributes=lambda _: SimpleNamespace(device=here.device),
        runtimeGetVersion=lambda: 13000,
        setDevice=_set_device,
        streamIsCapturing=lambda _: here.captured,
        streamWaitEvent=lambda stream, event: waits.append((stream, *event)),
    ),
)


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def find_no_gpu(status: int, words: str, driver: int = 13000) -> None:
    """From here on all that needs a GPU ends with CUDA's error."""

    def fail(*_: Any) -> Any:
        raise CUDARuntimeError(status, words)

    for name in ("getDevice", "getDeviceCount", "setDevice", "pointerGetAttributes"):
        setattr(cuda.runtime, name, fail)
    cuda.runtime.driverGetVersion = lambda: driver
    cuda.Device = fail


_driver: list[ctypes.CDLL] = []


def driver() -> ctypes.CDLL:
    return _driver[0]


@contextmanager
def installed(library: Path) -> Iterator[ModuleType]:
    """`import cupy` is this module, the driver the library."""
    module = sys.modules[__name__]
    _driver[:] = [ctypes.CDLL(str(library))]
    before = sys.modules.get("cupy")
    sys.modules["cupy"] = module
    try:
        yield module
    finally:
        del sys.modules["cupy"]
        if before is not None:
            sys.modules["cupy"] = before
