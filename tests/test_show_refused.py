"""What `show` prints of a recipe that has a step that is wrong."""

from pathlib import Path

import pytest

from gen.cli import main

BROKEN = """\
tilesmith: 1
kernel: k
doc: A recipe of which the second step names a loop that there is not.
signature: (n)->()
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  t[i] = sum(x[i, j] for j in n)
  y[i] = 2 * t[i]
recipes:
  - target: cpu
    params: {width: 8}
    variants:
      - when: n >= 2
        steps:
          - compute_at: {block: t, loop: y.i}
          - vectorize: {loop: t.jj, width: $width}
      - steps:
          - parallel: {loop: y.j}
"""


@pytest.mark.parametrize(
    ("options", "status", "shown", "hidden"),
    [
        (["--stage", "plain"], 0, "for t.i in range(m)", "vectorize"),
        (["--step", "1"], 0, "    with allocate(t=float32[m]):\n            for t.j", "vectorize"),
        (["--step", "2"], 1, "there is no loop 't.jj'", "allocate"),
        (["--steps"], 1, "step 1: compute_at", "step 2"),
        ([], 1, "with allocate(t=float32[m]):\n            for t.j", "for t.i"),
        (["--variant", "0"], 1, "with allocate(t=float32[m]):\n            for t.j", "for t.i"),
    ],
)
def test_what_comes_before_a_step_that_is_wrong(
    options: list[str],
    status: int,
    shown: str,
    hidden: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The steps before it are shown, then its error; a stage or step before it is shown alone."""
    path = tmp_path / "k.yaml"
    path.write_text(BROKEN)
    assert main(["show", str(path), *options]) == status
    out, err = capsys.readouterr()
    assert shown in out + err and hidden not in out
    assert ("vectorize (loop t.jj): there is no loop 't.jj'" in err) == (status == 1)
