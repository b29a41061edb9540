"""Times on the GPU: medians by device events, inputs rotated beyond its cache, beside peers.

Calls are queued behind a large copy, so that what is measured is the GPU's time and not the
processor's. The floor is the time in which a device-to-device copy moves the bytes that a kernel
must read and write.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from statistics import median, quantiles
from types import ModuleType
from typing import Any, Protocol, final

from .budget import Budget
from .formulas import F, Work, inputs, works
from .rows import Row, Status, caught, failure

PART = "times"
ROUNDS = 3
CALLS = 10  # a round


class Stopwatch(Protocol):
    cache: int
    """Bytes of the GPU's last cache."""

    def measure(self, calls: Sequence[Callable[[], object]]) -> list[float]:
        """Microseconds that each takes on the GPU."""

    def copy(self) -> int:
        """Copies from the device to the device; the bytes read and written."""


@final
class Events:
    """Device events on CuPy's current stream, behind copies that take a millisecond or so."""

    def __init__(self, xp: ModuleType) -> None:
        device = xp.cuda.Device()
        self.xp = xp
        self.cache = int(device.attributes["L2CacheSize"])
        self.held = [xp.ones(min(1 << 30, device.mem_info[1] // 16), "u1") for _ in range(2)]

    def measure(self, calls: Sequence[Callable[[], object]]) -> list[float]:
        cuda = self.xp.cuda
        marks = [(cuda.Event(), cuda.Event()) for _ in calls]
        stream = cuda.get_current_stream()
        self.copy()
        self.copy()
        for call, (start, end) in zip(calls, marks, strict=True):
            start.record(stream)
            call()
            end.record(stream)
        stream.synchronize()
        return [1e3 * float(cuda.get_elapsed_time(*pair)) for pair in marks]

    def copy(self) -> int:
        to, source = self.held
        self.xp.copyto(to, source)
        return 2 * int(to.nbytes)


def copy_rate(watch: Stopwatch) -> float:
    """Bytes a second, read and written ones counted, of a copy on the device."""
    took = watch.measure([watch.copy] * (CALLS + 1))[1:]
    return watch.copy() / (median(took) * 1e-6)


def together(
    watch: Stopwatch, ways: Mapping[str, Sequence[Callable[[], object]]]
) -> dict[str, list[float]]:
    """The times of each way, in turn, so that a slow moment is everyone's. The first is left out.

    Each way is a list of calls, one for each set of inputs.
    """
    for calls in ways.values():
        watch.measure([calls[0], calls[-1]])
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, calls in ways.items():
            turns = [calls[k % len(calls)] for k in range(CALLS + 1)]
            found[name] += watch.measure(turns)[1:]
    return found


def sets_of_inputs(work: Work, dtype: str, cache: int) -> int:
    """So many that between two uses of one more than the cache holds is read and written."""
    moved = work.elements * int(dtype[-2:]) // 8
    return min(2 + ceil(2 * cache / moved), 64)


Peer = Callable[[list[Any]], Callable[[], object]]
"""Given the inputs: the call to measure."""


def timed(
    f: F, ts: ModuleType, watch: Stopwatch, work: Work, dtype: str, peers: Mapping[str, Peer]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The times of each way, `tilesmith` the first, and why some have none."""
    count = sets_of_inputs(work, dtype, watch.cache)
    sets = [inputs(f, work, dtype, seed) for seed in range(count)]
    makers = {"tilesmith": _ours(f, ts, work, dtype), **peers}
    return beside(work.kernel, watch, sets, makers)


def beside(
    kernel: str, watch: Stopwatch, sets: Sequence[list[Any]], makers: Mapping[str, Peer]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The times of each that can be called with these inputs, and why others cannot."""
    ways: dict[str, Sequence[Callable[[], object]]] = {}
    without: dict[str, str] = {}
    for name, peer in makers.items():
        try:
            calls = [peer(given) for given in sets]
            calls[0]()
            ways[name] = calls
        except Exception as error:  # whatever a peer raises: the others are timed all the same
            without[name] = failure(PART, kernel, name, error).text
    return together(watch, ways), without


def _ours(f: F, ts: ModuleType, work: Work, dtype: str) -> Peer:
    function = getattr(ts, work.kernel)

    def ours(given: list[Any]) -> Callable[[], object]:
        out = f.xp.empty(work.result, dtype)
        return lambda: function(*given, out=out, **work.options)

    return ours


def rows(
    f: F,
    ts: ModuleType,
    watch: Stopwatch,
    todo: Sequence[tuple[str, Sequence[str]]],
    peers_of: Callable[[Work, str], Mapping[str, Peer]],
    budget: Budget,
    part: str = PART,
    scale: int = 1,
) -> Iterator[Row]:
    """A row for each kernel, dtype and size. todo: kernels and their dtypes. All first sizes in
    float32 come first. scale: as of `works`.
    """
    rate = copy_rate(watch)
    yield Row(part, "copy", "device to device", Status.MEASURED, "", {"GB/s": rate / 1e9})
    for kernel, dtype, work in in_order(todo, scale):
        what = f"{dtype} {work}"

        def made(
            kernel: str = kernel, work: Work = work, dtype: str = dtype, what: str = what
        ) -> Row:
            took, without = timed(f, ts, watch, work, dtype, peers_of(work, dtype))
            moved = work.elements * int(dtype[-2:]) // 8
            return row(part, kernel, what, moved, work.operations, took, without, rate)

        yield caught(part, kernel, what, made, budget)


def in_order(
    todo: Sequence[tuple[str, Sequence[str]]], scale: int
) -> Iterator[tuple[str, str, Work]]:
    places = [
        (dtype != "float32", place, number, kernel, dtype, work)
        for number, (kernel, dtypes) in enumerate(todo)
        for dtype in dtypes
        for place, work in enumerate(works(kernel, scale))
    ]
    for *_, kernel, dtype, work in sorted(places, key=lambda p: p[:3]):
        yield kernel, dtype, work


def row(
    part: str,
    subject: str,
    what: str,
    moved: int,
    operations: int,
    took: Mapping[str, Sequence[float]],
    without: Mapping[str, str],
    rate: float,
) -> Row:
    """moved: bytes that must be read and written. took: microseconds. without: why some have none.
    rate: of a copy. operations: 0 where they are not what takes the time.
    """
    texts = [f"{name}: {why}" for name, why in without.items()]
    if "tilesmith" not in took:
        return Row(part, subject, what, Status.FAILED, "; ".join(texts))
    medians = {name: median(times) for name, times in took.items()}
    ours = medians["tilesmith"]
    low, _, high = quantiles(took["tilesmith"], n=4)
    numbers = {f"{name} us": time for name, time in medians.items()}
    numbers["spread %"] = 100 * (high - low) / ours
    numbers["GB/s"] = moved / ours / 1e3
    numbers["of the copy's rate %"] = 100 * moved / ours / 1e-6 / rate
    if operations:
        numbers["TFLOP/s"] = operations / ours / 1e6
    others = {name: time for name, time in medians.items() if name != "tilesmith"}
    if others:
        best = min(others, key=lambda name: others[name])
        numbers["best peer's time over ours"] = others[best] / ours
        texts.insert(0, f"best peer: {best}")
    return Row(part, subject, what, Status.MEASURED, "; ".join(texts), numbers)
