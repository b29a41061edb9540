"""Kernels tried on a GPU: `tilesmith run --target cuda`, where CuPy and the GPU are stand-ins and
the emulator runs the device text.
"""

import ctypes
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gen
from gen import cli
from gen.errors import KernelFault, TilesmithError
from gen.targets.cuda import gpu
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from gen.trial.run import compiled
from tests.runtime import stub_cupy
from tests.runtime.test_emulated_package import Emulated

SPECS = Path(__file__).parent / "specs"


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Emulated:
    behind = Emulated()

    def launch(handle: int, *numbers: int) -> None:
        grid, block = (ctypes.c_uint32 * 3)(*numbers[:3]), (ctypes.c_uint32 * 3)(*numbers[3:6])
        if behind.launch(handle, grid, block, ctypes.c_void_p(numbers[8])):
            raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr(stub_cupy, "FAR", 0)
    monkeypatch.setattr(stub_cupy.Module, "find", lambda module, name: behind.load(module, name))
    monkeypatch.setattr(stub_cupy.cuda, "driver", SimpleNamespace(launchKernel=launch))
    monkeypatch.setitem(sys.modules, "cupy", stub_cupy)
    return behind


@pytest.mark.parametrize("name", ["gelu_gpu", "sum_two"])
def test_run(emulated: Emulated, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(SPECS / f"{name}.yaml"), "--target", "cuda"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{name} float32 sm_90  ") and emulated.errors == []
    assert "ms on a GPU, copies there and back included, median of 7\n" in said


def test_arrays_that_overlap(emulated: Emulated) -> None:
    spec = TARGETS.load(SPECS / "gelu_gpu.yaml")
    (dtypes,) = ({"T": next(iter(spec.dtypes[0].choices))},)
    kernel = compiled(spec, dtypes, Cuda.at("sm_90"))
    x = np.linspace(-3, 3, 40, dtype="f")
    y = np.zeros(40, "f")
    whole = x.copy()
    names = [p.buffer.name for p in kernel.compiled.kernel.parameters]
    sizes: dict[str, int] = {}
    kernel(dict(zip(names, (x, y), strict=True)), sizes)
    kernel(dict(zip(names, (whole, whole), strict=True)), sizes)
    np.testing.assert_array_equal(whole, y)
    assert (x == np.linspace(-3, 3, 40, dtype="f")).all()
    nothing = np.zeros(0, "f")
    kernel(dict(zip(names, (nothing, nothing), strict=True)), sizes)


def test_a_kernel_tried_out(emulated: Emulated) -> None:
    """Its arrays are told by address and layout."""
    gelu = gen.compile(SPECS / "gelu_gpu.yaml", "sm_90", target="cuda")
    x = np.linspace(-3, 3, 40, dtype="f")
    want = gelu(x)
    np.testing.assert_allclose(want, [v / 2 * (1 + math.erf(v / 2**0.5)) for v in x], atol=1e-5)
    for given in (x, np.flip(np.flip(x).copy()), np.repeat(x, 2)[::2], x.astype(">f4")):
        np.testing.assert_array_equal(gelu(given), want)
    np.testing.assert_array_equal(gelu(np.broadcast_to(x[3], 40)), np.full(40, want[3]))
    assert gelu(x[:0]).shape == (0,)


def test_arrays_that_stay_there(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is timed copies nothing but the first time, and nothing back."""
    spec = TARGETS.load(SPECS / "gelu_gpu.yaml")
    kernel = compiled(spec, {"T": next(iter(spec.dtypes[0].choices))}, Cuda.at("sm_90"))
    assert kernel.machine == "A GPU of tests"
    x, y = np.ones(40, "f"), np.zeros(40, "f")
    names = [p.buffer.name for p in kernel.compiled.kernel.parameters]
    arrays = dict(zip(names, (x, y), strict=True))
    copied: list[int] = []
    pieces = gpu._pieces
    monkeypatch.setattr(gpu, "_pieces", lambda *given: copied.append(1) or pieces(*given))
    call = kernel.bound(arrays, {}, resident=True)
    call(), call()
    assert len(copied) == 1 and not y.any()
    kernel(arrays, {})
    assert len(copied) == 2 and y.all()


def test_a_launch_that_fails(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TARGETS.load(SPECS / "gelu_gpu.yaml")
    kernel = compiled(spec, {"T": next(iter(spec.dtypes[0].choices))}, Cuda.at("sm_90"))
    names = [p.buffer.name for p in kernel.compiled.kernel.parameters]
    monkeypatch.setattr(emulated, "launch", lambda *_: 719)
    with pytest.raises(KernelFault, match=r"gelu_gpu at .*: CUDA_ERROR_LAUNCH_FAILED"):
        kernel({name: np.ones(4, "f") for name in names}, {})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_goes_wrong_within_a_launch(
    emulated: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TARGETS.load(SPECS / "gelu_gpu.yaml")
    kernel = compiled(spec, {"T": next(iter(spec.dtypes[0].choices))}, Cuda.at("sm_90"))
    names = [p.buffer.name for p in kernel.compiled.kernel.parameters]
    monkeypatch.delattr(stub_cupy.Module, "get_function")  # which C would take for a launch
    with pytest.raises(KernelFault, match=r"gelu_gpu at .*: ts_gelu_gpu_\w+ was not launched"):
        kernel({name: np.ones(4, "f") for name in names}, {})


def test_the_gpus_architectures(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cuda.here()[-1] == "sm_90"
    monkeypatch.setattr(stub_cupy.here, "device", 7)
    assert Cuda.here() == ("sm_75",)


def test_there_is_no_gpu(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise RuntimeError("cudaErrorNoDevice")

    monkeypatch.setattr(stub_cupy.cuda.runtime, "getDeviceCount", none)
    with pytest.raises(TilesmithError, match="there is no GPU that a kernel for cuda") as caught:
        Cuda.here()
    assert caught.value.hint == "CuPy says: cudaErrorNoDevice"


def test_there_is_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TilesmithError) as caught:
        gpu.architectures()
    assert caught.value.message == gpu.NO_GPU
    assert caught.value.hint == "a GPU is used through CuPy: pip install cupy-cuda13x"


def test_what_nvrtc_refuses(emulated: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise RuntimeError("line 3: no")

    monkeypatch.setattr(stub_cupy.cuda.compiler, "compile_using_nvrtc", refused)
    spec = TARGETS.load(SPECS / "gelu_gpu.yaml")
    with pytest.raises(TilesmithError, match="NVRTC refused the kernel:\nline 3: no"):
        compiled(spec, {"T": next(iter(spec.dtypes[0].choices))}, Cuda.at("sm_90"))
