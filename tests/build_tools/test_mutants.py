"""Planted bugs: that each still stands somewhere, is planted alone, and what the table says."""

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from build_tools import catchers, mutants
from build_tools.mutants import Bug

SPLIT = Bug("primitive", "no guard", "schedule/primitives/split.py", "less(value", "more(value")
SHIFT = Bug("primitive", "no shift", "schedule/primitives/shift.py", "self.by))", "0))")


def test_every_bug_stands_in_its_file_and_is_python() -> None:
    found = mutants.bugs()
    assert len(found) >= 30
    assert {bug.part for bug in found} == set(mutants.SEEN_BY)
    for bug in found:
        text = (mutants.ROOT / "gen" / bug.file).read_text("utf-8")
        if bug.file.endswith(".py"):
            ast.parse(text.replace(bug.old, bug.new))


def test_a_text_that_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bugs.toml"
    path.write_text(
        '[[prover]]\nbug = "none"\nfile = "poly/prove.py"\nold = "no such text"\nnew = ""\n'
    )
    with pytest.raises(ValueError, match=r"none: its text stands 0 times in gen/poly/prove\.py"):
        mutants.bugs(path)


def test_bugs_are_planted_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def run(copy: Path, check: str, files: Sequence[str]) -> str | None:
        planted = [b for b in (SPLIT, SHIFT) if b.new in (copy / "gen" / b.file).read_text("utf-8")]
        seen.append((" ".join((check, *files)), [b.bug for b in planted]))
        return "found" if SPLIT in planted and check == "a" else None

    monkeypatch.setattr(mutants, "_run", run)
    monkeypatch.setattr(mutants, "SEEN_BY", {"primitive": ("a", "tests")})
    monkeypatch.setattr(mutants, "TESTS", {"primitive": ("x.py", "y.py")})
    rows = list(mutants.tried((SPLIT, SHIFT), ("a", "tests", "c")))
    assert seen == [
        ("a", []),
        ("tests x.py y.py", []),
        ("a", ["no guard"]),
        ("tests x.py y.py", ["no guard"]),
        ("a", ["no shift"]),
        ("tests x.py y.py", ["no shift"]),
    ]
    assert SPLIT.new not in (mutants.ROOT / "gen" / SPLIT.file).read_text("utf-8")
    assert mutants.table(rows, ("a", "tests", "c")).splitlines() == [
        "| in | bug | a | tests | c |",
        "| --- | --- | --- | --- | --- |",
        "| primitive | no guard | yes | no |  |",
        "| primitive | no shift | no | no |  |",
        "| | 1 of 2 caught | 1 | 0 | 0 |",
    ]


def test_a_check_that_fails_without_a_bug_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "_run", lambda copy, check, files: "y is wrong")
    told = "the goldens finds something where nothing is planted: y is"
    with pytest.raises(ValueError, match=told):
        next(mutants.tried((SPLIT,), ("goldens",)))


def test_the_tests_of_every_part_are_there() -> None:
    given = [word.removeprefix("--ignore=") for words in mutants.TESTS.values() for word in words]
    files = [mutants.ROOT / w.partition("::")[0] for w in given if w.startswith("tests/")]
    assert files and all(file.exists() for file in files)
    assert {part for part, seen in mutants.SEEN_BY.items() if "tests" in seen} == set(mutants.TESTS)


def test_the_first_test_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catchers, "ROOT", tmp_path)
    good, bad = tmp_path / "test_good.py", tmp_path / "test_bad.py"
    good.write_text("def test_one(): assert 1 == 1\n")
    bad.write_text("def test_two(): assert 1 == 2\ndef test_three(): assert 1 == 3\n")
    assert list(catchers.by_tests("test_good.py")) == []
    assert list(catchers.by_tests("test_good.py", "test_bad.py")) == [
        "FAILED test_bad.py::test_two - assert 1 == 2"
    ]


def test_what_a_check_says_last_is_what_it_found(tmp_path: Path) -> None:
    package = tmp_path / "build_tools"
    package.mkdir()
    (package / "catchers.py").write_text(
        "import sys\nprint('first')\nprint('last')\nsys.exit(sys.argv[1] == 'bad')\n"
    )
    assert mutants._run(tmp_path, "bad") == "last"
    assert mutants._run(tmp_path, "good") is None
