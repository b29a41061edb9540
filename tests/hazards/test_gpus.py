"""Arrays on GPUs"""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime import stub_cupy, stub_libraries
from tests.runtime.conftest import cupy, standin, standin_site

from .support import refused

__all__ = ["cupy", "standin", "standin_site"]  # CuPy and the GPU are stand-ins

X = np.arange(1.0, 13).reshape(3, 4)


@pytest.fixture
def gpu(standin: ModuleType, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name, module in stub_libraries.MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)
    return standin


def there(values: Any, device: int = 0) -> stub_cupy.ndarray:
    return stub_cupy.ndarray.of(np.array(values), device)


def test_cupys_arrays(gpu: ModuleType) -> None:
    """CuPy's arrays: as NumPy's; results are on the GPU, of no axes, too."""
    for call in (gpu.square, gpu.softmax, gpu.total, gpu.max):
        result = call(there(X))
        assert type(result) is stub_cupy.ndarray
        np.testing.assert_allclose(result.host, call(X))


def test_two_places(gpu: ModuleType) -> None:
    """Arrays of NumPy's and CuPy's in one call, arrays on two GPUs, or of two libraries: TypeError
    that names two of them.
    """
    for other, place in (
        (np.ones((4, 4)), "argument b is a numpy.ndarray, argument a is a cupy.ndarray on GPU 0"),
        (there(np.ones((4, 4)), 1), "is a cupy.ndarray on GPU 0, argument b is a cupy.ndarray on"),
        (stub_libraries.Tensor(np.ones((4, 4))), "on GPU 0, argument b is a torch.Tensor on GPU 0"),
    ):
        with refused(TypeError, place):
            gpu.matmul(there(X), other)


def test_numbers(gpu: ModuleType) -> None:
    """Numbers, NumPy's scalars and 0-d arrays beside a GPU's arrays: as beside NumPy's."""
    for low in (2, np.float32(2), there(2.0)):
        assert (gpu.clamp(there(X), low).host == np.maximum(X, 2)).all()


def test_threads(gpu: ModuleType) -> None:
    """`num_threads=` with a GPU's arrays: TypeError."""
    with refused(TypeError, "num_threads is for the processor's threads"):
        gpu.square(there(X), num_threads=2)


def test_no_code(gpu: ModuleType) -> None:
    """Kernels or types without code for GPUs: TypeError, and nothing runs on the processor."""
    for call in (lambda: gpu.limits(there(X)), lambda: gpu.scaled(there(X), 2)):
        with refused(TypeError, "there is no CUDA code"):
            call()


def test_strides(gpu: ModuleType) -> None:
    """Strides that no code for GPUs reads, or many rows apart: one contiguous copy, one launch."""
    x = there(np.ones((30, 7, 8)))
    assert gpu.softmax(x[:, ::2]).host.shape == (30, 4, 8) and gpu.last_call()["copied"]


def test_misaligned(gpu: ModuleType) -> None:
    """Elements that are not aligned, on a GPU: ValueError."""
    memory = np.zeros(17, np.uint8)[1:].view(float)
    with refused(ValueError, "its elements are not aligned, as a GPU needs them"):
        gpu.square(stub_cupy.ndarray.of(memory))


@pytest.mark.parametrize("kind", stub_libraries.KINDS)
def test_other_libraries(gpu: ModuleType, kind: Any) -> None:
    """Arrays of PyTorch, JAX and Numba on a GPU: results are of the same library; streams wait for
    each other, the processor for none.
    """
    result = gpu.square(kind(X))
    assert type(result) is kind and (result.host == X * X).all()


@pytest.mark.parametrize("given", [stub_libraries.Sharded(X), [stub_libraries.ArrayImpl(X)],
                                   stub_libraries.EagerTensor(X, "GPU")])  # fmt: skip
def test_no_silent_copies(gpu: ModuleType, given: Any) -> None:
    """JAX arrays that lie on several devices, arrays on GPUs of others than NVIDIA, TensorFlow's on
    a GPU, lists that hold arrays on a GPU: TypeError, and nothing is copied to the processor.
    """
    with refused(TypeError, "square: argument x"):
        gpu.square(given)


def test_gradients(gpu: ModuleType) -> None:
    """Tensors that require gradients: TypeError that names `.detach()`."""
    with refused(TypeError, "pass .detach() of it"):
        gpu.square(stub_libraries.Tensor(X, requires_grad=True))


def test_immutable(gpu: ModuleType) -> None:
    """`out=` a JAX array: TypeError, since these are never changed."""
    with refused(TypeError, "JAX's arrays are never changed"):
        gpu.square(stub_libraries.ArrayImpl(X), out=stub_libraries.ArrayImpl(X))


def test_graphs(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that a CUDA graph captures: as others after `warmup()`; RuntimeError where they would
    take memory that the caller does not hold; `workspace=` gives it.
    """
    gpu.warmup()
    memory, out = there(np.zeros(2000, np.uint8)), there([0.0])
    monkeypatch.setattr(stub_cupy.here, "captured", True)
    gpu.greedy(there([2.0]), out=out, workspace=memory)
    assert out.host == 2
    with refused(RuntimeError, "pass workspace=cupy.empty(1000, 'uint8')"):
        gpu.greedy(there([2.0]), out=out)


def test_no_driver(gpu: ModuleType, standin_site: Path) -> None:
    """No CuPy, no driver of NVIDIA's: ImportError that says what to install; no GPU, or a driver
    that is older than CuPy: RuntimeError that says so, with CuPy's as its cause.
    """
    script = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(standin_site)!r}]
import numpy as np, standin as ts
from tests.runtime import stub_cupy
sys.modules["cupy"] = stub_cupy
ts.square(stub_cupy.ndarray.of(np.ones(3)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "ImportError: standin: calls on a GPU need NVIDIA's driver" in done.stderr
    library = next(standin_site.glob("libcuda*.so"))
    less = script.replace("ts.square", f"""stub_cupy._driver[:] = [ctypes.CDLL({str(library)!r})]
stub_cupy.find_no_gpu(100, "cudaErrorNoDevice")
ts.square""").replace("import sys", "import ctypes, sys")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", less], capture_output=True, text=True)
    assert "CUDARuntimeError: cudaErrorNoDevice" in done.stderr
    assert "RuntimeError: standin: calls on a GPU need one that CuPy can use, and" in done.stderr


def test_import(standin_site: Path) -> None:
    """Importing the package, and calls with NumPy's arrays: CuPy is not imported."""
    script = f"""
import sys
sys.path[:0] = [{str(standin_site)!r}]

class Watch:
    def find_spec(self, name, *_):
        assert name.partition(".")[0] != "cupy"

sys.meta_path.insert(0, Watch())
import numpy as np, standin as ts
x = np.ones((2, 3))
ts.square(x), ts.square(x.astype("i4")), ts.square([1, 2]), ts.total(x), ts.square(x, out=x)
print("cupy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
