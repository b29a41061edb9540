"""Specs without recipes beside Numba: what rules make of them, against loops as one writes them.

python -m bench specs [files...]

Each spec is taken without its recipes. Numba gets the same loops (`loops`), parallel and with
fastmath, in both orders that one would try; its better one counts. Both run in one process, round
by round, on the same arrays, at two sizes and on one thread and all. What Numba has no plain form
for is left out, and named.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numba
import numpy as np

from gen import language as specs
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.lower.variants import Plain
from gen.targets.registry import TARGETS
from gen.targets.target import Runnable, Target
from gen.trial.inputs import Array, random_arrays
from gen.trial.run import compiled
from gen.trial.sizes import kernel_dims
from gen.trial.timing import interleaved, usual_sizes

from .loops import NoLoops, to_numba

Call = Callable[[], object]


@final
@dataclass(frozen=True, slots=True)
class Timed:
    """One spec at one size on so many threads, in seconds."""

    spec: str
    sizes: Mapping[str, int]
    threads: int
    ours: float
    numba: float

    @property
    def ratio(self) -> float:
        """Above 1, we are ahead."""
        return self.numba / self.ours

    def __str__(self) -> str:
        sizes = " ".join(f"{dim}={size}" for dim, size in self.sizes.items())
        times = f"{self.ours * 1e3:10.4f} {self.numba * 1e3:10.4f}"
        return f"{self.spec:22} {sizes:34} {self.threads} {times} {self.ratio:7.2f}"


def main(files: Iterable[Path], threads: Iterable[int], rounds: int = 5) -> None:
    """Prints a row a time, and the geometric mean."""
    target = TARGETS.chosen(None, TARGETS[None].here()[-1:])[0]
    print(f"{'spec':22} {'sizes':34} t {'ours ms':>10} {'Numba ms':>10} {'ratio':>7}")
    found: list[Timed] = []
    for file in files:
        spec = replace(TARGETS.load(file), recipes=())
        try:
            for timed in _timed(spec, target, tuple(threads), rounds):
                found.append(timed)
                print(timed, flush=True)
        except (NoLoops, numba.core.errors.NumbaError) as error:
            reason = str(error).strip().splitlines()[0]
            print(f"{spec.name:22} left out: {reason}", file=sys.stderr)
    if found:
        ratios = [timed.ratio for timed in found]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(found)} times, geometric mean {mean:.2f}, least {min(ratios):.2f}")


def _timed(
    spec: KernelSpec, target: Target, threads: tuple[int, ...], rounds: int
) -> Iterator[Timed]:
    dtypes = specs.choices(spec)[0]
    peers = list(_peers(Plain(spec, dtypes)))
    kernel = compiled(spec, dtypes, target)
    for sizes in usual_sizes(spec)[-2:]:
        drawn = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
        for count in threads:
            numba.set_num_threads(count)
            calls = {("ours", 0): _ours(kernel, spec, drawn, sizes, count)}
            for k, peer in enumerate(peers):
                calls["numba", k] = _bound(peer, spec, drawn, sizes)
            seconds = interleaved(calls, rounds)
            best = min(time for (who, _), time in seconds.items() if who == "numba")
            yield Timed(spec.name, sizes, count, seconds["ours", 0], best)


def _ours(
    kernel: Runnable, spec: KernelSpec, drawn: Mapping[str, Array], sizes: Mapping[str, int], n: int
) -> Call:
    return kernel.bound(_copied(drawn), kernel_dims(spec, sizes), threads=n)


def _peers(plain: Plain) -> Iterator[Callable[..., Any]]:
    """Numba's functions: sums in a variable, and columns inside them."""
    for text in dict.fromkeys(to_numba(plain, columns=columns) for columns in (False, True)):
        names: dict[str, Any] = {"math": math, "np": np, "prange": numba.prange}
        exec(text, names)
        yield numba.njit(parallel=True, fastmath=True, nogil=True)(names["kernel"])


def _bound(
    peer: Callable[..., Any], spec: KernelSpec, drawn: Mapping[str, Array], sizes: Mapping[str, int]
) -> Call:
    dtypes = specs.choices(spec)[0]
    kernel = Plain(spec, dtypes).under(None)
    dims, defaults, arrays = kernel_dims(spec, sizes), oracle.defaults(spec), _copied(drawn)
    scalars = [np.dtype(s.dtype.value).type(defaults[s.name]) for s in kernel.scalars]
    buffers = [arrays[p.buffer.name] for p in kernel.parameters]
    given = (*(dims[dim] for dim in kernel.dims), *scalars, *buffers)

    def call() -> object:
        return peer(*given)

    with contextlib.suppress(ZeroDivisionError):
        call()
    return call


def _copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}
