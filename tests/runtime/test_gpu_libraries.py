"""Calls with arrays of other libraries on a GPU: taken and returned in kind, and what is refused.

The libraries, CuPy and the GPU are stand-ins.
"""

import subprocess
import sys
from collections import deque
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime import stub_cupy, stub_libraries
from tests.runtime.stub_libraries import (
    STREAM,
    ArrayImpl,
    DeviceNDArray,
    EagerTensor,
    Elsewhere,
    HostTensor,
    Other,
    Proxy,
    Sharded,
    Tensor,
)
from tests.runtime.test_gpu_calls import launches, refused, there

OURS = 33
kinds = pytest.mark.parametrize("kind", stub_libraries.KINDS)


@pytest.fixture
def ts(standin: ModuleType, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name, module in stub_libraries.MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(stub_cupy.here, "stream", OURS)
    stub_cupy.waits.clear()
    return standin


@kinds
def test_arrays_come_back_in_kind(ts: ModuleType, kind: Any) -> None:
    host = np.arange(1.0, 13).reshape(3, 4)
    y = ts.softmax(kind(host))
    assert type(y) is kind and ts.last_call()["level"] == "sm_90"
    np.testing.assert_allclose(y.host, host / host.sum(1, keepdims=True))
    y = ts.matmul(kind(host), kind(host.T))
    np.testing.assert_allclose(y.host, host @ host.T)
    whole, rest = ts.parts(kind([1.25, 2.5]))
    assert type(whole) is type(rest) is kind
    assert (whole.host.tolist(), rest.host.tolist()) == ([1, 2], [0.25, 0.5])
    assert ts.square(kind(np.zeros((0, 3)))).host.shape == (0, 3)
    assert ts.square(kind(host[::2, ::-1])).host.tolist() == (host[::2, ::-1] ** 2).tolist()


@kinds
def test_reductions(ts: ModuleType, kind: Any) -> None:
    x = kind(np.arange(24.0).reshape(2, 3, 4))
    for axis, expected in ((None, 276), ((0, 2), [60, 92, 124]), (-1, [[6, 22, 38], [54, 70, 86]])):
        total = ts.total(x, axis=axis)
        assert (type(total), total.host.tolist()) == (kind, expected)
    kept = ts.total(x, axis=(0, 2), keepdims=True)
    assert (type(kept), kept.host.shape) == (kind, (1, 3, 1))


@pytest.mark.parametrize("kind", [Tensor, DeviceNDArray])
def test_results_in_arrays_of_ones_own(ts: ModuleType, kind: Any) -> None:
    x, out = kind([1.0, 2, 3]), kind(np.zeros(3))
    assert ts.square(x, out=out) is out and out.host.tolist() == [1, 4, 9]
    assert ts.square(x, out=x) is x and x.host.tolist() == [1, 4, 9]
    total = kind(np.zeros((1, 1)))
    assert ts.total(kind(np.ones((2, 3))), keepdims=True, out=total) is total
    assert total.host.tolist() == [[6]]
    whole = kind(np.zeros(1))
    first, rest = ts.parts(kind([1.25]), out=(whole, None))
    assert first is whole and (whole.host, rest.host) == (1, 0.25)
    a = kind(np.ones((1, 2)))
    ts.add_into(a, kind([[1.0, 2]]))
    assert a.host.tolist() == [[2, 3]]


def test_streams_wait_for_each_other(ts: ModuleType) -> None:
    def waits() -> list[tuple[int, int]]:
        done = stub_cupy.waits[:]
        stub_cupy.waits.clear()
        return done

    ts.square(Tensor([1.0]))
    assert waits() == [(OURS, STREAM), (STREAM, OURS)]
    out = Tensor([1.0])
    ts.square(Tensor([1.0]), out=out)
    assert waits() == [(OURS, STREAM), (OURS, STREAM), (STREAM, OURS)]
    ts.square(DeviceNDArray([1.0], stream=5))
    assert waits() == [(OURS, 5), (5, OURS)]
    ts.square(DeviceNDArray([1.0]))  # on the default stream
    assert waits() == [(OURS, 1), (1, OURS)]
    stub_cupy.here.stream = 0  # that one, too
    ts.square(DeviceNDArray([1.0]))
    assert waits() == []


def test_a_library_that_takes_no_arrays_gets_cupys(ts: ModuleType) -> None:
    assert type(ts.square(Other([2.0]))) is stub_cupy.ndarray


def test_a_call_runs_on_the_arrays_device(ts: ModuleType) -> None:
    y = ts.square(Tensor([2.0], device=1))
    assert y.host == [4] and stub_cupy.here.device == 0


def test_tensors_of_the_processor_are_numpys(ts: ModuleType) -> None:
    before = launches()
    assert ts.square(HostTensor([2.0])).tolist() == [4]
    assert launches() == before


def test_what_is_refused(ts: ModuleType) -> None:
    tensor, array = Tensor(np.ones((2, 2))), ArrayImpl(np.ones((2, 2)))
    one, numba = (
        "argument a is a torch.Tensor on GPU 0",
        "a numba.cuda.cudadrv.devicearray.DeviceNDArray",
    )
    matmul = "matmul: arrays must be"
    cases: list[tuple[Any, str]] = [
        (lambda: ts.matmul(tensor, array),
         f"{matmul} of one library: {one}, argument b is a jaxlib._jax.ArrayImpl on GPU 0"),
        (lambda: ts.matmul(tensor, there(np.ones((2, 2)))),
         f"{matmul} of one library: {one}, argument b is a cupy.ndarray on GPU 0"),
        (lambda: ts.matmul(tensor, np.ones((2, 2))),
         f"{matmul} in one place: argument b is a numpy.ndarray, {one}"),
        (lambda: ts.matmul(tensor, Tensor(np.ones((2, 2)), device=1)),
         f"{matmul} in one place: {one}, argument b is a torch.Tensor on GPU 1"),
        (lambda: ts.square(there([1.0]), out=Tensor([1.0])),
         "square: arrays must be of one library: argument x is a cupy.ndarray on GPU 0, out (y) is "
         "a torch.Tensor on GPU 0"),
        (lambda: ts.square(np.ones(1), out=DeviceNDArray([1.0])),
         f"square: out (y) must be an ndarray, got {numba} on GPU 0; the arguments are not on a "
         "GPU"),
        (lambda: ts.square(array, out=array),
         "square: out (y) is a jaxlib._jax.ArrayImpl, and JAX's arrays are never changed; take the "
         "result"),
        (lambda: ts.add_into(array, array),
         "add_into: argument a is a jaxlib._jax.ArrayImpl, and JAX's arrays are never changed; "
         "take the result"),
        (lambda: ts.square(Tensor([1.0], requires_grad=True)),
         "square: argument x requires gradients, which kernels do not pass on; pass .detach() "
         "of it"),
        (lambda: ts.square(Tensor([1.0]), out=Tensor([1.0], requires_grad=True)),
         "square: out (y) requires gradients, which kernels do not pass on; pass .detach() "
         "of it"),
        (lambda: ts.square(Tensor(np.ones(1, object))),
         "square: argument x cannot be taken by DLPack: Can't export tensors with the "
         "conjugate bit set"),
        (lambda: ts.square(DeviceNDArray([1.0], mask=object())),
         "square: argument x has a mask, which would be lost"),
        (lambda: ts.square(DeviceNDArray(np.ones(1, ">f8"))),
         "square: argument x has dtype >f8, in another order of bytes than a GPU's"),
        (lambda: ts.square(tensor, num_threads=1),
         "square: num_threads is for the processor's threads, and the arrays are on a GPU"),
    ]  # fmt: skip
    for call, message in cases:
        with refused(TypeError, message):
            call()
    told = DeviceNDArray([1.0]).__cuda_array_interface__
    with refused(ValueError, "square: out (y) is read-only"):
        ts.square(DeviceNDArray([1.0]), out=DeviceNDArray([1.0], data=(told["data"][0], True)))


def test_nothing_is_copied_to_the_processor(ts: ModuleType) -> None:
    """NumPy would make arrays of all of these."""
    advice = "; pass np.asarray(...) of it for the processor"
    stay = ", and nothing is copied to the processor; make one array of the elements where they are"
    cannot = (
        "which is not on one device or cannot say on which (BufferError: __dlpack__ only supported "
        f"for unsharded arrays.){advice}"
    )
    numba = "a numba.cuda.cudadrv.devicearray.DeviceNDArray on GPU 0"
    sharded, elsewhere = Sharded([1.0]), Elsewhere([1.0])
    cases: list[tuple[Any, str]] = [
        (sharded, f" is a jaxlib._jax.Sharded, {cannot}"),
        (elsewhere, " is a jaxlib._jax.Elsewhere on a device of DLPack's kind 10, where kernels "
         f"cannot take it{advice}"),
        (EagerTensor([1.0], "GPU"), " is a tensorflow.python.framework.ops.EagerTensor on "
         f"/job:localhost/device:GPU:0, where kernels cannot take it{advice}"),
        ([1.0, ArrayImpl(2.0)], f": an element is a jaxlib._jax.ArrayImpl on GPU 0{stay}"),
        ([[1.0], (DeviceNDArray(2.0),)], f": an element is {numba}{stay}"),
        (deque([there(2.0)]), f": an element is a cupy.ndarray on GPU 0{stay}"),
        ([1, sharded], f": an element is a jaxlib._jax.Sharded, {cannot}"),
    ]  # fmt: skip
    for given, message in cases:
        for name, call in (("square", ts.square), ("total", ts.total)):
            with refused(TypeError, f"{name}: argument x{message}"):
                call(given)
    with refused(
        TypeError,
        "matmul: arrays must be in one place: argument b is a jaxlib._jax.Sharded, argument a is a "
        "cupy.ndarray on GPU 0",
    ):
        ts.matmul(there(np.ones((2, 2))), Sharded(np.ones((2, 2))))
    with refused(TypeError, "square: out (y) must be an ndarray, got Sharded"):
        ts.square(np.ones(1), out=sharded)


def test_what_the_processor_has_is_taken(ts: ModuleType) -> None:
    own, buffer = HostTensor([1.0, 2]), memoryview(np.array([1.0, 2]))
    for given in (own, [own], Proxy(own), EagerTensor([1.0, 2], "CPU"), buffer, [buffer]):
        assert ts.square(given).ravel().tolist() == [1, 4]


def test_what_stands_for_an_array_is_where_that_is(ts: ModuleType) -> None:
    assert ts.square(Proxy(Tensor([2.0]))).host == 4
    with refused(
        TypeError,
        "square: argument x is a tests.runtime.stub_libraries.Proxy, which is not on one device or "
        "cannot say on which (BufferError: __dlpack__ only supported for unsharded arrays.); pass "
        "np.asarray(...) of it for the processor",
    ):
        ts.square(Proxy(Sharded([1.0])))


def test_there_is_no_cupy(ts: ModuleType, standin_site: Path) -> None:
    script = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(standin_site)!r}]
import numpy as np, standin as ts
from tests.runtime.stub_libraries import Tensor

class Without:
    def find_spec(self, name, *_):
        if name == "cupy":
            raise ModuleNotFoundError("No module named 'cupy'")

sys.meta_path.insert(0, Without())
for call in (lambda: ts.square(Tensor(np.ones(3))), ts.warmup):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    needs = (
        "needs CuPy: pip install cupy-cuda13x, or cupy-cuda12x where the driver is of CUDA 12 "
        "(No module named 'cupy')"
    )
    assert done.stdout.splitlines() == [
        f"square: an argument is a torch.Tensor, and a call on a GPU {needs}",
        f"warmup {needs}",
    ], done.stderr
