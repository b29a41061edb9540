"""What the suites of specs share (`polybench`, `gallery`): problems, calls of ours, times, pages.

Input: a spec and sizes. Output: a Problem, which is the spec with scalars at the defaults that a
call has and the arrays of that call; what computes its outputs; and the least time of each of
several calls that are timed in turn, in-place arrays as they were before each call.
"""

import datetime
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import scipy

from gen import language as specs
from gen.ir.nodes import Intent
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.targets.registry import TARGETS
from gen.targets.target import Runnable, Target
from gen.trial.inputs import Array, random_arrays
from gen.trial.sizes import kernel_dims, with_defaults

HEADING = "## Times\n"
PAUSE = 0.005  # seconds, in which the threads of the one before go to sleep
SAMPLE = 0.02  # seconds of calls of one in a round, one call at least

Call = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""What computes the outputs of a call's arrays, which it may change."""

Who = TypeVar("Who")


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """A spec at a size: its scalars are defaults, `drawn` the arrays of a call."""

    spec: KernelSpec
    sizes: Mapping[str, int]
    drawn: Mapping[str, Array]

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.spec.arguments if a.intent is not Intent.IN)

    @property
    def restored(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.spec.arguments if a.intent is Intent.INOUT)


def problem_of(
    path: Path, given: Mapping[str, int], choice: Callable[[KernelSpec], specs.Dtypes]
) -> Problem:
    """given: the sizes of dims, and scalars that are not at their defaults."""
    spec, values = TARGETS.load(path), dict(given)
    spec = with_defaults(
        spec, {s.name: values.pop(s.name) for s in spec.scalars if s.name in values}
    )
    rng = np.random.default_rng(0)
    return Problem(spec, values, random_arrays(spec, choice(spec), values, rng))


def target_here() -> Target:
    """The best level of the usual target on the machine."""
    return TARGETS.chosen(None, TARGETS[None].here()[-1:])[0]


def ours(given: Problem, kernel: Runnable, threads: int) -> Call:
    """The kernel. Its call is bound where it is asked first: always with the same arrays."""
    dims = kernel_dims(given.spec, given.sizes)
    told = kernel.with_scalars(oracle.defaults(given.spec))
    bound: list[Callable[[], object]] = []

    def call(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        if not bound:
            bound.append(told.bound(arrays, dims, threads=threads))
        bound[0]()
        return arrays

    return call


def formulas(given: Problem) -> Call:
    """The oracle as it is written, as Python runs it."""
    scalars = oracle.defaults(given.spec)
    names: dict[str, Any] = {"np": np, "scipy": scipy, **given.sizes, **scalars}
    inputs = [a.name for a in given.spec.arguments if a.intent is not Intent.OUT]
    told = {
        o.output: eval(f"lambda {', '.join(inputs)}: ({o.text.text})", names)
        for o in given.spec.oracle
    }

    def call(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        taken = [arrays[name] for name in inputs]
        return {output: formula(*taken) for output, formula in told.items()}

    return call


def copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


# ---------------------------------------------------------------- fast


def least(
    given: Problem,
    calls: Mapping[Who, Call],
    rounds: int,
    around: Callable[[Who], AbstractContextManager[object]] = lambda _: nullcontext(),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Who, float]:
    """The least seconds of each call, of several in each round. around: what holds meanwhile."""
    best: dict[Who, float] = dict.fromkeys(calls, math.inf)
    timed = {who: _Timed(given, call, clock) for who, call in calls.items()}
    for _ in range(rounds):
        for who, each in timed.items():
            with around(who):
                time.sleep(PAUSE)
                best[who] = min(best[who], each.sample())
    return best


class _Timed:
    """A call with arrays of its own."""

    def __init__(self, given: Problem, call: Call, clock: Callable[[], float]) -> None:
        self.given, self.call, self.clock = given, call, clock
        self.arrays = copied(given.drawn)
        self.once()  # compiles, wakes threads and fills caches

    def once(self) -> float:
        for name in self.given.restored:
            self.arrays[name][...] = self.given.drawn[name]
        start = self.clock()
        self.call(self.arrays)
        return self.clock() - start

    def sample(self) -> float:
        """The least of some calls."""
        least, spent = math.inf, 0.0
        while spent < SAMPLE:
            seconds = self.once()
            least, spent = min(least, seconds), spent + seconds
        return least


# ---------------------------------------------------------------- pages


def milliseconds(seconds: float) -> str:
    return "" if math.isinf(seconds) else f"{seconds * 1e3:.3g}"


def mean(ratios: Sequence[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def told_sizes(given: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in given.items())


def put(page: str, told: str, lines: Iterable[str], heading: str = HEADING) -> str:
    """The page with the times as its last section, which `told` begins."""
    return "\n".join((f"{page.partition(heading)[0]}{heading}\n{told}", *lines, ""))


def keep(page: Path, told: str, lines: Iterable[str], heading: str = HEADING) -> None:
    """Writes them to the page, with the date in place of `{date}`."""
    today = datetime.datetime.now(datetime.UTC).date()
    page.write_text(put(page.read_text("utf-8"), told.format(date=today), lines, heading), "utf-8")
