"""Launches: a captured graph, two streams, and what a call takes on the processor.

`xp` is CuPy, `ts` the kernels' package.
"""

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from statistics import median
from types import ModuleType
from typing import Any

from .budget import Budget
from .formulas import F, Work, inputs, works
from .rows import Row, Status, caught

PART = "launches"
MOST_ABOVE = 5.0  # microseconds of a call with out= above a raw launch


def check(f: F, ts: ModuleType, kernels: Sequence[str], budget: Budget) -> Iterator[Row]:
    for kernel in kernels:
        for what, tried in {"captured graph": graph, "two streams": streams}.items():
            yield caught(PART, kernel, what, partial(tried, f, ts, small(kernel)), budget)


def small(kernel: str) -> Work:
    """A call that is over in microseconds."""
    return next(works(kernel, scale=16))


def _set(f: F, work: Work, seed: int) -> tuple[list[Any], Any]:
    given = inputs(f, work, "float32", seed)
    return given, f.xp.full(work.result, float("nan"), "float32")


def graph(f: F, ts: ModuleType, work: Work) -> Row:
    """A call is captured, the inputs are changed, and the replay is beside a call."""
    function, xp = getattr(ts, work.kernel), f.xp
    given, out = _set(f, work, 0)
    other, right = _set(f, work, 1)
    ts.warmup(function)  # and no call before the captured one
    xp.cuda.Device().synchronize()
    stream = xp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            function(*given, out=out, **work.options)
        except BaseException:
            with suppress(Exception):  # the first error says more
                stream.end_capture()
            raise
        captured = stream.end_capture()
        for x, y in zip(given, other, strict=True):
            x[...] = y
        for _ in range(2):
            out.fill(float("nan"))
            captured.launch(stream)
        stream.synchronize()
    function(*other, out=right, **work.options)
    status = Status.RIGHT if bool((out == right).all()) else Status.WRONG
    return Row(PART, work.kernel, "captured graph", status)


def streams(f: F, ts: ModuleType, work: Work, rounds: int = 50) -> Row:
    """Two streams with inputs of their own at once, beside one after the other."""
    function, xp = getattr(ts, work.kernel), f.xp
    sets = [_set(f, work, seed) for seed in range(2)]
    right = []
    for given, out in sets:
        function(*given, out=out, **work.options)
        right.append(out.copy())
        out.fill(float("nan"))
    xp.cuda.Device().synchronize()
    both = [xp.cuda.Stream(non_blocking=True) for _ in sets]
    for _ in range(rounds):
        for stream, (given, out) in zip(both, sets, strict=True):
            with stream:
                function(*given, out=out, **work.options)
    xp.cuda.Device().synchronize()
    same = all(bool((y == out).all()) for y, (_, out) in zip(right, sets, strict=True))
    return Row(PART, work.kernel, "two streams", Status.RIGHT if same else Status.WRONG)


# ---------------------------------------------------------------- what a call takes


RAW = """extern "C" __global__ void tilesmith_nothing(const float *x, float *y, long long n)
{
    const long long i = blockIdx.x * 256ll + threadIdx.x;
    if (i < n) y[i] = x[i];
}"""


def overhead(f: F, ts: ModuleType, kernels: Sequence[str]) -> Iterator[Row]:
    """Microseconds of the processor for a call with out=, and above a launch in turn with it."""
    raw = _raw_launch(f.xp)
    for kernel in kernels:
        made = partial(_with_out, f, ts, kernel, raw)
        yield caught(PART, kernel, "a call with out=", made)


def _with_out(f: F, ts: ModuleType, kernel: str, raw: Callable[[], object]) -> Row:
    work = next(works(kernel, scale=64))
    given, out = _set(f, work, 0)
    call = _call(getattr(ts, kernel), given, out, work.options)
    launch, took = per_call((raw, call), f.xp.cuda.Device().synchronize)
    above = took - launch
    text = "" if above <= MOST_ABOVE else f"more than {MOST_ABOVE:g} us above a raw launch"
    numbers = {"us": took, "raw launch us": launch, "above a raw launch us": above}
    return Row(PART, kernel, "a call with out=", Status.MEASURED, text, numbers)


def _call(
    function: Callable[..., Any], given: Sequence[Any], out: Any, options: Any
) -> Callable[[], object]:
    return lambda: function(*given, out=out, **options)


def per_call(
    ways: Sequence[Callable[[], object]],
    wait: Callable[[], object],
    batches: int = 15,
    calls: int = 200,
) -> list[float]:
    """Microseconds until a call returns, a way: the median of batches that the GPU's queue holds.

    The ways take turns, since a processor's speed changes from one second to the next.
    """
    took: list[list[float]] = [[] for _ in ways]
    for _ in range(batches + 1):
        for call, times in zip(ways, took, strict=True):
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - start) / calls * 1e6)
    wait()
    return [median(times[1:]) for times in took]


def _raw_launch(xp: ModuleType) -> Callable[[], object]:
    """A call of cuLaunchKernel by CuPy's binding of it, its arguments packed beforehand."""
    kernel = xp.RawKernel(RAW, "tilesmith_nothing")
    x, y = xp.zeros(256, "f4"), xp.zeros(256, "f4")
    values = [ctypes.c_void_p(x.data.ptr), ctypes.c_void_p(y.data.ptr), ctypes.c_longlong(256)]
    packed = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
    stream = xp.cuda.get_current_stream().ptr
    driver, function, address = xp.cuda.driver, kernel.kernel.ptr, ctypes.addressof(packed)

    def launch(kept: object = (values, packed, kernel, x, y)) -> None:
        driver.launchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, address, 0)

    return launch
