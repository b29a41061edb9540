"""An author's package, built through its own meson.build: used, rebuilt, and built twice alike."""

import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
import pytest

from gen import build

pytestmark = pytest.mark.xdist_group("fixture package")  # what is built is built once

ROOT = Path(__file__).parents[2]
MESON = [sys.executable, "-m", "mesonbuild.mesonmain"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where `tilesmith` is this source tree's generator, in a copy that nobody edits meanwhile."""
    folder = tmp_path_factory.mktemp("bin")
    copytree(ROOT / "gen", folder / "gen", ignore=ignore_patterns("__pycache__"))
    command = folder / "tilesmith"
    run = f"import sys; sys.path.insert(0, '{folder}'); from gen.cli import main; sys.exit(main())"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{run}" "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "SOURCE_DATE_EPOCH": "1700000000"}


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _wheel(folder: Path, environment: dict[str, str]) -> Path:
    """The fixture package's wheel, built in a copy at `folder`."""
    source = copytree(ROOT / "tests" / "fixture_package", folder / "source")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet"]
    _run([*pip, "--wheel-dir", str(folder / "dist"), str(source)], environment)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    return _wheel(tmp_path_factory.mktemp("one"), environment)


def test_the_wheel_needs_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (tmp_path / name).symlink_to(site / name)
    code = (
        "import sys, numpy as np, fixture_package as fp\n"
        "print(fp.weighted(np.arange(3), 1.0, weight=0.25).tolist(), fp.last_call()['variant'])\n"
        "print(fp.kernels()['weighted']['signature'], fp.__all__[-1])\n"
        "print([m for m in sys.modules if 'tilesmith' in m or 'site-packages' in m])\n"
    )
    isolated = {"PYTHONPATH": str(tmp_path), "PATH": ""}  # no compiler either
    lines = _run([sys.executable, "-S", "-c", code], isolated).splitlines()
    assert lines == ["[0.75, 1.0, 1.25] plain", "(),()->() weighted", "[]"]


def test_two_builds_in_two_folders_are_equal(
    wheel: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    other = _wheel(tmp_path / "somewhere" / "else", environment)
    assert sha256(other.read_bytes()).digest() == sha256(wheel.read_bytes()).digest()


def test_rebuilds_do_what_is_needed(tmp_path: Path, environment: dict[str, str]) -> None:
    source, folder = tmp_path / "source", tmp_path / "build"
    copytree(ROOT / "tests" / "fixture_package", source)
    _run([*MESON, "setup", str(folder), str(source)], environment)
    ninja = ["ninja", "-C", str(folder)]
    _run(ninja, environment)
    assert "no work to do" in _run(ninja, environment)

    spec = source / "kernels_spec" / "weighted.yaml"
    spec.write_text(spec.read_text() + "# a remark that changes nothing\n")
    steps = _run(ninja, environment)
    assert "Generating weighted" in steps and "Compiling" not in steps

    spec.write_text(spec.read_text().replace("weight * x[i] + (1", "weight * x[i] * 2 + (1"))
    steps = _run(ninja, environment)
    assert steps.count("Compiling C object") == len(list(folder.glob("weighted.*.c")))
    assert "_kernels.pyx" not in steps  # the signature is as it was


def test_own_package_and_authors_build_alike() -> None:
    """What an author copies is what tilesmith itself is built with."""
    mark = "levels_by_family = {"
    own, authors = (
        path.read_text().partition(mark)[2]
        for path in (ROOT / "meson.build", ROOT / "tests" / "fixture_package" / "meson.build")
    )
    assert own == authors != ""


def test_gen_is_installed_without_caches() -> None:
    """Every folder of the generator is named in meson.build, so that no cache gets into a wheel."""
    text = (ROOT / "meson.build").read_text()
    for folder in {path.parent for path in (ROOT / "gen").rglob("*.py")}:
        name = folder.relative_to(ROOT / "gen").as_posix()
        assert name == "." or f"'{name}'" in text, name
    assert build.RUNTIME.parent == ROOT / "gen"
