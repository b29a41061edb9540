"""Builds and runs the C test programs on each ISA level with each compiler that is here."""

import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from build_tools.accuracy import LEVELS, RUNTIME, machine_levels

HERE = Path(__file__).parent
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler's name in the tests, its candidates, its flags, and what runs its programs."""

    name: str
    level: str
    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    runner: tuple[str, ...] = ()


NATIVE = {"gcc": ("gcc",), "clang": ("clang", "clang-14", "clang-15", "clang-16", "clang-19")}
TOOLCHAINS = (
    *(
        Toolchain(f"{name}-{level}", level, candidates, (f"-march=x86-64-{level}",))
        for name, candidates in NATIVE.items()
        for level in LEVELS
    ),
    Toolchain(
        "gcc-neon", "neon", ("aarch64-linux-gnu-gcc",), ("-static",), ("qemu-aarch64-static",)
    ),
)


@functools.cache
def works(compiler: str, *runner: str) -> bool:
    """Whether a program that includes a header can be built, statically linked, and run: Debian's
    cross compilers come without the headers and the C library of their target."""
    if shutil.which(compiler) is None or (runner and shutil.which(runner[0]) is None):
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "hello.c"), Path(folder, "hello")
        source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
        build = [compiler, "-static", str(source), "-o", str(program)]
        commands = (build, [*runner, str(program)])
        return all(
            subprocess.run(each, capture_output=True, check=False).returncode == 0
            for each in commands
        )


def run(toolchain: Toolchain, source: str, folder: Path) -> str:
    """What the program prints; skips where the tools or the instructions are absent."""
    compiler = next(filter(None, map(shutil.which, toolchain.compilers)), None)
    if compiler is None:
        pytest.skip(f"no {toolchain.compilers[0]}")
    if toolchain.runner and not works(compiler, *toolchain.runner):
        pytest.skip(f"no {toolchain.compilers[0]} with headers, or no {toolchain.runner[0]}")
    if not toolchain.runner and toolchain.level not in machine_levels():
        pytest.skip(f"this machine has no {toolchain.level}")
    program = folder / "program"
    common = ["-std=gnu11", "-O1", "-ffp-contract=off", f"-I{RUNTIME}", *STRICT]
    command = [compiler, *common, *toolchain.flags, str(HERE / source), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    done = subprocess.run([*toolchain.runner, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
