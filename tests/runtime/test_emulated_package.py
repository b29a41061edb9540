"""A package with recipes for GPUs, built as an author builds it, called with CuPy's arrays: the
emulator runs its device text where a GPU would, all else is the real thing. CuPy is a stand-in.
"""

import ctypes
import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gen.targets.c.library import opened
from gen.targets.cuda.emulator import library
from tests.packaging import author
from tests.runtime import stub_cupy, stub_libraries

SPECS = Path(__file__).parents[1] / "targets" / "cuda" / "specs"
KERNELS = (
    *("blur_gpu", "gelu_gpu", "gemv_gpu", "layer_gpu", "matmul_gpu"),
    *("softmax_gpu", "sum_two", "transpose_gpu"),
)
RNG = np.random.default_rng(9)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("emulated")
    machine = author.machine(folder / "environment")
    source = author.package(folder, [SPECS / f"{name}.yaml" for name in KERNELS], for_gpus=True)
    pip = ["pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet"]
    machine.run(*pip, "--wheel-dir", folder / "dist", source)
    with zipfile.ZipFile(next((folder / "dist").glob("*.whl"))) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


class Emulated:
    """What stands behind the driver: emulated functions, by handle."""

    def __init__(self) -> None:
        self.functions: list[tuple[Path, str]] = [(Path(), "")]
        self.errors: list[str] = []

    def load(self, module: stub_cupy.Module, name: str) -> int:
        assert "--fmad=false" in stub_cupy.compiled[-1][1]
        built = library.build({"kernel.cu": module.code.decode()})
        self.functions.append((built, name))
        return len(self.functions) - 1

    def launch(self, handle: int, grid: Any, block: Any, parameters: Any) -> int:
        path, name = self.functions[handle]
        emulator = library.Emulator(path)
        memory = {f"memory {k}": m for k, m in enumerate(stub_cupy.memories.values()) if m.size}
        with emulator.memory(memory, (), library.Settings(seed=handle)):
            launch = opened(path).ts_emulator_launch
            if launch(None, name.encode(), grid, block, parameters):
                self.errors.append(emulator.error)
                return 719
        return 0


HOOK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


@pytest.fixture(scope="module")
def package(site: Path, cupy: ModuleType) -> Iterator[ModuleType]:
    emulated = Emulated()

    def launch(handle: int, *rest: int) -> int:
        return emulated.launch(handle, *map(ctypes.c_void_p, rest))

    hook = HOOK(launch)
    ctypes.c_void_p.in_dll(stub_cupy.driver(), "stub_hook").value = ctypes.cast(
        hook, ctypes.c_void_p
    ).value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stub_cupy, "FAR", 0)  # the emulator follows pointers as they are
        patch.setattr(stub_cupy.Module, "find", lambda module, name: emulated.load(module, name))
        patch.syspath_prepend(str(site))
        yield importlib.import_module("fixture_package")
        assert emulated.errors == []
    del sys.modules["fixture_package"]


def same(package: ModuleType, name: str, x: Any, *others: Any, **options: Any) -> None:
    """A call with a GPU's arrays gives what a call with NumPy's does."""
    expected = getattr(package, name)(x, *others, **options)
    there = [stub_cupy.ndarray.of(array) for array in (x, *others)]
    got = getattr(package, name)(*there, **options)
    assert not expected.size or package.last_call()["level"] == "sm_75"
    assert (type(got), got.dtype, got.shape) == (
        stub_cupy.ndarray,
        expected.dtype,
        np.shape(expected),
    )
    np.testing.assert_allclose(got.host, expected, rtol=3e-6, atol=3e-5)


@pytest.mark.parametrize("name", ["gelu_gpu", "softmax_gpu"])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (1, 1), (3, 255), (2, 257), (2, 3, 40)])
def test_sizes(package: ModuleType, name: str, shape: tuple[int, ...]) -> None:
    same(package, name, RNG.standard_normal(shape).astype("f"))


