"""Tests of a built package of kernels: each kernel beside its spec's oracle, or its plain schedule.

    @pytest.mark.parametrize("case", testing.cases("kernels_spec"), ids=str)
    def test_kernel(case):
        case.check(my_package)

Input: a folder of specs, a package that was built from them. Output: a Case for each kernel and
choice of dtypes, so that a new spec is tested as soon as it is in the folder.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import final

import numpy as np

from . import language as specs
from .binding.entry import manifest_entry
from .errors import TilesmithError
from .ir.nodes import Intent
from .language import Dtypes
from .language.model import KernelSpec
from .lower.variants import suffix
from .targets.registry import TARGETS
from .trial.comparison import MUTE, mute
from .trial.inputs import Array, Call
from .trial.run import checks


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with one choice of dtypes. Its text, `name-float32`, is a test's id."""

    spec: KernelSpec
    dtypes: Dtypes

    def __str__(self) -> str:
        return f"{self.spec.name}-{suffix(self.dtypes)}"

    def check(self, package: ModuleType) -> None:
        """Calls the package's function at every small size around the vectors' length of the level
        that it runs on here, 0 and 1 among them, and compares with the oracle; with the plain
        schedule, which a C compiler makes, where the spec has none.

        Raises AssertionError where an element is further off than the spec's accuracy allows and
        where all results are NaN or infinite; TilesmithError where a scalar has no default, or
        where there is no compiler and no oracle.
        """
        if missing := [s.name for s in self.spec.scalars if s.default is None]:
            raise TilesmithError(f"{self.spec.name}: the scalar {missing[0]!r} has no default")
        (target,) = TARGETS.chosen(None, [package.show_config("dicts")["level"]])
        kernel = _call(self.spec, package)
        done = []
        for case in checks(self.spec, self.dtypes, target, kernel, np.random.default_rng(0)):
            done.append(case)
            assert case.worst <= 1, (
                f"{self} at {dict(case.sizes)}: {case.place} is off by {case.error:.2e},"
                f" {case.worst:.2f} of what the spec allows"
            )
        assert not mute(done), f"{self}: {MUTE}"


def cases(folder: str | os.PathLike[str]) -> list[Case]:
    """The cases of all specs in a folder, by name. Raises SpecError."""
    loaded = [TARGETS.load(path) for path in sorted(Path(folder).glob("*.yaml"))]
    return [Case(spec, dtypes) for spec in loaded for dtypes in specs.choices(spec)]


def _call(spec: KernelSpec, package: ModuleType) -> Call:
    """The package's function, called with arrays of the spec's own shapes."""
    function = getattr(package, spec.name)
    along = {"axis": -1} if manifest_entry(spec, [], {}).reduces else {}

    def call(arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        given = [arrays[a.name] for a in spec.arguments if a.intent is not Intent.OUT]
        out = tuple(arrays[a.name] for a in spec.arguments if a.intent is Intent.OUT)
        options: dict[str, object] = {"out": out if len(out) > 1 else out[0]} if out else {}
        function(*given, **along, **options)

    return call
