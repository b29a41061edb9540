"""tilesmith for aarch64, cross-compiled, and its tests under an emulator.

    python build_tools/cross_aarch64.py [PYTEST ARGUMENTS]

Makes in build/aarch64: a root of Debian's arm64 packages with Python (without root rights; this
machine's own packages stay as they are), NumPy and what the tests need from their aarch64 wheels,
and the extension, generated and cross-compiled here with the flags of meson.build. Then pytest runs
there, by default the tests of the shipped kernels, where `import tilesmith` is that extension and
specs are compiled for neon. The cross compiler and the emulator are installed by
build_tools/cross_neon.sh. What is there already is not made again, but for the extension.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from build_tools.check_kernel_list import listed  # noqa: E402
from gen.commands.build import RUNTIME_SOURCES, generate, merge  # noqa: E402
from gen.targets.runtime import RUNTIME  # noqa: E402

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
PYTHON = "3.11"  # of Debian 12
DEBIAN = (f"python{PYTHON}", f"libpython{PYTHON}-dev", "libgomp1", "libstdc++6")
WHEELS = (
    "numpy",
    "ml_dtypes",
    "scipy",
    "scikit-image",
    "islpy",
    "ruamel.yaml",
    "pytest",
    "hypothesis",
)
TESTS = ("tests/kernels/test_shipped.py", "tests/kernels/test_examples.py")

FLAGS = (
    "-std=gnu11", "-O2", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=off",
    "-fno-math-errno", "-fno-trapping-math", "-march=armv8-a",
)  # fmt: skip

_APT = """\
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
"""


def _run(*command: str | Path, **variables: str) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=True)


def system(folder: Path) -> Path:
    """The root of an arm64 Debian with Python; apt keeps its books in the folder beside it."""
    root, apt = folder / "root", folder / "apt"
    if root.exists():
        return root
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(_APT.format(folder=apt))
    config = {"APT_CONFIG": str(apt / "apt.conf")}
    _run("apt-get", "-qq", "update", **config)
    get = ("apt-get", "-qq", "--yes", "--no-install-recommends", "--download-only", "install")
    _run(*get, *DEBIAN, **config)
    unpacked = folder / "unpacked"
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        _run("dpkg-deb", "-x", package, unpacked)
    unpacked.rename(root)
    return root


def packages(root: Path) -> Path:
    """The aarch64 wheels, where the Python of the root finds them."""
    site = root / "usr" / "lib" / "python3" / "dist-packages"
    there = {folder.name.partition("-")[0] for folder in site.glob("*.dist-info")}
    if not there.issuperset(name.replace("-", "_") for name in WHEELS):
        platforms = [f"--platform=manylinux{tag}_aarch64" for tag in ("2014", "_2_27", "_2_28")]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site)]
        which = [*platforms, f"--python-version={PYTHON}", "--only-binary=:all:"]
        _run(*pip, *which, *WHEELS)
    return site


def emulated(root: Path) -> Path:
    """A command that is the root's Python under the emulator."""
    real, command = root / "usr" / "bin" / f"python{PYTHON}", root / "usr" / "bin" / "python"
    command.write_text(f'#!/bin/sh\nexec {EMULATOR} -L {root} -0 "$0" {real} "$@"\n')
    command.chmod(0o755)
    return command


def generated(folder: Path) -> Path:
    """The sources of the extension, for neon."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ROOT / "kernels_spec" / f"{kernel}.yaml" for kernel in listed(ROOT / "kernels_spec")]
    for spec in specs:
        print(f"generate {spec.stem}", flush=True)
        generate([spec], ["neon"], folder, None)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    merge([folder / f"{spec.stem}.json" for spec in specs], "tilesmith", version, folder, None)
    _run(sys.executable, "-m", "cython", "-3", folder / "_kernels.pyx", "-o", folder / "_kernels.c")
    return folder


def tree(folder: Path, sources: Path, root: Path, site: Path) -> Path:
    """The checkout's tests and generator, and the package with the extension."""
    shutil.rmtree(folder, ignore_errors=True)
    caches = shutil.ignore_patterns("__pycache__")
    for part in ("gen", "tests", "tilesmith", "kernels_spec", "build_tools"):
        shutil.copytree(ROOT / part, folder / part, ignore=caches)
    shutil.copy(ROOT / "pyproject.toml", folder)
    package = folder / "tilesmith"
    shutil.copy(sources / "manifest.json", package)
    include = root / "usr" / "include"
    kernels = [sources / f"{kernel}.neon.c" for kernel in listed(ROOT / "kernels_spec")]
    runtime = [RUNTIME / name for name in RUNTIME_SOURCES]
    _run(
        COMPILER, *FLAGS, "-shared", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
        f"-I{RUNTIME}", f"-I{include / f'python{PYTHON}'}", "-idirafter", include,
        f"-I{site / 'numpy' / '_core' / 'include'}",
        sources / "_kernels.c", sources / "ts_kernels.c", *kernels, *runtime,
        "-lm", "-o", package / f"_kernels.cpython-{PYTHON.replace('.', '')}-aarch64-linux-gnu.so",
    )  # fmt: skip
    return folder


def main(arguments: Sequence[str]) -> int:
    for tool in (COMPILER, EMULATOR):
        if shutil.which(tool) is None:
            print(f"no {tool}: build_tools/cross_neon.sh installs it", file=sys.stderr)
            return 2
    folder = ROOT / "build" / "aarch64"
    folder.mkdir(parents=True, exist_ok=True)
    root = system(folder)
    python, site = emulated(root), packages(root)
    there = tree(folder / "tree", generated(folder / "generated"), root, site)
    variables = {"CC": COMPILER, "TILESMITH_CACHE": str(folder / "cache")}
    print(re.sub(r"(?m)^", "  ", _told(python, there)), flush=True)
    tests = ("-m", "pytest", "-p", "no:cacheprovider", *(arguments or TESTS))
    return subprocess.run(
        [python, *tests], cwd=there, env=os.environ | variables, check=False
    ).returncode


def _told(python: Path, there: Path) -> str:
    """What the package says of itself, which fails where it is not aarch64's."""
    code = "import platform, tilesmith as ts; print(platform.machine()); ts.show_config()"
    done = subprocess.run([python, "-c", code], cwd=there, capture_output=True, text=True)
    if done.returncode or not done.stdout.startswith("aarch64\n"):
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