@pytest.mark.parametrize("name", ["gelu_gpu", "softmax_gpu"])
def test_strides(package: ModuleType, name: str) -> None:
    x = RNG.standard_normal((12, 10, 14)).astype("f")
    for view in (x[::2], x[:, ::3], x[..., ::-1], x.T, x[3], np.broadcast_to(x[:1, :1], x.shape)):
        same(package, name, view)
    if name == "softmax_gpu":
        same(package, name, x, axis=0)
        same(package, name, x, axis=1)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (3, 5000), (2, 4, 100)])
def test_several_launches_with_memory_between(package: ModuleType, shape: tuple[int, ...]) -> None:
    a, x = RNG.standard_normal(shape), RNG.standard_normal(shape[-1])
    same(package, "sum_two", a.astype("f"), x.astype("f"))


def test_matrices(package: ModuleType) -> None:
    same(package, "transpose_gpu", RNG.standard_normal((35, 65)).astype("f"))
    same(package, "transpose_gpu", RNG.standard_normal((3, 33, 32)).astype("f"))


def test_leading_axes_broadcast(package: ModuleType) -> None:
    a, b = RNG.standard_normal((2, 1, 17, 9)), RNG.standard_normal((3, 9, 33))
    same(package, "matmul_gpu", a.astype("f"), b.astype("f"))
    same(package, "matmul_gpu", a[:, 0].astype("f").mT[:, ::-1], a[0].astype("f"))
    same(package, "gemv_gpu", a.astype("f"), b[0, :, 0].astype("f"))
    same(package, "matmul_gpu", a[:0].astype("f"), b.astype("f"))
    for shape in ((0, 4, 3), (2, 0, 4)):
        same(package, "gemv_gpu", np.ones(shape, "f"), np.ones(shape[-1], "f"))


def test_images(package: ModuleType) -> None:
    x = RNG.standard_normal((3, 20, 40)).astype("f")
    for view in (x, x[:, ::2, ::-1], x[0].T, x[:, :1, :1], x[:0]):
        same(package, "blur_gpu", view)


def test_scalars(package: ModuleType) -> None:
    x, weight = RNG.standard_normal((5, 300)).astype("f"), RNG.standard_normal(300).astype("f")
    for epsilon in (1e-5, np.float64(2), stub_cupy.ndarray.of(np.float32(0.5))):
        options = {"epsilon": epsilon if np.isscalar(epsilon) else epsilon.item()}
        expected = package.layer_gpu(x, weight, weight[::-1], **options)
        given = [stub_cupy.ndarray.of(array) for array in (x, weight, weight[::-1])]
        got = package.layer_gpu(*given, epsilon=epsilon)
        np.testing.assert_allclose(got.host, expected, rtol=2e-5, atol=2e-5)
    same(package, "layer_gpu", x.T.copy().T, weight, weight)
    same(package, "layer_gpu", x.T, weight[:5], weight[:5], axis=-1)


def test_types_and_numbers_are_converted(package: ModuleType) -> None:
    same(package, "softmax_gpu", RNG.integers(-9, 9, (4, 7)).astype("i2"))
    same(package, "gelu_gpu", RNG.standard_normal((4, 7)).astype("e"))
    with pytest.raises(TypeError, match="argument x has dtype float64; supported: float32"):
        package.gelu_gpu(stub_cupy.ndarray.of(np.ones(3)))


