"""The tutorial for authors, carried out: each command of docs/authors.md prints what is printed."""

import doctest
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from .author import ROOT, Author

PAGE = (ROOT / "docs" / "authors.md").read_text("utf-8")
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands() -> Iterator[tuple[str, str]]:
    """Each `$ command`, with its `> ` lines, and the lines below it."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.S | re.M):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.splitlines()
            more = next((k for k, line in enumerate(lines[1:], 1) if line[:1] != ">"), len(lines))
            yield (
                "\n".join([lines[0], *(line[2:] for line in lines[1:more])]),
                "\n".join([*lines[more:], ""]),
            )


def without_times(text: str) -> str:
    return re.sub(r" +\d+\.\d+ s\b", " _ s", text)


def test_the_page(author: Author, tmp_path: Path) -> None:
    folder, done = tmp_path, 0
    for command, expected in commands():
        left = tmp_path / "folder"
        ran = subprocess.run(
            ["bash", "-c", f"trap 'pwd > {left}' EXIT\n{command}"],
            cwd=folder, env=author.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        got, wanted = without_times(ran.stdout), without_times(expected).lstrip("\n")
        right = doctest.OutputChecker().check_output(wanted, got, LOOSELY)
        assert right, f"$ {command}\n{ran.stdout}\nis not\n{expected}"
        folder, done = Path(left.read_text().strip()), done + 1
    assert done > 20
    _check_notebook(author, folder)
    _check_ci(author, folder)


def _check_notebook(author: Author, folder: Path) -> None:
    """The Python of the page, in the folder that the commands left."""
    (folder / "page.txt").write_text(
        "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M))
    )
    printed = author.run("python", "-m", "doctest", "page.txt", "-v", folder=folder)
    assert "3 passed" in printed and "Test passed." in printed, printed


def _check_ci(author: Author, folder: Path) -> None:
    """The step of the project's CI that shows the difference to a commit: here the page's one."""
    jobs = YAML(typ="safe").load(folder / ".github" / "workflows" / "ci.yml")["jobs"]
    steps = {step.get("name"): step for step in jobs["kernels"]["steps"]}
    script = steps["Generate, and show the difference in generated code"]["run"]
    summary = folder / "summary.md"
    variables = author.variables | {"BASE": "HEAD", "GITHUB_STEP_SUMMARY": str(summary)}
    subprocess.run(["bash", "-e", "-c", script], cwd=folder, env=variables, check=True)
    text = summary.read_text()
    assert "\n+++ build/new/normalize.v4.c" in text and "centre" not in text
    assert text.startswith("```diff\n") and text.endswith("\n```\n")
