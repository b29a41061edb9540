"""PolyBench: its thirty kernels beside NumPy and Numba.

python -m bench polybench [kernels...] [--size MEDIUM] [--rounds N] [--write]

Each spec is compiled with the recipe that rules write and, where it has one, with its own. At three
of PolyBench's sizes all results are compared with NumPy's, which says the same in another way; at
one size all are timed: round by round, in-place arrays as they were before each call, the least
time of each. Numba gets the same loops (`loops`), with parallel and fastmath, in both orders that
one would try, of which the better one counts. `--write` keeps the table in docs/polybench.md.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

from build_tools import markdown
from gen.errors import TilesmithError
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.lower.variants import Plain
from gen.targets.target import Runnable
from gen.trial.inputs import Array
from gen.trial.run import compiled
from gen.trial.sizes import kernel_dims

from . import ROOT
from .loops import NoLoops, to_numba
from .polybench_cases import BENCHMARKS, Benchmark, dtypes_of, in_numpy, problem
from .suite import (
    Call,
    Problem,
    copied,
    keep,
    least,
    mean,
    milliseconds,
    ours,
    target_here,
    told_sizes,
)

PAGE = ROOT / "docs" / "polybench.md"
COMMAND = "`python -m bench polybench --write`"
CHECKED = ("MINI", "SMALL", "MEDIUM")


def kernels(spec: KernelSpec) -> dict[str, Runnable]:
    """By rules, and by hand where the spec has a recipe."""
    target = target_here()
    told = {RULES: replace(spec, recipes=())} | ({HAND: spec} if spec.recipes else {})
    return {who: compiled(each, dtypes_of(spec), target) for who, each in told.items()}


def in_numba(given: Problem, functions: Sequence[Callable[..., Any]], which: int) -> Call:
    spec = given.spec
    kernel = Plain(spec, dtypes_of(spec)).under(None)
    dims, defaults = kernel_dims(spec, given.sizes), oracle.defaults(spec)
    scalars = [np.dtype(s.dtype.value).type(defaults[s.name]) for s in kernel.scalars]

    def call(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        buffers = (arrays[p.buffer.name] for p in kernel.parameters)
        functions[which](*(dims[dim] for dim in kernel.dims), *scalars, *buffers)
        return arrays

    return call


def numba_functions(spec: KernelSpec) -> tuple[Callable[..., Any], ...]:
    """Sums in a variable, and columns inside them; none where there is no plain form."""
    plain = Plain(spec, dtypes_of(spec))
    try:
        texts = dict.fromkeys(to_numba(plain, columns=columns) for columns in (False, True))
    except NoLoops:
        return ()
    return tuple(map(_jitted, texts))


def _jitted(text: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"math": math, "np": np, "prange": numba.prange}
    exec(text, names)
    made = numba.njit(parallel=True, fastmath=True, nogil=True, error_model="numpy")
    function: Callable[..., Any] = made(names["kernel"])
    return function


# ---------------------------------------------------------------- right


def assert_right(who: str, benchmark: Benchmark, size: str, given: Problem, call: Call) -> None:
    """Raises TilesmithError where a result is not NumPy's."""
    expected = in_numpy(given)(copied(given.drawn))
    found = call(copied(given.drawn))
    for name in given.written:
        off = np.max(np.abs(found[name] - expected[name]), initial=0)
        if not off <= 1e-11 * max(1.0, np.max(np.abs(expected[name]), initial=0)):
            message = f"{benchmark.name} {size}: {who} is off by {off:.1e} in {name}"
            raise TilesmithError(message)


# ---------------------------------------------------------------- fast

Key = tuple[str, int]
"""Who, and on how many threads."""

