"""An author's machine: an environment with this tree's generator, in which projects are made."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gen import project
from gen.targets.registry import TARGETS

ROOT = Path(__file__).parents[2]

COMMANDS = {"tilesmith": "tilesmith.gen", "pip": "pip", "pytest": "pytest"}


@dataclass(frozen=True)
class Author:
    """python: the environment's interpreter; variables: what its commands run under."""

    python: Path
    variables: dict[str, str]

    def run(self, *command: str | Path, folder: Path | None = None) -> str:
        """What a command prints; it must not fail."""
        done = subprocess.run(
            command, cwd=folder, env=self.variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def machine(folder: Path) -> Author:
    """An environment in a new folder: a copy of the generator, which nobody edits meanwhile, and
    the tools of the environment that runs the tests, but for tilesmith itself.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(ROOT / "gen", site / "tilesmith" / "gen")  # compiled already, as a wheel's is
    (site / "tilesmith" / "__init__.py").touch()
    (site / "tools.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    python = folder / "bin" / "python"
    for name, module in COMMANDS.items():
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {python} -m {module} "$@"\n')
        command.chmod(0o755)
    fast_compiler(folder / "bin")
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    variables = {
        "PATH": os.pathsep.join(path),
        "SOURCE_DATE_EPOCH": "1700000000",
        "TILESMITH_CACHE": str(folder / "cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return Author(python, os.environ | variables)


def fast_compiler(folder: Path) -> None:
    """`cc` in a folder for PATH: to optimize takes most of a small package's build. Tests of
    packages ask what these do; those of tilesmith's own build have code as users have it.
    """
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("cc")} "$@" -O0\n')
    compiler.chmod(0o755)


def package(folder: Path, specs: list[Path], for_gpus: bool = False) -> Path:
    """A project `fixture-package` in the folder with these specs instead of the first one, which
    have a recipe for GPUs or have none. Of x86-64 it has the lowest level: all take longer.
    """
    source = folder / "fixture-package"
    project.create("fixture-package", source, TARGETS)
    kernels = source / "kernels_spec"
    (kernels / "normalize.yaml").unlink()
    for path in specs:
        (kernels / path.name).write_text(path.read_text("utf-8"), encoding="utf-8")
    names = "".join(f"  '{path.stem}',\n" for path in sorted(specs))
    listed = kernels / "meson.build"
    text = listed.read_text("utf-8").replace("  'normalize',\n", names)
    listed.write_text(text + ("cuda_kernels = kernels\n" if for_gpus else ""))
    build = source / "meson.build"
    text = build.read_text("utf-8")
    higher = ", 'v3': '-march=x86-64-v3', 'v4': '-march=x86-64-v4'"
    assert higher in text
    build.write_text(text.replace(higher, ""))
    return source
