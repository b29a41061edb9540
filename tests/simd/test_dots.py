"""Every form of ts_dot.h, lane by lane against scalar code, on every level that runs here."""

from pathlib import Path

import pytest

from .toolchain import TOOLCHAINS, Toolchain, run


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_dots_equal_scalar_code(toolchain: Toolchain, tmp_path: Path) -> None:
    level, _, checks, *_ = run(toolchain, "dots.c", tmp_path).replace(":", " :").split()
    assert level == toolchain.level
    assert int(checks) > 20_000
