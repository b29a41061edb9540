"""The table of what shipped kernels for GPUs ask for: how it is made, and where it stands."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from build_tools.check_kernel_list import for_gpus
from build_tools.gpu_table import DTYPES, HEADING, PAGE, ROOT, Row, merged, put, rows, table
from gen.language import choices
from gen.lower.variants import suffix
from gen.targets.cuda.compilers import Resources, nvcc
from gen.targets.cuda.machine_code import OfLaunch
from gen.targets.registry import TARGETS

DAY = datetime.date(2026, 1, 2)


def row(registers: int = 10) -> Row:
    narrow = OfLaunch(Resources("k_i32", "sm_90", registers, 0, 0, 128), 1.0)
    wide = OfLaunch(Resources("k_i64", "sm_90", registers + 2, 8, 16, 128), 0.5)
    return Row("k", "float32", "0_launch0", {"m": 2, "n": 3}, 0.014, (40, 32, 1), narrow, wide)


def test_a_row() -> None:
    *_, last = table([row()])
    assert (
        last
        == "| k float32 | 0_launch0 | m=2 n=3 | 0.01 | 40 | 32 | 1 | 10, 12 | 8 | 128 | 100%, 50% |"
    )


def test_a_table_takes_the_place_of_the_one_before() -> None:
    page = "# Page\n\nText.\n"
    once = put(page, table([row(10)]), DAY)
    assert once.startswith(f"{page}\n{HEADING}\nCounted by the emulator")
    assert "on 2026-01-02 (`python -m build_tools.gpu_table --write`)" in once
    assert put(once, table([row(10)]), DAY) == once
    followed = f"{once}\n## More\n\nText.\n"
    again = put(followed, table([row(20)]), DAY)
    assert again == followed.replace("| 10, 12 |", "| 20, 22 |")


def test_rows_of_other_kernels_stay() -> None:
    once = put("# Page\n", table([row(10), replace(row(10), kernel="z")]), DAY)
    again = put(once, merged(once, table([replace(row(10), kernel="a"), row(20)])), DAY)
    rows = [line for line in again.splitlines() if " float32 " in line]
    assert [(line.split()[1], "20, 22" in line) for line in rows] == [
        ("a", False), ("k", True), ("z", False)
    ]  # fmt: skip


def test_what_no_call_runs_has_dashes() -> None:
    *_, last = table([replace(row(), sizes={}, counted=None)])
    assert "|  | 0.01 | - | - | - | 10, 12 |" in last


def test_the_page_has_a_row_of_each_shipped_kernel() -> None:
    """How it is made anew, the page says."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2]
    for name in for_gpus(ROOT / "kernels_spec"):
        for dtypes in choices(TARGETS.load(ROOT / "kernels_spec" / f"{name}.yaml"))[:DTYPES]:
            assert f"\n| {name} {suffix(dtypes)}" in section, name


@pytest.mark.skipif(nvcc() is None, reason="there is no nvcc")
def test_rows_of_a_kernel() -> None:
    spec = TARGETS.load(Path(ROOT, "kernels_spec", "exp.yaml"))
    (found,) = rows(spec, choices(spec)[0])
    assert (found.kernel, found.dtypes, found.launch) == ("exp", "float32", "0_launch0")
    assert found.counted == (64, 64, 0)
    assert 0 == found.narrow.resources.spilled == found.wide.resources.spilled == 0
    assert found.narrow.occupancy == 1
    assert 0 < found.proof < 2
