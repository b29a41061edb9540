"""Plants bugs in the generator, one at a time, and shows which check catches which.

Input: `build_tools/mutants.toml`. Output: a table in Markdown: a row a bug, a column a check of
`build_tools.catchers`. Each bug is planted in a copy of the project; the checks stop at the first
thing that they find, and none takes longer than its limit. A cell is empty where a check does not
run what has the bug. `--write` keeps the table in docs/fuzzing.md: each row as soon as it is known,
so that a run that is ended loses nothing, and `--missing` goes on with it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import final

from gen.progress import progress

ROOT = Path(__file__).resolve().parents[1]
BUGS = Path(__file__).with_name("mutants.toml")
PAGE = ROOT / "docs" / "fuzzing.md"
CHECKS = ("prover", "goldens", "fuzzer", "compiling", "tests")
SEEN_BY = {
    "primitive": ("prover", "goldens"),
    "lowering": ("prover", "goldens", "fuzzer", "tests"),
    "finishing": ("goldens", "compiling", "tests"),
    "emission": ("goldens", "compiling", "tests"),
    "prover": ("prover", "fuzzer", "tests"),
    "language": ("fuzzer", "tests"),
    "tools": ("tests",),
    "runtime": ("tests",),
    "binding": ("tests",),
    "gpu": ("tests",),
    "emulator": ("tests",),
}
"""The checks that run what a part does; others are not run on its bugs."""
TESTS = {
    "lowering": ("tests/lower",),
    "finishing": (
        "tests/targets/test_ties.py",
        "tests/poly/test_unchanged.py",
        "tests/poly/test_narrowed.py",
        "tests/lower/test_wrapping.py",
        "tests/targets/test_finish.py",
        "tests/targets/test_scan.py",
    ),
    "emission": (
        *(f"tests/targets/test_{name}.py" for name in ("run", "names", "expressions")),
        *("-k", "not v2 and not v4"),
    ),
    "prover": ("tests/poly", "--ignore=tests/poly/test_mutations.py"),
    "language": (
        "tests/language/test_exact.py",
        "tests/build_tools/test_evaluator.py",
        "tests/ir/test_interp.py",
    ),
    "tools": (
        "tests/language/test_calls.py",
        "tests/targets/test_scalar.py",
        "tests/commands/test_commands.py::test_bench_refuses_what_it_cannot_time",
        "tests/test_trust.py",
        "tests/test_trial.py",
        "tests/test_located.py",
        "tests/test_notebook.py::test_results_without_axes",
        "tests/test_notebook.py::test_of_types_that_hold_the_arrays_their_own_is_chosen",
        "tests/schedule/test_layouts.py",
        "tests/commands/test_bounds.py",
        "tests/test_tune.py",
        "tests/commands/test_tune.py",
        "tests/test_costs.py",
    ),
    "runtime": (
        *(f"tests/runtime/test_{name}.py" for name in ("calls", "overlap", "threads")),
        "tests/simd/test_picks.py",
        "tests/simd/test_forms.py",
    ),
    "binding": tuple(
        f"tests/runtime/test_gpu_{name}.py" for name in ("calls", "graphs", "libraries")
    ),
    "gpu": (
        *(
            f"tests/targets/cuda/test_{name}.py"
            for name in ("launch_form", "tiles", "recipes", "host")
        ),
        "tests/targets/cuda/test_emulated_barriers.py",
        "tests/targets/cuda/test_width.py",
        "tests/ir/test_facts.py",
        "tests/ir/test_launch.py",
    ),
    "emulator": (
        "tests/targets/cuda/test_emulator.py",
        "tests/targets/cuda/test_emulator_counts.py",
    ),
}
"""The tests of a part, as pytest takes them; those of primitives are their examples. Code is tried
on one level. Left out are the prover's on trees with numbers changed at random, which take longer
than all others together.
"""
_COPIED = ("gen", "build_tools", "kernels_spec", "docs", "tests", "pyproject.toml")
_SECONDS = 300

Row = dict[str, bool]
"""Whether each check that was run on a bug caught it."""


@final
@dataclass(frozen=True, slots=True)
class Bug:
    """A text of one of gen's files, and what is put in its place."""

    part: str
    bug: str
    file: str
    old: str
    new: str


@final
@dataclass(frozen=True, slots=True)
class Caught:
    """found: by each check that was run, the first thing that is wrong, or None."""

    bug: Bug
    found: dict[str, str | None]


def bugs(path: Path = BUGS) -> list[Bug]:
    """The bugs of a file. Raises ValueError where one's text does not stand in its file once."""
    parts = tomllib.loads(path.read_text("utf-8"))
    result = [Bug(part, **entry) for part, entries in parts.items() for entry in entries]
    for bug in result:
        times = (ROOT / "gen" / bug.file).read_text("utf-8").count(bug.old)
        if times != 1:
            raise ValueError(f"{bug.bug}: its text stands {times} times in gen/{bug.file}")
    return result


