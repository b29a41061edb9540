"""The kernels for neon, cross-compiled without a warning and run under an emulator.

`build_tools/cross_neon.sh` installs what these need and runs them.
"""

from pathlib import Path

import pytest

from gen.language.build import choices
from gen.targets.cpu.levels import Level
from tests.simd.toolchain import works

from . import driver
from .support import SPECS, assert_right

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"


ALWAYS = {"argmax", "blur", "exp", "matmul", "softmax", "sum"}


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(k, marks=() if k in ALWAYS else pytest.mark.thorough) for k in SPECS],
)
def test_kernel_on_neon(kernel: str, tmp_path: Path) -> None:
    if not works(COMPILER, EMULATOR):
        pytest.skip(f"no {COMPILER} or {EMULATOR}: build_tools/cross_neon.sh installs them")
    # gcc 12 takes a tile's last column, kept and stored where it is below n, for one that is not.
    flags = ["-static", "-Wno-maybe-uninitialized"]
    program = driver.build(
        kernel, Level.NEON, tmp_path, flags=flags, compiler=COMPILER, runner=[EMULATOR]
    )
    for dtypes in choices(SPECS[kernel]):
        calls = driver.edge_calls(kernel, dtypes, Level.NEON)
        for arrays, results in zip(calls, program(dtypes, calls), strict=True):
            assert_right(SPECS[kernel], dtypes, arrays, results)


def test_code_that_no_build_here_made_is_generated() -> None:
    text, entry = driver.generated("exp", Level.NEON)
    assert "ts_exp_float32_neon" in text
    assert entry.levels == ("neon",)
