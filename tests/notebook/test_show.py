"""Kernels from texts, the table of their steps, and the magic of IPython."""

import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import gen
from gen.errors import ScheduleError, SpecError, TilesmithError
from gen.trial.notebook import NotebookKernel

from .kernels import ADD, SHIPPED

ROWS = """\
tilesmith: 1
kernel: rows
doc: The sum of each row.
signature: (n)->()
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = sum(x[i, j] for j in n)
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {loop: y.j, factors: [null, 4]}  # <b>four</b> & more
          - parallel: {loop: y.i}
"""

# ---------------------------------------------------------------- texts


def test_a_text_is_a_spec() -> None:
    add = gen.compile(ADD, level="v2")
    assert add(1, 2) == 3
    assert repr(add) == "<kernel add (),()->() of <spec>, v2>"


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        (ROWS.replace("x[i, j]", "x[i, k]"), "<spec>:10:19: error: unknown name 'k'"),
        (ROWS.replace("cpu", "cup"), "<spec>:12:13: error: unknown target 'cup'"),
        (ROWS.replace("kernel: rows", "kernel: [rows]"), "<spec>:2:9: error: "),
        ("a\nb", "<spec>:1:1: error: "),
    ],
)
def test_errors_point_into_the_text(wrong: str, place: str) -> None:
    with pytest.raises(SpecError) as caught:
        gen.compile(wrong, level="v2")
    assert str(caught.value).startswith(place)


def test_what_has_one_line_is_a_path() -> None:
    with pytest.raises(FileNotFoundError, match="no such spec"):
        gen.compile("no such spec", level="v2")


# ---------------------------------------------------------------- steps


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+ s", "_ s", text)


def test_the_steps_as_text() -> None:
    """Each as it is done, with what its proof said."""
    assert (
        without_times(repr(gen.compile(ROWS, level="v2").show()))
        == """\
rows float32 v2
     the plain schedule                      proved, _ s
  1  split: {loop: y.j, factors: [null, 4]}  proved, _ s
  2  parallel: {loop: y.i}                   proved, _ s
     lowered, end to end                     proved, _ s"""
    )


class Table(HTMLParser):
    """Rows of cells, as text; all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.removesuffix("\n")


def test_the_steps_as_a_table() -> None:
    text = gen.compile(ROWS, level="v2").show()._repr_html_()
    table = Table(text)
    assert [row[0] for row in table.rows] == ["", "", "1", "2", ""]
    head, plain, split, parallel, lowered = table.rows
    assert head == ["", "step", "proof", "changed"]
    assert plain[1] == "the plain schedule" and "for y.j in range(n):" in plain[3]
    assert split[1] == (
        "split: {loop: y.j, factors: [null, 4]}"
        "<spec>:15  - split: {loop: y.j, factors: [null, 4]} # <b>four</b> & more"
    )
    assert without_times(split[2]) == "proved, _ s"
    assert re.search(r"^\+ +for y\.j_0 in range\(\(n \+ 3\) // 4\):$", split[3], re.M)
    assert re.search(r"^- +for y\.j in range\(n\):$", split[3], re.M)
    assert "parallel(m)" in parallel[3] and lowered[1] == "lowered, end to end"
    assert "b" not in table.tags and "y.j_0 * 4 + y.j_1 &lt; n" in text


def test_a_step_that_is_refused_is_there_with_the_reason() -> None:
    total = ROWS.replace("parallel: {loop: y.i}", "parallel: {loop: y.j_0}")
    shown = gen.compile(total, level="v2").show()
    text = without_times(repr(shown))
    assert "\n  2  parallel: {loop: y.j_0}  " in text and "  refused, _ s\n" in text
    assert "\n       parallel loop 'y.j_0' has a race: y[i=0, j=3] writes 'y' and " in text
    assert text.endswith("not tried")
    row = Table(shown._repr_html_()).rows[3]
    assert row[0] == "2" and row[2].startswith("refused, ")


def test_a_step_that_cannot_be_done_is_an_error() -> None:
    with pytest.raises(ScheduleError) as caught:
        gen.compile(ROWS.replace("{loop: y.i}", "{loop: y.k}"), level="v2").show()
    assert str(caught.value).startswith("<spec>:16:13: error: ")


def test_variants_and_dtypes_are_chosen() -> None:
    softmax = gen.compile(SHIPPED / "softmax.yaml", level="v4")  # shown, not run
    title = repr(softmax.show("0", dtype="float64")).partition("\n")[0]
    assert title == "softmax float64 v4, variant 0 (of 0, 1, 2, 3)"
    assert repr(softmax.show()).partition("\n")[0].startswith("softmax float32 v4, variant 2 (of ")
    for call, message in [
        (lambda: softmax.show("7"), "there is no variant '7': there are 0, 1, 2, 3"),
        (
            lambda: softmax.show(dtype="int8"),
            "softmax has no dtype 'int8': it has float32, float64, float16, bfloat16",
        ),
    ]:
        with pytest.raises(TilesmithError) as caught:
            call()
        assert caught.value.message == message


def test_what_rules_write_is_shown() -> None:
    text = repr(gen.compile(ADD, level="v2").show())
    assert "  1  " in text and "vectorize" in text and "refused" not in text


# ---------------------------------------------------------------- IPython


class Shell:
    """What tilesmith uses of IPython's InteractiveShell."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {}
        self.cells: dict[str, Callable[[str, str], object]] = {}

    def register_magic_function(
        self, func: Callable[[str, str], object], magic_kind: str = "line", magic_name: str = ""
    ) -> None:
        assert magic_kind == "cell"
        self.cells[magic_name] = func

    def push(self, variables: Mapping[str, object]) -> None:
        self.user_ns.update(variables)


