"""`tilesmith tune` as its users meet it: what it prints and writes, and how it fails.

Where a test needs to know who wins, the contest is one that prefers long code.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gen.cli import main
from gen.commands import tune as command
from gen.errors import TilesmithError
from gen.language import load
from gen.targets.cpu import target as cpu
from gen.targets.cpu.levels import Level
from gen.trial.tune import maker
from gen.trial.tune.contest import Round, TimedCall, Unit

from .specs import SOFTMAX, spec

pytestmark = [
    pytest.mark.skipif(find_spec("optuna") is None, reason="needs Optuna"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]
LINES = "x: {type: 'T[m]'}\n  y: {type: 'T[m]', intent: out}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Studies of these tests alone; libraries and proofs are remembered from run to run."""
    monkeypatch.setattr("gen.trial.tune.tune.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "tune"


MILLISECONDS = Unit("ms", 1e3)


@dataclass(frozen=True)
class ByLength:
    """The longer the code, the less."""

    threads: int
    rounds: int = 2
    last: int = 4
    unit: Unit = MILLISECONDS

    @property
    def conditions(self) -> str:
        return f", {self.threads} threads"

    def __call__(self, kernels: Sequence[Any], cases: Sequence[TimedCall]) -> Iterator[Round]:
        found = tuple(tuple(1 / len(k.compiled.source) for _ in cases) for k in kernels)
        while True:
            yield found


def doubled(folder: Path, params: str, step: str) -> Path:
    path = spec(folder, step, "y[i] = 2 * x[i]", "()->()", LINES, "2 * x", "[i]")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("    variants:", f"    params: {params}  # mine\n    variants:"))
    return path


STEP = "split: {loop: y.i, factors: [null, $parts], as: [y.i0, y.i1]}\n"
UNROLLED = f"{STEP}          - unroll: {{loop: y.i1}}"


