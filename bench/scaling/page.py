"""What was found, as lines of Markdown: the jumps, those that the machine explains, and times.

Input: Results of `measuring`. Output: the last section of docs/scaling.md.
"""

from collections.abc import Iterable, Iterator, Sequence

from build_tools import markdown

from ..cases import size_text
from ..results import Results, Row
from . import measuring
from .jumps import Jump, Point, fixed, told

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SHOWN = (256, 4 * KIB, 64 * KIB, MIB, 16 * MIB, 256 * MIB, GIB)
NEAR = 1.3  # a size stands for one of SHOWN that is within this factor

Found = tuple[str, int, Jump]


def lines(found: Results) -> Iterator[str]:
    every = measuring.found_jumps(found)
    yield f"{found.machine['processor']}, {found.machine['processors']} processors;"
    yield f"tilesmith {found.peers[measuring.OURS].version}."
    yield "\n### Jumps\n"
    yield from _jumps(found, [each for each in every if not each[2].explained], "none")
    yield "\n### Jumps that the machine's own streams have\n"
    yield from _jumps(found, [each for each in every if each[2].explained], "none")
    for threads in dict.fromkeys(row.threads for row in found.rows):
        yield f"\n### Microseconds a call, {threads} thread{'s' * (threads > 1)} (NumPy's)\n"
        yield from _times(found, threads)


# ---------------------------------------------------------------- jumps


def _jumps(found: Results, every: Sequence[Found], none: str) -> Iterator[str]:
    if not every:
        yield f"There are {none}."
        return
    head = ("kernel", "threads", "from", "to", "bytes", "us", "us", "jump", "with it")
    yield from markdown.table(head, "lrllrrrrl", (_cells(found, *each) for each in every))


def _cells(found: Results, name: str, threads: int, jump: Jump) -> Iterator[str]:
    yield name
    yield str(threads)
    yield from (size_text(p.dims) for p in (jump.before, jump.after))
    yield size_of(jump.after.size)
    yield from (microseconds(p.seconds) for p in (jump.before, jump.after))
    yield f"{jump.ratio:.2f}{' ~' * jump.noisy}"
    yield "; ".join(told(jump, one_thread(found, name) if threads > 1 else {}))


def one_thread(found: Results, name: str) -> dict[tuple[int, ...], float]:
    return {p.dims: p.seconds for p in measuring.points(measuring.of(found, name, 1))}


# ---------------------------------------------------------------- times


def _times(found: Results, threads: int) -> Iterator[str]:
    names = dict.fromkeys(row.kind for row in found.rows)
    largest = max(row.bytes_read + row.bytes_written for row in found.rows)
    shown = [size for size in SHOWN if size <= largest * NEAR]
    head = ("kernel", "sizes", "fixed", *map(size_of, shown))
    rows = (_times_of(name, measuring.of(found, name, threads), shown) for name in names)
    yield from markdown.table(head, "lrr" + "r" * len(shown), rows)


def _times_of(name: str, rows: Sequence[Row], shown: Iterable[int]) -> Iterator[str]:
    ours = measuring.points(rows)
    theirs = {
        row.dims: min(row.cells[measuring.NUMPY].seconds)
        for row in rows
        if row.seconds(measuring.NUMPY) is not None
    }
    yield name
    yield str(len(ours))
    yield microseconds(fixed(ours)) if ours else ""
    for size in shown:
        point = nearest(ours, size)
        other = theirs.get(point.dims) if point else None
        beside = f" ({microseconds(other)})" if other else ""
        yield microseconds(point.seconds) + beside if point else ""


def nearest(points: Sequence[Point], size: int) -> Point | None:
    """The point whose bytes are the nearest, if they are near."""
    near = [p for p in points if 1 / NEAR < p.size / size < NEAR]
    return min(near, key=lambda p: max(p.size / size, size / p.size), default=None)


# ---------------------------------------------------------------- numbers


def microseconds(seconds: float) -> str:
    value = seconds * 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def size_of(size: float) -> str:
    for unit, name in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"
