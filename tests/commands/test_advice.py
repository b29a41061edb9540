"""What a recipe asks for and does not get is said by `check` and `show`, with what to write."""

from pathlib import Path

import pytest

from gen.cli import main

SPEC = """\
tilesmith: 1
kernel: dots
doc: Inner products of rows with x, 16 rows at a time.
signature: (m,k),(k)->(m)
dtypes: {T: [float64]}
arguments:
  a: {type: "T[m, k]"}
  x: {type: "T[k]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = sum(a[i, l] * x[l] for l in k)
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {loop: y.i, factors: [null, 16], as: [y.i0, y.i1]}
          - split: {loop: y.l, factors: [null, $lanes], as: [y.l0, y.l1]}
          - reorder: {loops: [y.i0, y.l0, y.i1, y.l1]}
          - rfactor: {block: y, loop: y.l1, as: [part]}
          - set_scope: {buffer: part, scope: register}
          - decompose_reduction: {block: part, loop: y.l0}
          - unroll: {loop: part.init.i1}
          - vectorize: {loop: part.init.l1, width: $lanes}
          - unroll: {loop: y.i1}
          - vectorize: {loop: y.l1, width: $lanes}
"""
WARNING = """\
{path}:20:13: warning: 'part' is to be in registers, and is in memory: block 'y' reads it where the\
 index of 'y.i1_2' and 'y.r0' says
              - set_scope: {{buffer: part, scope: register}}
                ^
  hint: unroll y.i1_2, and unroll or vectorize y.r0: a loop whose extent is a number, as `split`\
 makes it
"""
ADVISED = "          - unroll: {loop: y.i1_2}\n          - vectorize: {loop: y.r0, width: $lanes}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "dots.yaml"
    path.write_text(SPEC, "utf-8")
    return path


def test_check(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No error, and no more after what the hint says is written."""
    assert main(["check", "--levels", "v3,v4", str(path)]) == 0
    without = "1 spec without errors (not proved: tilesmith prove does that)\n"
    assert capsys.readouterr().out == WARNING.format(path=path) + without
    path.write_text(SPEC + ADVISED, "utf-8")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == without


def test_show(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(WARNING.format(path=path))
    assert "warning" not in printed.out


def test_what_rules_write_is_nobodys_to_mend(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(SPEC.partition("recipes:")[0], "utf-8")
    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().err == "not proved: tilesmith prove does that\n"
