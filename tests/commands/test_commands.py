"""The other commands as their users meet them: what they print, where, and their exit codes."""

import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from gen.cli import main
from gen.commands import build
from gen.language import load, loads
from gen.poly import cache, laws
from gen.reference import primitives as reference
from gen.schedule import intrinsics
from gen.schedule.base import OF_ANY
from gen.schedule.registry import PRIMITIVES
from gen.targets.cpu import target as cpu
from gen.targets.cpu.levels import Level
from gen.trial import inputs, timing

from .specs import NOT_PROVED, ROOT, SOFTMAX, row_sums, shares


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
def test_run_where_there_is_not_memory_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known before is said before; a system may give less than it has."""
    path = tmp_path / "large.yaml"
    path.write_text("""\
tilesmith: 1
kernel: large
doc: A temporary that no address space has.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}
temporaries: {s: "T[n, n]"}
constraints: [n >= 1]
compute: |
  s[i, j] = x[i] * x[j]
  y[i] = s[i, (i * 7919) % n]
""")
    command = ["run", str(path), "--level", "v2", "--size", f"n={2**23}"]
    assert main(command) == 1
    assert capsys.readouterr().err.startswith(
        "error: large: a run of these sizes would take about 2.81e+05 GB, and this machine has "
    )
    monkeypatch.setattr(inputs, "_machine_bytes", lambda: math.inf)
    assert main(command) == 1
    assert capsys.readouterr().err == (
        "error: not enough memory: 'large' could not allocate its temporaries\n"
        "  hint: smaller sizes need less\n"
    )


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
    monkeypatch.setattr(cpu, "native_level", lambda: Level.V2)
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


def test_a_build_whose_proofs_pass_their_limit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which ends the process that all proofs are in: each then has its own, and the error is told
    once.
    """
    command = ["generate", str(SOFTMAX), "--levels", "v2", "--output-dir", str(tmp_path)]
    monkeypatch.setattr(cache, "SECONDS", 1e-6)
    assert build.main(command) == 1
    error = "error: the proof of kernel 'softmax' had no answer within 1e-06 seconds"
    assert capfd.readouterr().err.count(error) == 1
    monkeypatch.undo()
    assert build.main(command) == 0
    assert (tmp_path / "softmax.v2.c").is_file()


def test_primitives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["primitives"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-4]] == [p.name for p in PRIMITIVES]
    assert lines[-4:] == [
        "",
        f"intrinsics, which tensorize takes: {', '.join(intrinsics.names())}",
        "laws, which rescale takes: one_pass_moments, online_softmax",
        "macros, lists of steps with a name: a spec's own, under its key `macros`",
    ]
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
        for example in primitive.EXAMPLES:
            assert f"Example: {example.title}\n" in out
            last = example.refused or reference.after(example).strip().splitlines()[-1]
            assert last in out
    assert main(["primitives", "divide_loop"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("split (also divide_loop)\n\nReplaces a loop by nested loops")
    assert "\n  factors  [integer or name or null, ...]\n  as       [name, ...]" in out
    assert "\n  - split: {loop: y.i, factors: [null, 4]}\n\ngives\n\n" in out
    assert "\n  in the same tree\n\n  - split: {loop: y.i, factors: [2, 4]}" in out
    assert "\n\nis refused: there is no loop 'y.k'" in out


def test_intrinsics_and_laws_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["primitives", "dot_2x_bf16"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("dot_2x_bf16: an instruction of processors with avx512bf16 on v4\n\n")
    assert "  c[i] = combine.sum(c[i], float32(a[j]) * float32(b[i, j]))\n" in out
    for law in laws.names():
        assert main(["primitives", law]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{law}: a law") and "forms:" in out


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
