"""Every form of ts_simd.h, lane by lane against scalar code, on every level that runs here."""

from pathlib import Path

import pytest

from .toolchain import TOOLCHAINS, Toolchain, run


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_forms_equal_scalar_code_and_stay_in_their_memory(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    level, _, checks, *_ = run(toolchain, "forms.c", tmp_path).replace(":", " :").split()
    assert level == toolchain.level
    assert int(checks) > 1_000_000


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_functions_at_special_values_and_samples(toolchain: Toolchain, tmp_path: Path) -> None:
    assert run(toolchain, "specials.c", tmp_path) == f"{toolchain.level}: 0 failures\n"


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_rows_store_what_plain_stores_would(toolchain: Toolchain, tmp_path: Path) -> None:
    level, checks, *_ = run(toolchain, "rows.c", tmp_path).replace(":", "").split()
    assert level == toolchain.level
    assert int(checks) > 200
