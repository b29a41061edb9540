"""The stand-in package: hand-written kernels, built through Meson by the runtime's real sources."""

import fcntl
import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gen.binding.manifest import Entry, entry_to_json
from tests.runtime import stub_cupy
from tests.runtime.standin_entries import ENTRIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def standin_site() -> Path:
    """A folder for sys.path that holds the package `standin`: built once for all workers."""
    folder = Path(os.environ["TILESMITH_CACHE"], "standin")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            _build(folder)
            (folder / "built").touch()
    return folder / "site"


def _build(folder: Path) -> None:
    source = folder / "source"
    shutil.copytree(Path(__file__).parent / "standin", source)
    for entry in ENTRIES:
        (source / f"{entry.kernel}.json").write_text(json.dumps(entry_to_json(entry)))
        (source / f"{entry.kernel}.sm_90.cu").touch()
    build, site = folder / "build", folder / "site"
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    _run([*meson, "setup", str(build), str(source), f"-Dgenerator={ROOT}"])
    _run([*meson, "compile", "-C", str(build)])
    package = site / "standin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from ._kernels import *\n")
    for product in (*build.glob("_kernels.*.so"), build / "manifest.json", build / "_kernels.pyi"):
        shutil.copy(product, package)
    (package / "cuda").mkdir()
    for entry in ENTRIES:
        (package / "cuda" / f"{entry.kernel}.sm_90.fatbin").touch()
        (package / "cuda" / f"{entry.kernel}.sm_90.cu").write_text(_device_text(entry))
    shutil.copy(next(build.glob("libcuda*.so")), site)
    (package / "include").mkdir()
    for product in (build / "standin.h", build / "standin.pxd"):
        shutil.copy(product, package / "include")


def _device_text(entry: Entry) -> str:
    """What names a kernel's functions for GPUs, which are in standin/device.c."""
    counts = {"greedy": 2, "turn": 0}
    return "".join(
        f'extern "C" __global__ void __launch_bounds__(32)\nts_{entry.kernel}_{types}_launch{k}()\n'
        for types in entry.architectures
        for k in range(counts.get(entry.kernel, 1))
    )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning:" not in done.stdout + done.stderr, done.stdout


@pytest.fixture(scope="session")
def standin(standin_site: Path) -> ModuleType:
    sys.path.insert(0, str(standin_site))
    return importlib.import_module("standin")


@pytest.fixture(scope="session")
def ts(standin: ModuleType) -> ModuleType:
    return standin


@pytest.fixture(scope="module")
def cupy(standin_site: Path) -> Iterator[ModuleType]:
    """What stands for CuPy, where `import cupy` finds it."""
    with stub_cupy.installed(next(standin_site.glob("libcuda*.so"))) as module:
        yield module


class OnGpu:
    """The stand-in's functions for arrays on a GPU: NumPy's arrays are given to them as a GPU's
    that share their memory, and results come back as NumPy's. Arrays that are misaligned, or
    in another order of bytes, which a GPU has not, are given as copies.
    """

    def __init__(self, functions: ModuleType) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        if name not in KERNELS:
            return function
        return functools.wraps(function)(functools.partial(_call, function))


KERNELS = {entry.kernel for entry in ENTRIES}


def _is_plain(x: Any) -> bool:
    return x.dtype.isnative and x.flags.aligned and all(s % x.itemsize == 0 for s in x.strides)


def _call(function: Any, *arguments: Any, **options: Any) -> Any:
    moved: dict[int, Any] = {}  # by the array given for it
    of: dict[int, Any] = {}  # the other way

    def there(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(there, x))
        if type(x) is not np.ndarray or not x.ndim or x.dtype.kind not in "biufc":
            return x
        if id(x) not in moved:
            moved[id(x)] = stub_cupy.ndarray.of(
                x if _is_plain(x) else x.astype(x.dtype.newbyteorder("="))
            )
            of[id(moved[id(x)])] = x
        return moved[id(x)]

    def here(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(here, x))
        return of.get(id(x), x.host[()]) if isinstance(x, stub_cupy.ndarray) else x

    given = [*map(there, arguments)], {name: there(x) for name, x in options.items()}
    result = function(*given[0], **given[1])
    for x, array in ((of[id(array)], array) for array in moved.values()):
        if not _is_plain(x) and x.flags.writeable:
            x[...] = array.host
    return here(result)


@pytest.fixture(scope="module")
def on_gpu(standin: ModuleType, cupy: ModuleType) -> OnGpu:
    return OnGpu(standin)
