"""Specs without recipes beside Numba and compiled PyTorch: what rules make of them, against what
one writes without much thought.

python -m bench specs [files...]

Each spec is taken without its recipes. Numba gets the same loops (`loops`), parallel and with
fastmath, in both orders that one would try; its better one counts. PyTorch gets the oracle, where
`torch.compile` takes it, compiled for the very shape. All run in one process, round by round, on
the same arrays, at two sizes and on one thread and all; between two of them is a pause in which
their threads go to sleep. What has no plain form for a peer, or gives something else, is left out,
and named.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numba
import numpy as np
import torch

from gen import language as specs
from gen.errors import TilesmithError
from gen.ir.nodes import Intent
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

OURS, NUMBA, TORCH = "ours", "Numba", "PyTorch"
PAUSE = 0.01  # seconds; libgomp's threads look for work for some milliseconds


@final
@dataclass(frozen=True, slots=True)
class Timed:
    """One spec at one size on so many threads. seconds: of each that has it."""

    spec: str
    sizes: Mapping[str, int]
    threads: int
    seconds: Mapping[str, float]

    def ratio(self, peer: str) -> float | None:
        """Above 1, we are ahead."""
        return self.seconds[peer] / self.seconds[OURS] if peer in self.seconds else None

    def __str__(self) -> str:
        sizes = " ".join(f"{dim}={size}" for dim, size in self.sizes.items())
        found = [self.ratio(peer) for peer in (NUMBA, TORCH)]
        told = " ".join(f"{'-' if r is None else format(r, '.2f'):>8}" for r in found)
        return f"{self.spec:22} {sizes:34} {self.threads} {self.seconds[OURS] * 1e3:10.4f} {told}"


def main(files: Iterable[Path], threads: Iterable[int], rounds: int = 5) -> None:
    """Prints a row a time, and the geometric means."""
    target = TARGETS.chosen(None, TARGETS[None].here()[-1:])[0]
    print(
        f"{'spec':22} {'sizes':34} t {'ours ms':>10} {NUMBA:>8} {TORCH:>8} (their time over ours)"
    )
    found: list[Timed] = []
    for file in files:
        for timed in _timed(
            replace(TARGETS.load(file), recipes=()), target, tuple(threads), rounds
        ):
            found.append(timed)
            print(timed, flush=True)
    for count in sorted({timed.threads for timed in found}):
        for peer in (NUMBA, TORCH):
            _summary(peer, count, [timed for timed in found if timed.threads == count])


def _summary(peer: str, threads: int, found: Iterable[Timed]) -> None:
    ratios = [ratio for timed in found if (ratio := timed.ratio(peer))]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"{peer}, {threads} threads: {len(ratios)} times, geometric mean {mean:.2f}, "
            f"least {min(ratios):.2f}"
        )


def _timed(
    spec: KernelSpec, target: Target, threads: tuple[int, ...], rounds: int
) -> Iterator[Timed]:
    dtypes = specs.choices(spec)[0]
    loops = list(_loops(Plain(spec, dtypes)))
    if not loops and not spec.oracle:
        return
    kernel = compiled(spec, dtypes, target)
    for sizes in usual_sizes(spec)[-2:]:
        drawn = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
        formulas = list(_formulas(kernel, spec, drawn, sizes))
        for count in threads:
            numba.set_num_threads(count)
            torch.set_num_threads(count)
            calls: dict[tuple[str, int], Call] = {
                (OURS, 0): kernel.bound(_copied(drawn), kernel_dims(spec, sizes), threads=count)
            }
            for k, function in enumerate(loops):
                try:
                    calls[NUMBA, k] = _bound(function, spec, drawn, sizes)
                except numba.core.errors.NumbaError as error:
                    _left_out(spec.name, NUMBA, error)
            calls |= {(TORCH, k): call for k, call in enumerate(formulas)}
            if len(calls) > 1:
                seconds = interleaved(calls, rounds, PAUSE)
                best = {
                    who: min(time for (name, _), time in seconds.items() if name == who)
                    for who, _ in seconds
                }
                yield Timed(spec.name, sizes, count, best)


def _result(
    kernel: Runnable, spec: KernelSpec, drawn: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    arrays = _copied(drawn)
    kernel.bound(arrays, kernel_dims(spec, sizes), threads=1)()
    return arrays


def _loops(plain: Plain) -> Iterator[Callable[..., Any]]:
    """Numba's functions: sums in a variable, and columns inside them."""
    try:
        texts = [to_numba(plain, columns=columns) for columns in (False, True)]
    except NoLoops as error:
        _left_out(plain.spec.name, NUMBA, error)
        return
    for text in dict.fromkeys(texts):
        names: dict[str, Any] = {"math": math, "np": np, "prange": numba.prange}
        exec(text, names)
        made = numba.njit(parallel=True, fastmath=True, nogil=True, error_model="numpy")
        yield made(names["kernel"])


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

    call()  # compiles it
    return call


def _formulas(
    kernel: Runnable, spec: KernelSpec, drawn: Mapping[str, Array], sizes: Mapping[str, int]
) -> Iterator[Call]:
    """The oracle, if it is one formula of an output, as `torch.compile` makes it."""
    if len(spec.oracle) != 1 or any(a.intent is Intent.INOUT for a in spec.arguments):
        return
    try:
        inputs = [a.name for a in spec.arguments if a.intent is Intent.IN]
        function = _function(spec, inputs, oracle.sizes(spec, drawn))
        torch._dynamo.reset()  # which counts what it has compiled, and gives up after some
        traced = torch.compile(torch.compiler.wrap_numpy(function), fullgraph=True, dynamic=False)
        tensors = [torch.from_numpy(drawn[name].copy()) for name in inputs]
        got = traced(*tensors).numpy()
        expected = _result(kernel, spec, drawn, sizes)[spec.oracle[0].output]
        if not np.allclose(
            got, expected, rtol=1e-3, atol=1e-3 * np.max(np.abs(expected), initial=0)
        ):
            raise TilesmithError("the compiled oracle gives something else")
    except Exception as error:  # whatever PyTorch raises of what it does not take
        _left_out(spec.name, TORCH, error)
        return
    yield lambda: traced(*tensors)


def _function(spec: KernelSpec, inputs: list[str], dims: Mapping[str, int]) -> Callable[..., Any]:
    """The oracle as a function of arrays; scalars have their defaults."""
    names: dict[str, Any] = {"np": np, "numpy": np, "min": np.minimum, "max": np.maximum}
    names |= {**dims, **oracle.defaults(spec)}
    function: Callable[..., Any] = eval(
        f"lambda {', '.join(inputs)}: ({spec.oracle[0].text.text})", names
    )
    return function


def _left_out(name: str, peer: str, error: Exception) -> None:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    print(f"{name:22} {peer} left out: {reason}", file=sys.stderr)


def _copied(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}
