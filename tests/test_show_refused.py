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


MACROS = BROKEN.replace(
    "recipes:\n",
    """\
macros:
  line:
    params: [block, index]
    steps:
      - split: {loop: $block.$index, factors: [null, $width]}
      - vectorize: {loop: $block.$index_1, width: $width}
recipes:
""",
).replace(
    "          - vectorize: {loop: t.jj, width: $width}\n",
    "          - line: {block: t, index: j}\n          - line: {block: y, index: j}\n",
)


def test_a_step_of_a_macro_that_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The steps before it are shown, those of the macro's first use too; its error has the line of
    the macro and that of the second use.
    """
    path = tmp_path / "k.yaml"
    path.write_text(MACROS)
    assert main(["show", str(path), "--steps"]) == 1
    out, err = capsys.readouterr()
    headings = [line for line in out.splitlines() if line.startswith("#  ")]
    assert headings[3:5] == [
        "#   k.yaml:16  - split: {loop: $block.$index, factors: [null, $width]}",
        "#     of the macro line, used in line 25",
    ]
    assert "# step 3: vectorize: {loop: t.j_1" in out and "y.j" not in out
    assert err == (
        f"{path}:16:9: error: split (loop y.j): there is no loop 'y.j'\n"
        "          - split: {loop: $block.$index, factors: [null, $width]}\n"
        "            ^\n"
        f"{path}:26:13: in the macro 'line', used here\n"
        "              - line: {block: y, index: j}\n"
        "                ^\n"
        "  hint: did you mean 'y.i'?\n"
    )


def test_the_page_says_where_a_macro_is_used(tmp_path: Path) -> None:
    path, page = tmp_path / "k.yaml", tmp_path / "k.html"
    path.write_text(
        MACROS.replace("          - line: {block: y, index: j}\n", "").replace("y.j", "y.i")
    )
    assert main(["show", str(path), "--html", str(page)]) == 0
    assert '<span class="no">line 16, used in line 25</span>' in page.read_text("utf-8")
