"""The README's author example is a file, and its outputs are what is printed."""

import re
from pathlib import Path

import pytest

from gen.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SPEC = ROOT / "docs" / "examples" / "rms.yaml"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.S | re.M)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def without_times(text: str) -> str:
    return re.sub(r" +\d+\.\d+ s", " _ s", text)


def test_the_spec() -> None:
    assert blocks("yaml") == [SPEC.read_text(encoding="utf-8")]


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "show", str(SPEC)) in blocks("")


def test_prove(capsys: pytest.CaptureFixture[str]) -> None:
    lines = without_times(printed(capsys, "prove", str(SPEC), "--levels", "v3")).splitlines()
    given = next(b for b in blocks("") if " proved " in b).splitlines()
    assert given[-1] == "..."
    assert lines[: len(given) - 1] == [without_times(line) for line in given[:-1]]


def test_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = SPEC.read_text(encoding="utf-8")
    wrong = wrong.replace("parallel: {loop: y.i}", "parallel: {loop: total.j_0}")
    monkeypatch.chdir(tmp_path)
    Path("rms.yaml").write_text(wrong, encoding="utf-8")
    out = without_times(printed(capsys, "prove", "rms.yaml", "--levels", "v3"))
    given = next(b for b in blocks("") if " refused " in b)
    assert without_times(given) in out
