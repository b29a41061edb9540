"""What a step changed in a tree's text, so that a reader sees it at once.

Input: two texts, where indentation is structure. Output: the lines of both in order, each kept,
added, removed, or moved to another depth. A line that only moved to another depth counts as the
same line: a loop that is put around a hundred lines is one line, not two hundred. Invariant: kept,
moved and added lines are the second text; kept, moved and removed ones the first but for depth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import groupby
from typing import final

CONTEXT = 2
"""Lines kept that are shown around a change."""

_LONGEST = 5  # lines that moved in a row and are all shown


@final
class Mark(Enum):
    KEPT = " "
    REMOVED = "-"
    ADDED = "+"
    DEEPER = ">"
    OUTWARD = "<"


@final
@dataclass(frozen=True, slots=True)
class Line:
    mark: Mark
    text: str


def differences(before: str, after: str) -> tuple[Line, ...]:
    """All lines of both texts."""
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, _bare(old), _bare(new), autojunk=False)
    lines: list[Line] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            lines += map(_same, old[a:b], new[c:d])
        else:
            lines += (Line(Mark.REMOVED, text) for text in old[a:b])
            lines += (Line(Mark.ADDED, text) for text in new[c:d])
    return tuple(lines)


def _bare(lines: Sequence[str]) -> list[str]:
    return [line.lstrip() for line in lines]


def _same(old: str, new: str) -> Line:
    by = len(new) - len(old)
    return Line(Mark.DEEPER if by > 0 else Mark.OUTWARD if by else Mark.KEPT, new)


def excerpt(lines: Sequence[Line], context: int = CONTEXT) -> Iterator[Line]:
    """The lines that are not kept, with some around them; what is left out is said."""
    near = {-1, len(lines)} | {
        k + by
        for k, line in enumerate(lines)
        if line.mark is not Mark.KEPT
        for by in range(-context, context + 1)
    }
    shown = near | {k for k in range(len(lines)) if {k - 1, k + 1} <= near}
    runs = groupby(range(len(lines)), lambda k: (k in shown, lines[k].mark))
    left_out = 0
    for (is_shown, mark), group in runs:
        run = [lines[k] for k in group]
        if not is_shown:
            left_out += len(run)
            continue
        if left_out:
            yield _left_out(left_out, Mark.KEPT, run[0])
            left_out = 0
        if mark in (Mark.DEEPER, Mark.OUTWARD) and len(run) > _LONGEST:
            yield from run[:2]
            yield _left_out(len(run) - 3, mark, run[2])
            yield run[-1]
        else:
            yield from run
    if left_out:
        yield _left_out(left_out, Mark.KEPT, lines[-1])


def _left_out(count: int, mark: Mark, there: Line) -> Line:
    pad = " " * (len(there.text) - len(there.text.lstrip()))
    return Line(mark, f"{pad}... {count} line{'s' * (count != 1)}")
