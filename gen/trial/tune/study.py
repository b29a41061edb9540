"""Which values are tried next, when a trial ends early, and what is remembered: Optuna's part.

Input: knobs, and what tells the numbers of a choice of values. Output: Trials. Invariant: with one
seed and one outcome of each trial a search tries the same each time; one that was interrupted goes
on with all that it has found.
"""

import importlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, final

from ...errors import TilesmithError
from ...progress import SILENT, Progress
from .space import Assignment, Knob, Value

Outcome = Callable[[Assignment], Iterator[float]]
"""The value of a choice after each round, less is better. Raises TilesmithError where the choice
cannot run, or is wrong.
"""

FIRST, HALVES = 2, 2
"""Of the rounds after so many, twice as many and so on, one in so many trials goes on."""


class Fate(Enum):
    MEASURED = "measured"
    STOPPED = "stopped early"
    REFUSED = "refused"


@final
@dataclass(frozen=True, slots=True)
class Trial:
    """number: from 0. value: of the last round that there was. reason: why it was refused."""

    number: int
    chosen: Assignment
    fate: Fate
    value: float = math.inf
    reason: str = ""


def library() -> Any:
    """Optuna. Raises TilesmithError where it is not installed."""
    try:
        return importlib.import_module("optuna")
    except ImportError:
        hint = "pip install 'tilesmith[tune]', or pip install optuna"
        missing = "tilesmith tune searches with Optuna, which is not installed"
        raise TilesmithError(missing, hint=hint) from None


def search(
    knobs: Sequence[Knob],
    outcome: Outcome,
    *,
    trials: int,
    rounds: int,
    seed: int = 0,
    journal: Path | None = None,
    shown: Progress = SILENT,
) -> tuple[Trial, ...]:
    """All choices where there are no more of them than trials, the nearest first; else those that
    Optuna's sampler proposes. The first trial is what is there before.

    trials: at most so many, those that the journal has included. rounds: of a trial. journal: a
    file in which a search that it began goes on; None: nothing is kept.
    """
    optuna = library()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = _study(optuna, seed, journal)
        _queue(optuna, study, knobs, trials)
        known = {_key(t): t for t in _finished(optuna, study)}
        every = math.prod(len(k.values) for k in knobs)
        while len(known) < every and len(_finished(optuna, study)) < trials:
            trial = study.ask()
            chosen = _suggested(trial, knobs)
            shown.part(", ".join(f"{name}={value}" for name, value in chosen.items()))
            if (before := known.get(_key(trial))) is not None:
                _again(optuna, study, trial, before)
                continue
            _one(optuna, study, trial, outcome(chosen), rounds)
            known[_key(trial)] = study.trials[trial.number]
        return tuple(_trial(optuna, knobs, t) for t in known.values())


def _key(trial: Any) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(trial.params.items()))


def _finished(optuna: Any, study: Any) -> list[Any]:
    """The trials that came to an end: one that failed without a reason was interrupted."""
    fail = optuna.trial.TrialState.FAIL
    ended = (t for t in study.trials if t.state.is_finished())
    return [t for t in ended if t.state is not fail or "reason" in t.user_attrs]


def _study(optuna: Any, seed: int, journal: Path | None) -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if journal is not None:
        journal.parent.mkdir(parents=True, exist_ok=True)
        files = optuna.storages.journal
        storage = optuna.storages.JournalStorage(files.JournalFileBackend(str(journal)))
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=FIRST, reduction_factor=HALVES)
    study = optuna.create_study(
        storage=storage, study_name="tune", load_if_exists=True, pruner=pruner
    )
    waits = optuna.trial.TrialState.WAITING
    done = sum(t.state is not waits for t in study.trials)
    study.sampler = optuna.samplers.TPESampler(
        seed=seed + done, multivariate=True, constant_liar=False
    )
    return study


def _queue(optuna: Any, study: Any, knobs: Sequence[Knob], trials: int) -> None:
    """Queues what was interrupted; in a new study what is there before, and all else where there is
    time for all.
    """
    state = optuna.trial.TrialState
    for trial in study.trials:
        if trial.state is state.RUNNING:
            study.tell(trial.number, state=state.FAIL)
            if len(trial.params) == len(knobs):
                study.enqueue_trial(trial.params)
    if study.trials:
        return
    starts = [k.values.index(k.start) for k in knobs]
    every: Iterator[tuple[int, ...]] = itertools.product(*(range(len(k.values)) for k in knobs))
    few = math.prod(len(k.values) for k in knobs) <= trials
    near = sorted(every, key=lambda at: _distance(at, starts)) if few else [tuple(starts)]
    for at in near:
        study.enqueue_trial(dict(zip((k.name for k in knobs), at, strict=True)))


def _distance(at: Sequence[int], starts: Sequence[int]) -> int:
    return sum(abs(a - b) for a, b in zip(at, starts, strict=True))


def _suggested(trial: Any, knobs: Sequence[Knob]) -> Assignment:
    """By their places among a knob's values, of which words have no order."""
    found: dict[str, Value] = {}
    for k in knobs:
        last = len(k.values) - 1
        words = any(isinstance(v, str) for v in k.values)
        at = (
            trial.suggest_categorical(k.name, list(range(last + 1)))
            if words
            else trial.suggest_int(k.name, 0, last)
        )
        found[k.name] = k.values[at]
    return found


def _one(optuna: Any, study: Any, trial: Any, values: Iterator[float], rounds: int) -> None:
    state = optuna.trial.TrialState
    try:
        for done, value in enumerate(itertools.islice(values, rounds), 1):
            trial.report(value, done)
            if done < rounds and trial.should_prune():
                study.tell(trial, state=state.PRUNED)
                return
        study.tell(trial, value)
    except TilesmithError as error:
        trial.set_user_attr("reason", error.message)
        study.tell(trial, state=state.FAIL)


def _again(optuna: Any, study: Any, trial: Any, before: Any) -> None:
    """What was tried before is not tried again."""
    if before.state is optuna.trial.TrialState.COMPLETE:
        study.tell(trial, before.value)
    else:
        trial.set_user_attr("reason", "it was tried before")
        study.tell(trial, state=before.state)


def _trial(optuna: Any, knobs: Sequence[Knob], trial: Any) -> Trial:
    state = optuna.trial.TrialState
    fates = {state.COMPLETE: Fate.MEASURED, state.PRUNED: Fate.STOPPED, state.FAIL: Fate.REFUSED}
    chosen = {k.name: k.values[trial.params[k.name]] for k in knobs if k.name in trial.params}
    value = math.inf if trial.state is state.FAIL else float(trial.value)
    reason = trial.user_attrs.get("reason", "")
    return Trial(trial.number, chosen, fates[trial.state], value, reason)
