"""Kernels called from C and Cython, compiled against the header and .pxd as they are installed."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import which
from types import ModuleType

import numpy as np
import pytest

import tilesmith as ts
from gen.language import choices

from .support import SPECS

SOURCES = Path(__file__).parent / "callers"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
INCLUDES = [f"-I{ts.get_include()}", f"-I{sysconfig.get_paths()['include']}"]
X = np.random.default_rng(8).standard_normal((7, 60)).astype("f")


def _run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def from_c(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    library = tmp_path_factory.mktemp("c") / "c_caller.so"
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", *WARNINGS, *INCLUDES]
    _run("cc", *flags, SOURCES / "c_caller.c", "-o", library)
    return _loaded(library)


def test_from_c(from_c: ModuleType) -> None:
    y = np.empty_like(X)
    with pytest.raises(ImportError, match=r"import_tilesmith\(\) has not been called"):
        from_c.softmax(X, y, 1)
    from_c.import_kernels()
    for x, threads in ((X, 1), (X[::-1], 0), (X[:, ::2], 2), (X.T, 1)):
        y = np.empty_like(x)
        from_c.softmax(x, y, threads)
        np.testing.assert_array_equal(y, ts.softmax(x))
        assert ts.last_call()["level"] == ts.show_config("dicts")["level"]
    assert from_c.clamped(0) == (0, 0.5, 2)
    with pytest.raises(ValueError, match=re.escape(
        "softmax: argument y must have shape (7, 60), got (7, 59)"
    )):  # fmt: skip
        from_c.softmax(X, np.empty((7, 59), "f"), 1)


def test_from_cython(tmp_path: Path) -> None:
    c_file, library = tmp_path / "cython_caller.c", tmp_path / "cython_caller.so"
    cython = [sys.executable, "-m", "cython", "-3", "-I", ts.get_include()]
    _run(*cython, SOURCES / "cython_caller.pyx", "-o", c_file)
    _run("cc", "-O0", "-shared", "-fPIC", *INCLUDES, c_file, "-o", library)
    module = _loaded(library)
    a, b = np.random.default_rng(3).standard_normal((2, 40, 40))
    for left, right in ((a, b), (a.T, b[:, ::-1])):
        c = np.zeros((40, 40))
        module.matmul(left, right, c)
        np.testing.assert_array_equal(c, ts.matmul(left, right))
    with pytest.raises(ValueError, match="matmul: argument c is written and shares memory with"):
        module.matmul(a, b, a)
    assert module.message() == "matmul: argument c is written and shares memory with argument a"


@pytest.mark.skipif(not which("c++"), reason="there is no C++ compiler")
def test_the_header_is_cpp(tmp_path: Path) -> None:
    source = tmp_path / "caller.cpp"
    source.write_text('#include "tilesmith.h"\nint main() { return TS_OK; }\n')
    flags = ["-std=c++11", "-fsyntax-only", "-Wno-missing-field-initializers", *WARNINGS]
    _run("c++", *flags, *INCLUDES, source)


def test_every_kernel_is_in_the_header_and_found() -> None:
    header = Path(ts.get_include(), "tilesmith.h").read_text()
    declared = set(re.findall(r"^static inline int tilesmith_(\w+)\(const ts_array", header, re.M))
    expected = {
        "_".join((name, *(dtype.value for dtype in chosen.values())))
        for name, spec in SPECS.items()
        for chosen in choices(spec)
    }
    assert declared - {"call"} == expected
    pxd = Path(ts.get_include(), "tilesmith.pxd").read_text()
    assert {
        name for name in expected if f"int tilesmith_{name}(const ts_array *" in pxd
    } == expected
    assert os.path.isabs(ts.get_include())
