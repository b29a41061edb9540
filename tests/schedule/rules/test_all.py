"""Every spec that there is, without its recipes: rules choose one on a CPU, which is proved, and
gives what the plain schedule gives.

All kernels of a level are one C file, since the runtime's headers take longer to compile than they
do. Kernels that have a recipe, but for a few that take long, run with their first choice of dtypes
on the machine's best level; those that ship without one are tried as they are built. Thorough runs
take every choice and level, and all specs of the tests, whose own tests (`test_corpus.py`,
`test_named.py`, `test_sizes.py`, `test_complex.py`) try what rules choose on the lowest level.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen.ir import storage
from gen.ir.nodes import Intent
from gen.language import Dtypes, KernelSpec, build, choices
from gen.lower.variants import Plain, plans_of, suffix, whens_of
from gen.pipeline import emit, schedule_to_emit
from gen.poly.prove import prove
from gen.targets.c.library import Loaded
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import ByRules, by_rules
from gen.targets.registry import TARGETS
from gen.targets.target import joined
from gen.trial.inputs import near, random_arrays
from gen.trial.sizes import allowed, kernel_dims, sides
from tests.language.references import INPUTS
from tests.plain import without_steps

Array = NDArray[Any]

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "kernels_spec").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.yaml"))
OTHERS = sorted((ROOT / "tests/language").rglob("*.yaml"))


@dataclass(frozen=True)
class Case:
    """A spec without its recipes, for one choice of dtypes on one level."""

    path: Path
    choice: int
    level: Level

    @property
    def spec(self) -> KernelSpec:
        return replace(_loaded(self.path), recipes=())

    @property
    def dtypes(self) -> Dtypes:
        return choices(self.spec)[self.choice]

    def __str__(self) -> str:
        return f"{self.path.stem}-{suffix(self.dtypes)}-{self.level}"


@cache
def _loaded(path: Path) -> KernelSpec:
    """With a name that no other has, since all are in one file; and a default for each scalar."""
    spec = TARGETS.load(path)
    scalars = tuple(replace(s, default=3) if s.default is None else s for s in spec.scalars)
    return replace(spec, name=f"{path.parent.name}_{spec.name}", scalars=scalars)


BEST = jit.native_level()
LONG = {"attention", "conv2d", "depthwise_conv2d", "gaussian", "lstm", "masked_attention"}
LONG |= {"matmul", "sqdist", "trmm", "var", "avg_pool2d", "max_pool2d", "linear", "resize"}
LONG |= {"conv1d", "conv3d", "conv_transpose2d", "triangular_solve"}
"""Of these to choose a recipe takes two seconds and more; those of tests are in test_corpus.py."""
USUAL = [
    Case(path, 0, BEST)
    for path in (*SHIPPED, *EXAMPLES)
    if path.stem not in LONG and any(r.target.startswith("cpu") for r in _loaded(path).recipes)
]
ALL = [
    Case(path, choice, Level(level))
    for path in (*SHIPPED, *EXAMPLES, *OTHERS)
    for level in Cpu.here()
    for choice in range(len(choices(_loaded(path))))
]


@dataclass(frozen=True)
class Made:
    """What rules chose, compiled, and the plain schedule beside it."""

    case: Case
    spec: KernelSpec
    chosen: ByRules
    kernel: Loaded
    plain: Loaded


Library = Mapping[Case, Made | Exception]


def made(cases: list[Case]) -> Library:
    """Each case, or why there is none: all that are of a level in one library."""
    return {case: it for level in Cpu.here() for case, it in _of_level(Level(level), cases)}


def _of_level(level: Level, cases: list[Case]) -> Iterator[tuple[Case, Made | Exception]]:
    sources: list[str] = []
    done: dict[Case, tuple[KernelSpec, ByRules, KernelSpec] | Exception] = {}
    for case in (c for c in cases if c.level == level):
        try:
            known = Plain(case.spec, case.dtypes)
            chosen = by_rules(known, Cpu(level))
            assert chosen is not None
            spec = replace(case.spec, recipes=(chosen.recipe,))
            plain = replace(without_steps(spec), name=f"{spec.name}_plain")
            texts = [_emitted(s, case, known) for s in (spec, plain)]
        except Exception as error:  # a rule's own fault, too, is told of its spec alone
            done[case] = error
        else:
            sources += texts
            done[case] = (spec, chosen, plain)
    whole = "\n".join(sources)
    for case, it in done.items():
        if isinstance(it, Exception):
            yield case, it
        else:
            spec, chosen, plain = it
            both = [jit.load(s, case.dtypes, whole, level, flags=["-O1"]) for s in (spec, plain)]
            yield case, Made(case, spec, chosen, *both)


def _emitted(spec: KernelSpec, case: Case, known: Plain) -> str:
    """known: of the kernel without a recipe, and what is proved of it."""
    plain = replace(known, spec=spec)
    variants = schedule_to_emit(spec, case.dtypes, Cpu(case.level), prove, plain)
    return joined(emit(spec, {suffix(case.dtypes): variants}, Cpu(case.level)))


@pytest.fixture(scope="module")
def usual(cache: None) -> Library:
    return made(USUAL)


@pytest.fixture(scope="module")
def every(cache: None) -> Library:
    return made(ALL)


# ---------------------------------------------------------------- sizes and results

MOST = 2**20  # times that a block runs


def sizes(case: Case, spec: KernelSpec) -> Iterator[dict[str, int]]:
    """None, one, few, more than a tile has, and on either side of each variant's condition."""
    plain, found = build(spec, case.dtypes), []
    parameters = Cpu(case.level).parameters(case.dtypes)
    for n in (0, 1, 2, 5):
        found += [{dim: n + k * step for k, dim in enumerate(spec.dims)} for step in (0, 1, -1)]
    for wanted in ((37, 19, 11, 7), (64, 16, 8), (130, 33, 9)):
        full = near(spec, plain, {}, wanted, MOST)
        found += [full] if full else []
    found += sides(spec, whens_of(plans_of(spec.recipes[0], case.level, parameters)))
    for dims in {tuple(f.items()): f for f in found}.values():
        if min(dims.values(), default=0) >= 0 and allowed(spec, dims):
            yield dims


