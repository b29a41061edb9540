"""The search as a whole: what `tilesmith tune` does before it writes.

Input: a spec, a choice of dtypes, a target that this machine runs or emulates, and what is asked.
Output: a TuneReport. Invariants: what is measured was proved and compared before; a winner was
better in a contest of its own, after the search, and is proved for all dtypes.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

import numpy as np

from ... import __version__
from ... import language as specs
from ...cache import cache_folder
from ...errors import TilesmithError
from ...language import Dtypes
from ...language.model import KernelSpec, Recipe
from ...language.recipes import used
from ...lower.variants import Plain, suffix
from ...progress import SILENT, Progress
from ...schedule import recipe as recipes
from ...targets.target import Runnable, Target
from ..inputs import random_arrays, too_large
from ..run import chosen
from ..sizes import kernel_dims
from .contest import Contest, Round, TimedCall, gain, least, ratio
from .maker import Maker
from .report import Finalist, TuneReport
from .space import Assignment, Knob, Value, knobs
from .study import Fate, Trial, library, search
from .subjects import Subject, of_recipe, of_rules, of_structure

FINALISTS = 3
"""So many of the best are measured again, side by side: the first is often so by chance."""


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """sizes: of a case each. params: those to search, with their values; none: all. structure:
    among rules. trials: at most so many. afresh: whether a search that was begun is forgotten.
    """

    sizes: Sequence[Mapping[str, int]]
    threads: int = 1
    params: Sequence[tuple[str, tuple[Value, ...]]] = ()
    structure: bool = False
    trials: int = 40
    seed: int = 0
    afresh: bool = False


def tune(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    asked: Asked,
    contest: Contest,
    shown: Progress = SILENT,
) -> TuneReport:
    """Searches. shown: gets a part a trial, and two.

    Raises TilesmithError where there is nothing to search or no library to do it with, where what
    is there is wrong, and as `compiled` does.
    """
    library()
    rows = [chosen(spec, given) for given in asked.sizes]
    maker = Maker(spec, dtypes, target, shown)
    shown.part(f"{spec.name} {suffix(dtypes)} {target.level}, as it is")
    subject = subject_of(maker.plain, target, asked.structure)
    recipe = subject.recipe({})
    before = maker.made(recipe)
    cases = [_case(spec, dtypes, sizes) for sizes in rows]
    maker.check(before, cases)
    names = {before.variant(case.arrays, case.dims) for case in cases}
    found = subject.rules or knobs(subject.values, _used(recipe, names), asked.params)
    if not found:
        raise TilesmithError(
            f"{spec.name}: no variant that runs at these sizes has a number to search",
            hint="give other sizes by `--size`, or search among rules by `--structure`",
        )
    ring = _Ring(maker, subject, contest, before, cases, {k.name: k.start for k in found}, {})
    journal = _journal(spec, dtypes, target, asked, found, before.machine)
    if asked.afresh:
        journal.unlink(missing_ok=True)
    trials = search(
        found,
        ring.outcome,
        trials=asked.trials,
        rounds=contest.rounds,
        seed=asked.seed,
        journal=journal,
        shown=shown,
    )
    shown.part("the best again, side by side")
    finalists, numbers = ring.last(trials)
    return TuneReport(
        kernel=spec.name,
        conditions=f"{target.level}, {suffix(dtypes)}{contest.conditions}",
        machine=before.machine,
        unit=contest.unit,
        cases=tuple(map(str, cases)),
        knobs=found,
        left=tuple(name for name in subject.values if name not in {k.name for k in found}),
        trials=trials,
        finalists=finalists,
        before=numbers,
        journal=journal,
        subject=subject,
    )


def subject_of(plain: Plain, target: Target, structure: bool) -> Subject:
    """What is searched. Raises TilesmithError where there is nothing."""
    own = recipes.choose(plain.spec.recipes, target.name, target.level)
    if own is None:
        return of_structure(plain, target) if structure else of_rules(plain, target)
    if structure:
        raise TilesmithError(
            f"{plain.spec.name} has a recipe for {own.target}: rules write none",
            own.target_span,
            "--structure searches among rules: take the recipe out of a copy of the spec",
        )
    return of_recipe(own, target)


def _case(spec: KernelSpec, dtypes: Dtypes, sizes: Mapping[str, int]) -> TimedCall:
    if why := too_large(spec, specs.build(spec, dtypes), sizes):
        raise TilesmithError(why)
    arrays = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
    return TimedCall(dict(sizes), arrays, kernel_dims(spec, sizes))


def _used(recipe: Recipe, variants: set[str]) -> frozenset[str]:
    """The parameters that some of the variants use, by the names that `plans_of` gives them."""
    named = ((str(k) if v.steps else "plain", v) for k, v in enumerate(recipe.variants))
    return frozenset[str]().union(*(used(v) for name, v in named if name in variants))


def _journal(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    asked: Asked,
    found: Sequence[Knob],
    machine: str,
) -> Path:
    """Where a search is kept: one for what was asked, of this text of the spec, on this machine."""
    text = Path(spec.path).read_text("utf-8")
    sizes = [sorted(row.items()) for row in asked.sizes]
    conditions = (__version__, suffix(dtypes), target.level, machine, asked.threads, asked.seed)
    question = repr((text, conditions, sizes, found))
    digest = hashlib.sha256(question.encode()).hexdigest()[:16]
    return cache_folder() / "tune" / f"{spec.name}-{digest}.journal"


@final
@dataclass(frozen=True, slots=True)
class _Ring:
    """Where candidates meet what is there. ready: those that were made, by their values."""

    maker: Maker
    subject: Subject
    contest: Contest
    before: Runnable
    cases: Sequence[TimedCall]
    start: Assignment
    ready: dict[tuple[Value, ...], Runnable]

    def outcome(self, values: Assignment) -> Iterator[float]:
        """As `study.Outcome`."""
        if values == self.start:
            while True:
                yield 1.0
        with _refusals():
            rounds: list[Round] = []
            for each in self.contest([self.before, self._kernel(values)], self.cases):
                rounds.append(each)
                yield ratio(rounds, 1)

    def last(self, trials: Sequence[Trial]) -> tuple[tuple[Finalist, ...], tuple[float, ...]]:
        """The best of the trials beside each other, and what is there; its numbers."""
        measured = (t for t in trials if t.fate is Fate.MEASURED and t.value < 1)
        best: list[Assignment] = []
        for trial in sorted(measured, key=lambda t: t.value):
            if len(best) < FINALISTS and self._proved(trial.chosen):
                best.append(trial.chosen)
        if not best:
            return (), ()
        kernels = [self.before, *map(self._kernel, best)]
        rounds = [*islice(self.contest(kernels, self.cases), self.contest.last)]
        found = (
            Finalist(values, gain(rounds, k), least(rounds, k)) for k, values in enumerate(best, 1)
        )
        return tuple(sorted(found, key=lambda f: f.gain.median)), least(rounds, 0)

    def _kernel(self, values: Assignment) -> Runnable:
        if (key := tuple(values.values())) not in self.ready:
            kernel = self.maker.made(self.subject.recipe(values))
            self.maker.check(kernel, self.cases)
            self.ready[key] = kernel
        return self.ready[key]

    def _proved(self, values: Assignment) -> bool:
        """Whether it is, for all dtypes."""
        try:
            self.maker.prove_all(self.subject.recipe(values))
        except TilesmithError:
            return False
        return True


@contextmanager
def _refusals() -> Iterator[None]:
    """What a candidate fails by is a TilesmithError, whatever it was."""
    try:
        yield
    except (MemoryError, RecursionError, ValueError) as error:
        raise TilesmithError(f"{type(error).__name__}: {error}") from error
