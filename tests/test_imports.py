"""The rules of the source tree: who imports whom, how long things are, one version."""

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

import gen

ROOT = Path(__file__).parents[1]
GEN = sorted((ROOT / "gen").rglob("*.py"))
RUNTIME = sorted((ROOT / "tilesmith").rglob("*.py"))
TOOLS = sorted(chain.from_iterable((ROOT / d).rglob("*.py") for d in ("bench", "build_tools")))

# The parts of `gen`: its folders and its own modules. A module imports from its own part and from
# those of a lower rank, and at the top from those of the same rank.
RANKS = {
    "errors": 0, "progress": 0, "ir": 1, "spec": 2, "poly": 3, "schedule": 4, "lower": 6, "emit": 7,
    "pipeline": 8, "jit": 8, "notebook": 8, "trial": 8, "show": 8, "timing": 8, "testing": 8,
    "schema": 8, "project": 8, "differences": 8, "count": 8, "story": 8, "assembly": 8, "page": 8,
    "proofs": 8, "reference": 8, "sizes": 8, "plain": 8, "check": 8, "inputs": 8, "comparison": 8,
    "build": 9, "cli": 9,
    "__main__": 10,
}  # fmt: skip

MOST_LINES = 420
MOST_LINES_OF_A_FUNCTION = 60


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Level (0: absolute) and module of each import, with the names that a package is asked for."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names):
                yield from ((0, alias.name) for alias in names)
            case ast.ImportFrom(None, names, int(level)):
                yield from ((level, alias.name) for alias in names)
            case ast.ImportFrom(str(module), _, int(level)):
                yield (level, module)


def parts_imported(path: Path) -> Iterator[str]:
    """The parts of `gen` that a module of it imports from by relative imports."""
    inside = path.relative_to(ROOT / "gen").parts
    for level, module in imports(path):
        if level:
            found = (*inside[: len(inside) - level], *module.split("."))
            if found[0] != "__version__":
                yield found[0]


def part_of(path: Path) -> str:
    return path.relative_to(ROOT / "gen").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", [p for p in GEN if part_of(p) != "__init__"], ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    own = part_of(path)
    for part in parts_imported(path):
        assert part == own or RANKS[part] < RANKS[own] or RANKS[part] == RANKS[own] >= 8, part


def test_every_part_has_a_rank() -> None:
    assert {part_of(p) for p in GEN} == {*RANKS, "__init__"}


@pytest.mark.parametrize("path", GEN, ids=name_of)
def test_imports_inside_gen_are_relative(path: Path) -> None:
    absolute = {module.split(".")[0] for level, module in imports(path) if not level}
    assert not absolute & {"gen", "tilesmith", "build_tools", "bench", "tests"}


@pytest.mark.parametrize("path", RUNTIME, ids=name_of)
def test_the_package_imports_nothing_of_the_generator(path: Path) -> None:
    assert all("gen" not in module.split(".") for _, module in imports(path))


@pytest.mark.parametrize(
    ("library", "where"),
    [
        ("islpy", ("gen/poly/",)),
        ("ruamel", ("gen/language/yaml.py", "build_tools/evaluator/document.py")),  # shares no code
    ],
)
def test_libraries_stay_in_their_part(library: str, where: tuple[str, ...]) -> None:
    using = {
        name_of(path)
        for path in (*GEN, *RUNTIME, *TOOLS)
        if any(module.split(".")[0] == library for level, module in imports(path) if not level)
    }
    assert using and all(name.startswith(where) for name in using)


def test_the_prover_reads_no_forms_that_primitives_read() -> None:
    """What made a tree must not be what says that it is right."""
    using = {
        name_of(path)
        for path in GEN
        if any(level and module.endswith("ir.linear") for level, module in imports(path))
    }
    assert "gen/ir/index/bounds.py" in using
    assert not [name for name in using if name.startswith("gen/poly/")]


# ---------------------------------------------------------------- lengths


def test_modules_are_short() -> None:
    long = {
        name_of(path)
        for path in (*GEN, *RUNTIME, *TOOLS)
        if len(path.read_text("utf-8").splitlines()) > MOST_LINES
    }
    assert not long


def test_functions_are_short() -> None:
    long = {
        f"{name_of(path)}: {node.name}"
        for path in (*GEN, *RUNTIME, *TOOLS)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        if (node.end_lineno or node.lineno) - node.lineno >= MOST_LINES_OF_A_FUNCTION
    }
    assert not long


# ---------------------------------------------------------------- texts


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    texts = [
        path
        for folder in ("bench", "build_tools", "docs", "gen", "kernels_spec", "tests", "tilesmith")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".pxi", ".c", ".h", ".md", ".yaml", ".build", ".toml"}
    ]
    assert len(texts) > 100
    assert [name_of(p) for p in texts if marks.search(p.read_text("utf-8"))] == []


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    meson = (ROOT / "meson.build").read_text("utf-8")
    stated = re.search(r"^project\('tilesmith'.*\bversion: '([^']*)'", meson, re.MULTILINE)
    assert stated is not None
    assert gen.__version__ == project["version"] == stated[1]
