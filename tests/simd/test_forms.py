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
    assert int(checks) > 300_000


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_functions_at_special_values_and_samples(toolchain: Toolchain, tmp_path: Path) -> None:
    assert run(toolchain, "specials.c", tmp_path) == f"{toolchain.level}: 0 failures\n"


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_more_functions_at_special_values_and_samples(toolchain: Toolchain, tmp_path: Path) -> None:
    assert run(toolchain, "more_specials.c", tmp_path) == f"{toolchain.level}: 0 failures\n"


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_float16_and_bfloat16_round_once(toolchain: Toolchain, tmp_path: Path) -> None:
    level, _, checks, *_ = run(toolchain, "halves.c", tmp_path).replace(":", " :").split()
    assert level == toolchain.level
    assert int(checks) > 2_000_000


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_complex_forms(toolchain: Toolchain, tmp_path: Path) -> None:
    """Vectors are as scalar code, and in their memory; scalar code is right."""
    level, checks, *_ = run(toolchain, "complex.c", tmp_path).replace(":", "").split()
    assert level == toolchain.level
    assert int(checks) > 100_000


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda t: t.name)
def test_roots_and_logarithms_of_complex_numbers(toolchain: Toolchain, tmp_path: Path) -> None:
    assert run(toolchain, "complex_more.c", tmp_path) == f"{toolchain.level}: 0 failures\n"


WITH_ROWS = [t for t in TOOLCHAINS if t.level in ("v3", "v4")]


@pytest.mark.parametrize("toolchain", WITH_ROWS, ids=lambda t: t.name)
def test_rows_store_what_plain_stores_would(toolchain: Toolchain, tmp_path: Path) -> None:
    level, checks, *_ = run(toolchain, "rows.c", tmp_path).replace(":", "").split()
    assert level == toolchain.level
    assert int(checks) > 200
