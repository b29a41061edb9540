"""docs/kernels.md and docs/primitives.md are what `python -m build_tools.docs` writes."""

from pathlib import Path

import pytest

from build_tools import docs
from gen.schedule.registry import PRIMITIVES

KERNELS = sorted(path.stem for path in (docs.ROOT / "kernels_spec").glob("*.yaml"))


@pytest.mark.parametrize("name", ["kernels.md", "primitives.md"])
def test_the_committed_page_is_up_to_date(name: str) -> None:
    committed = (docs.ROOT / "docs" / name).read_text("utf-8")
    assert docs.pages()[name] == committed, "run python -m build_tools.docs"


def test_a_kernel_has_its_section() -> None:
    page = docs.pages()["kernels.md"]
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == KERNELS
    section = page[page.index("## clamp") : page.index("## cumsum")]
    assert "clamp(x, low=0, high=float('inf'), *, out=None, num_threads=None)" in section
    assert "| `x` | `(...)` | T | in |" in section
    assert "| `high` | T | `inf` |" in section
    assert "`y` has no error." in section
    assert ">>> ts.clamp(" in section
    assert "y[i] = min(max(x[i], low), high)" in section


def test_a_primitive_has_its_section() -> None:
    page = docs.pages()["primitives.md"]
    for primitive in PRIMITIVES:
        also = f"Also {', '.join(f'`{a}`' for a in primitive.aliases)}.\n\n"
        title = f"\n### {primitive.name}\n\n{also if primitive.aliases else ''}"
        assert title + str(primitive.__doc__)[:20] in page
    section = page[page.index("### split") : page.index("### fuse")]
    assert "| `factors` | [integer or `null`, ...] |  |" in section
    assert "| `as` | [name, ...] | optional |" in section
    assert "```yaml\n- split: {loop: y.i, factors: [null, 4]}\n```\n\ngives\n\n```python" in section
    assert "In the same tree\n\n```yaml\n- split: {loop: y.k, factors: [null, 4]}" in section
    assert "is refused: there is no loop 'y.k'" in section


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
