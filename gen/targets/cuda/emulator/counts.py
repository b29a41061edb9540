"""What the memory instructions of warps ask for, as the emulator counts it, and a table of it.

A warp's instruction is one pass of its 32 threads through a place of the text. For global memory
the 32-byte sectors that its lanes' bytes lie in are *asked* for; so many as these bytes would fill
side by side are *needed*. For shared memory *conflicts* are the passes that the 32 banks of 4 bytes
take beyond the first (beyond the second, where elements have 8 bytes).
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class AccessCount:
    """Of all instructions at one place of the text that access one array.

    line, column: of the device text. bytes: of an element. idle: lanes that do nothing.
    """

    launch: str
    array: str
    line: int
    column: int
    shared: bool
    write: bool
    bytes: int
    instructions: int
    idle: int
    asked: int
    needed: int
    passes: int
    conflicts: int

    def __add__(self, other: "AccessCount") -> "AccessCount":
        """Of both, at the place of the first."""
        return AccessCount(
            self.launch,
            self.array,
            self.line,
            self.column,
            self.shared,
            self.write,
            self.bytes,
            self.instructions + other.instructions,
            self.idle + other.idle,
            self.asked + other.asked,
            self.needed + other.needed,
            self.passes + other.passes,
            self.conflicts + other.conflicts,
        )


def totals(counts: Sequence[AccessCount]) -> Iterator[AccessCount]:
    """One for each array and direction of each launch."""

    def key(count: AccessCount) -> tuple[str, bool, str, bool]:
        return count.launch, count.shared, count.array, count.write

    for _, same in itertools.groupby(sorted(counts, key=key), key):
        first, *rest = same
        yield sum(rest, start=first)


def weight(counts: Sequence[AccessCount]) -> float:
    """The sectors that are asked for, the passes of shared memory with their conflicts, and the
    share of instructions that idle lanes waste: the sum, since each takes a turn of its own.
    """
    shared = sum(c.instructions + c.conflicts for c in counts if c.shared)
    return sum(c.asked for c in counts if not c.shared) + shared + sum(c.idle for c in counts) / 32


def table(counts: Sequence[AccessCount]) -> list[str]:
    """Lines of a table, a row for each array and direction of each launch."""
    if not counts:
        return ["no memory is accessed"]
    head = ("", "instructions", "idle lanes", "sectors asked", "needed", "bank conflicts")
    rows = [row for count in totals(counts) for row in (_row(count),)]
    launches = dict.fromkeys(count.launch for count in totals(counts))
    widths = [max(len(r[k]) for r in (head, *(row for _, row in rows))) for k in range(len(head))]
    lines = [_line(head, widths)]
    for launch in launches:
        lines += [launch, *(_line(row, widths) for of, row in rows if of == launch)]
    return lines


def _row(count: AccessCount) -> tuple[str, tuple[str, ...]]:
    does = "write" if count.write else "read"
    name = f"  {does} {count.array}" + (" (shared)" if count.shared else "")
    lanes = f"{count.idle / (32 * count.instructions):.1%}"
    asked = (
        ("", "", f"{count.conflicts}")
        if count.shared
        else (
            f"{count.asked}",
            f"{count.needed}",
            "",
        )
    )
    return count.launch, (name, f"{count.instructions}", lanes, *asked)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *rest)).rstrip()
