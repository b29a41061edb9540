"""What the schedule's tests share: kernels, recipes from text, and runs to compare."""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from gen import language as spec
from gen.ir.interpret.evaluate import numpy_dtype
from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Intent, Kernel
from gen.ir.text.parser import from_text
from gen.language import yaml
from gen.language.model import Recipe
from gen.language.recipes import read_recipes
from gen.poly.certificate import Scheduled
from gen.poly.values.flow import plain_flow
from gen.schedule.base import Primitive, Step, StepContext
from gen.schedule.recipe import run as run_steps
from gen.schedule.recipe import steps_of

SPECS = Path(__file__).parent.parent / "language" / "specs"
Array = np.ndarray


@cache
def from_spec(name: str) -> tuple[tuple[Recipe, ...], Scheduled]:
    loaded = spec.load(SPECS / f"{name}.yaml")
    kernel = spec.build(loaded, spec.choices(loaded)[0])
    return loaded.recipes, Scheduled(kernel, plain_flow(kernel))


@cache
def start(text: str) -> Scheduled:
    kernel = from_text(text)
    return Scheduled(kernel, plain_flow(kernel))


def recipe(text: str, *dims: str) -> Recipe:
    return read_recipes(yaml.parse(text, "recipe.yaml"), dims)[0]


def steps(text: str, lanes: int = 4) -> tuple[Primitive, ...]:
    return steps_of(text, {"lanes": lanes, "line_bytes": 64})


def schedule(state: Scheduled, text: str) -> tuple[Step, ...]:
    """The steps, proved."""
    return run_steps(state, steps(text), StepContext(state.kernel))


def inputs(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, Array]:
    """Small integers, so that sums in any order are equal."""
    random = np.random.default_rng(0)
    result = {}
    for p in kernel.parameters:
        if p.intent is not Intent.OUT:
            shape = [value(e, dims) for e in p.buffer.shape]
            result[p.buffer.name] = random.integers(-8, 9, shape).astype(
                numpy_dtype(p.buffer.dtype)
            )
    return result


def assert_same(
    before: Kernel,
    after: Kernel,
    sizes: Iterable[int] = (0, 1, 3, 4, 5, 9),
    scalars: Mapping[str, float] | None = None,
) -> None:
    """Both kernels compute the same for all combinations of the sizes; a scalar is 3 by default."""
    scalars = scalars or {s.name: 3 for s in before.scalars}
    for values in product(sizes, repeat=len(before.dims)):
        dims = dict(zip(before.dims, values, strict=True))
        arrays = inputs(before, dims)
        wanted = run(before, arrays, scalars, dims=dims)
        got = run(after, arrays, scalars, dims=dims, seed=1)
        for name, array in wanted.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, err_msg=f"{name} at {dims}")