def test_a_captured_call_with_workspace(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, x = RNG.standard_normal((3, 500)).astype("f"), RNG.standard_normal(500).astype("f")
    given, out = [stub_cupy.ndarray.of(array) for array in (a, x)], np.zeros(3, "f")
    package.warmup(package.sum_two)
    with pytest.raises(ValueError, match="workspace must have at least") as caught:
        package.sum_two(*given, workspace=stub_cupy.ndarray.of(np.zeros(0, "u1")))
    size = int(str(caught.value).split()[6])
    memory = stub_cupy.ndarray.of(np.full(size + 256, 7, "u1"))
    monkeypatch.setattr(stub_cupy.here, "captured", True)
    with pytest.raises(RuntimeError, match="pass workspace="):
        package.sum_two(*given, out=stub_cupy.ndarray.of(out))
    package.sum_two(*given, out=stub_cupy.ndarray.of(out), workspace=memory)
    np.testing.assert_allclose(out, package.sum_two(a, x), rtol=1e-4, atol=1e-4)


def test_arrays_of_another_library(package: ModuleType) -> None:
    x = RNG.standard_normal((5, 40)).astype("f")
    y = package.softmax_gpu(stub_libraries.Other(x))
    assert type(y) is stub_cupy.ndarray
    np.testing.assert_allclose(y.host, package.softmax_gpu(x), rtol=3e-6)


def test_out(package: ModuleType) -> None:
    x = RNG.standard_normal((5, 40)).astype("f")
    expected = package.softmax_gpu(x)
    wide = np.zeros((10, 80), "f")
    for out in (wide[::2, ::2], x):
        given = stub_cupy.ndarray.of(out)
        assert package.softmax_gpu(stub_cupy.ndarray.of(x), out=given) is given
        np.testing.assert_allclose(out, expected, rtol=3e-6)


def square(memory: Any, start: int) -> Any:
    return memory[start : start + 1600].reshape(40, 40)


OVERLAPS: dict[str, tuple[str, Any]] = {
    "the array itself": ("gelu_gpu", lambda m: ((m,), m)),
    "a later view": ("gelu_gpu", lambda m: ((m[:-1],), m[1:])),
    "an earlier view": ("gelu_gpu", lambda m: ((m[1:],), m[:-1])),
    "backwards": ("gelu_gpu", lambda m: ((m,), m[::-1])),
    "every second": ("gelu_gpu", lambda m: ((m[:2000],), m[:4000:2])),
    "rows as columns": ("softmax_gpu", lambda m: ((square(m, 0),), square(m, 0).T)),
    "a square turned": ("transpose_gpu", lambda m: ((square(m, 0),), square(m, 0))),
    "a square turned and shifted": ("transpose_gpu", lambda m: ((square(m, 0),), square(m, 7))),
    "the left matrix": ("matmul_gpu", lambda m: ((square(m, 0), square(m, 1600)), square(m, 0))),
    "the right matrix": ("matmul_gpu", lambda m: ((square(m, 0), square(m, 9)), square(m, 9))),
    "parts of two": ("matmul_gpu", lambda m: ((square(m, 0), square(m, 1600)), square(m, 800))),
    "a batch": ("matmul_gpu", lambda m: ((m[:1200].reshape(3, 20, 20), m[:400].reshape(20, 20)),
                                         m[400:1600].reshape(3, 20, 20))),
    "the vector": ("gemv_gpu", lambda m: ((square(m, 0), m[2000:2040]), m[2000:2040])),
    "a column": ("gemv_gpu", lambda m: ((square(m, 0), m[2000:2040]), square(m, 0)[:, 3])),
    "of two launches": ("sum_two", lambda m: ((square(m, 0), m[2000:2040]), square(m, 0)[:, 0])),
    "rows with a weight among them": (
        "layer_gpu", lambda m: ((square(m, 0), m[40:80], m[3000:3040]), square(m, 0))),
    "an image": ("blur_gpu", lambda m: ((square(m, 0),), square(m, 0))),
    "an image, a row further": ("blur_gpu", lambda m: ((square(m, 0),), square(m, 40))),
}  # fmt: skip


@pytest.mark.parametrize("case", OVERLAPS)
def test_out_overlaps_what_is_read(package: ModuleType, case: str) -> None:
    """What is written is what a call without out= gives, and nothing else is changed."""
    name, views = OVERLAPS[case]
    memory = RNG.standard_normal(4001).astype("f")
    expected = memory.copy()
    inputs, out = views(expected)
    out[...] = getattr(package, name)(*(x.copy() for x in inputs))
    inputs, out = views(memory)
    given = stub_cupy.ndarray.of(out)
    got = getattr(package, name)(*map(stub_cupy.ndarray.of, inputs), out=given)
    assert got is given and package.last_call()["level"] == "sm_75"
    np.testing.assert_allclose(memory, expected, rtol=3e-6, atol=3e-5)


def test_the_packages_files(site: Path) -> None:
    files = {path.name for path in (site / "fixture_package" / "cuda").iterdir()}
    assert {f"{name}.sm_75.cu" for name in KERNELS} | {"ts_cuda.h", "ts_math.h"} <= files
