"""Recipes with launches and ranks: proved and shown, though there is no code for them yet."""

from pathlib import Path

import pytest

from gen.cli import main

GPU = """tilesmith: 1
kernel: twice
doc: Twice x.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
compute: |
  y[i] = x[i] * 2
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {loop: y.i, factors: [null, 32]}
          - bind: {loop: y.i_0, axis: blockIdx.x}
          - bind: {loop: y.i_1, axis: threadIdx.x}
"""


PLAIN = "    variants:\n      - steps: []\n"


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "twice.yaml"
    path.write_text(GPU)
    return str(path)


@pytest.mark.parametrize("view", [["--stage", "scheduled"], ["--step", "3"]])
def test_what_steps_make_is_shown(
    view: list[str], spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", spec, *view]) == 0
    assert "for y.i_1 in threadIdx.x(32):" in capsys.readouterr().out


def test_each_step_is_shown_and_numbered(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", spec, "--steps"]) == 0
    out = capsys.readouterr().out
    assert "# step 3: bind: {axis: threadIdx.x, loop: y.i_1}" in out
    assert "lowered" not in out


def test_check_and_prove(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", spec]) == 0
    capsys.readouterr()
    assert main(["prove", spec, "--levels", "v3"]) == 0
    out = capsys.readouterr().out
    assert out.count(" proved ") == 4
    assert "0: no code for this target yet" in out
    assert "refused" not in out


def test_prove_fails_where_the_target_that_is_asked_for_has_no_code(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(GPU.replace("target: cpu", "target: cuda").replace("twice", "other"))
    without = tmp_path / "without.yaml"
    without.write_text(
        GPU.partition("    variants:")[0].replace("target: cpu", "target: cuda") + PLAIN
    )
    assert main(["prove", str(without), "--target", "cuda"]) == 1  # a GPU runs launches alone
    out, err = capsys.readouterr()
    assert "plain: no code for this target yet" in out
    assert out.endswith("\nno code: 1 kernel, 1 type, 1 level\n")
    assert err == (
        "error: cuda has code for none of these kernels and types: what is proved is "
        "never compiled\n  hint: the lines above say for each what it lacks\n"
    )
    assert main(["prove", spec, "--target", "cpu", "--levels", "v3"]) == 1
    assert "error: cpu has code for none" in capsys.readouterr().err
    assert main(["prove", str(other), str(without), "--target", "cuda"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-2:] == [
        "proved: 1 kernel, 1 type, 1 level",
        "no code: 1 kernel, 1 type, 1 level",
    ]
    assert not err


@pytest.mark.parametrize("command", [["show", "--stage", "c"], ["show", "--stage", "lowered"]])
def test_code_is_refused_at_the_step(
    command: list[str], spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], spec, *command[1:]]) == 1
    assert capsys.readouterr().err == (
        f"{spec}:16:13: error: loop 'y.i_0' is bound to blockIdx.x, and C code has no launches\n"
        "              - bind: {loop: y.i_0, axis: blockIdx.x}\n"
        "                ^\n"
        "  hint: leave `bind` and what stands for it to recipes of another target\n"
    )


def test_a_vectorized_loop_without_vectors_is_refused_at_its_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fold.yaml"
    head, _, _ = GPU.partition("compute:")
    path.write_text(
        head.replace("twice", "fold")
        + """temporaries: {t: "T[n + 2]"}
compute: |
  t[i] = x[min(i, n - 1)] * 2
  for i in range(n):
      y[i] = t[i] + t[i + 1] + t[i + 2]
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {loop: y.i, factors: [null, 8]}
          - compute_at: {block: t, loop: y.i_0}
          - fold_storage: {buffer: t, axis: 0, factor: 10}
          - vectorize: {loop: t.i, width: 8}
""".replace("  t[i] = ", "  for i in range(n + 2):\n      t[i] = ")
    )
    assert main(["show", str(path), "--stage", "c"]) == 1
    assert capsys.readouterr().err == (
        f"{path}:22:13: error: block 't', of float32, has no vector form on v3 in loop 't.i_1'\n"
        "              - vectorize: {loop: t.i, width: 8}\n"
        "                ^\n"
        "  note: t[(y.i_0 * 8 + t.i_0 * 8 + t.i_1) % 10] is at no fixed distance"
        " from one lane to the next\n"
        "  hint: leave the loop serial\n"
    )
