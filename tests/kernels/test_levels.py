"""Every shipped kernel on the lower levels that this machine runs, and the control on each level:
a kernel that was corrupted on purpose fails the comparison that the others pass.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tilesmith as ts
from gen.ir.types import DType
from gen.targets.cpu.levels import Level

from . import driver
from .support import ROOT, SPECS, assert_right

SUPPORTED = [Level(name) for name in ts.show_config("dicts")["levels_supported"]]
LOWER = [pytest.param(x, marks=pytest.mark.thorough) for x in SUPPORTED[:-2]] + SUPPORTED[-2:-1]


@pytest.mark.parametrize(
    "chosen",
    [
        "(sizes_around or threads) and float32",
        pytest.param("sizes_around or threads or layouts", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("level", LOWER, ids=lambda level: level.value)
def test_every_kernel_on_a_lower_level(level: Level, chosen: str, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", f"--junitxml={report}"]
    done = subprocess.run(
        [*command, "tests/kernels/test_shipped.py", "-k", chosen],
        cwd=ROOT,
        env=inherited | {"TILESMITH_CPU_LEVEL": level.value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    suite = ElementTree.parse(report).getroot()[0]
    counts = {k: int(suite.attrib[k]) for k in ("tests", "failures", "errors", "skipped")}
    assert counts.pop("tests") > 1.7 * len(SPECS)
    assert not any(counts.values()), counts


def _wrong_constant(text: str) -> str:
    return text.replace("0.7154f", "0.7155f")


def _tail_not_run(text: str) -> str:
    return text.replace("if (active > 0)", "if (active < 0)")


def _wrong_lanes(text: str) -> str:
    """The second accumulator of the sum reads what the first does."""
    return re.sub(r"(ts_load_f32\(&e\[[^\]]*?) \+ \d+\]", r"\1]", text)


CORRUPTIONS = [("grey", _wrong_constant), ("exp", _tail_not_run), ("softmax", _wrong_lanes)]


@pytest.mark.parametrize("level", SUPPORTED[-1:], ids=lambda level: level.value)
@pytest.mark.parametrize(("kernel", "corrupt"), CORRUPTIONS)
def test_a_corrupted_kernel_fails_the_comparison(
    kernel: str, corrupt: Callable[[str], str], level: Level, tmp_path: Path
) -> None:
    dtypes = {"T": DType.FLOAT32}
    calls = driver.edge_calls(kernel, dtypes, level)

    def compare(change: Callable[[str], str] | None) -> None:
        program = driver.build(kernel, level, tmp_path, corrupt=change)
        for arrays, results in zip(calls, program(dtypes, calls), strict=True):
            assert_right(SPECS[kernel], dtypes, arrays, results)

    compare(None)
    with pytest.raises(AssertionError, match="largest error"):
        compare(corrupt)
