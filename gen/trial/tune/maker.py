"""Candidates made: a recipe to a kernel that is proved, compiled, and compared before it is timed.

Input: a spec, a choice of dtypes, a target and a recipe. Output: a Runnable. Invariant: what is
given out is right as `tilesmith bench` means it, or an error says why not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from ... import language as specs
from ...cache import cache_folder
from ...errors import TilesmithError
from ...language import Dtypes
from ...language.model import KernelSpec, Recipe
from ...lower.variants import Plain, suffix
from ...pipeline import emit, load, schedule
from ...poly.cache import prover
from ...progress import Progress
from ...schedule.base import Prover
from ...targets.target import Runnable, Target, joined
from ..comparison import MUTE, mute, tried
from ..plain import Reference
from ..run import checks, counting
from .contest import TimedCall

LONGER = 10
"""Code of a candidate that is so many times as long as before is not compiled: that may take
minutes, and would not fit into the caches for instructions.
"""


@final
@dataclass(slots=True)
class Maker:
    """longest: of the code that is compiled, in characters; None before the first is made."""

    spec: KernelSpec
    dtypes: Dtypes
    target: Target
    shown: Progress
    plain: Plain = field(init=False)
    reference: Reference = field(init=False)
    longest: int | None = None

    def __post_init__(self) -> None:
        self.plain = Plain(self.spec, self.dtypes)
        self.reference = Reference(self.spec, self.dtypes)

    def made(self, recipe: Recipe) -> Runnable:
        """Raises TilesmithError where a step does not apply, the proof or a compiler refuses it, or
        the code is too long.
        """
        spec = _with(self.spec, recipe, self.target)
        plain = Plain(spec, self.dtypes, self.plain.bench, self.plain.made)
        prove = counting(self._prover, self.shown)
        variants = schedule(spec, self.dtypes, self.target, prove, each_step=False, plain=plain)
        sources = emit(spec, {suffix(self.dtypes): variants}, self.target)
        length = len(joined(sources))
        if self.longest is not None and length > self.longest:
            longer = f"its code is {LONGER * length / self.longest:.0f} times as long as before"
            raise TilesmithError(f"{longer}: over {LONGER} times is not compiled")
        self.longest = self.longest or LONGER * length
        self.shown.detail("compiling")
        return load(spec, self.dtypes, variants, self.target, sources)

    def check(self, kernel: Runnable, cases: Sequence[TimedCall]) -> None:
        """Raises TilesmithError where a result is wrong, at small sizes or in a case. The cases'
        arrays are as they were.
        """
        self.shown.detail("comparing")
        rng = np.random.default_rng(0)
        small = tuple(checks(self.spec, self.dtypes, self.target, kernel, rng))
        for case in cases:
            copies = {name: array.copy() for name, array in case.arrays.items()}
            small += (tried(self.reference, kernel, copies, case.sizes, rng),)
        for c in small:
            if not c.worst <= 1:
                sizes = " ".join(f"{dim}={size}" for dim, size in c.sizes.items())
                raise TilesmithError(f"wrong at {sizes}: error {c.error:.2e} at {c.place}")
        if mute(small):
            raise TilesmithError(f"{self.spec.name}: {MUTE}")

    def prove_all(self, recipe: Recipe) -> None:
        """The recipe on the target for every choice of dtypes of the spec, since it is written down
        for all of them. Raises TilesmithError.
        """
        spec = _with(self.spec, recipe, self.target)
        for dtypes in specs.choices(spec):
            if _has_code(self.target, dtypes):
                schedule(spec, dtypes, self.target, self._prover, each_step=False)

    @property
    def _prover(self) -> Prover:
        return prover(cache_folder() / "proofs")


def _has_code(target: Target, dtypes: Dtypes) -> bool:
    return all(map(target.has_code_for, dtypes.values()))


def _with(spec: KernelSpec, recipe: Recipe, target: Target) -> KernelSpec:
    """The spec with the recipe as that of the target's level, before all others."""
    name = f"{target.name}.{target.level}"
    others = tuple(r for r in spec.recipes if r.target != name)
    return replace(spec, recipes=(*others, replace(recipe, target=name)))
