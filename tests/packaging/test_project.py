"""A project that `init` made: built through its meson.build, used, rebuilt, built alike twice."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from gen import project
from gen.commands import build
from gen.errors import TilesmithError
from gen.ir.nodes import Intent
from gen.language import load
from gen.targets.registry import TARGETS

from .author import ROOT, Author

MESON = ["python", "-m", "mesonbuild.mesonmain"]


def _wheel(folder: Path, author: Author) -> Path:
    """The wheel of a new project in `folder`."""
    source = folder / "my-kernels"
    project.create("my-kernels", source, TARGETS)
    pip = ["pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet"]
    author.run(*pip, "--wheel-dir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, author: Author) -> Path:
    return _wheel(tmp_path_factory.mktemp("one"), author)


@pytest.mark.thorough  # `test_wheel.py` asks it of tilesmith itself
def test_the_wheel_needs_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    code = (
        "import sys, numpy as np, my_kernels as mk\n"
        "print(mk.normalize([3.0, 4.0]).tolist(), mk.last_call()['variant'])\n"
        "print(mk.kernels()['normalize']['signature'], 'normalize' in mk.__all__)\n"
        "print([m for m in sys.modules if 'tilesmith' in m or 'site-packages' in m])\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},  # no compiler either
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[0.6, 0.8] 2", "(n)->(n) True", "[]"], done.stderr


CALLER = """
#include "my_kernels.h"
static PyObject *normalized(PyObject *self, PyObject *none)
{
    double x[] = {3, 4}, y[2];
    const int64_t two[] = {2};
    const ts_array in = {x, 1, two, NULL}, out = {y, 1, two, NULL};
    (void)self, (void)none;
    if (import_my_kernels() < 0)
        return NULL;
    if (my_kernels_raise(my_kernels_normalize_float64(&in, &out, 1)) < 0)
        return NULL;
    return Py_BuildValue("dd", y[0], y[1]);
}
static PyMethodDef methods[] = {{"normalized", normalized, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "caller", NULL, -1, methods,
                                    NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_caller(void) { return PyModule_Create(&module); }
"""


def test_the_kernels_are_callable_from_c(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    include = tmp_path / "my_kernels" / "include"
    assert {path.name for path in include.iterdir()} == {"my_kernels.h", "my_kernels.pxd"}
    (tmp_path / "caller.c").write_text(CALLER)
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    flags += [f"-I{sysconfig.get_paths()['include']}"]
    library = str(tmp_path / "caller.so")
    subprocess.run(["cc", *flags, str(tmp_path / "caller.c"), "-o", library], check=True)
    call = "import caller, my_kernels; print(caller.normalized(), my_kernels.get_include())"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"(0.6, 0.8) {include}\n"


@pytest.mark.thorough
def test_two_builds_in_two_folders_are_equal(wheel: Path, tmp_path: Path, author: Author) -> None:
    other = _wheel(tmp_path / "somewhere" / "else", author)
    assert sha256(other.read_bytes()).digest() == sha256(wheel.read_bytes()).digest()


CALLS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, _kernels
x = np.random.default_rng(1).standard_normal((700, 900))
expected = _kernels.normalize(x, num_threads=1)
def right():
    signal.alarm(60)  # a child would wait for its parent's threads for ever
    results = [_kernels.normalize(x, num_threads=threads) for threads in (2, 3)]
    return all(np.array_equal(result, expected) for result in results)
print(_kernels.show_config("dicts")["threads_by"], right(), flush=True)
child = os.fork()
if child == 0:
    print(_kernels.get_num_threads(), right(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.thorough
def test_rebuilds_do_what_is_needed(tmp_path: Path, author: Author) -> None:
    source, folder = tmp_path / "source", tmp_path / "build"
    project.create("my-kernels", source, TARGETS)
    author.run(*MESON, "setup", folder, source)
    ninja = ["ninja", "-C", folder]
    author.run(*ninja)
    assert "no work to do" in author.run(*ninja)

    spec = source / "kernels_spec" / "normalize.yaml"
    spec.write_text(spec.read_text() + "# a remark that changes nothing\n")
    steps = author.run(*ninja)
    assert "Generating normalize" in steps and "Compiling" not in steps

    spec.write_text(spec.read_text().replace("x[i, j] / sqrt", "2 * x[i, j] / sqrt"))
    steps = author.run(*ninja)
    assert steps.count("Compiling C object") == len(list(folder.glob("normalize.*.c")))
    assert "_kernels.pyx" not in steps  # the signature is as it was

    author.run(*MESON, "configure", folder, "-Dthreads=openmp")
    steps = author.run(*ninja)
    assert "ts_openmp.c" in steps and "normalize.v" not in steps
    assert author.run("python", "-c", CALLS, folder) == "openmp True\n1 True\n"


def test_own_package_and_authors_build_alike() -> None:
    """What an author copies is what tilesmith itself is built with."""
    mark = "levels_by_family = {"
    own, authors = (
        path.read_text().partition(mark)[2]
        for path in (ROOT / "meson.build", project.TEMPLATES / "meson.build")
    )
    assert own == authors != ""


def test_gen_is_installed_without_caches() -> None:
    """Every folder of the generator is named in meson.build, so that no cache gets into a wheel."""
    text = (ROOT / "meson.build").read_text()
    for folder in {path.parent for path in (ROOT / "gen").rglob("*.py")}:
        name = folder.relative_to(ROOT / "gen").as_posix()
        assert name == "." or f"'{name}'" in text, name
    assert build.RUNTIME.is_relative_to(ROOT / "gen") and build.RUNTIME.is_dir()


# ---------------------------------------------------------------- what init writes and refuses


def test_every_template_is_used() -> None:
    there = {path.relative_to(project.TEMPLATES).as_posix() for path in _files(project.TEMPLATES)}
    assert there == {*project.FILES.values(), *project.CUDA.values()}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_no_placeholder_is_left(tmp_path: Path) -> None:
    made = project.create("my-kernels", tmp_path / "new", TARGETS)
    assert sorted(made) == sorted(_files(tmp_path / "new"))
    for path in made:
        text = path.read_text("utf-8")
        assert path.suffix == ".json" or "%" not in text.replace("%Y", ""), path
    assert (tmp_path / "new" / "src" / "my_kernels" / "__init__.py").exists()
    assert 'name = "my-kernels"' in (tmp_path / "new" / "pyproject.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("3d", "'3d' cannot be the name of a project: take letters, digits, and single"
               " hyphens or underscores between them"),
        ("a--b", "'a--b' cannot be the name of a project: take letters, digits, and single"
                 " hyphens or underscores between them"),
        ("../up", "'../up' cannot be the name of a project: take letters, digits, and single"
                  " hyphens or underscores between them"),
        ("class", "Python or the build has another 'class': take another name"),
        ("json", "Python or the build has another 'json': take another name"),
        ("kernels-spec", "Python or the build has another 'kernels_spec': take another name"),
    ],
)  # fmt: skip
def test_names_that_are_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TilesmithError) as caught:
        project.create(name, tmp_path / "new", TARGETS)
    assert str(caught.value) == f"error: {message}"
    assert not (tmp_path / "new").exists()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(TilesmithError) as caught:
        project.create("k", tmp_path, TARGETS)
    assert str(caught.value) == f"error: {tmp_path} exists already: init makes a new folder"
    assert not _files(tmp_path)


def test_the_first_kernel_promises_an_example_and_an_oracle() -> None:
    spec = load(project.TEMPLATES / "kernels_spec" / "normalize.yaml")
    assert spec.oracle and spec.accuracy and ">>> ts.normalize(" in spec.example
    assert [a.intent for a in spec.arguments] == [Intent.IN, Intent.OUT]
