"""Jumps: neighbouring sizes between which the cost of a unit of work grows by more than it may.

Input: points of one series, in the order of their work: their sizes, times, and the floor that was
measured beside each. Output: the jumps.

A call's time is taken for `fixed + cost * work`. fixed: the least time of the smallest sizes, less
their work at the best cost that any size has. The time that is expected at a size is that of its
neighbour, with all but the fixed part grown as the work grows: the bytes that must move, or the
operations, whichever grow more. So a small call may not take longer just because it does a little
more, and a large one cannot hide a jump behind what is fixed.

A jump is `explained` where the floor grows with it: the machine itself slows down, measured over as
many bytes, and all but the fixed part of the time may slow down as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

LIMIT = 1.3
SMALLEST = 5  # sizes, among which the least time is sought
TELLING = 1.1  # what the machine explains of a jump, to be told
THREADS_BEGIN = 0.85  # of one thread's time: what two take where the second helps


@final
@dataclass(frozen=True, slots=True)
class Point:
    """One size. floor: seconds, 0 where none was measured. how: the variant that ran."""

    dims: tuple[int, ...]
    size: int  # bytes read and written
    operations: int
    seconds: float
    noisy: bool = False
    floor: float = 0.0
    bandwidth: float = 0.0
    how: str = ""


@final
@dataclass(frozen=True, slots=True)
class Jump:
    """ratio: the time after over the expected one. left: over what is expected of a machine that
    slows down as its streams do.
    """

    before: Point
    after: Point
    ratio: float
    left: float

    @property
    def explained(self) -> bool:
        return self.left <= LIMIT

    @property
    def noisy(self) -> bool:
        return self.before.noisy or self.after.noisy


def growth(before: Point, after: Point) -> float:
    """Of the work."""
    size = after.size / before.size
    return max(size, after.operations / before.operations if before.operations else size)


def works(points: Sequence[Point]) -> list[float]:
    """Of each point, with that of the first as the unit."""
    found = [1.0]
    for before, after in pairwise(points):
        found.append(found[-1] * growth(before, after))
    return found


def fixed(points: Sequence[Point]) -> float:
    """Seconds of every call, however small."""
    if not points:
        return 0.0
    timed = [(p.seconds, work) for p, work in zip(points, works(points), strict=True)]
    least, its_work = min(timed[:SMALLEST])
    return max(0.0, least - its_work * min(seconds / work for seconds, work in timed))


def jumps(points: Sequence[Point], limit: float = LIMIT) -> list[Jump]:
    """Of more than `limit`, in the order of sizes."""
    if len(points) < 2:
        return []
    always, found = fixed(points), []
    for before, after in pairwise(points):
        more = growth(before, after)
        grown = max(before.seconds - always, 0.0) * more
        slowed = grown * _machine(before, after, more)
        ratio, left = (after.seconds / (always + part) for part in (grown, slowed))
        if ratio > limit:
            found.append(Jump(before, after, ratio, left))
    return found


def _machine(before: Point, after: Point, more: float) -> float:
    """By how much the floor grows more than the work does; 1 where it does not."""
    if not before.floor or not after.floor:
        return 1.0
    return max(1.0, after.floor / before.floor / more)


def told(jump: Jump, alone: dict[tuple[int, ...], float]) -> list[str]:
    """What changes with the jump. alone: one thread's times, where more than one were measured."""
    said = []
    before, after = jump.before, jump.after
    if jump.ratio > TELLING * jump.left and before.bandwidth > after.bandwidth:
        said.append(
            f"streams fall from {before.bandwidth / 1e9:.0f} to {after.bandwidth / 1e9:.0f} GB/s"
        )
    if before.how != after.how:
        said.append(f"{before.how} gives way to {after.how}")
    shares = [p.seconds / alone[p.dims] for p in (before, after) if alone.get(p.dims)]
    if len(shares) == 2:
        if shares[0] > THREADS_BEGIN and shares[1] > 1 / THREADS_BEGIN:
            said.append(f"more threads take {shares[1]:.1f} times as long as one")
        elif shares[0] < THREADS_BEGIN < shares[1]:
            said.append("more threads no longer help")
    if all(0 <= b - a <= 1 for a, b in zip(before.dims, after.dims, strict=True)):
        said.append("the odd size beside a round one")
    return said
