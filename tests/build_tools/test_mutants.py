"""Planted bugs: that each still stands somewhere, is planted alone, and what the table says."""

import ast
from collections.abc import Iterator, Sequence
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
    assert [(row.bug, row.found) for row in rows] == [
        (SPLIT, {"a": "found", "tests": None}),
        (SHIFT, {"a": None, "tests": None}),
    ]


ROWS = """\
| in | bug | prover | goldens | fuzzer | compiling | tests |
| --- | --- | --- | --- | --- | --- | --- |
| primitive | no guard | yes | no |  |  |  |
| primitive | gone | yes | no |  |  |  |
| | 2 of 2 caught | 2 of 2 | 0 of 2 | 0 of 0 | 0 of 0 | 0 of 0 |"""


def test_the_table_is_kept_in_a_page() -> None:
    page = f"before\n\n{ROWS}\n\nafter | it\n| a | b |\n"
    rows = mutants.kept(page, (SHIFT, SPLIT))
    assert rows == {SPLIT: {"prover": True, "goldens": False}}  # what is no bug any more is gone
    new = mutants.put(page, {SHIFT: {"prover": False, "goldens": False}, **rows})
    assert new == page.replace(
        "| primitive | no guard | yes", "| primitive | no shift | no | no |  |  |  |\n"
        "| primitive | no guard | yes",
    ).replace("| primitive | gone | yes | no |  |  |  |\n", "").replace(
        "| | 2 of 2 caught | 2 of 2 |", "| | 1 of 2 caught | 1 of 2 |"
    )  # fmt: skip


def test_missing_rows_are_run_and_written_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(ROWS)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "PAGE", page)
    monkeypatch.setattr(mutants, "bugs", lambda: [SPLIT, SHIFT])

    def tried(chosen: Sequence[Bug], checks: Sequence[str]) -> Iterator[mutants.Caught]:
        assert chosen == [SHIFT] and tuple(checks) == mutants.CHECKS
        yield mutants.Caught(SHIFT, {"prover": "y: refused", "goldens": None})
        raise KeyboardInterrupt

    monkeypatch.setattr(mutants, "tried", tried)
    with pytest.raises(KeyboardInterrupt):
        mutants.main(["--missing", "--write"])
    assert "| primitive | no shift | yes | no |  |  |  |\n| | 2 of 2 caught |" in page.read_text()
    with pytest.raises(SystemExit):
        mutants.main(["--write", "--checks", "prover"])
    assert "leave --checks out" in capsys.readouterr().err


def test_the_page_has_rows_of_bugs_that_there_are_alone() -> None:
    page = mutants.PAGE.read_text("utf-8")
    assert mutants.put(page, mutants.kept(page, mutants.bugs())) == page, (
        "run python -m build_tools.mutants --missing --write"
    )


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
