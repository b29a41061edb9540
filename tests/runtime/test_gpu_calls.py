"""Calls with CuPy's arrays: where things are, what is launched, and what is refused.

CuPy and the GPU are stand-ins. What such calls share with NumPy's is tested in test_calls.py.
"""

import ctypes
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.runtime import stub_cupy

RNG = np.random.default_rng(8)


@pytest.fixture
def ts(standin: ModuleType, cupy: ModuleType) -> ModuleType:
    return standin


def there(values: Any, dtype: Any = float, device: int = 0) -> stub_cupy.ndarray:
    return stub_cupy.ndarray.of(np.array(values, dtype), device)


@contextmanager
def refused(error: type[Exception], message: str) -> Iterator[None]:
    with pytest.raises(error) as caught:
        yield
    assert str(caught.value) == message


def launches() -> int:
    return ctypes.c_int64.in_dll(stub_cupy.driver(), "stub_launches").value


# ---------------------------------------------------------------- results


def test_a_call_returns_the_gpus_arrays(ts: ModuleType) -> None:
    x = there([[1, 2], [3, 5]])
    y = ts.softmax(x)
    assert type(y) is stub_cupy.ndarray and y.device.id == 0
    np.testing.assert_allclose(y.host, [[1 / 3, 2 / 3], [3 / 8, 5 / 8]])
    done = {"kernel": "softmax", "level": "sm_90", "variant": "unit"}
    assert ts.last_call() == done | {"packed": False, "copied": False}
    out = there(np.zeros((2, 2)))
    assert ts.softmax(x, out=out) is out and (out.host == y.host).all()
    whole, rest = ts.parts(there([1.25, 2.5]))
    assert (whole.host.tolist(), rest.host.tolist()) == ([1, 2], [0.25, 0.5])


def test_reductions_of_all_axes_are_arrays_of_no_dimension(ts: ModuleType) -> None:
    x = there(np.arange(24).reshape(2, 3, 4))
    for axis in (None, (0, 1, 2)):
        total = ts.total(x, axis=axis)
        assert (type(total), total.shape, total.host) == (stub_cupy.ndarray, (), 276)
    assert ts.total(x, axis=(0, 2)).host.tolist() == [60, 92, 124]
    kept = ts.total(x, axis=1, keepdims=True)
    assert (type(kept), kept.shape) == (stub_cupy.ndarray, (2, 1, 4))
    out = there(np.zeros((1, 3, 1)))
    assert ts.max(x, axis=(0, 2), keepdims=True, out=out) is out
    assert out.host.ravel().tolist() == [15, 19, 23]


def test_numbers_beside_arrays(ts: ModuleType) -> None:
    x = there([-1, 0.5, 3])
    assert ts.clamp(x, there(0), high=np.float32(2), factor=there(3, "i4")).host.tolist() == [
        0,
        1.5,
        6,
    ]
    assert ts.scaled(there([1, 2], "f"), 3).host.tolist() == [3, 6]
    assert ts.scaled(there([1, 2], "f"), np.int8(3)).host.tolist() == [3, 6]
    assert ts.scaled(there([1, 2], "f"), there(3, "i1")).host.tolist() == [3, 6]
    with refused(OverflowError, "scaled: argument by: Python integer 300 out of bounds for int8"):
        ts.scaled(there([1, 2], "f"), 300)
    with refused(TypeError, "clamp: scalar low must convert to float64, got ndarray"):
        ts.clamp(x, there([1, 2]))


# ---------------------------------------------------------------- launches