def test_a_real_run(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever wins: what is written is the same spec, and proved."""
    path = doubled(tmp_path, "{parts: 1}", UNROLLED)
    text = path.read_text(encoding="utf-8")
    options = ["--size", "m=500", "--param", "parts=2,4", "--level", "v2"]
    assert main(["tune", str(path), *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith("k (v2, float32, 1 thread) on ")
    assert "  searched  parts 1, 2, 4 (now 1)\n" in out
    assert re.search(r"  trials    \d measured(, \d stopped early)?\n", out)
    assert len([*cache.iterdir()]) == 1
    new = path.read_text(encoding="utf-8")
    if "  written   " in out:
        assert re.search(r"    # tuned on .* \(v2, float32, 1 thread\), .* ms at m=500\n", new)
        assert main(["prove", str(path), "--levels", "v2,v3"]) == 0
    else:
        assert new == text and "winner    none" in out


def test_a_winner_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ByTime", ByLength)
    path = doubled(tmp_path, "{parts: 4}", UNROLLED)
    text = path.read_text(encoding="utf-8")
    options = ["--param", "parts=2,8,16", "--level", "v2", "--size", "m=9", "--threads", "2"]
    assert main(["tune", str(path), *options, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == text
    assert "+    params: {parts: {v2: 16, v3: 4, v4: 4, neon: 4}}  # mine\n" in out
    assert "  winner    parts=16\n" in out and "tune again: parts may go further" in out
    assert main(["tune", str(path), *options]) == 0
    assert f"  written   {path}\n" in capsys.readouterr().out
    old, new = text.split("\n"), path.read_text(encoding="utf-8").split("\n")
    (at,) = (k for k, line in enumerate(old) if "params" in line)
    assert new[:at] == old[:at] and new[at + 2 :] == old[at + 1 :]
    assert new[at].startswith("    # tuned on ") and "(v2, float32, 2 threads), 20" in new[at]
    assert dict(load(path).recipes[0].params[0].values)["v2"] == 16


def test_refused_candidates_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ByTime", ByLength)
    path = doubled(tmp_path, "{parts: 4}", UNROLLED)
    options = ["--level", "v2", "--size", "m=9", "--dry-run"]
    monkeypatch.setattr(maker, "LONGER", 3)
    assert main(["tune", str(path), *options, "--param", "parts=0,8,60"]) == 0
    out = capsys.readouterr().out
    assert "  trials    2 measured, 2 refused\n" in out
    assert re.search(r"  refused   parts=0: split \(loop y\.i\): .*positive", out), out
    assert re.search(r"  refused   parts=60: its code is \d+ times as long as before: over 3 ", out)
    assert "  winner    parts=8\n" in out


def test_what_is_wrong_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A candidate whose result is wrong is refused; the search goes on."""
    monkeypatch.setattr(command, "ByTime", ByLength)
    right = maker.tried

    def tried(reference: Any, kernel: Any, *rest: Any) -> Any:
        case = right(reference, kernel, *rest)
        object.__setattr__(case, "worst", 2.0 if len(kernel.compiled.source) in wrong else 0.0)
        return case

    wrong: set[int] = set()
    made = maker.Maker.made

    def remembered(self: Any, recipe: Any) -> Any:
        kernel = made(self, recipe)
        if dict(recipe.params[0].values).get("v2") == 16:
            wrong.add(len(kernel.compiled.source))
        return kernel

    monkeypatch.setattr(maker.Maker, "made", remembered)
    monkeypatch.setattr(maker, "tried", tried)
    path = doubled(tmp_path, "{parts: 4}", UNROLLED)
    options = ["--level", "v2", "--size", "m=9", "--dry-run", "--param", "parts=8,16"]
    assert main(["tune", str(path), *options]) == 0
    out = capsys.readouterr().out
    assert "  refused   parts=16: wrong at m=9: error 0.00e+00" in out
    assert "  winner    parts=8\n" in out


def test_rules_are_searched_where_there_is_no_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ByTime", ByLength)
    path = spec(tmp_path, "", "y[i] = 2 * x[i]", "()->()", LINES, "2 * x", "[i]")
    text = path.read_text(encoding="utf-8").partition("recipes:")[0]
    path.write_text(text)
    options = ["--structure", "--level", "v3", "--size", "m=9"]
    assert main(["tune", str(path), *options]) == 0
    out = capsys.readouterr().out
    assert "  searched  rule of y elementwise, lines, fallback (now elementwise)\n" in out
    new = path.read_text(encoding="utf-8")
    if "  written   " in out:
        assert new.startswith(text + "recipes:\n  - target: cpu.v3\n    # tuned on ")
    else:
        assert new == text
    path.write_text(text)
    assert main(["tune", str(path), "--level", "v3", "--size", "m=9"]) == 1
    error = capsys.readouterr().err
    assert "k: no variant that runs at these sizes has a number to search" in error
    assert "or search among rules by `--structure`" in error


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_counts_where_there_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads that do nothing past the end are counted, so few are better for few values."""
    none = TilesmithError("there is no GPU")
    monkeypatch.setattr("gen.targets.cuda.gpu.architectures", _raising(none))
    path = spec(tmp_path, "", "y[i] = 2 * x[i]", "()->()", LINES, "2 * x", "[i]")
    text = path.read_text(encoding="utf-8").partition("recipes:")[0]
    path.write_text(text)
    options = ["--target", "cuda", "--size", "m=33", "--param", "thread=32,64", "--trials", "3"]
    assert main(["tune", str(path), *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith("k (sm_90, float32) on the emulator\n  no GPU is here: ranked by the ")
    assert "  trials    3 measured\n" in out and " ms" not in out


def _raising(error: Exception) -> Any:
    def raises() -> None:
        raise error

    return raises


def test_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*options: str) -> str:
        assert main(["tune", str(path), "--level", "v2", *options]) == 1
        return capsys.readouterr().err

    path = SOFTMAX
    assert "there is no parameter 'ac': there are acc\n  hint: did you mean 'acc'?" in said(
        "--param", "ac=1", "--size", "m=3,n=5"
    )
    structure = said("--structure")
    assert "softmax has a recipe for cpu: rules write none" in structure
    assert "hint: --structure searches among rules: take the recipe out of a copy" in structure
    assert "softmax has no dim 'q': it has m, n" in said("--size", "q=3")
    assert "a parameter to search is NAME=VALUE,..." in said("--param", "acc")
    path = spec(tmp_path, "parallel: {loop: y.i}", "y[i] = x[i]", "()->()", LINES, "x", "[i]")
    assert "the recipe for cpu has no parameters to search\n" in said()
    path = doubled(tmp_path, "{parts: 4}", UNROLLED.replace("y.i,", "y.q,"))
    assert "there is no loop 'y.q'" in said()
    monkeypatch.setattr(cpu, "native_level", lambda: Level.V2)
    assert main(["tune", str(path), "--level", "v4"]) == 1
    assert capsys.readouterr().err == "error: this machine does not run v4\n"
    with pytest.raises(SystemExit):
        main(["tune", str(path), "--param", "parts=2", "--structure"])


def test_a_spec_that_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = doubled(tmp_path, "{parts: 4}", UNROLLED)

    def contest(threads: int) -> Any:
        path.write_text(path.read_text(encoding="utf-8") + "# more\n")
        return ByLength(threads)

    monkeypatch.setattr(command, "ByTime", contest)
    before = main(["tune", str(path), "--level", "v2", "--size", "m=9", "--param", "parts=8"])
    assert before == 1
    assert f"{path} has changed meanwhile: nothing is written" in capsys.readouterr().err
