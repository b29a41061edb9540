"""The generated pages of docs/ are what `python -m build_tools.docs` writes."""

import re
from pathlib import Path

import pytest

from build_tools import docs, hazards
from gen.schedule.registry import PRIMITIVES

KERNELS = sorted(path.stem for path in (docs.ROOT / "kernels_spec").glob("*.yaml"))


PAGES = ["hazards.md", "kernels.md", "primitives.md", "tilesmith.schema.json"]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs.pages()


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_up_to_date(name: str, pages: dict[str, str]) -> None:
    committed = (docs.ROOT / "docs" / name).read_text("utf-8")
    assert pages[name] == committed, "run python -m build_tools.docs"


def test_a_kernel_has_its_section(pages: dict[str, str]) -> None:
    page = pages["kernels.md"]
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == KERNELS
    section = page[page.index("## clamp") : page.index("## cumsum")]
    assert "clamp(x, low=0, high=float('inf'), *, out=None, num_threads=None)" in section
    assert "| `x` | `(...)` | T | in |" in section
    assert "| `high` | T | `inf` |  |" in section
    assert "`y` has no error." in section
    assert ">>> ts.clamp(" in section
    assert "y[i] = min(max(x[i], low), high)" in section


def test_sizes_are_as_a_spec_writes_them(pages: dict[str, str]) -> None:
    page = pages["kernels.md"]
    assert "| `w_ih` | `(..., 4 * h, d)` | T | in |" in page
    assert "| `y` | `(..., height, width)` | T | out |" in page
    texts = [*pages.values(), *docs.kernel_pages(docs.ROOT / "kernels_spec").values()]
    assert all("<DType" not in text and "BinaryOp." not in text for text in texts[1:])
    assert "Sizes: `n >= 1`, `lookahead >= 0`.\n" in page


def test_a_scalar_says_what_its_default_means(pages: dict[str, str]) -> None:
    assert "| T | `nan` | NaN, the default, stands for 1 / sqrt(d) |" in pages["kernels.md"]
    lines = pages["kernels.md"].splitlines()
    odd = [line for line in lines if re.search(r"\| `(nan|\d{10,})` \|", line)]
    assert len(odd) == 3 and not any(line.endswith("|  |") for line in odd)


def test_a_type_that_several_give_is_listed_once(pages: dict[str, str]) -> None:
    page = pages["kernels.md"]
    section = page[page.index("## sum\n") : page.index("## tanh\n")]
    assert "; S is float32 or float64 or int64 or uint64 or float16 or bfloat16." in section


def test_the_first_page_links_all_that_callers_read() -> None:
    first = (docs.ROOT / "docs" / "index.md").read_text("utf-8")
    own = {"index.md", "examples.md"}  # examples: from the language's page
    missing = [p.name for p in (docs.ROOT / "docs").glob("*.md") if f"({p.name})" not in first]
    assert set(missing) <= own


def test_a_kernel_has_a_page_on_the_site() -> None:
    pages = docs.kernel_pages(docs.ROOT / "kernels_spec")
    assert [*pages] == ["kernels.md", *(f"kernels/{name}.md" for name in KERNELS)]
    assert "- [clamp](kernels/clamp.md): Each element limited" in pages["kernels.md"]
    page = pages["kernels/softmax.md"]
    assert page.startswith("# softmax\n")
    assert "The error of `y` is at most" in page and ">>> ts.softmax(" in page
    assert "```yaml\nrecipes:\n  - target: cpu\n" in page
    assert page.count("- parallel: {loop: y.i}") == 1


def test_a_primitive_has_its_section(pages: dict[str, str]) -> None:
    page = pages["primitives.md"]
    for primitive in PRIMITIVES:
        also = f"Also {', '.join(f'`{a}`' for a in primitive.aliases)}.\n\n"
        title = f"\n### {primitive.name}\n\n{also if primitive.aliases else ''}"
        assert title + str(primitive.__doc__)[:20] in page
    section = page[page.index("### split") : page.index("### fuse")]
    assert "| `factors` | [integer or name or `null`, ...] |  |" in section
    assert "| `as` | [name, ...] | optional |" in section
    assert "```yaml\n- split: {loop: y.i, factors: [null, 4]}\n```\n\ngives\n\n```python" in section
    assert "In the same tree\n\n```yaml\n- split: {loop: y.i, factors: [2, 4]}" in section
    assert "is refused: there is no loop 'y.k'" in section


def test_an_intrinsic_has_its_section(pages: dict[str, str]) -> None:
    page = pages["primitives.md"]
    section = page[page.index("\n### dot_2x_bf16") : page.index("\n### dot_4x_s8s8")]
    assert (
        "An instruction of processors with `avx512bf16` on v4.\n\nThe roundings of two" in section
    )
    assert "c[i] = combine.sum(c[i], float32(a[j]) * float32(b[i, j]))\n```\n" in section


def test_hazards_have_rows(pages: dict[str, str]) -> None:
    page = pages["hazards.md"]
    assert "\n## What is written: out=\n\n`tests/hazards/test_out.py`\n\n| hazard | what" in page
    assert "\n| Read-only inputs | Read. |\n" in page
    tests = (docs.ROOT / "tests" / "hazards").glob("test_*.py")
    functions = sum(path.read_text("utf-8").count("\ndef test_") for path in tests)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) - 2 * page.count("\n## ") == functions > 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '"""Title"""\ndef test_x():\n    """No answer."""\n',
            "test_x: wants 'hazard: what happens.'",
        ),
        ('"""Title"""\ndef test_x():\n    pass\n', "test_x has no docstring"),
        ("def test_x():\n    pass\n", "the module has no docstring"),
    ],
)
def test_a_test_that_tells_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "test_a.py").write_text(text)
    with pytest.raises(ValueError, match=f"^test_a.py: {message}$"):
        hazards.page(tmp_path)


def test_check_tells_stale_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "pages", lambda: {"a.md": "new", "b.md": "same"})
    (tmp_path / "docs" / "a.md").write_text("old")
    (tmp_path / "docs" / "b.md").write_text("same")
    assert docs.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/a.md is out of date: run python -m build_tools.docs\n"
    assert docs.main([]) == 0 and (tmp_path / "docs" / "a.md").read_text() == "new"
    assert docs.main(["--check"]) == 0


def test_the_menu_of_the_site_has_every_page() -> None:
    """`make docs`, which is no part of the tests, refuses a page that is in no menu."""
    text = (docs.ROOT / "mkdocs.yml").read_text("utf-8")
    menu = re.findall(r"^ +- (?:[^:\n]+: )?(\w+\.md)$", text[text.index("\nnav:") :], re.M)
    pages = sorted(path.name for path in (docs.ROOT / "docs").glob("*.md"))
    assert sorted([*menu, "kernels.md"]) == pages  # the hook adds those of the kernels
