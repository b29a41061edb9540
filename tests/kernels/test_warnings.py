"""The C of every shipped kernel compiles without a warning, by gcc and by clang.

gcc warns of what the flow of values shows only where it optimises: a few kernels with every kind of
statement are compiled, the rest are read. clang's warnings all come from reading.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from gen.commands.build import RUNTIME_SOURCES
from gen.targets.c.library import FLAGS
from gen.targets.cpu.levels import Level, Processor
from gen.targets.runtime import RUNTIME

from . import driver
from .support import SPECS

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
COMPILED = ("argmax", "clamp", "cumsum", "grey", "softmax", "transpose")
INSTALLED_BY = {"clang": ": build_tools/install_clang.sh installs it"}
X86 = (Level.V2, Level.V3, Level.V4)


def _compiler(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}" + INSTALLED_BY.get(name, ""))
    return path


def _warnings(compiler: str, level: Level, source: Path, *flags: str) -> str:
    """What the compiler says, which is nothing for code without warnings."""
    command = [compiler, *FLAGS, *Processor(level).flags, *STRICT, *flags, f"-I{RUNTIME}"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


@pytest.mark.parametrize(
    ("kernel", "compiler"),
    [
        pytest.param(name, compiler, marks=pytest.mark.thorough if number % 2 == other else ())
        for number, name in enumerate(SPECS)
        for other, compiler in enumerate(["gcc", "clang"])
    ],
)
def test_kernels_compile_without_warnings(kernel: str, compiler: str, tmp_path: Path) -> None:
    path = _compiler(compiler)
    for level in X86 if kernel in COMPILED else X86[-1:]:  # what is generated takes long
        optimise = compiler == "gcc" and kernel in COMPILED and level is X86[-1]
        flags = ("-c", "-o", str(tmp_path / "kernel.o")) if optimise else ("-fsyntax-only",)
        source = tmp_path / f"{kernel}.{level.value}.c"
        source.write_text(driver.c_file(kernel, level))
        assert _warnings(path, level, source, *flags) == ""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_runtime_compiles_without_warnings(compiler: str, tmp_path: Path) -> None:
    path = _compiler(compiler)
    for name in RUNTIME_SOURCES:
        flags = ("-std=gnu11", "-c", "-o", str(tmp_path / "runtime.o"))
        assert _warnings(path, Level.V2, RUNTIME / name, *flags) == ""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_warning_is_seen(compiler: str, tmp_path: Path) -> None:
    source = tmp_path / "narrowing.c"
    source.write_text("int f(long x);\nint f(long x) { return x; }\n")
    assert "conversion" in _warnings(_compiler(compiler), Level.V2, source, "-fsyntax-only")


def test_a_warning_from_the_flow_of_values_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "flow.c"
    source.write_text("int f(int n);\nint f(int n) { int x; if (n > 3) x = n; return x; }\n")
    compiled = ("-c", "-o", str(tmp_path / "flow.o"))
    assert "uninitialized" in _warnings(_compiler("gcc"), Level.V2, source, *compiled)
