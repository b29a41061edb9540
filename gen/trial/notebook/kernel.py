"""`tilesmith.gen.compile`: the kernel of a spec as a function of arrays."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ...cache import cache_folder
from ...language import Dtypes
from ...language.model import Argument, KernelSpec
from ...lower.variants import suffix
from ...pipeline import load, made
from ...poly.cache import prover
from ...targets.registry import TARGETS
from ...targets.target import Registry, Runnable, Target
from .given import KernelScalars, chosen, inputs_of, scalars_of, taken, threads
from .plan import CallPlan, planned

_MOST_PLANS = 256
"""More forms of calls than that are rare: all are then found anew."""


def compile(
    path: str | os.PathLike[str],
    level: str | None = None,
    *,
    target: str | None = None,
    targets: Registry = TARGETS,
) -> "NotebookKernel":
    """The kernel of a spec's file as a function of arrays.

    level: of the target; without one the best that this machine has. target: one of the targets,
    by name; without one the first. Each choice of dtypes is scheduled, proved and compiled at its
    first call. Raises SpecError, TilesmithError where there is no such target or level, and at
    calls ScheduleError and TilesmithError (no compiler).
    """
    (found,) = targets.chosen(target, [level or targets[target].here()[-1]])
    return NotebookKernel(targets.load(Path(path)), found)


@final
@dataclass(repr=False)
class NotebookKernel:
    """A callable kernel. spec: what it computes; target: what it is compiled for.

    Its own `__doc__`, which `help` shows, is the spec's.
    """

    spec: KernelSpec
    target: Target
    _compiled: dict[str, Runnable] = field(default_factory=dict)
    _plans: dict[tuple[object, ...], CallPlan] = field(default_factory=dict)
    _inputs: tuple[Argument, ...] = field(init=False)
    _scalars: KernelScalars = field(init=False)

    def __post_init__(self) -> None:
        self.__name__ = self.spec.name
        self.__doc__ = self.spec.doc
        self._inputs = inputs_of(self.spec)
        self._scalars = scalars_of(self.spec)

    def __repr__(self) -> str:
        spec = self.spec
        return f"<kernel {spec.name} {spec.signature} of {spec.path}, {self.target.level}>"

    def __call__(self, *arrays: ArrayLike, num_threads: int = 1, **scalars: complex | str) -> Any:
        """The outputs, new arrays; leading axes broadcast by the kernel's signature.

        An `inout` argument is given like an input and returned like an output. Raises TypeError for
        a wrong number of arrays, what is not an array, a masked one, unknown scalars and types that
        the kernel does not have, ValueError for shapes that do not fit, and OverflowError for
        numbers that their type does not hold.
        """
        name = self.spec.name
        if len(arrays) != len(self._inputs):
            names = ", ".join(a.name for a in self._inputs)
            raise TypeError(f"{name} takes {len(self._inputs)} arrays ({names}), not {len(arrays)}")
        values = self._scalars.values(scalars)
        given = [taken(name, a.name, x) for a, x in zip(self._inputs, arrays, strict=True)]
        count = threads(name, num_threads)
        form = (
            count,
            *[values[scalar] for scalar, _ in self._scalars.deciding],
            *[
                (x.dtype, x.shape, x.strides) if isinstance(x, np.ndarray) else type(x)
                for x in given
            ],
        )
        plan = self._plans.get(form)
        if plan is None:
            dtypes = chosen(self.spec, given)
            plan = planned(self._scalars, self._kernel(dtypes), dtypes, given, values, count)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[form] = plan
        return plan(given, values)

    def _kernel(self, dtypes: Dtypes) -> Runnable:
        key = suffix(dtypes)
        if key not in self._compiled:
            prove = prover(cache_folder() / "proofs")
            variants, sources = made(self.spec, dtypes, self.target, prove)
            self._compiled[key] = load(self.spec, dtypes, variants, self.target, sources)
        return self._compiled[key]
