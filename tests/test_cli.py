"""The command line as its users meet it: what it prints, where, and its exit codes."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from gen import timing
from gen.cli import main
from gen.lower.target import Level
from gen.schedule.base import OF_ANY
from gen.schedule.registry import PRIMITIVES
from gen.spec import load, loads

ROOT = Path(__file__).parents[1]
SOFTMAX = ROOT / "kernels_spec" / "softmax.yaml"

SPEC = """\
tilesmith: 1
kernel: k
doc: A kernel of these tests.
signature: {signature}
dtypes: {{T: [float32]}}
arguments:
  {arguments}
compute: |
{compute}
oracle: {oracle}
accuracy: 8 * ulp(y{element})
recipes:
  - target: cpu
    variants:
      - steps:
          - {step}
"""
MATRIX = "x: {type: 'T[m, n]'}\n  y: {type: 'T[m, n]', intent: out}"


def spec(
    folder: Path,
    step: str,
    compute: str,
    signature: str = "(n)->(n)",
    arguments: str = MATRIX,
    oracle: str = "x",
    element: str = "[i, j]",
) -> Path:
    path = folder / "k.yaml"
    body = "\n".join(f"  {line}" for line in compute.splitlines())
    text = SPEC.format(
        signature=signature,
        arguments=arguments,
        compute=body,
        oracle=oracle,
        element=element,
        step=step,
    )
    path.write_text(text, encoding="utf-8")
    return path


def row_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "y[i] = sum(x[i, j] for j in n)",
        "(n)->()",
        "x: {type: 'T[m, n]'}\n  y: {type: 'T[m]', intent: out}",
        "np.sum(x, axis=-1)",
        "[i]",
    )


def diagonal_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "for i in range(1, m):\n  for j in range(n - 1):\n    y[i, j] = y[i - 1, j + 1] + y[i, j]",
        "(m,n)->(m,n)",
        "y: {type: 'T[m, n]', intent: inout}",
        "y",
    )


def neighbours(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "t[i] = x[i] * 2\n"
        "for i in range(n - 1):\n"
        "  y[i] = t[i] + t[i + 1]\n"
        "if n > 0:\n"
        "  y[n - 1] = t[n - 1]",
        arguments="x: {type: 'T[n]'}\n  y: {type: 'T[n]', intent: out}",
        element="[i]",
    )


def prefix_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "for i in m:\n"
        "  if n > 0:\n"
        "    y[i, 0] = x[i, 0]\n"
        "  for j in range(1, n):\n"
        "    y[i, j] = y[i, j - 1] + x[i, j]",
        oracle="np.cumsum(x, axis=-1)",
    )


def shares(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "s[i] = sum(x[i, j] for j in n)\ny[i, j] = x[i, j] / s[i]",
        oracle="x / np.sum(x, axis=-1, keepdims=True)",
    )


# ---------------------------------------------------------------- prove

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
            "hint: this is legal: parallel: {loop: y.i}",
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
            "hint: this is legal: skew: {loops: [y.i, y.j]}, then reorder: {loops: [y.j, y.i]}",
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
            "hint: this is legal: shift: {loop: y.i, by: 1}, then merge: {loops: [t.i, y.i]}",
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


NOT_PROVED = "1 spec without errors (not proved: tilesmith prove does that)\n"


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
    assert steps[-1] == "0: lowered, end to end"
    assert text.err == ""
    main(["prove", str(SOFTMAX), "--levels", "v3", "--json"])
    objects = json.loads(capsys.readouterr().out)
    assert [o["step"] for o in objects] == steps
    assert {o["status"] for o in objects} == {"proved"}


# ---------------------------------------------------------------- the other commands


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--stage", "plain"], 'with block("e", i=spatial(e.i), j=spatial(e.j)):'),
        (["--step", "5"], "for pass_.j in range(n):"),
        (["--stage", "scheduled"], "in vectorized(8):"),
        (["--stage", "lowered"], "identity.max"),
        (["--stage", "c"], "int64_t lower, int64_t upper"),
    ],
)
def test_show(options: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(SOFTMAX), *options]) == 0
    printed = capsys.readouterr()
    assert expected in printed.out
    assert printed.err == "not proved: tilesmith prove does that\n"


def test_show_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(SOFTMAX), "--variant", "7"]) == 1
    assert "there is no variant '7': there are 0" in capsys.readouterr().err
    assert main(["show", str(SOFTMAX), "--step", "99"]) == 1
    assert re.search(r"variant 0 has \d+ steps, not 99", capsys.readouterr().err)
    assert main(["show", str(SOFTMAX), "--steps", "--variant", "7"]) == 1
    assert "there is no variant '7': there are 0" in capsys.readouterr().err
    assert main(["show", str(SOFTMAX), "--dtype", "int8"]) == 1
    assert "softmax has no dtype 'int8': it has float32, float64" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(SOFTMAX), "--size", "m=3", "--size", "n=70", "--level", "v2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("softmax float32 v2  m=3 n=70\n  time ")
    assert re.search(r"edges +\d+ small sizes, 0 wrong", out)
    assert main(["run", str(SOFTMAX), "--size", "q=3"]) == 1
    assert "softmax has no dim 'q': it has m, n" in capsys.readouterr().err
    assert main(["run", str(SOFTMAX), "--size", "m=x"]) == 1
    assert "a size is DIM=NUMBER, not 'm=x'" in capsys.readouterr().err
    assert main(["run", str(SOFTMAX), "--size", "m=-4"]) == 1
    assert "a size is at least 0, not -4, as in 'm=-4'" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--sizes", "m=3,n=70", "--sizes", "m=1,n=5"]
    options = ["--levels", "v2", "--threads", "1,2", "--rounds", "1", *sizes]
    assert main(["bench", str(SOFTMAX), *options]) == 0
    printed = capsys.readouterr()
    title, levels, head, *rows = printed.out.splitlines()
    assert re.fullmatch(r"softmax float32: right at \d+ sizes; milliseconds a call", title)
    assert levels.split() == ["m", "n", "v2", "v2"]
    assert head.split() == ["oracle", "1", "thread", "2", "threads"]
    time, gain = r"[\d.e-]+", r"[\d.e-]+ \([\d.]+x\)"
    assert re.fullmatch(rf" *3 +70 +{time} +{gain} +{gain}", rows[0]), rows[0]
    assert re.fullmatch(rf" *1 +5 +{time} +{gain} +{gain}", rows[1]), rows[1]
    assert printed.err == ""
    assert main(["bench", str(SOFTMAX), *options, "--json"]) == 0
    (first, second) = json.loads(capsys.readouterr().out)["rows"]
    assert first["sizes"] == {"m": 3, "n": 70} and second["sizes"] == {"m": 1, "n": 5}
    assert [(t["level"], t["threads"]) for t in first["timings"]] == [("v2", 1), ("v2", 2)]
    assert all(t["seconds"] > 0 for t in first["timings"]) and first["oracle"] > 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_bench_times_nothing_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = row_sums(tmp_path, "parallel: {loop: y.i}")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("oracle: np.sum(x, axis=-1)", "oracle: 1 + np.sum(x, axis=-1)"))
    assert main(["bench", str(path), "--levels", "v2", "--sizes", "m=8,n=8"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        r"error: k v2 is wrong at m=\d+ n=\d+: error 1.00e\+00 at y\[\d+\]\n", printed.err
    )


def test_bench_refuses_what_it_cannot_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "levels_here", lambda: (Level.V2,))
    for arguments, message in [
        (["--levels", "v4"], "error: this machine does not run v4"),
        (["--levels", "v2", "--sizes", "q=3"], "error: softmax has no dim 'q': it has m, n"),
        (["--levels", "v2", "--sizes", "m=3,n"], "error: a size is DIM=NUMBER, not 'n'"),
    ]:
        assert main(["bench", str(SOFTMAX), *arguments]) == 1
        assert capsys.readouterr().err == f"{message}\n"


def test_usual_sizes() -> None:
    sizes = timing.usual_sizes(load(SOFTMAX))
    assert sizes == [{"m": n, "n": n} for n in (64, 256, 1024)]
    text = SOFTMAX.read_text(encoding="utf-8")
    threes = loads(f"{text}constraints: [n % 3 == 0]\n", "k.yaml")
    assert timing.usual_sizes(threes) == [{"m": 64, "n": 3}]


def test_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my-kernels"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed and all(Path(name).is_file() for name in printed)
    assert main(["init", "my-kernels"]) == 1
    message = "error: my-kernels exists already: init makes a new folder\n"
    assert capsys.readouterr().err == message
    assert main(["init", "my-kernels", "-o", "other"]) == 0
    assert (tmp_path / "other" / "src" / "my_kernels" / "__init__.py").is_file()
    capsys.readouterr()
    assert main(["check", "other/kernels_spec"]) == 0
    assert capsys.readouterr().out == NOT_PROVED


def test_generate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, out = row_sums(tmp_path, "parallel: {loop: y.i}"), tmp_path / "out"
    assert main(["generate", str(path), "--levels", "v2,v3", "-o", str(out)]) == 0
    made = sorted(p.name for p in out.iterdir())
    assert made == ["k.json", "k.v2.c", "k.v3.c"]
    assert sorted(capsys.readouterr().out.split()) == [str(out / name) for name in made]
    assert json.loads((out / "k.json").read_text(encoding="utf-8"))["kernel"] == "k"
    refused = row_sums(tmp_path, "parallel: {loop: y.j}")
    assert main(["generate", str(refused), "-o", str(tmp_path / "none")]) == 1
    assert not list((tmp_path / "none").iterdir())


def test_primitives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["primitives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [p.name for p in PRIMITIVES]
    assert main(["primitives", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["compute_at"]["arguments"][:2] == ["block", "loop"]
    assert rows["compute_at"]["layer"] == "II"
    assert all(row["summary"] for row in rows.values())


def test_a_primitive_is_explained_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    for primitive in PRIMITIVES:
        assert main(["primitives", primitive.name]) == 0
        out = capsys.readouterr().out
        assert primitive.summary() in " ".join(out.split())
        for field in fields(primitive):
            assert field.name in OF_ANY or re.search(rf"^  {field.name.rstrip('_')} ", out, re.M)
        assert next(e.after.strip().splitlines()[-1] for e in primitive.EXAMPLES if e.after) in out
    assert main(["primitives", "divide_loop"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("split (also divide_loop)\n\nReplaces a loop by nested loops")
    assert "\n  factors  [integer or name or null, ...]\n  as       [name, ...]" in out
    assert "\n  - split: {loop: y.i, factors: [null, 4]}\n\ngives\n\n" in out


def test_a_misspelt_primitive_has_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    for name, hint in (("splitt", "did you mean 'split'?"),
                       ("qqq", "`tilesmith primitives` lists them")):  # fmt: skip
        assert main(["primitives", name]) == 1
        shown = capsys.readouterr()
        assert not shown.out
        assert shown.err == f"error: there is no primitive '{name}'\n  hint: {hint}\n"


@pytest.mark.parametrize("command", ["prove", "check"])
def test_a_broken_file_keeps_no_other_from_its_turn(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = shares(tmp_path, "parallel: {loop: y.i}")
    (tmp_path / "a.yaml").write_text("tilesmith: 1\nkernel: [\n", encoding="utf-8")
    (tmp_path / "z.yaml").write_text("kernal: z\n", encoding="utf-8")
    paths = [str(tmp_path / "none.yaml"), str(tmp_path)]
    assert main([command, *paths, "--levels", "v3"]) == 1
    shown = capsys.readouterr()
    errors = shown.err if command == "prove" else shown.out
    for name in ("none.yaml: No such file", "a.yaml:", "z.yaml:1:1: error: unknown key 'kernal'"):
        assert name in errors
    assert good.name not in errors
    assert command == "check" or "lowered, end to end" in shown.out


def test_help_names_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gen", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0
    for command in ("init", "check", "show", "prove", "run", "bench", "generate", "primitives",
                    "schema", "build"):  # fmt: skip
        assert re.search(rf"\b{command}\b", done.stdout), command


def test_wrong_command_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments, message in [
        (["prune", "x.yaml"], "invalid choice: 'prune'"),
        (["prove", "x.yaml", "--levels", "v9"], "unknown level 'v9': there are v2, v3, v4, neon"),
        ([], "the following arguments are required: COMMAND"),
        (["bench", "x.yaml", "--threads", "1,0"], "'0' is not a number from 1 to 4096"),
        (
            ["show", "x.yaml", "--steps", "--html", "x.html"],
            "--html: not allowed with argument --steps",
        ),
        (["show", "x.yaml", "--stage", "steps"], "invalid choice: 'steps'"),
        (["bench", "x.yaml", "--rounds", "few"], "'few' is not a number from 1 to 4096"),
    ]:
        with pytest.raises(SystemExit) as exited:
            main(arguments)
        assert exited.value.code == 2
        assert message in capsys.readouterr().err
    missing = tmp_path / "missing.yaml"
    assert main(["prove", str(missing)]) == 1
    assert capsys.readouterr().err == f"error: {missing}: No such file or directory\n"