def test_a_cell_is_a_kernel() -> None:
    shell = Shell()
    gen.load_ipython_extension(shell)
    shown = shell.cells["tilesmith"](" v2 ", ADD)
    add = shell.user_ns["add"]
    assert shown is add and isinstance(add, NotebookKernel)
    assert add.target.level == "v2" and add(1, 2) == 3
    shell.cells["tilesmith"]("", ROWS)
    rows = shell.user_ns["rows"]
    assert isinstance(rows, NotebookKernel)
    np.testing.assert_array_equal(rows(np.ones((2, 5))), [5, 5])
    assert rows.target.level == rows.target.here()[-1]


def test_the_cell_of_the_page() -> None:
    page = (SHIPPED.parent / "docs" / "authors.md").read_text("utf-8")
    cell = "".join(re.findall(r"^   \.\.\.: (.*\n)", page, re.M))
    shell = Shell()
    gen.load_ipython_extension(shell)
    shell.cells["tilesmith"]("v2", cell)
    twice = shell.user_ns["twice"]
    assert isinstance(twice, NotebookKernel) and twice([1.5, 2.5]).tolist() == [3, 5]
    with pytest.raises(SpecError, match=r"^<spec>:7:21: "):  # as the page has it
        shell.cells["tilesmith"]("v2", cell.replace("x[i]", "z[i]"))
    assert "`<spec>:7:21`" in page


def test_errors_of_a_cell() -> None:
    shell = Shell()
    gen.load_ipython_extension(shell)
    with pytest.raises(SpecError, match=r"^<spec>:1:1: error: the spec needs the key 'doc'"):
        shell.cells["tilesmith"]("v2", "tilesmith: 1\nkernel: add\n")
    with pytest.raises(SpecError, match=r"^<spec>:1:1: error: "):
        shell.cells["tilesmith"]("v2", "add")  # of one line, which is no path here
    with pytest.raises(TilesmithError, match=r"^error: unknown level 'v9': there are v2, "):
        shell.cells["tilesmith"]("v9", ADD)
    assert not shell.user_ns


def test_with_ipython_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = interactive.InteractiveShell()
    shell.run_line_magic("load_ext", "gen")
    shell.run_cell_magic("tilesmith", "v2", ADD)
    assert shell.user_ns["add"](1, 2) == 3
    shown, _ = shell.display_formatter.format(shell.user_ns["add"].show())
    assert shown["text/html"].startswith("<table>") and shown["text/plain"].startswith(
        "add float32"
    )