def assert_right(it: Made) -> None:
    spec, dtypes = it.spec, it.case.dtypes
    fit = INPUTS.get(it.case.path.stem) if it.case.path in OTHERS else None
    for dims in sizes(it.case, spec):
        rng = np.random.default_rng(sum(dims.values()))
        arrays = random_arrays(spec, dtypes, dims, rng)
        arrays |= fit(rng, arrays) if fit else {}
        got, want = ({n: x.copy() for n, x in arrays.items()} for _ in range(2))
        full = kernel_dims(spec, dims)
        it.kernel.compiled(got, it.kernel.scalars, dims=full, threads=2)
        it.plain.compiled(want, it.plain.scalars, dims=full)
        for a in spec.arguments:
            if a.intent is not Intent.IN:
                _assert_near(got[a.name], want[a.name], f"{a.name} at {dims}")


def _assert_near(got: Array, want: Array, where: str) -> None:
    """Floats to 1000 eps of the largest, all else exactly."""
    rounded = got.dtype.kind == "c" or storage.is_float(got)
    with np.errstate(invalid="ignore"):
        found, expected = storage.computed(got), storage.computed(want)
        largest = np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
        bound = float(1000 * storage.eps(got) * largest) if rounded else 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound, err_msg=where)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("case", USUAL, ids=str)
def test_rules(case: Case, usual: Library) -> None:
    check(usual[case])


@pytest.mark.thorough
@pytest.mark.parametrize("case", ALL, ids=str)
def test_rules_for_every_type_and_level(case: Case, every: Library) -> None:
    check(every[case])


def check(it: Made | Exception) -> None:
    if isinstance(it, Exception):
        raise it
    assert all(c.taken for c in it.chosen.chosen), "it is the plain schedule"
    assert not [fault for c in it.chosen.chosen for fault in c.faults]
    assert_right(it)
