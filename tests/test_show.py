"""What `show` makes of a kernel: the steps as differences, and the page."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gen.cli import main
from gen.display import page as pages
from gen.display import story as stories
from gen.display import text as show
from gen.display.count import counts
from gen.display.differences import Line, Mark, differences, excerpt
from gen.display.page import MOST_BYTES, owners_of, page
from gen.errors import TilesmithError
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import blocks
from gen.language import choices, load
from gen.lower.variants import Variant
from gen.pipeline import emit, schedule
from gen.targets.c.marks import Owner, marked, owned, unmarked
from gen.targets.cpu import assembly as compiler
from gen.targets.cpu import target as cpu
from gen.targets.cpu.assembly import CompiledFunction, Instruction, assembly
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import Does, joined

ROOT = Path(__file__).parents[1]
SOFTMAX = load(ROOT / "tests" / "commands" / "softmax.yaml")
FLOAT32 = choices(SOFTMAX)[0]
NARROW = """\
tilesmith: 1
kernel: k
doc: Two variants, of which the first has a step that is refused.
signature: (n)->()
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = sum(x[i, j] for j in n)
oracle: np.sum(x, axis=-1)
accuracy: n * eps * np.sum(np.abs(x))
recipes:
  - target: cpu
    variants:
      - when: n <= 64
        steps:
          - parallel: {loop: y.j}
          - split: {loop: y.i, factors: [null, 4]}
      - steps:
          - parallel: {loop: y.i}