NUMPY, NUMBA, RULES, HAND = WHO = ("NumPy", "Numba", "rules", "hand")


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Of one benchmark. sizes: as told; seconds: the least of each."""

    name: str
    sizes: str
    seconds: Mapping[Key, float]

    def best(self, *who: str, threads: int | None = None) -> float:
        found = [s for (w, n), s in self.seconds.items() if w in who and threads in (None, n)]
        return min(found, default=math.inf)


def measured(benchmark: Benchmark, size: str, threads: Sequence[int], rounds: int) -> Row:
    """The row; right at all sizes first. Raises TilesmithError where something is not."""
    given = problem(benchmark, size)
    functions = numba_functions(given.spec)
    made = kernels(given.spec)
    for checked in CHECKED:
        small = problem(benchmark, checked)
        for who, kernel in made.items():
            call = ours(small, kernel, max(threads))
            assert_right(who, benchmark, checked, small, call)
        for which in range(len(functions)):
            assert_right(NUMBA, benchmark, checked, small, in_numba(small, functions, which))
    calls: dict[tuple[str, int, int], Call] = {}
    for count in threads:
        calls[NUMPY, count, 0] = in_numpy(given)
        for who, kernel in made.items():
            calls[who, count, 0] = ours(given, kernel, count)
        for which in range(len(functions)):
            calls[NUMBA, count, which] = in_numba(given, functions, which)
    libraries = ThreadpoolController()

    @contextmanager
    def on_threads(key: tuple[str, int, int]) -> Iterator[None]:
        numba.set_num_threads(key[1])
        with libraries.limit(limits=key[1], user_api="blas"):
            yield

    best: dict[Key, float] = {}
    for (who, count, _which), seconds in least(given, calls, rounds, on_threads).items():
        best[who, count] = min(best.get((who, count), math.inf), seconds)
    sizes = told_sizes(benchmark.at(size))
    return Row(benchmark.name, sizes, best)


# ---------------------------------------------------------------- the page


def head(threads: Sequence[int]) -> tuple[str, ...]:
    columns = (f"{who}, {n}" for who in WHO for n in threads)
    return ("kernel", "sizes", *columns, f"{NUMPY} / ours", f"{NUMBA} / ours")


def cells(row: Row, threads: Sequence[int]) -> Iterator[str]:
    yield row.name
    yield row.sizes
    for who in WHO:
        for count in threads:
            yield milliseconds(row.best(who, threads=count))
    for who in (NUMPY, NUMBA):
        yield _ratio(row, who)


def _ratio(row: Row, who: str) -> str:
    ratio = row.best(who) / row.best(RULES, HAND)
    return "" if math.isinf(ratio) else f"{ratio:.2f}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Each on as many threads as is best for it, and all on one."""
    for who in (NUMPY, NUMBA):
        for threads, told in (
            (1, "all on one thread"),
            (None, "each on its best number of threads"),
        ):
            ratios = [
                row.best(who, threads=threads) / row.best(RULES, HAND, threads=threads)
                for row in rows
            ]
            known = [r for r in ratios if 0 < r < math.inf]
            if known:
                ahead = sum(r > 1 for r in known)
                yield (
                    f"- {who}'s time over ours, {told}: geometric mean {mean(known):.2f};"
                    f" ours is faster"
                    f" in {ahead} of {len(known)}."
                )


def table(rows: Sequence[Row], threads: Sequence[int]) -> Iterator[str]:
    """Lines of Markdown."""
    first = head(threads)
    return markdown.table(first, "ll" + "r" * (len(first) - 2), (cells(r, threads) for r in rows))


def main(
    names: Sequence[str], size: str, threads: Sequence[int], rounds: int, *, write: bool
) -> None:
    """Prints a row a benchmark, then the table."""
    rows = []
    for benchmark in BENCHMARKS:
        if not names or benchmark.name in names:
            rows.append(measured(benchmark, size, threads, rounds))
            print(" ".join(cells(rows[-1], threads)), flush=True)
    lines = [*summary(rows), "", *table(rows, threads)]
    print("\n".join(lines))
    if write:
        keep(PAGE, f"Of PolyBench's {size} sizes, on {{date}} ({COMMAND}).\n", lines)
