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

FAR = 1 << 60
MOST_BYTES = 1 << 40  # that there are on a device


class Here(threading.local):
    device = 0
    stream = 0


here = Here()


class Pointer:
    """A place in memory, kept with it."""

    def __init__(self, ptr: int, memory: Any) -> None:
        self.ptr, self.memory = ptr, memory

    def __add__(self, offset: int) -> "Pointer":
        return Pointer(self.ptr + offset, self.memory)


class ndarray:
    """An array of a device: `host` is its memory as NumPy has it."""

    def __init__(self, shape: Any, dtype: Any, memptr: Pointer, strides: Any) -> None:
        self.host = _array_at(memptr, shape, np.dtype(dtype), strides)
        self.device = SimpleNamespace(id=here.device)

    @classmethod
    def of(cls, host: Any, device: int | None = None) -> "ndarray":
        array = cls.__new__(cls)
        array.host = np.asarray(host)
        _remember(array.host)
        array.device = SimpleNamespace(id=here.device if device is None else device)
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
        return self.host.item()

    def reshape(self, *shape: Any) -> "ndarray":
        return self._like(self.host.reshape(*shape))

    def transpose(self, *axes: Any) -> "ndarray":
        return self._like(self.host.transpose(*axes))

    def squeeze(self, axes: Any) -> "ndarray":
        return self._like(self.host.squeeze(axes))


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
    def __init__(self, number: int) -> None:
        self.id = number
        self.compute_capability = {0: "90", 1: "90", 7: "75"}[number]

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


cuda = SimpleNamespace(
    Device=Device,
    alloc=_alloc,
    get_current_stream=lambda: SimpleNamespace(ptr=here.stream),
    runtime=SimpleNamespace(
        getDevice=lambda: here.device,
        setDevice=_set_device,
        runtimeGetVersion=lambda: 13000,
    ),
)


class RawModule:
    """Machine code, or source. refused: the kinds that cannot be loaded. load: gives the handle of
    a function, where that is not the driver's function of the name.
    """

    load: ClassVar[Callable[["RawModule", str], int] | None] = None
    refused: tuple[str, ...] = ()
    loaded: ClassVar[list[str]] = []
    last: "ClassVar[RawModule]"

    def __init__(
        self, code: str | None = None, *, path: str | None = None, options: tuple[str, ...] = ()
    ) -> None:
        self.kind = "source" if path is None else "binary"
        self.code, self.path, self.options = code, path, options
        RawModule.last = self

    def get_function(self, name: str) -> SimpleNamespace:
        if self.kind in self.refused:
            raise RuntimeError(f"the driver refuses this {self.kind}")
        self.loaded.append(f"{self.kind} {name} on {here.device}")
        if self.load is not None:
            return SimpleNamespace(kernel=SimpleNamespace(ptr=self.load(name)))
        address = ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value
        return SimpleNamespace(kernel=SimpleNamespace(ptr=address))


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