"""


def unproved(*_: object) -> None:
    pass


@pytest.fixture(scope="module")
def softmax() -> Variant:
    (variant,) = schedule(SOFTMAX, FLOAT32, Cpu(Level.V3), unproved)
    return variant


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    path = tmp_path / "k.yaml"
    path.write_text(NARROW, encoding="utf-8")
    return path


# ---------------------------------------------------------------- differences


def test_differences_are_both_texts(softmax: Variant) -> None:
    texts = [to_text(k) for k in (softmax.start.kernel, *(s.state.kernel for s in softmax.steps))]
    for before, after in pairwise(texts):
        lines = differences(before, after)
        new = [line.text for line in lines if line.mark is not Mark.REMOVED]
        old = [line.text.lstrip() for line in lines if line.mark is not Mark.ADDED]
        assert new == after.splitlines()
        assert old == [text.lstrip() for text in before.splitlines()]
        kept = {line.text for line in lines if line.mark is Mark.KEPT}
        assert kept <= set(before.splitlines())


def test_a_loop_around_many_lines_is_one_line() -> None:
    body = [f"    a{k} = {k}" for k in range(9)]
    before = "\n".join(["def f():", *body, "    end()", "    done()", "    last()", "    return"])
    after = "\n".join(
        ["def f():", "    for i in range(n):", *("    " + line for line in body), "    end()",
         "    done()", "    last()", "    return"]
    )  # fmt: skip
    lines = [f"{line.mark.value} {line.text}" for line in excerpt(differences(before, after))]
    assert lines == [
        "  def f():",
        "+     for i in range(n):",
        ">         a0 = 0",
        ">         a1 = 1",
        ">         ... 6 lines",
        ">         a8 = 8",
        "      end()",
        "      done()",
        "      ... 2 lines",
    ]
    back = [line.mark for line in differences(after, before)]
    assert back.count(Mark.OUTWARD) == 9 and back.count(Mark.REMOVED) == 1


def test_one_line_is_not_left_out() -> None:
    lines = [Line(Mark.ADDED, "a"), *(Line(Mark.KEPT, c) for c in "bcdef"), Line(Mark.ADDED, "g")]
    assert list(excerpt(lines)) == lines
    assert Line(Mark.KEPT, "... 3 lines") in list(excerpt(lines, context=1))


def test_steps(golden: Callable[[str, str], None], softmax: Variant) -> None:
    """The plain schedule and the first steps, as they are printed."""
    text = show.text(SOFTMAX, FLOAT32, Cpu(Level.V3), show.Steps("0"))
    numbers = [int(n) for n in re.findall(r"^# step (\d+): ", text, re.M)]
    assert numbers == list(range(1, len(softmax.steps) + 1))
    assert text.count("#   proved, ") == len(softmax.steps) + 2
    first = text[: text.index("# step 7: ")]
    golden("show/softmax.steps.txt", re.sub(r"\d+\.\d+ s$", "_ s", first, flags=re.M))


def test_whole_trees_and_colours(narrow: Path) -> None:
    spec = load(narrow)
    whole = show.text(spec, choices(spec)[0], Cpu(Level.V3), show.Steps("1", whole=True))
    assert whole.count("  def k(m, n") == 3
    coloured = show.text(spec, choices(spec)[0], Cpu(Level.V3), show.Steps("1", colour=True))
    assert "\033[31m-     for y.i in range(m):\033[0m\n" in coloured
    assert "\033[32m+     for y.i in parallel(m):\033[0m\n" in coloured
    assert "\033[" not in whole


def test_a_refused_step_is_shown(narrow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(narrow), "--steps", "--variant", "0"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert re.search(
        r"^# step 1: parallel: \{loop: y\.j\}\n"
        r"#   k\.yaml:18  - parallel: \{loop: y\.j\}\n"
        r"#   refused, [\d.]+ s\n"
        r"#     parallel loop 'y\.j' has a race: .*\n"
        r"#     m=1, n=2\n",
        printed.out, re.M,
    )  # fmt: skip
    assert printed.out.count("#   proved, ") == 1
    assert printed.out.count("#   not tried\n") == 2


# ---------------------------------------------------------------- whose a line is


def test_c_without_marks_is_the_c(softmax: Variant) -> None:
    plain = joined(emit(SOFTMAX, {"float32": [softmax]}, Cpu(Level.V3)))
    with_marks = joined(emit(SOFTMAX, {"float32": [softmax]}, Cpu(Level.V3), keep_marks=True))
    assert with_marks != plain == unmarked(with_marks)
    assert [line for line, _ in owned(with_marks)] == plain.splitlines()


def test_each_line_of_c_is_of_its_block(softmax: Variant) -> None:
    lines = owned(joined(emit(SOFTMAX, {"float32": [softmax]}, Cpu(Level.V3), keep_marks=True)))
    owner = {line.strip(): owners[-1] for line, owners in lines if owners}
    assert owner["scale[0] = 1.0f / total[0];"] == "block scale"
    assert owner["for (int64_t y_i = lower; y_i < upper; ++y_i) {"] == "loop y.i"
    assert owner["ts_mul_f32(ts_load_f32(&e[y_j_0 * 8]), ts_set_f32(scale[0])));"] == "block y"
    assert {o for line, o in owner.items() if "ts_exp_f32" in line} == {"block e"}
    owners = {o for _, path in lines for o in path}
    lowered = {f"block {b.name}" for b in blocks(softmax.lowered.kernel)}
    assert lowered <= owners
    assert all(path[:1] == ("variant 0",) for _, path in lines if path)


def test_marks_nest() -> None:
    lines = ["a;", *marked(Owner.LOOP, "y.i", ["b;", *marked(Owner.BLOCK, "ÿ", ["c;"]), "d;"])]
    assert owned("\n".join("  " + line for line in lines)) == [
        ("  a;", ()),
        ("  b;", ("loop y.i",)),
        ("  c;", ("loop y.i", "block ÿ")),
        ("  d;", ("loop y.i",)),
    ]
    assert not re.search(r"\w", "".join(set(marked(Owner.BLOCK, "e", [""]))))
    assert marked(Owner.BLOCK, "e", []) == []


def test_each_line_of_a_tree_is_of_its_loop(softmax: Variant) -> None:
    text = to_text(softmax.scheduled.kernel)
    owner = {line.strip(): o for line, o in zip(text.splitlines(), owners_of(text), strict=True)}
    assert owner["for pass_.j_1 in unrolled(4):"] == "loop pass.j_1"
    assert owner["total_rf=float32[m, 4, 8] @ register,"] == "loop y.i"
    assert owner["initialises=True,"] == "block total"
    assert owner["y[i, j] = e[i, j] * scale[i]"] == "block y"
    found = {o for o in owner.values() if o.startswith("block ")}
    assert found == {f"block {b.name}" for b in blocks(softmax.scheduled.kernel)}


# ---------------------------------------------------------------- costs


def test_counts(softmax: Variant) -> None:
    said = {c.block: str(c) for c in counts(softmax.start.kernel)}
    assert said == {
        "peak": "1 operation, 8 B read, 4 B written; times m * n",
        "e": "2 operations, 8 B read, 4 B written; times m * n",
        "total": "1 operation, 8 B read, 4 B written; times m * n",
        "scale": "1 operation, 4 B read, 4 B written; times m",
        "y": "1 operation, 8 B read, 4 B written; times m * n",
    }
    said = {c.block: str(c) for c in counts(softmax.scheduled.kernel)}
    assert said["peak_rf"] == "1 operation, 4 B read; times m * ((n + 31) // 32) * 32"


def test_indices_cost_nothing() -> None:
    kernel = from_text("""\
