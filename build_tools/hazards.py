"""docs/hazards.md: what happens where array code usually goes wrong, as the tests say it.

Input: the modules `test_*.py` of tests/hazards: a module's docstring is a section's title, the
docstring of each of its tests `hazard: what happens.` Output: the page's text. Nothing is imported.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

_HEAD = """\
# Hazards

Written by `python -m build_tools.docs` from the docstrings of the tests in `tests/hazards/`: each
row is a test, many of them on several kernels. The functions of every package that is built with
tilesmith behave so.
"""


def page(folder: Path) -> str:
    """The page of the tests in a folder. Raises ValueError for a docstring of another form."""
    return "\n".join([_HEAD, *(_section(path) for path in sorted(folder.glob("test_*.py")))])


def _section(path: Path) -> str:
    module = ast.parse(path.read_text("utf-8"))
    title = f"## {_text(path, module)}\n\n`tests/hazards/{path.name}`\n"
    rows = [f"| {hazard} | {answer} |" for hazard, answer in _tests(path, module)]
    return "\n".join([title, "| hazard | what happens |", "| --- | --- |", *rows]) + "\n"


def _tests(path: Path, module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            hazard, colon, answer = _text(path, node).replace("|", "\\|").partition(": ")
            if not colon or not answer.endswith("."):
                raise ValueError(f"{path.name}: {node.name}: wants 'hazard: what happens.'")
            yield hazard, answer[0].upper() + answer[1:]


def _text(path: Path, node: ast.Module | ast.FunctionDef) -> str:
    text = ast.get_docstring(node)
    if not text:
        name = node.name if isinstance(node, ast.FunctionDef) else "the module"
        raise ValueError(f"{path.name}: {name} has no docstring")
    return " ".join(text.split())
