"""What gpu_check needs of CuPy, on NumPy's arrays: the GPU is the processor."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy import *  # noqa: F403

__version__ = "of the tests"
random = np.random


class ndarray(np.ndarray):
    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> Any:
        return np.array(self)


def zeros(shape: Any, dtype: Any = float) -> Any:
    return np.zeros(shape, dtype).view(ndarray)


def array(x: Any) -> Any:
    return np.array(x).view(ndarray)


class Event:
    def record(self, stream: Any) -> None:
        self.at = time.perf_counter()


class Stream:
    """What is captured is run at once, and again by each launch of the graph."""

    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        self.calls: list[Any] | None = None

    def __enter__(self) -> Stream:
        current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        current.pop()

    def synchronize(self) -> None: ...

    def begin_capture(self) -> None:
        self.calls = []

    def end_capture(self) -> Any:
        calls, self.calls = self.calls or [], None
        return SimpleNamespace(launch=lambda stream: [call() for call in calls])


current = [Stream()]


class Device:
    compute_capability = "90"
    attributes = {"L2CacheSize": 1 << 16}  # noqa: RUF012
    mem_info = (1 << 24, 1 << 24)

    def __init__(self, number: int = 0) -> None: ...

    def synchronize(self) -> None: ...


class RawKernel:
    def __init__(self, text: str, name: str) -> None:
        self.kernel = SimpleNamespace(ptr=1)

    def __call__(self, *_: object) -> None:
        print("the planted fault ran")


def _properties(number: int) -> dict[str, bytes]:
    if "NO_GPU" in os.environ:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
    return {"name": b"A GPU of the tests"}


cuda = SimpleNamespace(
    Device=Device,
    Event=Event,
    Stream=Stream,
    get_current_stream=lambda: current[-1],
    get_elapsed_time=lambda start, end: 1e3 * (end.at - start.at),
    set_allocator=lambda allocator: None,
    driver=SimpleNamespace(launchKernel=lambda *_: None),
    runtime=SimpleNamespace(
        getDeviceProperties=_properties,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000,
    ),
)