def k(n, x: float64[n], y: Out[float64[n]]):
    for y.i in range(n):
        for y.j in range(2, y.i + 5):
            with block("y", i=spatial(y.i), j=spatial(y.j, 2, y.i + 5)):
                y[i] = x[(i + n - 1) // 2] * 2.0 if i < 3 else 0.0
""")
    (count,) = counts(kernel)
    assert str(count) == "2 operations, 8 B read, 8 B written; times n * (y.i + 3)"


# ---------------------------------------------------------------- instructions

LISTING = """\
0000000000000040 <ts_k_float32_v3_0>:
ts_k_float32_v3_0():
/tmp/x/kernel.c:7
  40:\tpush   %rbp
ts_sub_f32():
/usr/ts_simd.h:30 (discriminator 2)
inlined by /tmp/x/kernel.c:9 (discriminator 1) (ts_k_float32_v3_0)
  41:\tvsubps %ymm1,%ymm0,%ymm0
/usr/ts_simd.h:30
inlined by /tmp/x/kernel.c:10 (ts_k_float32_v3_0_code)
inlined by /tmp/x/kernel.c:90 (ts_k_float32_v3_0)
  43:\tvaddps %ymm1,%ymm0,%ymm0
/usr/ts_simd.h:31
  45:\tjne    41 <ts_k_float32_v3_0+0x1>
/tmp/x/kernel.c:8 (discriminator 3)
  47:\tcall   4c <ts_k_float32_v3_0+0xc>
\t\t\t48: R_X86_64_PLT32\tts_parallel-0x4
  4c:\tvmulsd 0x0(%rip),%xmm0,%xmm0        # 54 <ts_k_float32_v3_0+0x14>
\t\t\t50: R_X86_64_PC32\t.LC0-0x4
  54:\tjmp    9a <ts_k_float32_v3_0.cold+0x3>
  59:\tlea    0x11(%rip),%rdi        # 70 <ts_k_float32_v3_0_y_i>
"""


def test_what_objdump_prints() -> None:
    (function,) = compiler._functions(LISTING)
    scalar = frozenset({Does.SCALAR, Does.LOAD})
    assert function == CompiledFunction(
        "ts_k_float32_v3_0",
        (
            Instruction("0x0", "push   %rbp", 7),
            Instruction("0x1", "vsubps %ymm1,%ymm0,%ymm0", 9, frozenset({Does.VECTOR})),
            Instruction("0x3", "vaddps %ymm1,%ymm0,%ymm0", 10, frozenset({Does.VECTOR})),
            Instruction("0x5", "jne    0x1", 0),
            Instruction("0x7", "call   ts_parallel", 8),
            Instruction("0xc", "vmulsd 0x0(%rip),%xmm0,%xmm0  # .LC0", 8, scalar),
            Instruction("0x14", "jmp    ts_k_float32_v3_0.cold+0x3", 8),
            Instruction("0x19", "lea    0x11(%rip),%rdi        # ts_k_float32_v3_0_y_i", 8),
        ),
    )


def test_no_compiler_and_no_objdump(monkeypatch: pytest.MonkeyPatch, narrow: Path) -> None:
    spec = load(narrow)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(TilesmithError, match="no-such-compiler does not run: No such file"):
        assembly("", Level.V3)
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    made = page(spec, choices(spec)[0], Cpu(Level.V3), prove=unproved)
    assert "No instructions: there is no objdump to read instructions with." in made
    assert all(view["instructions"] == [] for view in Page(made).data["views"])


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """A page that is read: every element is closed, and no id is there twice."""

    VOID = ("meta", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []
        self.data: Any = json.loads(self.texts["data"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append((tag, given))
        if name := given.get("id"):
            assert name not in self.ids, name
            self.ids.add(name)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        name = self.elements[-1][1].get("id") if self.elements else None
        if name and self.open and self.open[-1] == self.elements[-1][0]:
            self.texts[name] = self.texts.get(name, "") + data

    def trees(self, view: int) -> Iterator[tuple[list[list[int]], str]]:
        """The shown rows and the text of each tree, as the page's script unfolds them."""
        strings, before = self.data["strings"], []
        for tree in self.data["views"][view]["trees"]:
            rows, old, left = [], 0, list(tree["rows"])
            while left:
                first = left.pop(0)
                if first < 0:
                    rows += [[row[0], 0, row[2]] for row in before[old : old - first]]
                    old -= first
                else:
                    rows.append([first, left.pop(0), left.pop(0)])
                    old += rows[-1][1] != 2
            before = [row for row in rows if row[1] != 1]
            yield rows, "".join(f"{strings[row[0]]}\n" for row in before)


@pytest.fixture(scope="module")
def text() -> str:
    return page(SOFTMAX, FLOAT32, Cpu(Level.V3), prove=unproved)


def test_the_page_needs_nothing_else(text: str) -> None:
    read = Page(text)
    assert not re.search(r"https?:|src=|href=|url\(|@import|<link|<img|<iframe|\bfetch\(", text)
    assert len(text.encode()) < 100_000
    assert not re.search(r"@\w+@", text)
    for given in ("</script>", "<!-- <SCRIPT>", "a</b"):
        made = pages._json({"a": given})
        assert not re.search(r"</|<!--|<script", made, re.IGNORECASE)
        assert json.loads(made) == {"a": given}
    styles = [tag for tag, _ in read.elements if tag == "style"]
    assert len(styles) == 2 and "prefers-color-scheme: dark" in text


def test_the_page_has_each_step(text: str, softmax: Variant) -> None:
    read = Page(text)
    buttons = [given["data-moment"] for tag, given in read.elements if given.get("class") == "step"]
    assert buttons == [str(k) for k in range(len(softmax.steps) + 2)]
    for number, step in enumerate(softmax.steps, 1):
        assert f">{number}: {step.primitive}<" in text.replace("&#x27;", "'")
    assert '<span class="no">line 31</span> - vectorize: {loop: peak.j, width: $lanes' in text
    assert text.count('<span class="proved">proved, ') == len(softmax.steps) + 2


def test_the_page_has_each_tree(text: str, softmax: Variant) -> None:
    read = Page(text)
    kernels = [softmax.start.kernel, *(s.state.kernel for s in softmax.steps)]
    kernels.append(softmax.lowered.kernel)
    before = ""
    (view,) = read.data["views"]
    for kernel, tree, (rows, script) in zip(kernels, view["trees"], read.trees(0), strict=True):
        assert script == to_text(kernel)
        owners = [view["owners"][row[2]] for row in rows if row[1] != 1]
        assert owners == [o.removesuffix(".init") for o in owners_of(script)]
        marks = [list(Mark)[row[1]] for row in rows]
        assert marks == [line.mark for line in differences(before, script)]
        costs = [read.data["strings"][n] for n in tree["costs"][1::2]]
        assert costs == [str(c) for c in counts(kernel)]
        heads = [script.splitlines()[k] for k in tree["costs"][::2]]
        assert all("with block(" in head for head in heads)
        before = script
    touched = [[view["owners"][o] for o in tree["touched"]] for tree in view["trees"]]
    assert touched[0] == []
    assert set(touched[8]) == {"block peak_rf"}  # set_scope: {buffer: peak_rf, ...}
    assert set(touched[5]) == {"loop e.j", "loop pass.j", "loop total.j", "block e", "block total"}


def test_the_page_links_c_and_instructions(text: str) -> None:
    read = Page(text)
    strings, (view,) = read.data["strings"], read.data["views"]
    owners, c = view["owners"], view["c"]
    code = [strings[n] for n in c[::3]]
    assert code[0].startswith("struct ts_softmax_float32_v3_0_y_i {") and code[-1] == "}"
    of = {line.strip(): owners[o] for line, o in zip(code, c[1::3], strict=True)}
    assert of["scale[0] = 1.0f / total[0];"] == "block scale"
    assert of["peak[0] = (-__builtin_inff());"] == "block peak"  # lowering wrote that init out
    begun = {
        line.strip(): code[first - 1].strip() for line, first in zip(code, c[2::3], strict=True)
    }
    ends = {key: start for key, start in begun.items() if key.endswith("ts_set_f32(peak[0]))};")}
    assert ends and all(start.startswith("ts_f32 exps1[4] = {") for start in ends.values())
    assert begun["scale[0] = 1.0f / total[0];"] == "scale[0] = 1.0f / total[0];"
    if not view["instructions"]:
        pytest.skip("needs a compiler for v3, and objdump")
    listed = view["instructions"]
    linked = [
        (strings[t].split()[0], owners[c[3 * line - 2]])
        for t, line in zip(listed[1::3], listed[2::3], strict=True)
        if line
    ]
    assert {owner for name, owner in linked if name.startswith("vdivss")} == {"block scale"}
    assert {"block e", "block y", "loop y.i"} <= {owner for _, owner in linked}
    labels = {strings[n] for n in listed[::3]} - {""}
    jumps = {strings[t].split()[-1] for t in listed[1::3] if strings[t].startswith("j")}
    assert labels == {target for target in jumps if target.startswith("0x")} != set()


def test_the_page_is_the_same_again(narrow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories.time, "perf_counter", lambda: 1.0)
    spec = load(narrow)
    first, second = (page(spec, choices(spec)[0], Cpu(Level.V3)) for _ in range(2))
    assert first == second
    read = Page(first)
    assert len(read.data["views"]) == 2
    assert '<option value="0">variant 0 when n &lt;= 64</option>' in first
    assert "refused, 0.000 s<br>parallel loop &#x27;y.j&#x27; has a race" in first
    with pytest.raises(TilesmithError, match="there is no variant '7': there are 0, 1"):
        page(spec, choices(spec)[0], Cpu(Level.V3), "7")


def test_a_page_is_below_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the kernel with the most on it, with more instructions than it has, no two alike."""
    spec = load(ROOT / "kernels_spec" / "matmul.yaml")
    dtypes = choices(spec)[0]

    def many(source: str, level: Level) -> tuple[CompiledFunction, ...]:
        symbols = re.findall(r"^static int (ts_matmul_\w+)\(", source, re.M)
        code = (Instruction(hex(k), f"vfmadd231ps 0x{k:04x}(%rax),%ymm1,%ymm2", k % 900)
                for k in range(40_000))  # fmt: skip
        return (CompiledFunction(symbols[0], tuple(code)),)

    monkeypatch.setattr(cpu, "assembly", many)
    made = page(spec, dtypes, Cpu(Level.V3), prove=unproved)
    assert 0.8 * MOST_BYTES < len(made.encode()) < 1_000_000
    read = Page(made)
    (left,) = re.findall(r"\.\.\. (\d+) more are left out", made)
    assert len(read.data["views"][0]["instructions"]) == 3 * (40_000 - int(left) + 2)


def test_the_command(
    narrow: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "assembly", lambda source, level: ())
    path = narrow.with_name("k.html")
    assert main(["show", str(narrow), "--html", str(path), "--variant", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{path}\n" and printed.err == ""
    assert len(Page(path.read_text(encoding="utf-8")).data["views"]) == 1
    missing = narrow.with_name("none") / "k.html"
    assert main(["show", str(narrow), "--html", str(missing), "--variant", "1"]) == 1
    assert capsys.readouterr().err == f"error: {missing}: No such file or directory\n"


# ---------------------------------------------------------------- which variant


def test_without_a_name_it_is_the_variant_of_usual_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sum.yaml"
    shutil.copy(ROOT / "kernels_spec" / "sum.yaml", path)
    for given, said in (((), "assume(m >= 0)"), (("--variant", "0"), "assume(n <= 6 and m >= 8)")):
        assert main(["show", str(path), *given]) == 0
        assert said in capsys.readouterr().out