def tried(chosen: Sequence[Bug], checks: Sequence[str] = CHECKS) -> Iterator[Caught]:
    """Each bug with what the checks find. Raises ValueError where they find something without."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "project")
        for name in _COPIED:
            _copy(ROOT / name, copy / name)
        for check, files in _unplanted(chosen, checks):
            if (found := _run(copy, check, files)) is not None:
                raise ValueError(f"the {check} finds something where nothing is planted: {found}")
        for number, bug in enumerate(chosen):
            path = copy / "gen" / bug.file
            text = path.read_text("utf-8")
            _put(path, text.replace(bug.old, bug.new), 2 * number)
            seen = [check for check in checks if check in SEEN_BY[bug.part]]
            yield Caught(bug, {c: _run(copy, c, _files(bug.part, c)) for c in seen})
            _put(path, text, 2 * number + 1)


def _unplanted(chosen: Sequence[Bug], checks: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each check that is run on some of the bugs, and the test files that it is run with."""
    runs = ((c, _files(b.part, c)) for b in chosen for c in SEEN_BY[b.part] if c in checks)
    return iter(dict.fromkeys(runs))


def _files(part: str, check: str) -> tuple[str, ...]:
    return TESTS[part] if check == "tests" else ()


def _copy(source: Path, copy: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy)


def _put(path: Path, text: str, number: int) -> None:
    """Writes a source file as of a time of its own, so that no bytecode is taken for another's."""
    path.write_text(text, "utf-8")
    os.utime(path, (number, number))


def _run(copy: Path, check: str, files: Sequence[str] = ()) -> str | None:
    """What a check finds first in a copy of the project."""
    command = [sys.executable, "-m", "build_tools.catchers", check, *files]
    environment = {**os.environ, "TILESMITH_CACHE": str(copy.parent / "cache")}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_SECONDS} seconds"
    if done.returncode == 0:
        return None
    said = (done.stdout or done.stderr).strip().splitlines()
    return said[-1] if said else f"exit code {done.returncode}"


def table(rows: Mapping[Bug, Row], checks: Sequence[str] = CHECKS) -> str:
    """The rows, and how many each check caught of those that it was run on."""
    lines = [f"| in | bug | {' | '.join(checks)} |", f"| --- | --- |{' --- |' * len(checks)}"]
    for bug, row in rows.items():
        cells = " | ".join({True: "yes", False: "no", None: ""}[row.get(c)] for c in checks)
        lines.append(f"| {bug.part} | {bug.bug} | {cells} |")
    some = sum(any(row.values()) for row in rows.values())
    seen = ([row[check] for row in rows.values() if check in row] for check in checks)
    caught = " | ".join(f"{sum(marks)} of {len(marks)}" for marks in seen)
    lines.append(f"| | {some} of {len(rows)} caught | {caught} |")
    return "\n".join(lines)


def kept(page: str, known: Sequence[Bug]) -> dict[Bug, Row]:
    """The rows of the table that a page has, of bugs that are known, in their order."""
    cells = (line.strip("|").split("|") for line in _lines(page)[2:-1])
    rows = {(part.strip(), bug.strip()): marks for part, bug, *marks in cells}
    return {
        bug: {c: m.strip() == "yes" for c, m in zip(CHECKS, marks, strict=True) if m.strip()}
        for bug in known
        if (marks := rows.get((bug.part, bug.bug))) is not None
    }


def put(page: str, rows: Mapping[Bug, Row]) -> str:
    """A page with these rows for those of its table."""
    return page.replace("\n".join(_lines(page)), table(rows))


def _lines(page: str) -> list[str]:
    """The lines of the table of bugs in a page."""
    lines = page.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| in | bug |"))
    return list(takewhile(lambda line: line.startswith("|"), lines[start:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where a bug is caught by no check."""
    parser = argparse.ArgumentParser(prog="python -m build_tools.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="bugs whose part or name has this text")
    parser.add_argument("--missing", action="store_true", help="bugs that the page has no row for")
    parser.add_argument("--checks", default=",".join(CHECKS), help="which checks, by commas")
    parser.add_argument("--found", action="store_true", help="print what each check finds first")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    checks = given.checks.split(",")
    if given.write and tuple(checks) != CHECKS:
        parser.error("--write keeps whole rows: leave --checks out")
    known = bugs()
    rows = kept(PAGE.read_text("utf-8"), known)
    chosen = [b for b in known if given.only in b.part or given.only in b.bug]
    chosen = [b for b in chosen if b not in rows] if given.missing else chosen
    found: dict[Bug, Row] = {}
    with progress(len(chosen)) as shown:
        shown.part("nothing planted")
        for caught in tried(chosen, checks):
            found[caught.bug] = {check: what is not None for check, what in caught.found.items()}
            shown.part(caught.bug.bug)
            if given.found:
                shown.clear()
                _tell(caught)
            if given.write:
                every = kept(PAGE.read_text("utf-8"), known) | found
                PAGE.write_text(
                    put(PAGE.read_text("utf-8"), {b: every[b] for b in known if b in every}),
                    "utf-8",
                )
    print(table(found, checks))
    return 1 if any(not any(row.values()) for row in found.values()) else 0


def _tell(caught: Caught) -> None:
    print(f"{caught.bug.part}: {caught.bug.bug}", file=sys.stderr)
    for check, found in caught.found.items():
        print(f"  {check}: {found}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
