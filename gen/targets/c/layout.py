"""Long C lines broken where a reader would.

Input: lines of C, a statement or less each. Output: the same tokens in lines of at most WIDTH
columns, where there is a comma or an operator to break at; continuations are indented.
"""

import re

WIDTH = 100
_TOKEN = re.compile(r"[(\[{)\]}]|, | && | \|\| | = | \+ | \? | : ")


def wrapped(line: str) -> list[str]:
    """The line, broken at the outermost places that let its parts fit."""
    if len(line) <= WIDTH or line.lstrip().startswith(("#", "/*")):
        return [line]
    place = _place(line)
    if place is None:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    made = [line[:place].rstrip()]
    while place is not None:
        line = indent + line[place:].lstrip()
        place = _place(line) if len(line) > WIDTH else None
        made.append(line[:place].rstrip())
    return made


def _place(line: str) -> int | None:
    """Where to break: after the last separator of the least nesting depth that fits."""
    best: tuple[int, int] | None = None
    depth, start = 0, len(line) - len(line.lstrip())
    for token in _TOKEN.finditer(line, start, WIDTH + 1):
        separator = token[0]
        if separator in "([{":
            depth += 1
        elif separator in ")]}":
            depth -= 1
        elif token.end() - start > 20 and not (separator == " = " and depth):
            place = token.end() if separator in (", ", " = ") else token.start() + 1
            if best is None or depth <= best[0]:
                best = (depth, place)
    return None if best is None else best[1]