def test_copies_are_made_once_and_never_a_launch_a_row(ts: ModuleType) -> None:
    x = there(RNG.uniform(1, 2, (30, 7, 8)))
    weight, many = there(RNG.uniform(size=(2, 3, 8))), there(np.ones((10, 100, 2, 2)))
    cases = [
        (lambda: ts.softmax(x), 1, False),
        (lambda: ts.softmax(x[..., :4]), 1, False),
        (lambda: ts.softmax(x[::2]), 1, True),  # 15 launches, else
        (lambda: ts.softmax(x[:, ::2]), 1, True),  # 30 launches, else
        (lambda: ts.softmax(x[:3, ::2]), 3, False),
        (lambda: ts.softmax(x, axis=0), 1, True),
        (lambda: ts.total(x, axis=0), 1, False),
        (lambda: ts.square(x[::-1]), 1, True),  # the result is not backwards
        (lambda: ts.square(x.transpose(2, 0, 1)), 1, False),
        (lambda: ts.square(x[..., ::2]), 1, True),
        (lambda: ts.affine(x[:, :2], weight), 2, False),
        (lambda: ts.matmul(x, there(np.ones((8, 2)))), 30, False),  # matrices, not rows
        (lambda: ts.matmul(many, many), 1000, False),
    ]
    for number, (call, expected, copied) in enumerate(cases):
        before = launches()
        call()
        assert (number, launches() - before) == (number, expected)
        assert (number, ts.last_call()["copied"]) == (number, copied)


def test_many_small_axes_broadcast_into_one_launch(ts: ModuleType) -> None:
    a, b = RNG.uniform(size=(6, 1, 5)), RNG.uniform(size=(1, 7, 1)).astype("i1")
    x, by = there(a, "f"), there(b, "i1")
    before = launches()
    np.testing.assert_allclose(ts.scaled(x, by).host, a.astype("f") * b)
    assert launches() - before == 1 and ts.last_call()["copied"]


def test_the_layout_of_out_changes_no_variant(ts: ModuleType) -> None:
    x = there(RNG.uniform(size=(9, 8))).transpose()
    variants = set()
    for out in (None, there(np.zeros(16))[::2], there(np.zeros(16))[::-2]):
        ts.total(x, axis=-1, out=out)
        variants.add(ts.last_call()["variant"])
    assert variants == {"outer"}


@pytest.mark.parametrize("step", [1, -1])
def test_out_that_overlaps_is_written_at_the_end(ts: ModuleType, step: int) -> None:
    memory = np.arange(9.0)[::step]
    expected = memory[:-1] ** 2
    x, out = stub_cupy.ndarray.of(memory[:-1]), stub_cupy.ndarray.of(memory[1:])
    assert ts.square(x, out=out) is out
    np.testing.assert_array_equal(memory[1:], expected)
    assert ts.last_call()["copied"]


