"""The stand-in package: hand-written kernels, built through Meson by the runtime's real sources."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gen.emit.manifest import entry_to_json
from tests.runtime.standin_entries import ENTRIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def standin_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for sys.path that holds the package `standin`."""
    source = tmp_path_factory.mktemp("standin") / "source"
    shutil.copytree(Path(__file__).parent / "standin", source)
    for entry in ENTRIES:
        (source / f"{entry.kernel}.json").write_text(json.dumps(entry_to_json(entry)))
    build, site = source.parent / "build", source.parent / "site"
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    _run([*meson, "setup", str(build), str(source), f"-Dgenerator={ROOT}"])
    _run([*meson, "compile", "-C", str(build)])
    package = site / "standin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from ._kernels import *\n")
    for product in (*build.glob("_kernels.*.so"), build / "manifest.json", build / "_kernels.pyi"):
        shutil.copy(product, package)
    (package / "include").mkdir()
    for product in (build / "standin.h", build / "standin.pxd"):
        shutil.copy(product, package / "include")
    return site


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning:" not in done.stdout + done.stderr, done.stdout


@pytest.fixture(scope="session")
def ts(standin_site: Path) -> ModuleType:
    sys.path.insert(0, str(standin_site))
    return importlib.import_module("standin")
