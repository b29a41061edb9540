"""The gallery's specs: rules write a recipe for each, which is proved, compiled and compared with
the spec's oracle; each has its place in the benchmark and on the page.

A run that is not thorough takes every TURNS-th spec, other ones each day.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

from bench import gallery
from bench.gallery_cases import ENTRIES, FOLDER, Entry, first_types
from bench.suite import HEADING, put
from gen import language as specs
from gen.language.formulas import oracle
from gen.pipeline import made
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial.run import checks
from gen.trial.sizes import allowed
from tests.test_imports import MOST_ENTRIES
from tests.turns import today

PAGE = Path(__file__).parents[1] / "docs" / "gallery.md"
PEERS = sorted((Path(gallery.__file__).parent / "peers").glob("gallery*.py"))
TURNS = 16


def _turns() -> list[object]:
    marks = ((), pytest.mark.thorough)
    return [
        pytest.param(e, marks=marks[k % TURNS != today(TURNS)], id=e.name)
        for k, e in enumerate(ENTRIES)
    ]


@pytest.mark.parametrize("entry", _turns())
def test_right_by_rules(entry: Entry) -> None:
    spec = specs.load(entry.path)
    dtypes, level = first_types(spec), jit.native_level()
    _, files = made(spec, dtypes, Cpu(level), prove)
    kernel = jit.load(spec, dtypes, joined(files), level, flags=["-O0"])
    found = [*checks(spec, dtypes, Cpu(level), kernel, np.random.default_rng(0))]
    assert found and any(c.compared for c in found)
    assert [c for c in found if not c.worst <= 1] == []


def test_each_spec_is_in_the_benchmark() -> None:
    assert sorted(e.path for e in ENTRIES) == sorted(FOLDER.rglob("*.yaml"))
    assert len({e.name for e in ENTRIES}) == len(ENTRIES)


def test_each_folder_is_small() -> None:
    folders = [FOLDER, *(path for path in FOLDER.iterdir())]
    assert all(len([*folder.iterdir()]) <= MOST_ENTRIES for folder in folders)


def test_each_has_a_peer() -> None:
    """Read, not imported: what it imports is not installed here."""
    nodes = [n for path in PEERS for n in ast.parse(path.read_text("utf-8")).body]
    functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and n.decorator_list}
    assert functions == {e.name for e in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_has_an_oracle_and_sizes_that_a_call_may_have(entry: Entry) -> None:
    spec = specs.load(entry.path)
    assert spec.oracle and not spec.recipes
    sizes = {dim: entry.sizes[dim] for dim in spec.dims}
    assert entry.sizes.keys() - sizes.keys() <= oracle.defaults(spec).keys()
    assert allowed(spec, sizes)


def test_the_page_has_all() -> None:
    page = PAGE.read_text("utf-8")
    assert [e.name for e in ENTRIES if f"| `{e.name}` | {gallery.link(e)} |" not in page] == []


def test_times_are_put_in_the_place_of_those_before() -> None:
    page = f"# Page\n\nText.\n\n{HEADING}\nold\n"
    assert put(page, "Told.\n", ["a", "b"]) == f"# Page\n\nText.\n\n{HEADING}\nTold.\n\na\nb\n"
