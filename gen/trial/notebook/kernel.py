"""`tilesmith.gen.compile`: the kernel of a spec as a function of arrays."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ...cache import cache_folder
from ...display.table import StepTable, step_table
from ...display.text import named, unproved
from ...errors import TilesmithError
from ...language import Dtypes
from ...language.model import Argument, KernelSpec
from ...lower.variants import choice, suffix
from ...pipeline import load, made, schedule
from ...poly.cache import prover
from ...targets.registry import TARGETS
from ...targets.target import Registry, Runnable, Target
from ..sizes import usual
from .given import KernelScalars, chosen, inputs_of, scalars_of, taken, threads
from .plan import CallPlan, planned

_MOST_PLANS = 256
"""More forms of calls than that are rare: all are then found anew."""


_TEXT = "<spec>"
"""What errors call a spec that is in no file."""


def compile(
    spec: str | os.PathLike[str],
    level: str | None = None,
    *,
    target: str | None = None,
    targets: Registry = TARGETS,
) -> "NotebookKernel":
    """The kernel of a spec as a function of arrays.

    spec: the path of a file; or the spec itself, a text of more than one line, which errors call
    `<spec>`. level: of the target; without one the best that this machine has. target: one of the
    targets, by name; without one the first. Each choice of dtypes is scheduled, proved and compiled
    at its first call. Raises SpecError, TilesmithError where the path is a folder's or there is no
    such target or level, and at calls ScheduleError and TilesmithError (no compiler).
    """
    if isinstance(spec, str) and "\n" in spec:
        return of_text(spec, level, target=target, targets=targets)
    if Path(spec).is_dir():
        raise TilesmithError(f"'{spec}' is no spec: give a file's path, or a text of several lines")
    return NotebookKernel(targets.load(Path(spec)), _chosen(level, target, targets))


def of_text(
    text: str, level: str | None = None, *, target: str | None = None, targets: Registry = TARGETS
) -> "NotebookKernel":
    """As `compile`, of a spec that is in no file."""
    return NotebookKernel(targets.loads(text, _TEXT), _chosen(level, target, targets))


def _chosen(level: str | None, target: str | None, targets: Registry) -> Target:
    (found,) = targets.chosen(target, [level or targets[target].here()[-1]])
    return found


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

    def __call__(
        self, /, *arrays: ArrayLike, num_threads: int = 1, **scalars: complex | str
    ) -> Any:
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

    def show(self, variant: str | None = None, *, dtype: str | None = None) -> StepTable:
        """The steps of the recipe, its own or the one that rules write, each proved anew: a table
        in a notebook, else a text.

        variant: by name; without one that of calls with dims of 256. dtype: a choice of dtypes, as
        `float32`; without one the first. Raises ScheduleError where a step cannot be done, and
        TilesmithError where there is no such variant or dtype.
        """
        dtypes = choice(self.spec, dtype)
        variants = schedule(self.spec, dtypes, self.target, unproved)
        found = usual(self.spec, variants) if variant is None else named(variants, variant)
        title = f"{self.spec.name} {suffix(dtypes)} {self.target.level}"
        if len(variants) > 1:
            title += f", variant {found.name} (of {', '.join(v.name for v in variants)})"
        return step_table(title, found)

    def _kernel(self, dtypes: Dtypes) -> Runnable:
        key = suffix(dtypes)
        if key not in self._compiled:
            prove = prover(cache_folder() / "proofs")
            variants, sources = made(self.spec, dtypes, self.target, prove)
            self._compiled[key] = load(self.spec, dtypes, variants, self.target, sources)
        return self._compiled[key]
