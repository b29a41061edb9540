"""The stand-in package: hand-written kernels, built through Meson by the runtime's real sources."""

import fcntl
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gen.binding.manifest import entry_to_json
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
    build, site = folder / "build", folder / "site"
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


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning:" not in done.stdout + done.stderr, done.stdout


@pytest.fixture(scope="session")
def ts(standin_site: Path) -> ModuleType:
    sys.path.insert(0, str(standin_site))
    return importlib.import_module("standin")
