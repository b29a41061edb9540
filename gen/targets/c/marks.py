"""Which part of the tree a line of C comes from.

While C is made, marks stand as lines of their own around what a variant, a loop or a block became.
Lines are indented, joined and split on their way, which leaves marks where they are. They are
written in characters for private use, which are in no word of C: nothing that looks at the lines
takes a mark for code. Invariant: without the marks the text is what it would be if none were made.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import final

_BYTE, _OPEN, _CLOSE = 0xE000, "\ue100", "\ue101"
_MARK = re.compile(f"[ ]*(?:{_OPEN}([\ue000-\ue0ff]*)|{_CLOSE})")


@final
class Owner(StrEnum):
    """What can own lines, as the first word of an owner such as `block e`."""

    VARIANT = "variant"
    LOOP = "loop"
    BLOCK = "block"


def marked(kind: Owner, name: str, lines: Sequence[str]) -> list[str]:
    """The lines, and around them that they belong to this variant, loop or block."""
    if not lines:
        return []
    owner = "".join(chr(_BYTE + byte) for byte in f"{kind} {name}".encode())
    return [_OPEN + owner, *lines, _CLOSE]


def unmarked(text: str) -> str:
    """The text without the lines that are marks."""
    return "".join(line for line in text.splitlines(True) if not _MARK.fullmatch(line.rstrip("\n")))


def owned(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """The lines that are no marks, each with its owners, outer ones first."""
    found: list[tuple[str, tuple[str, ...]]] = []
    owners: list[str] = []
    for line in text.splitlines():
        mark = _MARK.fullmatch(line)
        if mark is None:
            found.append((line, tuple(owners)))
        elif mark[1] is None:
            owners.pop()
        else:
            owners.append(bytes(ord(c) - _BYTE for c in mark[1]).decode())
    return found
