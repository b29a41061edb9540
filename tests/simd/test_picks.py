"""Loads with a stride, known or not, on every level that runs here."""

from pathlib import Path

import pytest

from .toolchain import TOOLCHAINS, Toolchain, run


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_each_second_third_and_fourth_element(toolchain: Toolchain, tmp_path: Path) -> None:
    level, _, checks, *_ = run(toolchain, "picks.c", tmp_path).replace(":", " :").split()
    assert level == toolchain.level
    assert int(checks) >= 15 * 10 * 2
