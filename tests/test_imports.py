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

# The parts of `gen` in the order in which they build on each other: a module imports from its own
# part and from those before it. A part is a folder or a module; the longest name that fits counts.
PARTS = (
    "errors", "progress", "cache",
    "ir", "ir/index", "ir/text", "ir/rules", "ir/interpret",
    "language/yaml", "language/values", "language/syntax", "language",
    "poly/certificate", "poly/witness", "poly/sets", "poly/decisions", "poly/values",
    "poly/rewrites", "poly/laws", "poly/checks", "poly/tested", "poly/queries", "poly",
    "schedule/edit", "schedule",
    "lower",
    "targets/target", "targets/cpu/levels", "targets/cuda/architectures", "targets/runtime",
    "targets/c", "targets/cpu",
    "targets", "binding",
    "pipeline", "display", "reference", "project", "trial", "testing", "commands",
    "cli", "__main__",
)  # fmt: skip
RANKS = {part: rank for rank, part in enumerate(PARTS)}

MOST_ENTRIES = 20
MANY = {"gen/schedule/primitives", "gen/schedule/intrinsics", "gen/targets/cpu/runtime"}

AGAIN = {"If", "Binary", "Unary", "For", "Range", "Scalar", "Send", "Receive"}
"""Names of two classes, for one thing in two forms: docs/decisions.md has which."""

MOST_LINES = 420
MOST_LINES_OF_A_FUNCTION = 60


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Level (0: absolute) and dotted name of all that is imported."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names):
                yield from ((0, alias.name) for alias in names)
            case ast.ImportFrom(module, names, int(level)):
                yield from ((level, f"{module or ''}.{alias.name}".lstrip(".")) for alias in names)


def parts_imported(path: Path) -> Iterator[str]:
    """The parts of `gen` that a module of it imports from by relative imports."""
    inside = path.relative_to(ROOT / "gen").parts
    for level, module in imports(path):
        if level:
            found = (*inside[: len(inside) - level], *module.split("."))
            if found[0] != "__version__":
                yield part(found)


def part(names: tuple[str, ...]) -> str:
    """The part that something is in, by its names from `gen` on."""
    known = ("/".join(names[:k]) for k in range(len(names), 0, -1))
    return next((name for name in known if name in RANKS), names[0])


def part_of(path: Path) -> str:
    return part(path.relative_to(ROOT / "gen").with_suffix("").parts)


@pytest.mark.parametrize("path", [p for p in GEN if part_of(p) != "__init__"], ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    own = part_of(path)
    for found in parts_imported(path):
        assert RANKS[found] <= RANKS[own], found


def test_every_part_has_a_rank() -> None:
    assert {part_of(p) for p in GEN} == {*RANKS, "__init__"}


def test_folders_are_small_and_say_what_is_in_them() -> None:
    for folder in {path.parent for path in GEN}:
        entries = [p for p in folder.iterdir() if p.name != "__pycache__"]
        assert len(entries) <= MOST_ENTRIES or name_of(folder) in MANY, folder
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))), folder


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
    using = {name_of(path) for path in GEN if "ir/index" in parts_imported(path)}
    assert "gen/schedule/edit/layouts.py" in using
    assert not [name for name in using if name.startswith("gen/poly/")]


MACHINES = re.compile(r"\b(cpu|v2|v3|v4|neon|avx\w*|march)\b|^(lanes|line)$", re.IGNORECASE)
"""What of machines no text outside of the targets says: levels, and names of their parameters."""

OF_C = {"gen/binding/header.py": "c.names.", "gen/display/page.py": "c.marks."}
"""Who else knows C: what writes a header, and what shows sources."""


def said(path: Path) -> Iterator[str]:
    """Texts, docstrings aside, and the names of constants."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str(text)) if id(node) not in docs:
                yield text
            case ast.Name(name, ast.Store()) if name.isupper():
                yield name


@pytest.mark.parametrize(
    "path", [p for p in GEN if not name_of(p).startswith("gen/targets/")], ids=name_of
)
def test_what_machines_are_like_the_targets_say_alone(path: Path) -> None:
    assert not {text for text in said(path) if MACHINES.search(text)}
    used = (module.rpartition("targets.") for level, module in imports(path) if level)
    of_one = [inside for _, found, inside in used if found and inside.startswith(("c.", "cpu."))]
    assert all(name_of(path) in OF_C and m.startswith(OF_C[name_of(path)]) for m in of_one)


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


def test_a_class_name_means_one_thing() -> None:
    trees = (ast.parse(path.read_text("utf-8")) for path in GEN)
    names = [x.name for tree in trees for x in ast.walk(tree) if isinstance(x, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1} == AGAIN
