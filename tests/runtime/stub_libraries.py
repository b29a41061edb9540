"""Arrays on a GPU as PyTorch, JAX and Numba have them, over the processor's memory: what a call
needs of them, under the names of their modules.
"""

from types import ModuleType
from typing import Any

import numpy as np

from tests.runtime import stub_cupy

STREAM = 77  # that the libraries are on


class Tensor:
    """PyTorch's: both protocols, and gradients."""

    __module__ = "torch"

    def __init__(self, host: Any, device: int = 0, requires_grad: bool = False) -> None:
        self.host, self.device, self.requires_grad = np.asarray(host), device, requires_grad

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    def __dlpack__(self, *, stream: int) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient")
        if self.host.dtype == object:
            raise BufferError("Can't export tensors with the conjugate bit set")
        stub_cupy.waits.append((stream, STREAM))
        return self.host

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AssertionError("a dict is made for nothing")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


class HostTensor(Tensor):
    """One that is not on a GPU."""

    __module__ = "torch"

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.host


class ArrayImpl:
    """JAX's: never changed."""

    __module__ = "jaxlib._jax"

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int) -> Any:
        stub_cupy.waits.append((stream, STREAM))
        return self.host

    def __array_namespace__(self) -> ModuleType:
        return jax_numpy


class Sharded(ArrayImpl):
    """JAX's, too: on several devices, which it copies to the processor when NumPy asks."""

    __module__ = "jaxlib._jax"

    def __dlpack_device__(self) -> tuple[int, int]:
        raise BufferError("__dlpack__ only supported for unsharded arrays.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("copied to the processor")


class Elsewhere(ArrayImpl):
    """One on an AMD GPU."""

    __module__ = "jaxlib._jax"

    def __dlpack_device__(self) -> tuple[int, int]:
        return 10, 0

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("copied to the processor")


class EagerTensor:
    """TensorFlow's: neither protocol."""

    __module__ = "tensorflow.python.framework.ops"

    def __init__(self, host: Any, device: str) -> None:
        self.host, self.device = np.asarray(host), f"/job:localhost/device:{device}:0"

    def __array__(self, *_: Any, **__: Any) -> Any:
        assert ":GPU:" not in self.device, "copied to the processor"
        return self.host


class Proxy:
    """Stands for another object, whose attributes it has."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


class DeviceNDArray:
    """Numba's: __cuda_array_interface__ alone. told: what that says beside the usual."""

    __module__ = "numba.cuda.cudadrv.devicearray"

    def __init__(self, host: Any, **told: Any) -> None:
        self.host, self.told = np.asarray(host), told

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        there = self.host.__array_interface__
        address = there["data"][0] + stub_cupy.FAR if self.host.size else 0
        told = {"data": (address, False), "stream": None, "strides": there["strides"], "version": 3}
        return told | {"shape": there["shape"], "typestr": there["typestr"]} | self.told

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("copied to the processor")


class Other:
    """Of a library that says nothing of arrays from elsewhere."""

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int) -> Any:
        return self.host


def _module(name: str, **functions: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(functions)
    return module


def _as_cuda_array(array: Any, sync: bool = True) -> DeviceNDArray:
    assert not sync
    return DeviceNDArray(array.host)


torch = _module("torch", from_dlpack=lambda array: Tensor(array.__dlpack__(stream=STREAM)))
jax_numpy = _module(
    "jax.numpy", from_dlpack=lambda array: ArrayImpl(array.__dlpack__(stream=STREAM))
)
numba_cuda = _module("numba.cuda", as_cuda_array=_as_cuda_array)

MODULES = {"torch": torch, "jax.numpy": jax_numpy, "numba.cuda": numba_cuda}
KINDS = (Tensor, ArrayImpl, DeviceNDArray)
