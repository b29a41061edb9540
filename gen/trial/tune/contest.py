"""Kernels compared: by time, in turn, or where no time can be taken by what they ask of memory.

Input: kernels that are right, and calls of theirs. Output: numbers, less is better: rounds of them,
each of which has all kernels at all sizes, so that what disturbs the machine for a while disturbs
all of them.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, quantiles
from typing import Protocol, final

from ...targets.target import Runnable
from ..inputs import Arrays

SAMPLE_SECONDS = 1e-3
"""One sample takes at least so long: short calls are repeated."""

TURNS = 3
"""In a round each call has so many, of which the best counts: what takes the processor away for a
moment is no part of a kernel's time.
"""

LEAST_GAIN = 0.01
"""Of the time: less is not worth a line in a recipe, and hard to tell from chance."""

Round = tuple[tuple[float, ...], ...]
"""For each kernel a number at each size."""


@final
@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call: its sizes, its arrays, and the sizes of all dims of the kernel."""

    sizes: Mapping[str, int]
    arrays: Arrays
    dims: Mapping[str, int]

    def __str__(self) -> str:
        return " ".join(f"{dim}={size}" for dim, size in self.sizes.items())


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """What numbers mean. remark: lines that say so."""

    word: str
    scale: float
    remark: tuple[str, ...] = ()

    def __call__(self, number: float) -> str:
        return f"{self.scale * number:.4g} {self.word}"


class Contest(Protocol):
    """rounds: of a trial that is not stopped early. last: of those that may win. conditions: that
    matter to the numbers, in words.
    """

    @property
    def rounds(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def unit(self) -> Unit: ...

    @property
    def conditions(self) -> str: ...

    def __call__(self, kernels: Sequence[Runnable], cases: Sequence[TimedCall]) -> Iterator[Round]:
        """Rounds, as many as are asked for."""


@final
@dataclass(frozen=True, slots=True)
class ByTime:
    """Seconds a call."""

    threads: int
    rounds: int = 8
    last: int = 21
    clock: Callable[[], float] = time.perf_counter
    unit: Unit = Unit("ms", 1e3)

    @property
    def conditions(self) -> str:
        return f", {self.threads} thread{'s' * (self.threads > 1)}"

    def __call__(self, kernels: Sequence[Runnable], cases: Sequence[TimedCall]) -> Iterator[Round]:
        calls = [
            [k.bound(c.arrays, c.dims, threads=self.threads, resident=True) for c in cases]
            for k in kernels
        ]
        repeats = [
            [max(1, int(SAMPLE_SECONDS / max(self._seconds(c, 1), 1e-9))) for c in row]
            for row in calls
        ]
        forth = range(len(kernels))
        while True:
            found = [[math.inf] * len(cases) for _ in kernels]
            for turn in range(TURNS):
                for k in reversed(forth) if turn % 2 else forth:
                    for j, call in enumerate(calls[k]):
                        call()  # wakes threads and fills caches
                        found[k][j] = min(found[k][j], self._seconds(call, repeats[k][j]))
            yield tuple(map(tuple, found))

    def _seconds(self, call: Callable[[], None], times: int) -> float:
        start = self.clock()
        for _ in range(times):
            call()
        return (self.clock() - start) / times


@final
@dataclass(frozen=True, slots=True)
class ByCount:
    """`Runnable.weight`: the same each time, so one round tells all."""

    rounds: int = 1
    last: int = 1
    unit: Unit = Unit(
        "counted",
        1,
        (
            "no GPU is here: ranked by the emulator's counts, which are no times: sectors asked,",
            "passes of shared memory with its conflicts, and idle lanes in warps",
        ),
    )
    conditions: str = ""

    def __call__(self, kernels: Sequence[Runnable], cases: Sequence[TimedCall]) -> Iterator[Round]:
        found = tuple(tuple(k.weight(c.arrays, c.dims) or 0.0 for c in cases) for k in kernels)
        while True:
            yield found


def ratio(rounds: Sequence[Round], kernel: int) -> float:
    """The least of a kernel's numbers over the least of the first's, the geometric mean over the
    sizes.
    """
    return _mean(least(rounds, kernel), least(rounds, 0))


def least(rounds: Sequence[Round], kernel: int) -> tuple[float, ...]:
    """The least number at each size."""
    return tuple(map(min, zip(*(r[kernel] for r in rounds), strict=True)))


def _mean(these: Sequence[float], those: Sequence[float]) -> float:
    each = [(x + _TINY) / (y + _TINY) for x, y in zip(these, those, strict=True)]
    return geometric_mean(each)


_TINY = math.ulp(0.0) * 2**60  # what asks for nothing is as good as what asks for nothing


@final
@dataclass(frozen=True, slots=True)
class Gain:
    """A kernel's share of the first's time, round by round: the median, and the half around it."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def sure(self) -> bool:
        """Whether it is less in three of four rounds, and by LEAST_GAIN in half of them."""
        return self.median <= 1 - LEAST_GAIN and self.high < 1

    def __str__(self) -> str:
        if self.rounds == 1:
            return f"{self.median:.3f} of before"
        return (
            f"{self.median:.3f} of before, {self.low:.3f} to {self.high:.3f} in half of"
            f" {self.rounds} rounds"
        )


def gain(rounds: Sequence[Round], kernel: int) -> Gain:
    each = [_mean(r[kernel], r[0]) for r in rounds]
    low, median, high = quantiles(each, method="inclusive") if len(each) > 1 else each * 3
    return Gain(median, low, high, len(each))
