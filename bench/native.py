"""The parts in C: compiled by the compiler at hand, once for each source and machine."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import CACHE


class CannotBuild(Exception):
    """No compiler, or the source is not for this machine."""


def library(source: Path, options: Sequence[str] = ()) -> Path:
    """The library of a C file for this machine, compiled by $CC (or cc)."""
    compiler = os.environ.get("CC", "cc").split()
    arch = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
    flags = ["-O3", arch, "-mtune=native", "-ffp-contract=fast", "-fopenmp", "-fPIC", "-shared"]
    if platform.machine() == "x86_64":
        flags.append("-mprefer-vector-width=512")
    flags += options
    model = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line for line in model.splitlines() if line.startswith(("model name", "flags"))][:2]
    key = hashlib.sha256(repr((source.read_text(), compiler, flags, names)).encode()).hexdigest()
    built = CACHE / f"{source.stem}-{key[:16]}.so"
    if not built.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_suffix(f".{os.getpid()}")
        _compile([*compiler, *flags, str(source), "-o", str(unfinished)])
        unfinished.rename(built)
    return built


def _compile(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotBuild(f"no C compiler: {error}") from None
    if done.returncode:
        lines = done.stderr.splitlines()
        raise CannotBuild(next((line for line in lines if "error:" in line), "".join(lines[-1:])))
