"""What costs are told: of trees at given sizes, and of machine code."""

import datetime
import shutil
from pathlib import Path

import pytest

from build_tools.costs_table import HEADING, PAGE, ROOT, Row, put, table
from gen.cli import main
from gen.display.mix import Mix, main_loop, mixes
from gen.display.text import unproved
from gen.display.work import Work, done, needed
from gen.language import build, choices, loads
from gen.pipeline import schedule
from gen.poly.queries.work import amount
from gen.targets.cpu.mix import kinds
from gen.targets.cpu.target import Cpu
from gen.targets.registry import TARGETS
from gen.targets.target import CompiledFunction, Does, Instruction
from gen.trial import costs

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
recipes:
  - target: cpu
    variants: [{{steps: [{steps}]}}]
"""
PRODUCT = (
    "(m,k),(k,n)->(m,n)",
    "{a: {type: 'T[m, k]'}, b: {type: 'T[k, n]'}, c: {type: 'T[m, n]', intent: out}}",
    "c[i, j] = sum(a[i, l] * b[l, j] for l in k)",
)
LINE = "{x: {type: 'T[n]'}, y: {type: 'T[n]', intent: out}}"


def spec(signature: str, arguments: str, compute: str, steps: str = "") -> str:
    text = SPEC.format(signature=signature, arguments="@", compute=compute, steps=steps)
    return text.replace("arguments:\n  @", f"arguments: {arguments}")


def plain_work(text: str, **sizes: int) -> Work | None:
    loaded = loads(text, "k.yaml")
    return needed(build(loaded, choices(loaded)[0]), sizes)


def done_work(text: str, **sizes: int) -> Work | None:
    loaded = loads(text, "k.yaml")
    (variant,) = schedule(loaded, choices(loaded)[0], Cpu.at("v3"), unproved, each_step=False)
    return done(variant.lowered.kernel, sizes)


def test_a_product_needs_each_element_once() -> None:
    work = plain_work(spec(*PRODUCT), m=3, k=5, n=7)
    assert work == Work(2 * 3 * 5 * 7, 4 * (3 * 5 + 5 * 7), 4 * 3 * 7)
    assert plain_work(spec(*PRODUCT), m=3, k=0, n=7) == Work(0, 0, 4 * 3 * 7)


@pytest.mark.parametrize(
    ("compute", "work"),
    [
        ("y[i] = x[min(2 * i, n - 1)]", Work(0, 4 * (51 + 0), 400)),
        ("y[i] = sum(x[j] for j in range(i + 1))", Work(5050, 400, 400)),
        ("y[i] = x[min(max(i - 2, 0), n - 1)] + x[i]", Work(100, 400, 400)),
        ("y[i] = x[0] * x[n - 1]", Work(100, 8, 400)),
    ],
)
def test_elements_that_are_read(compute: str, work: Work) -> None:
    assert plain_work(spec("(n)->(n)", LINE, compute), n=100) == work


def test_tiles_read_less() -> None:
    """Of a tile of 2 rows and 8 columns each element of b is loaded once, of a twice."""
    steps = (
        "{split: {loop: c.i, factors: [null, 2], as: [c.i0, c.i1]}},"
        "{split: {loop: c.j, factors: [null, 8], as: [c.j0, c.j1]}},"
        "{reorder: {loops: [c.i0, c.j0, c.l, c.i1, c.j1]}},"
        "{cache_write: {block: c, at: c.j0, scope: register, as: tile}}"
    )
    m = k = n = 16
    each = done_work(spec(*PRODUCT, steps), m=m, k=k, n=n)
    least = Work(2 * m * k * n, 4 * (m * k * n // 8 + k * n * m // 2), 4 * m * n)
    assert each == least, "loops over registers are written out"
    together = (
        "{split: {loop: c.i, factors: [null, 2], as: [c.i0, c.i1]}},"
        "{split: {loop: c.j, factors: [null, 8], as: [c.j0, c.j1]}},"
        "{reorder: {loops: [c.i0, c.j0, c.l, c.i1, c.j1]}},"
        "{cache_write: {block: c, at: c.j0, scope: register, as: tile}},"
        "{decompose_reduction: {block: c, loop: c.l}},"
        "{unroll: {loop: c.i1}}, {vectorize: {loop: c.j1, width: 8}}"
    )
    found = done_work(spec(*PRODUCT, together), m=m, k=k, n=n)
    assert found == least


def test_buffers_of_one_name_and_phases() -> None:
    """What lowering makes: places of one name in several loops, and arrays that begin anywhere."""
    loaded = TARGETS.load(ROOT / "kernels_spec" / "transpose.yaml")
    for variant in schedule(loaded, choices(loaded)[0], Cpu.at("v3"), unproved, each_step=False):
        found = amount(variant.lowered.kernel, {"m": 64, "n": 64})
        assert all(count >= 0 for _, count in found.instances)


# ---------------------------------------------------------------- machine code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vfmadd231ps 0x20(%rax,%rcx,4),%ymm1,%ymm0", "vector fma loads"),
        ("vfmadd213ss %xmm2,%xmm1,%xmm0", "scalar fma"),
        ("vmovups %ymm0,(%rdx)", "vector stores"),
        ("vmovups (%rdx),%ymm0", "vector loads"),
        ("vmovups %zmm0,(%rdx){%k1}", "vector stores"),
        ("vbroadcastss (%rsi),%ymm3", "vector loads"),
        ("vaddsd %xmm1,%xmm0,%xmm0", "scalar"),
        ("vpaddd %ymm1,%ymm0,%ymm0", "vector"),
        ("vextractf128 $0x1,%ymm0,%xmm1", "vector"),
        ("mov    0x8(%rdi),%rax", "loads"),
        ("mov    %rax,-0x10(%rsp)", "stores"),
        ("lea    0x8(%rdi),%rax", ""),
        ("add    $0x20,%rax", ""),
        ("jne    0x40", ""),
        ("vmulps 0x0(%rip),%ymm1,%ymm2        # .LC0", "vector loads"),
        ("prefetcht0 (%rax)", ""),
        ("fmla    v0.4s, v1.4s, v2.4s", "vector fma"),
        ("fmadd   s0, s1, s2, s3", "scalar fma"),
        ("ldr     q0, [x1, #16]", "vector loads"),
        ("str     q0, [x1], #16", "vector stores"),
        ("ldp     x0, x1, [sp]", "loads"),
        ("add     x0, x0, #16", ""),
        ("b.ne    0x40  // b.any", ""),
    ],
)
def test_kinds_of_instructions(text: str, expected: str) -> None:
    assert {kind.value for kind in kinds(text)} == set(expected.split())


def function(*texts: str) -> CompiledFunction:
    made = (Instruction(hex(4 * k), t, 100 + k, kinds(t)) for k, t in enumerate(texts))
    return CompiledFunction("f", tuple(made))


def test_innermost_loops() -> None:
    found = function(
        "xor    %eax,%eax",
        "vmovups (%rdi),%ymm0",  # 0x4: of the loop around
        "vaddps (%rsi),%ymm0,%ymm0",  # 0x8: of the inner one
        "vfmadd231ps %ymm0,%ymm1,%ymm2",
        "add    $0x20,%rsi",
        "jne    0x8",
        "vmovups %ymm0,(%rdi)",
        "jl     0x4",
        "add    $0x1,%rcx",  # 0x20: works on no data
        "jne    0x20",
        "ret",
    )
    (mix,) = mixes(found)
    assert (mix.offset, mix.line, mix.instructions) == ("0x8", 102, 4)
    assert str(mix) == "4 instructions: 2 vector, 1 fma, 1 loads"
    assert main_loop([found]) == mix and main_loop([]) is None
    assert mix[Does.VECTOR] == 2 and mix[Does.STORE] == 0


# ---------------------------------------------------------------- page and table


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_the_page_tells_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "k.yaml", tmp_path / "k.html"
    path.write_text(spec(*PRODUCT), encoding="utf-8")
    command = ["show", str(path), "--html", str(page)]
    assert main([*command, "--size", "m=3,k=5", "--size", "n=7"]) == 0
    text = page.read_text("utf-8")
    assert "<summary>Costs at m=3 k=5 n=7</summary>" in text
    assert "<tr><th>needed</th><td>210</td><td>200</td><td>84</td></tr>" in text
    assert "<tr><th>variant plain</th><td>210</td>" in text
    assert "Innermost loops of variant plain" in text and " instructions: " in text
    capsys.readouterr()
    assert main([*command, "--size", "q=3"]) == 1
    assert capsys.readouterr().err == "error: k has no dim 'q': it has m, k, n\n"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_page_tells_what_launches_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = TARGETS.load(ROOT / "kernels_spec" / "exp.yaml")
    target = TARGETS.chosen("cuda")[0]
    monkeypatch.setattr("gen.targets.cuda.compilers.nvcc", lambda: None)
    asked = costs.asked(loaded, choices(loaded)[0], target, {"m": 64})
    assert asked is not None and asked.sizes == {"m": 64}
    assert any(line.startswith("  read x ") for line in asked.further)
    assert asked.further[-1] == "no registers and occupancy: there is no nvcc"


def test_a_row_of_the_table() -> None:
    mix = Mix("f", "0x8", 3, 9, ((Does.VECTOR, 4), (Does.LOAD, 2)))
    work = Work(10, 2000, 500)
    lines = [*table([Row("k", {"m": 2}, "1", work, None, mix)])]
    assert lines[-1] == (
        "| k | m=2 | 1 | 10 / - | 2 / - | 0.5 / - | 9 instructions: 4 vector, 2 loads |"
    )
    page = put(f"# Costs\n\n{HEADING}\nold\n", lines, datetime.date(2026, 1, 2))
    assert (
        page.startswith(f"# Costs\n\n{HEADING}\nCounted for v3 on 2026-01-02") and "old" not in page
    )


def test_the_table_has_a_row_of_each_shipped_kernel() -> None:
    """How it is made anew, the page says."""
    section = PAGE.read_text("utf-8").partition(HEADING)[2]
    for path in (ROOT / "kernels_spec").glob("*.yaml"):
        assert f"\n| {path.stem} |" in section, path.stem
