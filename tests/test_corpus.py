"""The specs of the tests, each run against its oracle or a reference in NumPy: interpreted, and
compiled with the recipe that rules choose and with its own.

All kernels of a level are one C file, since the runtime's headers take longer to compile than they
do. What rules choose runs with the last choice of dtypes on the lowest level, the recipes with the
first on the best.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen import language as specs
from gen.errors import ScheduleError, TilesmithError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent
from gen.language import Dtypes, KernelSpec, build, choices
from gen.language.formulas import oracle
from gen.pipeline import made, schedule
from gen.poly.prove import prove
from gen.targets.c import library
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial.inputs import random_arrays
from gen.trial.sizes import allowed
from tests.language.references import INPUTS, REFERENCES
from tests.turns import today

Array = NDArray[Any]

FOLDER = Path(__file__).parent / "language"
GALLERY = FOLDER / "corpus" / "gallery"  # which `test_gallery.py` has
CORPUS = sorted(p for p in (FOLDER / "corpus").rglob("*.yaml") if GALLERY not in p.parents)
SPECS = {path.stem: path for path in (*sorted((FOLDER / "specs").glob("*.yaml")), *CORPUS)}
LONG = {"correlation", "diffuse", "doitgen", "lstm", "syr2k"}  # to choose for; others are like them
TURNS, OWN_TURNS = 9, 3  # of what rules write, and of what people wrote
LEFT_OUT = {*LONG, *(n for k, n in enumerate(SPECS) if k % TURNS != today(TURNS))}
OWN = [name for name, path in SPECS.items() if "\nrecipes:" in path.read_text("utf-8")]
OWN_LEFT_OUT = {n for k, n in enumerate(OWN) if k % OWN_TURNS != today(OWN_TURNS)}


def _marked(names: Iterable[str], left_out: set[str]) -> list[object]:
    return [pytest.param(n, marks=pytest.mark.thorough if n in left_out else ()) for n in names]


BY_RULES = _marked(SPECS, LEFT_OUT)
WITH_RECIPES = _marked(OWN, OWN_LEFT_OUT)


Kernels = Mapping[str, "library.Loaded | TilesmithError"]


@pytest.fixture(scope="module")
def by_rules(cache: None, pytestconfig: pytest.Config) -> Kernels:
    names = SPECS.keys() if pytestconfig.getoption("--thorough") else SPECS.keys() - LEFT_OUT
    kernels = {name: replace(specs.load(SPECS[name]), recipes=()) for name in sorted(names)}
    return compiled({name: (spec, choices(spec)[-1]) for name, spec in kernels.items()}, Level.V2)


@pytest.fixture(scope="module")
def scheduled(cache: None, pytestconfig: pytest.Config) -> Kernels:
    names = set(OWN) if pytestconfig.getoption("--thorough") else set(OWN) - OWN_LEFT_OUT
    kernels = {name: specs.load(SPECS[name]) for name in sorted(names)}
    given = {name: (spec, choices(spec)[0]) for name, spec in kernels.items()}
    return compiled(given, jit.native_level())


def compiled(kernels: Mapping[str, tuple[KernelSpec, Dtypes]], level: Level) -> Kernels:
    """Each kernel, or why there is none, all in one library."""
    sources: dict[str, str | TilesmithError] = {}
    for name, (spec, dtypes) in kernels.items():
        try:
            _, files = made(spec, dtypes, Cpu(level), prove)
            sources[name] = joined(files)
        except TilesmithError as error:
            sources[name] = error
    whole = "\n".join(source for source in sources.values() if isinstance(source, str))

    def loaded(name: str) -> library.Loaded:
        return jit.load(*kernels[name], whole, level, flags=["-O0"])

    return {n: loaded(n) if isinstance(source, str) else source for n, source in sources.items()}


# ---------------------------------------------------------------- sizes, inputs, results


def sizes(spec: KernelSpec, lengths: tuple[int, ...]) -> Iterator[dict[str, int]]:
    """All dims alike, and each one more, or one less, than the one before it."""
    count = len(spec.dims)
    for n, step in itertools.product(lengths, (0, 1, -1)):
        found = {dim: n + k * step for k, dim in enumerate(spec.dims)}
        if min(found.values()) >= 0 and (count > 1 or not step) and allowed(spec, found):
            yield found


def inputs(spec: KernelSpec) -> tuple[str, ...]:
    """Names of the arrays that a caller gives."""
    return tuple(a.name for a in spec.arguments if a.intent is not Intent.OUT)


def arguments(spec: KernelSpec, dtypes: Dtypes, dims: Mapping[str, int]) -> dict[str, Array]:
    rng = np.random.default_rng(sum(dims.values()))
    arrays = random_arrays(spec, dtypes, dims, rng)
    return {**arrays, **(INPUTS[spec.name](rng, arrays) if spec.name in INPUTS else {})}


def scalars(spec: KernelSpec) -> dict[str, Any]:
    return {s.name: s.default for s in spec.scalars}


def results(spec: KernelSpec, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """What the kernel should give, in float64."""
    given = {name: arrays[name] for name in inputs(spec)}
    if spec.oracle:
        return oracle.evaluate(spec, given)
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a.copy() for n, a in given.items()}
    return REFERENCES[spec.name](**wide, **scalars(spec))


def agree(spec: KernelSpec, got: Mapping[str, Array], arrays: Mapping[str, Array]) -> None:
    """Floats to 1000 eps of the largest, integers exactly."""
    names = [a.name for a in spec.arguments if a.intent is not Intent.IN]
    if not any(got[name].size for name in names):
        return  # not every reference takes nothing
    expected = results(spec, arrays)
    assert sorted(expected) == sorted(names)
    for name, want in expected.items():
        assert got[name].shape == want.shape
        eps = np.finfo(got[name].dtype).eps if got[name].dtype.kind in "fc" else 0
        bound = float(1000 * eps * np.max(np.abs(want), initial=0))
        np.testing.assert_allclose(got[name], want, rtol=0, atol=bound, err_msg=name)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("name", SPECS)
def test_interpreted(name: str) -> None:
    spec = specs.load(SPECS[name])
    dtypes = choices(spec)[-1]
    kernel = build(spec, dtypes)
    for dims in sizes(spec, (0, 1, 2, 5)):
        arrays = arguments(spec, dtypes, dims)
        given = {name: arrays[name] for name in inputs(spec)}
        agree(spec, run(kernel, given, scalars(spec), dims=dims), arrays)


@pytest.mark.parametrize("name", BY_RULES)
def test_rules(name: str, by_rules: Kernels) -> None:
    check(by_rules[name], name, -1)


@pytest.mark.parametrize("name", WITH_RECIPES)
def test_recipe(name: str, scheduled: Kernels) -> None:
    check(scheduled[name], name, 0)


def check(kernel: "library.Loaded | TilesmithError", name: str, choice: int) -> None:
    if isinstance(kernel, TilesmithError):
        raise kernel
    spec = specs.load(SPECS[name])
    for dims in sizes(spec, (0, 1, 2, 3, 19, 36)):
        arrays = arguments(spec, choices(spec)[choice], dims)
        got = {name: array.copy() for name, array in arrays.items()}
        kernel.compiled(got, kernel.scalars, dims=dims, threads=2)
        agree(spec, got, arrays)


# ---------------------------------------------------------------- what conditions allow


@pytest.mark.parametrize("loop", ["path.i", "path.j"])
def test_paths_by_way_of_a_node_are_found_in_parallel_only_where_they_are_apart(loop: str) -> None:
    """floyd_warshall writes what all paths by way of k read: the prover says which; with
    conditions that leave k's own row and column out, it agrees.
    """
    with pytest.raises(ScheduleError) as refused:
        in_parallel("floyd_warshall", loop)
    assert f"parallel loop '{loop}' has a race: path[k=0, i=" in str(refused.value)
    assert "for example: n=2" in str(refused.value)
    assert in_parallel("floyd_warshall_apart", loop)


def in_parallel(name: str, loop: str) -> object:
    text = SPECS[name].read_text("utf-8").split("recipes:")[0]
    steps = f"[{{parallel: {{loop: {loop}}}}}]"
    spec = specs.loads(f"{text}recipes: [{{target: cpu, variants: [{{steps: {steps}}}]}}]\n", name)
    return schedule(spec, choices(spec)[0], Cpu(Level.V2), prove)
