"""The benchmark's kernels at its main sizes, beside PyTorch: whether large results are right, and
what they take.

PyTorch in float64, on the GPU, says what is right, within the benchmark's limit. Sizes are those
that are timed on processors, so arrays are taken in turn, as copies beyond the GPU's cache.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import ceil
from types import ModuleType
from typing import Any

from . import times
from .budget import Budget
from .rows import Row, Status, caught

PART = "bench"
MOST_SETS = 16


def rows(
    xp: ModuleType, torch: ModuleType, watch: times.Stopwatch, budget: Budget, *, compiled: bool
) -> Iterator[Row]:
    """A row a case. compiled: beside torch.compile, else PyTorch eager."""
    rate = times.copy_rate(watch)
    yield Row(PART, "copy", "device to device", Status.MEASURED, "", {"GB/s": rate / 1e9})
    for case in import_module("bench.cases").choose([], ["main"]):
        what = "x".join(map(str, case.dims)) + ", torch.compile" * compiled

        def made(case: Any = case, what: str = what) -> Row:
            return _tried(xp, torch, watch, case, what, rate, compiled)

        yield caught(PART, case.kernel.name, what, made, budget)


def _tried(
    xp: ModuleType,
    torch: ModuleType,
    watch: times.Stopwatch,
    case: Any,
    what: str,
    rate: float,
    compiled: bool,
) -> Row:
    kernel = case.kernel
    ours = import_module("bench.peers.tilesmith").KERNELS[kernel.name]
    theirs = import_module("bench.peers.torch").FUNCTIONS[kernel.name]
    drawn = [xp.asarray(x) for x in case.arguments()]
    right = theirs(*(_wide(x) for x in _tensors(torch, kernel.name, drawn)))
    out = xp.full(kernel.result(*case.dims), -1, kernel.dtype)
    ours(out, *drawn)()
    error = _largest_error(torch, torch.from_dlpack(out), right)
    if not error <= kernel.limit:
        return Row(PART, kernel.name, what, Status.WRONG, "", {"error": error})
    moved = case.bytes_read + case.bytes_written
    count = min(2 + ceil(2 * watch.cache / moved), MOST_SETS)
    sets = [[x.copy() for x in drawn] for _ in range(count)]
    function = torch.compile(theirs, dynamic=False) if compiled else theirs
    makers: dict[str, times.Peer] = {
        "tilesmith": lambda given: ours(xp.empty_like(out), *given),
        "torch.compile" if compiled else "torch": lambda given: partial(
            function, *_tensors(torch, kernel.name, given)
        ),
    }
    took, without = times.beside(kernel.name, watch, sets, makers)
    row = times.row(PART, kernel.name, what, moved, case.operations, took, without, rate)
    return replace(row, numbers={"error": error, **row.numbers})


def _wide(x: Any) -> Any:
    return x.double() if x.is_floating_point() else x


def _tensors(torch: ModuleType, name: str, given: list[Any]) -> list[Any]:
    """Of the same memory; an LSTM's weights are scaled, as the benchmark's processes do."""
    scaled = import_module("bench.references").scaled if name == "lstm" else None
    return [
        torch.from_dlpack(scaled(x) if scaled and k in (1, 2) else x) for k, x in enumerate(given)
    ]


def _largest_error(torch: ModuleType, got: Any, right: Any) -> float:
    """Relative to 1 + |right|; infinite where a result is NaN or has another shape."""
    if tuple(got.shape) != tuple(right.shape):
        return float("inf")
    error = abs(got.double() - right.double()) / (1 + abs(right.double()))
    return float(torch.nan_to_num(error, nan=float("inf")).max())
