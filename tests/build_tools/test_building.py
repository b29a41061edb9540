"""What a build says of itself while it runs."""

import sys
from pathlib import Path

import pytest

from build_tools import building


def test_what_is_made_is_counted(tmp_path: Path) -> None:
    objects = tmp_path / "cp311" / "libkernels_v3.a.p"
    objects.mkdir(parents=True)
    for name in ("sum.v3.c.o", "max.v3.c.o"):
        (objects / name).touch()
    (tmp_path / "cp311" / "sum.json").touch()
    (tmp_path / "cp311" / "meson.json").touch()
    of = len(building.listed(building.ROOT / "kernels_spec"))
    told = f"  kernels proved and generated: 1 of {of} (sum); files compiled: 2"
    assert building.state(tmp_path, 0.0) == told
    assert building.state(tmp_path, 2e10).endswith(f"generated: 0 of {of}; files compiled: 0")


def test_a_build_tells_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(building, "SECONDS", 0.2)
    code = "import time; print('installed', flush=True); time.sleep(1)"
    assert building.main([sys.executable, "-c", code], tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3 and all(line.startswith("  kernels proved") for line in lines)
    assert lines[-1].endswith(" seconds") and "installed" not in "".join(lines)
    assert (tmp_path / "build.log").read_text() == "installed\n"


def test_a_build_that_fails_shows_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('no compiler'); sys.exit(3)"
    assert building.main([sys.executable, "-c", code], tmp_path) == 3
    *_, why, last = capsys.readouterr().out.splitlines()
    assert why == "no compiler" and last.startswith("this failed: ")
    assert last.endswith(f"{tmp_path / 'build.log'} has all that it said")