def test_in_place_where_that_is_proved_for_gpus(ts: ModuleType) -> None:
    x, host = there([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    assert ts.square(x, out=x) is x and not ts.last_call()["copied"]
    assert ts.clamp(host, 0, out=host) is host and not ts.last_call()["copied"]
    assert ts.clamp(x, 0, out=x) is x and ts.last_call()["copied"]  # on processors alone
    np.testing.assert_array_equal(x.host, host**2)


@pytest.mark.parametrize("turned", ["forwards", "backwards", "transposed"])
def test_copies_are_in_the_order_of_what_is_read(ts: ModuleType, turned: str) -> None:
    host = RNG.uniform(1, 2, (9, 9))
    x = {"forwards": host, "backwards": host[::-1, ::-1], "transposed": host.T}[turned]
    results = np.zeros((3, 18, 36))
    for out in (results[0, ::2, ::4], results[1, ::-2, :9], results[2, :9, 17:8:-1]):
        given = stub_cupy.ndarray.of(out)
        assert ts.square(stub_cupy.ndarray.of(x), out=given) is given
        np.testing.assert_array_equal(out, x * x)


def test_launches_are_on_the_current_stream(ts: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setattr(stub_cupy.here, "stream", 4711)
    ts.square(there([1.0]))
    stream = ctypes.c_void_p.in_dll(stub_cupy.driver(), "stub_stream")
    assert stream.value == 4711
    ts.square(there([1.0], device=1))  # that of the arrays' device
    assert stream.value == 5711


def test_nothing_is_allocated_where_there_is_out(
    ts: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = there(np.ones((3, 4))), there(np.ones((3, 4)))
    sums, product = there(np.ones(3)), there(np.ones((3, 3)))
    for name in ("empty", "empty_like", "full"):
        monkeypatch.delattr(stub_cupy, name)
    for name in ("alloc", "compiler"):
        monkeypatch.delattr(stub_cupy.cuda, name)
    ts.square(x, out=y)
    ts.square(x, out=x)
    ts.softmax(x, out=y)
    ts.total(x, axis=1, out=sums)
    ts.matmul(x, there(np.ones((4, 3))), out=product)
    ts.clamp(x, 0, out=y)


def test_a_call_runs_on_the_arrays_device(ts: ModuleType) -> None:
    result = ts.square(there([2.0], device=1))
    assert (result.device.id, result.host.tolist(), stub_cupy.here.device) == (1, [4.0], 0)
    assert "binary ts_square_float64_launch0 on 1" in stub_cupy.Module.loaded  # once a process


def test_a_new_thread_gets_its_context(ts: ModuleType) -> None:
    results = []
    x, out = there([3.0]), there([0.0])
    thread = threading.Thread(target=lambda: results.append(ts.square(x, out=out)))
    thread.start()
    thread.join()
    assert results == [out] and out.host.tolist() == [9.0]


@pytest.mark.parametrize("needs", ["nothing", "copies", "workspace"])
def test_launches_hold_no_lock_of_pythons(ts: ModuleType, needs: str) -> None:
    """The driver waits in a launch for another thread of Python's, which the lock keeps out."""
    gate = ctypes.c_int.in_dll(stub_cupy.driver(), "stub_gate")
    opened, closed, waited_for = range(3)
    x = there(RNG.uniform(1, 2, (30, 7, 8)))
    call = {
        "nothing": lambda: ts.square(x),
        "copies": lambda: ts.softmax(x[:, ::2]),
        "workspace": lambda: ts.greedy(there([1, 2])),
    }[needs]
    call()  # what is loaded first takes the lock
    before = launches()

    def open_() -> None:
        while gate.value == closed:
            time.sleep(0.001)
        assert gate.value == waited_for and launches() == before
        gate.value = opened

    gate.value = closed
    thread = threading.Thread(target=open_, daemon=True)
    thread.start()
    try:
        call()
    finally:
        gate.value = opened
        thread.join()
    assert launches() > before


def test_memory_of_the_pool_is_given_back(ts: ModuleType) -> None:
    assert ts.greedy(there([1, 2])).host.tolist() == [1, 2]
    with refused(MemoryError, "greedy: no memory for the kernel's workspace"):
        ts.greedy(there([1, 2, 3]))


# ---------------------------------------------------------------- what is refused


def test_arrays_in_different_places(ts: ModuleType) -> None:
    here, gpu, other = np.ones((2, 2)), there(np.ones((2, 2))), there(np.ones((2, 2)), device=1)
    host, first, second = "a numpy.ndarray", "a cupy.ndarray on GPU 0", "a cupy.ndarray on GPU 1"
    cases = [
        (lambda: ts.matmul(here, gpu), f"matmul: argument a is {host}, argument b is {first}"),
        (lambda: ts.matmul(gpu, here), f"matmul: argument b is {host}, argument a is {first}"),
        (lambda: ts.matmul(gpu, [[1]]), f"matmul: argument b is a list, argument a is {first}"),
        (lambda: ts.matmul(gpu, other), f"matmul: argument a is {first}, argument b is {second}"),
        (lambda: ts.square(gpu, out=here), f"square: out (y) is {host}, argument x is {first}"),
        (lambda: ts.square(gpu, out=other), f"square: argument x is {first}, out (y) is {second}"),
    ]
    for call, message in cases:
        with refused(TypeError, message.replace(": ", ": arrays must be in one place: ")):
            call()
    message = f"square: out (y) must be an ndarray, got {first}; the arguments are not on a GPU"
    with refused(TypeError, message):
        ts.square(here, out=gpu)


def test_num_threads(ts: ModuleType) -> None:
    with refused(
        TypeError,
        "square: num_threads is for the processor's threads, and the arrays are on a GPU",
    ):
        ts.square(there([1.0]), num_threads=1)


def test_what_has_no_cuda_code(ts: ModuleType) -> None:
    with refused(
        TypeError,
        "limits: there is no CUDA code; for the processor's, pass cupy.asnumpy(...)",
    ):
        ts.limits(there([1.0]))
    with refused(TypeError, "scaled: there is no CUDA code for float64, but for float32"):
        ts.scaled(there([1.0]), 2)
    with refused(TypeError, "square: its CUDA code is for sm_90 and later; GPU 7 is sm_75"):
        ts.square(there([1.0], device=7))
    with refused(TypeError, "square: argument x has dtype complex128; supported: float32, float64"):
        ts.square(there([1.0], complex))


def test_misaligned_arrays(ts: ModuleType) -> None:
    memory = np.zeros(17, np.uint8)[1:].view(float)
    with refused(
        ValueError, "square: argument x: its elements are not aligned, as a GPU needs them"
    ):
        ts.square(stub_cupy.ndarray.of(memory))


def test_what_the_driver_refuses(ts: ModuleType) -> None:
    with refused(RuntimeError, "turn: the driver did not launch it: CUDA_ERROR_INVALID_VALUE"):
        ts.turn(there([1.0], "complex64"), there([1.0], "f"), 1)


# ---------------------------------------------------------------- code for the device


@pytest.fixture
def package(
    standin_site: Path, cupy: ModuleType, tmp_path: Path, monkeypatch: Any
) -> Iterator[SimpleNamespace]:
    """Functions that have loaded nothing yet, and the folder of their device code."""
    folder = tmp_path / "anew"
    folder.mkdir()
    for file in (standin_site / "standin").iterdir():
        if file.name != "cuda":
            (folder / file.name).symlink_to(file)
    (folder / "cuda").mkdir()
    script = tmp_path / "script.py"

    def run(*lines: str) -> str:
        library = next(standin_site.glob("libcuda*.so"))
        script.write_text(
            "\n".join(
                [
                    "import sys",
                    f"sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(tmp_path)!r}]",
                    "import numpy as np, anew as ts",
                    "assert 'cupy' not in sys.modules",
                    "from pathlib import Path",
                    "from tests.runtime import stub_cupy as cupy",
                    f"with cupy.installed(Path({str(library)!r})):",
                    "    x = cupy.ndarray.of(np.array([3.0]))",
                    *(f"    {line}" for line in lines),
                ]
            )
        )
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
        return (done.stdout + done.stderr).strip().splitlines()[-1]

    yield SimpleNamespace(folder=folder / "cuda", run=run)


CALL = "print(ts.square(x).host, cupy.Module.loaded)"


def test_machine_code_first(package: SimpleNamespace) -> None:
    (package.folder / "square.sm_90.fatbin").touch()
    (package.folder / "square.sm_90.cu").touch()
    assert package.run(CALL) == "[9.] ['binary ts_square_float64_launch0 on 0']"


def test_source_where_the_driver_refuses_machine_code(package: SimpleNamespace) -> None:
    (package.folder / "square.sm_90.fatbin").touch()
    (package.folder / "square.sm_90.cu").touch()
    said = package.run("cupy.Module.refused = ('binary',)", CALL)
    assert said == "[9.] ['source ts_square_float64_launch0 on 0']"


def test_neither_can_be_loaded(package: SimpleNamespace) -> None:
    (package.folder / "square.sm_90.fatbin").touch()
    (package.folder / "square.sm_90.cu").touch()
    assert package.run("cupy.Module.refused = ('binary', 'source')", CALL) == (
        "RuntimeError: square: its code for sm_90 cannot be loaded; where NVRTC is missing, pip "
        "install 'cupy-cuda13x[ctk]' brings it: square.sm_90.fatbin: RuntimeError: the driver "
        "refuses this binary; square.sm_90.cu: RuntimeError: the driver refuses this source"
    )


def test_there_is_none(package: SimpleNamespace) -> None:
    assert package.run(CALL) == (
        "RuntimeError: square: the package standin lacks its code for GPUs: there is neither "
        f"square.sm_90.fatbin nor square.sm_90.cu in {package.folder}; install the package again"
    )


def _data_package(package: SimpleNamespace, sources: str) -> None:
    """The package with machine code, for the sources with that digest."""
    folder = package.folder.parents[1] / "standin_cuda"
    folder.mkdir()
    (folder / "__init__.py").touch()
    told = {"distribution": "standin-cuda", "version": "0.9", "cuda_sources": sources}
    (folder / "manifest.json").write_text(json.dumps(told))
    (folder / "square.sm_90.fatbin").touch()


def test_machine_code_of_a_package_of_its_own(package: SimpleNamespace) -> None:
    manifest = json.loads((package.folder.parent / "manifest.json").read_text())
    _data_package(package, manifest["cuda_sources"])
    (package.folder / "square.sm_90.cu").touch()
    assert package.run(CALL) == "[9.] ['binary ts_square_float64_launch0 on 0']"


def test_machine_code_for_other_sources(package: SimpleNamespace) -> None:
    _data_package(package, "others")
    (package.folder / "square.sm_90.cu").touch()
    call = "import warnings; warnings.simplefilter('error')"
    assert package.run(call, CALL) == (
        "RuntimeWarning: standin 0.0.1: the machine code in standin-cuda 0.9 is for other sources, "
        "so that these are compiled by NVRTC; pip install 'standin-cuda==0.0.1' brings what fits"
    )
    said = package.run("import warnings; warnings.simplefilter('ignore')", CALL)
    assert said == "[9.] ['source ts_square_float64_launch0 on 0']"


def test_show_config(package: SimpleNamespace) -> None:
    rows = (
        "rows = [*ts.show_config('dicts').items()][-4:]",
        "print(rows)",
    )
    compiles = "none: NVRTC compiles at the first call"
    built, there = ("architectures_built", ["sm_90"]), ("gpus", ["sm_90", "sm_90"])
    assert package.run(*rows) == str([built, ("machine_code", compiles), ("cupy", "14"), there])
    (package.folder / "square.sm_90.fatbin").touch()
    said = package.run("del cupy.cuda.runtime.getDeviceCount", *rows)
    assert said == str([built, ("machine_code", str(package.folder)), ("cupy", "14"), ("gpus", [])])
    manifest = json.loads((package.folder.parent / "manifest.json").read_text())
    _data_package(package, manifest["cuda_sources"])
    (package.folder / "square.sm_90.fatbin").unlink()
    assert "standin_cuda'" in package.run(*rows)


@pytest.mark.parametrize(
    ("status", "words", "driver", "advice"),
    [
        (100, "cudaErrorNoDevice: no CUDA-capable device is detected", 13000,
         ", and there is none, or CUDA_VISIBLE_DEVICES hides it"),
        (35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient", 12080,
         ", and the driver is of CUDA 12.8, CuPy of 13.0: install a newer driver, or cupy-cuda12x "
         "in place of this CuPy"),
        (35, "cudaErrorInsufficientDriver: CUDA driver version is insufficient", 0, ""),
        (999, "cudaErrorUnknown: unknown error", 13000, ""),
    ],
)  # fmt: skip
def test_cupy_finds_no_gpu(
    package: SimpleNamespace, status: int, words: str, driver: int, advice: str
) -> None:
    said = package.run(
        "from tests.runtime.stub_libraries import DeviceNDArray, Tensor",
        f"cupy.find_no_gpu({status}, {words!r}, {driver})",
        "for given in (x, Tensor([1.0]), DeviceNDArray([1.0])):",
        "    rows = lambda x: ts.total(x, axis=(0,))",
        "    for call in (ts.square, ts.total, rows, lambda _: ts.warmup()):",
        "        try:",
        "            call(given)",
        "        except RuntimeError as error:",
        "            assert type(error.__cause__) is cupy.CUDARuntimeError",
        "            said = str(error)",
        "        else:",
        "            raise AssertionError",
        "print(said)",
    )  # fmt: skip
    assert said == f"standin: calls on a GPU need one that CuPy can use{advice}: {words}"


def test_where_the_sources_headers_are(package: SimpleNamespace) -> None:
    for name in ("square.sm_90.cu", "ts_cuda.h", "ts_types.h"):
        (package.folder / name).touch()
    said = package.run("ts.square(x)", "print(cupy.compiled)")
    options = ("--std=c++17", "--fmad=false", "--device-int128", f"-I{package.folder}")
    assert said == str([("square.sm_90.cu", options)])


def test_there_is_no_driver(standin: ModuleType, standin_site: Path) -> None:
    """As where CuPy is installed and no GPU is."""
    script = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(standin_site)!r}]
import numpy as np, standin as ts
from tests.runtime import stub_cupy
sys.modules["cupy"] = stub_cupy
ts.square(stub_cupy.ndarray.of(np.ones(3)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "standin: calls on a GPU need NVIDIA's driver, and its library libcuda.so.1 cannot" in (
        done.stderr
    )
