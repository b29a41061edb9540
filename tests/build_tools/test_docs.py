"""The page that `python -m build_tools.docs` writes, those that the site makes, and links."""

import re
from os.path import normpath
from pathlib import Path

import pytest

from build_tools import docs, hazards
from gen.schedule.registry import PRIMITIVES

KERNELS = sorted(path.stem for path in (docs.ROOT / "kernels_spec").glob("*.yaml"))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs.site_pages()


def test_the_committed_page_is_up_to_date() -> None:
    for name, text in docs.pages().items():
        committed = (docs.ROOT / "docs" / name).read_text("utf-8")
        assert text == committed, "run python -m build_tools.docs"


def test_a_kernel_has_a_page(pages: dict[str, str]) -> None:
    made = [name for name in pages if name.startswith("kernels/")]
    assert made == [f"kernels/{name}.md" for name in KERNELS]
    page = pages["kernels/clamp.md"]
    assert page.startswith("# clamp\n")
    assert "clamp(x, low=0, high=float('inf'), *, out=None, num_threads=None)" in page
    assert "| `x` | `(...)` | T | in |" in page
    assert "| `high` | T | `inf` |  |" in page
    assert "`y` has no error." in page
    assert ">>> ts.clamp(" in page
    assert "y[i] = min(max(x[i], low), high)" in page


def test_sizes_are_as_a_spec_writes_them(pages: dict[str, str]) -> None:
    page = "\n".join(text for name, text in pages.items() if name.startswith("kernels/"))
    assert "| `w_ih` | `(..., 4 * h, d)` | T | in |" in page
    assert "| `y` | `(..., height, width)` | T | out |" in page
    assert all("<DType" not in text and "BinaryOp." not in text for text in pages.values())
    assert "Sizes: `n >= 1`, `lookahead >= 0`.\n" in page


def test_a_scalar_says_what_its_default_means(pages: dict[str, str]) -> None:
    meaning = "| T | `nan` | NaN, the default, stands for 1 / sqrt(d) |"
    assert meaning in pages["kernels/attention.md"]
    lines = [x for name in KERNELS for x in pages[f"kernels/{name}.md"].splitlines()]
    odd = [line for line in lines if re.search(r"\| `(nan|\d{10,})` \|", line)]
    assert len(odd) == 3 and not any(line.endswith("|  |") for line in odd)


def test_a_recipe_is_there_with_its_macros(pages: dict[str, str]) -> None:
    page = pages["kernels/linear.md"]
    assert "```yaml\nmacros:\n  tiles:\n" in page and "\nrecipes:\n  - target: cpu\n" in page


def test_a_type_that_several_give_is_listed_once(pages: dict[str, str]) -> None:
    page = pages["kernels/sum.md"]
    assert "; S is float32 or float64 or int64 or uint64 or float16 or bfloat16." in page


def test_the_first_page_links_all_that_callers_read() -> None:
    first = (docs.ROOT / "docs" / "index.md").read_text("utf-8")
    own = {"index.md", "examples.md"}  # examples: from the language's page
    missing = [p.name for p in (docs.ROOT / "docs").glob("*.md") if f"({p.name})" not in first]
    assert set(missing) <= own


def test_a_page_has_the_accuracy_and_the_recipe(pages: dict[str, str]) -> None:
    assert "- [clamp](kernels/clamp.md): Each element limited" in pages["kernels.md"]
    page = pages["kernels/matvec.md"]
    assert page.startswith("# matvec\n")
    assert "The error of `y` is at most" in page and ">>> ts.matvec(" in page
    assert "\nrecipes:\n  - target: cpu\n" in page
    assert page.count("- parallel: {loop: y.i0}") == 5


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


def test_hazards_have_rows() -> None:
    page = docs.pages()["hazards.md"]
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
    menu = re.findall(r"^ +- (?:[^:\n]+: )?([\w-]+\.md)$", text[text.index("\nnav:") :], re.M)
    pages = [path.name for path in (docs.ROOT / "docs").glob("*.md")]
    assert sorted(menu) == sorted([*pages, "primitives.md"])  # the hook adds those of the kernels


def test_the_site_links_what_a_checkout_prints(pages: dict[str, str]) -> None:
    text = "`tilesmith primitives`, `tilesmith primitives split`, `help(ts.sum)`, `kernels_spec/`."
    assert docs.linked(text) == (
        "[`tilesmith primitives`](primitives.md), "
        "[`tilesmith primitives split`](primitives.md#split), "
        "[`help(ts.sum)`](kernels/sum.md), [`kernels_spec/`](kernels.md)."
    )
    for page in (docs.ROOT / "docs").glob("*.md"):
        before, after = (
            _links(x) for x in (page.read_text("utf-8"), docs.linked(page.read_text()))
        )
        for target in set(after) - set(before):
            name, _, heading = target.partition("#")
            assert name in pages, f"{page.name} links {target}"
            assert not heading or f"\n### {heading}\n" in pages[name]


PAGES = [docs.ROOT / "README.md", *sorted((docs.ROOT / "docs").glob("*.md"))]


INSIDES = ["architecture.md", "decisions.md", "new-target.md", "fuzzing.md"]
FOLDERS = ["", "gen", "gen/targets/cpu", "gen/targets/cpu/runtime", "gen/lower", "tests/targets",
           "gen/targets/cuda", "gen/targets/cuda/passes",
           "build_tools/fuzz"]  # fmt: skip


@pytest.mark.parametrize("name", INSIDES)
def test_the_files_that_a_page_names_are_there(name: str) -> None:
    """Those of Python, and all that are named with their folder."""
    page = re.sub(
        r"^```.*?^```$", "", (docs.ROOT / "docs" / name).read_text("utf-8"), flags=re.S | re.M
    )
    for file in re.findall(r"`([\w./-]+\.py|(?:\w+/)+[\w.-]+\.\w+)\b", page):
        assert any((docs.ROOT / folder / file).exists() for folder in FOLDERS), (
            f"{name} names {file}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_is_dead_in_a_checkout(page: Path) -> None:
    for target in _links(page.read_text("utf-8")):
        if target.startswith(("https://", "http://")):
            continue
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), f"{page.name} links {target}"
        if heading:
            assert heading in _headings(file.read_text("utf-8")), f"{page.name} links {target}"


def test_no_link_is_dead_on_the_site(pages: dict[str, str]) -> None:
    """Of the pages that the site makes; `make docs` tells the others."""
    kept = {path.name: path.read_text("utf-8") for path in (docs.ROOT / "docs").glob("*.md")}
    for name, text in pages.items():
        for target in _links(text) if name.endswith(".md") else ():
            page, _, heading = target.partition("#")
            file = normpath(Path(name).parent / page) if page else name
            found = {**kept, **pages}.get(file)
            assert found is not None, f"{name} links {target}"
            assert not heading or heading in _headings(found), f"{name} links {target}"


def _links(page: str) -> list[str]:
    """What a page links and shows, its code left out."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)
    return re.findall(r"\]\(([^()\s]+)\)", text)


def _headings(page: str) -> set[str]:
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
