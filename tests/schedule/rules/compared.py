"""What rules make of a spec, compiled and compared with its oracle."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gen.language import choices
from gen.language.model import KernelSpec
from gen.pipeline import load, schedule
from gen.targets.recipes import ByRules
from gen.targets.target import Target
from gen.trial.comparison import tried
from gen.trial.inputs import random_arrays
from gen.trial.plain import Reference
from gen.trial.sizes import allowed


def wrong(
    spec: KernelSpec,
    found: ByRules,
    target: Target,
    sizes: Sequence[int],
    draws: int,
    most: int,
) -> Iterator[str]:
    """Where it is wrong, of so many draws of sizes for its dims, of a product of at most `most`."""
    rng = np.random.default_rng(0)
    drawn = (dict(zip(spec.dims, sizes_, strict=True)) for sizes_ in
             rng.choice(sizes, (draws, len(spec.dims))).tolist())  # fmt: skip
    small = (dims for dims in drawn if math.prod(dims.values()) <= most)
    yield from wrong_at(spec, found, target, small)


def wrong_at(
    spec: KernelSpec, found: ByRules, target: Target, cases: Iterable[Mapping[str, int]]
) -> Iterator[str]:
    """Where it is wrong, of these sizes."""
    (dtypes,) = choices(spec)
    told = replace(spec, recipes=(found.recipe,))
    variants = schedule(told, dtypes, target, lambda *_: None, each_step=False)
    kernel, rng = load(told, dtypes, variants, target), np.random.default_rng(0)
    reference = Reference(told, dtypes)
    for dims in cases:
        if allowed(spec, dims):
            case = tried(reference, kernel, random_arrays(told, dtypes, dims, rng), dims, rng)
            if not case.worst <= 1:
                yield f"{case.sizes}: {case.error}"
