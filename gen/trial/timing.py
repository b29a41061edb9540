"""A kernel timed beside its oracle, as a user of NumPy would run that, and beside the recipe that
rules would write: `tilesmith bench`.

Input: a spec, dtypes, targets, numbers of threads and sizes. Output: a Report: a row a size, with
the least time of each. Invariant: nothing is timed that was not right before, at the sizes that
are timed and at small ones. Rounds go round all that is compared, so that what disturbs the machine
for a while disturbs all of them.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar, final

import numpy as np

from .. import language as specs
from ..errors import TilesmithError
from ..language import Dtypes
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..lower.variants import suffix
from ..progress import SILENT, Progress
from ..targets.target import Runnable, Target
from .comparison import MUTE, Comparison, mute, tried
from .inputs import Array, memory, random_arrays
from .plain import Reference
from .run import checks, chosen, compiled
from .sizes import allowed, kernel_dims

K = TypeVar("K")

SAMPLE_SECONDS = 1e-3
"""One sample takes at least so long: short calls are repeated."""

ELEMENTS = (2**12, 2**16, 2**20)
"""Where no sizes are given, the largest array has about so many elements."""

MOST_ROW_BYTES = 2**32
"""What a row may take of memory then: a temporary may be larger than all arrays."""


_Key = tuple[str, int] | None
"""A level, with BY_RULES if rules wrote the recipe, and a number of threads; None: the oracle."""

BY_RULES = " by rules"

Order = Literal["C", "F"]
"""Which axis lies side by side in memory: the last, or the first."""


@final
@dataclass(frozen=True, slots=True)
class Timing:
    """The least seconds that a call took on a level with so many threads."""

    level: str
    threads: int
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Row:
    """What was timed at one size. oracle: the seconds of the oracle; None where there is none."""

    sizes: Mapping[str, int]
    oracle: float | None
    timings: tuple[Timing, ...]


@final
@dataclass(frozen=True, slots=True)
class BenchReport:
    """A table of times. checked: at how many sizes each level was right before it was timed."""

    kernel: str
    dtypes: str
    checked: int
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        right = f"right at {self.checked} sizes" if self.checked else "no oracle to compare with"
        title = f"{self.kernel} {self.dtypes}: {right}; milliseconds a call"
        first = self.rows[0]
        columns = [(t.level, _count(t.threads)) for t in first.timings]
        head = [*first.sizes, "", *(level for level, _ in columns)]
        below = [*("" for _ in first.sizes), "oracle", *(count for _, count in columns)]
        table = [head, below, *(_cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(map(str.rjust, line, widths)) for line in table)
        return "\n".join([title, *map(str.rstrip, lines)])


def _count(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _cells(row: Row) -> list[str]:
    base = "-" if row.oracle is None else _milliseconds(row.oracle)
    times = (_milliseconds(t.seconds) + _gain(row.oracle, t.seconds) for t in row.timings)
    return [*map(str, row.sizes.values()), base, *times]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4g}"


def _gain(base: float | None, seconds: float) -> str:
    return "" if base is None else f" ({base / seconds:.1f}x)"


def usual_sizes(spec: KernelSpec) -> list[dict[str, int]]:
    """Equal sizes for all dims, as ELEMENTS says; what `run` takes where constraints forbid it."""
    rank = max(1, *(len(a.shape) for a in spec.arguments))
    each = ({dim: 2 ** ((n.bit_length() - 1) // rank) for dim in spec.dims} for n in ELEMENTS)
    plain = specs.build(spec, specs.choices(spec)[0])
    fit = (s for s in each if allowed(spec, s) and memory(spec, plain, s) <= MOST_ROW_BYTES)
    return [*fit] or [chosen(spec, {})]


def bench(
    spec: KernelSpec,
    dtypes: Dtypes,
    targets: Sequence[Target],
    threads: Sequence[int],
    sizes: Sequence[Mapping[str, int]],
    rounds: int = 5,
    shown: Progress = SILENT,
    *,
    rules: bool = False,
    order: Order = "C",
) -> BenchReport:
    """Compiles the kernel, checks it and times it. sizes: a row each; dims not given as in `run`.
    shown: gets a part a target and a part a row. rules: what rules write is timed, too.
    order: of the arrays in memory.

    Inout arrays go from call to call as they are. The oracle takes as many threads as NumPy's
    libraries choose. Raises TilesmithError where a result is wrong, a size is not allowed or a
    level is not this machine's, and as `compiled` does.
    """
    for target in targets:
        if target.level not in target.here():
            raise TilesmithError(f"this machine does not run {target.level}")
    rows = [chosen(spec, given) for given in sizes]
    kernels: dict[str, Runnable] = {}
    checked = 0
    others = (("", spec), (BY_RULES, replace(spec, recipes=()))) if rules else (("", spec),)
    for target, (by, told) in itertools.product(targets, others):
        label = f"{target.level}{by}"
        shown.part(f"{spec.name} {suffix(dtypes)} {label}")
        kernel = kernels[label] = compiled(told, dtypes, target, shown)
        shown.detail("comparing with the oracle")
        small = tuple(checks(told, dtypes, target, kernel, np.random.default_rng(0)))
        checked = sum(_right(spec, label, case) for case in small)
        if mute(small):
            raise TilesmithError(f"{spec.name} {label}: {MUTE}")
    done = []
    for row in rows:
        shown.part(" ".join(f"{dim}={size}" for dim, size in row.items()))
        done.append(_row(spec, dtypes, kernels, threads, row, rounds, order))
    right = checked + len(rows) if spec.oracle else 0
    return BenchReport(spec.name, suffix(dtypes), right, tuple(done))


def _right(spec: KernelSpec, level: str, case: Comparison) -> bool:
    """True, or TilesmithError: what is wrong is not timed."""
    if case.worst <= 1:
        return True
    sizes = " ".join(f"{dim}={size}" for dim, size in case.sizes.items())
    raise TilesmithError(
        f"{spec.name} {level} is wrong at {sizes}: error {case.error:.2e} at {case.place}"
    )


def _row(
    spec: KernelSpec,
    dtypes: Dtypes,
    kernels: Mapping[str, Runnable],
    threads: Sequence[int],
    sizes: Mapping[str, int],
    rounds: int,
    order: Order,
) -> Row:
    drawn = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
    arrays = _copies(drawn, order)
    reference = Reference(spec, dtypes)
    for level, kernel in kernels.items():
        rng = np.random.default_rng(1)
        _right(spec, level, tried(reference, kernel, _copies(arrays, order), sizes, rng))
    dims = kernel_dims(spec, sizes)
    calls: dict[_Key, Callable[[], object]] = {
        (level, count): kernel.bound(arrays, dims, threads=count)
        for level, kernel in kernels.items()
        for count in threads
    }
    if formulas := oracle.as_written(spec, arrays):
        calls[None] = lambda: [formula() for formula in formulas]
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        times = interleaved(calls, rounds)
    timings = tuple(
        Timing(key[0], key[1], seconds) for key, seconds in times.items() if key is not None
    )
    return Row(dict(sizes), times.get(None), timings)


def _copies(arrays: Mapping[str, Array], order: Order) -> dict[str, Array]:
    return {name: array.copy(order) for name, array in arrays.items()}


def interleaved(
    calls: Mapping[K, Callable[[], object]], rounds: int, pause: float = 0
) -> dict[K, float]:
    """The least seconds of each call, in rounds over all of them. pause: seconds before each, in
    which threads of the one before go to sleep.
    """
    repeats = {key: max(1, int(SAMPLE_SECONDS / _seconds(call, 1))) for key, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for key, call in calls.items():
            time.sleep(pause)
            call()  # wakes threads and fills caches
            best[key] = min(best[key], _seconds(call, repeats[key]))
    return best


def _seconds(call: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times
