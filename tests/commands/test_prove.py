"""`prove` and `check` as their users meet them: what they print, where, and their exit codes."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gen.cli import main

from .specs import NOT_PROVED, SOFTMAX, diagonal_sums, neighbours, prefix_sums, row_sums, shares

Make = Callable[[Path, str], Path]

REFUSALS: dict[str, tuple[Make, str, str, tuple[str, ...]]] = {
    "a parallel reduction": (
        row_sums,
        "parallel: {loop: y.j}",
        "parallel (loop y.j): the proof was refused: parallel loop 'y.j' has a race: "
        "y[i=0, j=0] writes 'y' and y[i=0, j=1] writes it in another iteration",
        (
            "for example: m=1, n=2",
            "  y[i=0, j=0] runs at y.i=0, y.j=0",
            "  y[i=0, j=1] runs at y.i=0, y.j=1",
            "  element y[0]",
            "hint: legal in place of this step: parallel: {loop: y.i}",
        ),
    ),
    "a recurrence turned round": (
        diagonal_sums,
        "reorder: {loops: [y.j, y.i]}",
        "reorder (loops [y.j, y.i]): the proof was refused: y[i=2, j=0] reads 'y' before "
        "y[i=1, j=1] computes it",
        (
            "for example: m=3, n=3",
            "  y[i=2, j=0] runs at y.j=0, y.i=2",
            "  y[i=1, j=1] runs at y.j=1, y.i=1",
            "  element y[1, 1]",
            "hint: legal in place of this step: skew: {loops: [y.i, y.j]}, then "
            "reorder: {loops: [y.j, y.i]}",
        ),
    ),
    "a stencil merged with what it reads": (
        neighbours,
        "merge: {loops: [t.i, y.i]}",
        "merge (loops [t.i, y.i]): the proof was refused: y[i=0] reads 't' before t[i=1] "
        "computes it",
        (
            "for example: n=2",
            "  y[i=0] runs at t.i=0",
            "  t[i=1] runs at t.i=1",
            "  element t[1]",
            "hint: legal in place of this step: shift: {loop: y.i, by: 1}, then "
            "merge: {loops: [t.i, y.i]}",
        ),
    ),
    "a recurrence in lanes": (
        prefix_sums,
        "vectorize: {loop: y_1.j, width: $lanes}",
        "vectorize (loop y_1.j_1): the proof was refused: vectorized loop 'y_1.j_1' has a "
        "race: y_1[i=0, j=1] writes 'y' and y_1[i=0, j=2] reads it in another iteration",
        (
            "for example: m=1, n=3",
            "  y_1[i=0, j=1] runs at y.i=0, y_1.j_0=0, y_1.j_1=0",
            "  y_1[i=0, j=2] runs at y.i=0, y_1.j_0=0, y_1.j_1=1",
            "  element y[0, 1]",
        ),
    ),
    "a block inside its own loop": (
        shares,
        "compute_at: {block: s, loop: s.j}",
        "compute_at (block s, loop s.j): loop 's.j' is around block 's' already",
        (),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, step, message, notes = REFUSALS[name]
    path = make(tmp_path, step)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert main(["prove", str(path), "--levels", "v3"]) == 1
    result, error, source, caret, *more = capsys.readouterr().out.splitlines()[-5 - len(notes) : -1]
    assert more == [f"  {note}" for note in notes]
    assert re.fullmatch(r"k float32 v3 +refused +[\d.]+ s  after \d proved", result)
    assert error == f"{path}:{len(lines)}:13: error: {message}"
    assert source == f"    {lines[-1]}"
    assert caret == f"    {' ' * 12}^"


def test_a_wrong_spec_is_not_blamed_on_a_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = prefix_sums(tmp_path, "parallel: {loop: y.i}")
    text = path.read_text(encoding="utf-8").replace("if n > 0", "if n >= 0")
    path.write_text(text, encoding="utf-8")
    assert main(["prove", str(path), "--levels", "v3"]) == 1
    out = capsys.readouterr().out
    assert "before the first proof" in out
    assert f"{path}:12:17: error: y[i=0] reads 'x' outside its bounds, at [0, 0]" in out
    assert "          y[i, 0] = x[i, 0]\n                    ^^^^^^^" in out


def test_the_read_that_is_out_of_bounds_is_shown_not_one_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = prefix_sums(tmp_path, "parallel: {loop: y.i}")
    text = path.read_text(encoding="utf-8")
    old = next(line for line in text.splitlines() if "y[i, j - 1]" in line)
    new = f"{old.partition(' = ')[0]} = y[i, j - 1] + x[i, j - 1] * x[i, j + 1]"
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert main(["prove", str(path), "--levels", "v3"]) == 1
    _, source, caret = capsys.readouterr().out.splitlines()[-4:-1]
    assert source.strip() == new.strip()
    assert caret == " " * source.index("x[i, j + 1]") + "^" * len("x[i, j + 1]")


def test_check_and_show_say_that_they_do_not_prove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    races = row_sums(tmp_path, "parallel: {loop: y.j}")
    assert main(["prove", str(races), "--levels", "v3"]) == 1
    printed = capsys.readouterr().out
    assert "has a race" in printed and printed.endswith("\nrefused: 1 kernel, 1 type, 1 level\n")
    assert main(["check", str(races), "--levels", "v3"]) == 0
    assert capsys.readouterr().out == NOT_PROVED
    assert main(["show", str(races)]) == 0
    assert capsys.readouterr().err == "not proved: tilesmith prove does that\n"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("tilesmith: 1\n", encoding="utf-8")
    assert main(["check", str(wrong), "--levels", "v3"]) == 1
    assert NOT_PROVED not in capsys.readouterr().out, "nothing was tried"
    assert main(["check", str(wrong), str(races), "--levels", "v3"]) == 1
    assert capsys.readouterr().out.endswith(NOT_PROVED)


def test_mistakes_have_hints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step, message, hint in [
        ("paralel: {loop: y.i}", "there is no primitive 'paralel'", "parallel"),
        ("parallel: {loop: y.k}", "parallel (loop y.k): there is no loop 'y.k'", "y.j"),
        ("parallel: {loops: y.i}", "unknown key 'loops' in parallel", "loop"),
    ]:
        path = shares(tmp_path, step)
        assert main(["check", str(path), "--levels", "v3"]) == 1
        out = capsys.readouterr().out
        assert f"error: {message}\n" in out
        assert out.endswith(f"^\n  hint: did you mean '{hint}'?\n")


def test_a_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", str(SOFTMAX), "--levels", "v3"]) == 0
    text = capsys.readouterr()
    *given, summary = text.out.splitlines()
    assert summary == "proved: 1 kernel, 4 types, 1 level"
    lines = [line.split(" s  ", 1) for line in given]
    found = [re.match(r"softmax (\w+) v3 +proved", left) for left, _ in lines]
    assert {match and match[1] for match in found} == {"float32", "float64", "float16", "bfloat16"}
    steps = [step for _, step in lines]
    assert steps[:2] == [
        "0: the plain schedule",
        "0: compute_at: {block: scale, loop: y.i}",
    ]
    ends = ["0: lowered, end to end", "0: finished, equal to the lowered tree"]
    assert steps[-2:] == ends
    assert text.err == ""
    main(["prove", str(SOFTMAX), "--levels", "v3", "--json"])
    objects = json.loads(capsys.readouterr().out)
    assert [o["step"] for o in objects] == steps
    assert {o["status"] for o in objects} == {"proved"}
