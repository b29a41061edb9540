"""tilesmith's own sdist, the wheel built from it, and both where there is nothing but NumPy.

Three kernels stand for all, so that the build takes seconds.
"""

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
import pytest

from gen.project import FILES

from .author import fast_compiler

ROOT = Path(__file__).parents[2]
KERNELS = ("clamp", "cumsum", "exp")
LEFT_OUT = ignore_patterns(".git", ".venv*", ".*cache*", "__pycache__", "build", "dist", "*.so")


def _run(command: list[str | Path], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    copytree(ROOT, source, ignore=LEFT_OUT)
    listed = source / "kernels_spec" / "meson.build"
    names = "".join(f"  '{kernel}',\n" for kernel in KERNELS)
    listed.write_text(
        re.sub(r"(?sm)^kernels = \[.*?\]", f"kernels = [\n{names}]", listed.read_text())
    )
    git: list[str | Path] = ["git", "-C", source, "-c", "user.name=test", "-c", "user.email=test"]
    _run([*git, "init", "--quiet"])
    _run([*git, "add", "--all"])
    _run([*git, "commit", "--quiet", "--message", "what is released"])
    fast_compiler(source.parent)
    first = str(source.parent), str(Path(sys.executable).parent)
    path = os.pathsep.join([*first, os.environ["PATH"]])
    _run([sys.executable, "-m", "build", "--no-isolation", source], os.environ | {"PATH": path})
    return source / "dist"


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and NumPy, and no more."""
    folder = tmp_path_factory.mktemp("environment")
    _run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    (wheel,) = dist.glob("*.whl")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    _run([*pip, "--no-deps", "--no-index", wheel])
    (site,) = folder.glob("lib/python*/site-packages")
    for name in ("numpy", "numpy.libs"):
        installed = Path(np.__file__).parents[1] / name
        if installed.exists():
            (site / name).symlink_to(installed)
    return python


def _without_path(python: Path, *arguments: str) -> str:
    return _run([python, "-I", *arguments], {"PATH": ""})


def test_the_wheel_runs_without_a_compiler(python: Path) -> None:
    code = (
        "import sys, numpy as np, tilesmith as ts\n"
        "print(ts.cumsum(np.array([0.5, 1.0])), ts.clamp(np.array([1, 3]), 2))\n"
        "print(sorted(ts.kernels()), ts.kernels()['exp']['details']['proof']['status'])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('islpy', 'ruamel', 'Cython')])\n"
        "print([m for m in sys.modules if m.startswith('tilesmith.gen')])\n"
    )
    lines = _without_path(python, "-c", code).splitlines()
    assert lines == ["[0.5 1.5] [2. 3.]", f"{list(KERNELS)} proved", "[]", "[]"]


def test_the_module_tells_its_configuration(python: Path) -> None:
    printed = _without_path(python, "-m", "tilesmith")
    assert printed == _without_path(python, "-c", "import tilesmith; tilesmith.show_config()")
    keys = [line.partition(":")[0] for line in printed.splitlines()]
    assert keys[:3] == ["version", "level", "levels_built"]


def test_the_check_that_each_wheel_passes(python: Path, tmp_path: Path) -> None:
    check = ROOT / "build_tools" / "check_wheel.py"
    lines = _run([python, "-I", check], {"PATH": ""}).splitlines()
    levels = _without_path(python, "-c", "import tilesmith as ts; ts.show_config()")
    assert f"levels_supported: {', '.join(line.partition(':')[0] for line in lines)}\n" in levels
    assert {line.partition(": ")[2] for line in lines} == {f"{len(KERNELS)} calls, 0 wrong"}

    (site,) = python.parents[1].glob("lib/python*/site-packages")
    copytree(site / "tilesmith", tmp_path / "tilesmith")
    manifest = tmp_path / "tilesmith" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("2.7182", "2.7183"))
    done = subprocess.run(
        [python, "-P", check], env={"PYTHONPATH": str(tmp_path), "PATH": ""}, capture_output=True
    )
    assert done.returncode == 1 and b" 1 wrong\n" in done.stdout


def test_the_wheel_needs_numpy_alone(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(archive.read(metadata))
    needed = [each for each in told.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert needed == ["numpy>=2.0"]
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".pyx"))]
    assert {f"tilesmith/gen/project/templates/{name}" for name in FILES.values()} <= set(names)
    runtime = {p.name for p in (ROOT / "gen" / "targets" / "cpu" / "runtime").glob("ts_*")}
    assert {f"tilesmith/gen/targets/cpu/runtime/{name}" for name in runtime} <= set(names)
    assert {"tilesmith/_kernels.pyi", "tilesmith/manifest.json", "tilesmith/py.typed"} <= set(names)
    assert {"tilesmith/include/tilesmith.h", "tilesmith/include/tilesmith.pxd"} <= set(names)


def test_the_sdist_holds_the_sources_alone(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"meson.build", "gen/pipeline.py", "kernels_spec/exp.yaml", "LICENSE"} <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".json", ".pyc"))]
