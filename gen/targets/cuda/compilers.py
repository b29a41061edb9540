"""nvcc, where there is one: device text compiled, and what its kernels take of a GPU.

Input: device text and an architecture. Output: machine code in a file, and registers, spills and
memory of each entry point as the compiler tells them.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...errors import TilesmithError
from ..runtime import CUDA, RUNTIME
from .architectures import Architecture

HEADERS = (CUDA, RUNTIME)
"""The folders of what device text includes."""

FLAGS = ("-std=c++17", "--fmad=false")
"""Of nvcc and NVRTC: products are fused where the text says so, and nowhere else."""

HOST_FLAGS = (f"-I{CUDA}", "-O0")
"""Of the C compiler, for a host side that is called at once: to optimize it takes seconds."""

_PACKAGES = ("nvidia/cu13/bin", "nvidia/cuda_nvcc/bin")
_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@final
@dataclass(frozen=True, slots=True)
class Resources:
    """What a thread of an entry point takes, and a block of shared memory; all but registers in
    bytes.
    """

    name: str
    architecture: str
    registers: int
    spilled: int
    stack: int
    shared: int


def nvcc() -> str | None:
    """The compiler on PATH, or that of the Python package `nvidia-cuda-nvcc`; None without one."""
    if found := shutil.which("nvcc"):
        return found
    names = (Path(folder, package, "nvcc") for folder in sys.path for package in _PACKAGES)
    return next((str(name) for name in names if name.exists()), None)


def compiled(
    source: Path, architecture: Architecture, to: Path, flags: Sequence[str] = ()
) -> tuple[Resources, ...]:
    """Compiles device text to machine code. flags: after the usual ones.

    Raises TilesmithError where there is no nvcc, or with its words where it refuses or warns.
    """
    return run(source, (f"-arch={architecture}", *flags, "-cubin", "-o", str(to)), HEADERS)


def required() -> str:
    """The compiler. Raises TilesmithError without one."""
    if (compiler := nvcc()) is None:
        hint = "install nvidia-cuda-nvcc, or put nvcc on the PATH"
        raise TilesmithError("there is no nvcc", hint=hint)
    return compiler


def run(source: Path, options: Sequence[str], headers: Sequence[Path]) -> tuple[Resources, ...]:
    """Compiles device text. options: after the usual ones; headers: the folders of what it
    includes. Raises as `compiled`.
    """
    folders = (f"-I{folder}" for folder in headers)
    command = (required(), *FLAGS, *folders, "-Xptxas=-v", *options, str(source))
    done = subprocess.run(command, capture_output=True, text=True)
    words = (done.stdout + done.stderr).strip()
    if done.returncode or re.search(r"\b(warning|error)\b", words):
        raise TilesmithError(f"nvcc refuses {source.name}: {words}")
    return tuple(resources(done.stderr))


def resources(listing: str) -> Iterator[Resources]:
    """What `ptxas -v` tells, an entry point after another."""
    parts = _ENTRY.split(listing)[1:]
    for name, architecture, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        stack, stores, loads = _numbers(_SPILLS, text) or (0, 0, 0)
        (registers,), (shared,) = _numbers(_USED, text) or (0,), _numbers(_SHARED, text) or (0,)
        yield Resources(name, architecture, registers, stores + loads, stack, shared)


def _numbers(pattern: re.Pattern[str], text: str) -> tuple[int, ...]:
    match = pattern.search(text)
    return tuple(map(int, match.groups())) if match else ()
