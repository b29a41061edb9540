"""Long C lines broken where a reader would.

Input: lines of C, a statement or less each. Output: the same tokens in lines of at most WIDTH
columns, where there is a comma or an operator to break at; continuations are indented.
"""

WIDTH = 100
_BREAKS = (", ", " && ", " || ", " = ", " + ", " ? ", " : ")


def wrapped(line: str) -> list[str]:
    """The line, broken at the outermost places that let its parts fit."""
    if len(line) <= WIDTH or line.lstrip().startswith(("#", "/*")):
        return [line]
    place = _place(line)
    if place is None:
        return [line]
    first, rest = line[:place].rstrip(), line[place:].lstrip()
    return [first, *_continued(rest, len(line) - len(line.lstrip()) + 4)]


def _continued(text: str, indent: int) -> list[str]:
    line = " " * indent + text
    place = _place(line) if len(line) > WIDTH else None
    if place is None:
        return [line]
    return [line[:place].rstrip(), *_continued(line[place:].lstrip(), indent)]


def _place(line: str) -> int | None:
    """Where to break: after the last separator of the least nesting depth that fits."""
    best: tuple[int, int] | None = None
    depth, start = 0, len(line) - len(line.lstrip())
    for k, c in enumerate(line[: WIDTH + 1]):
        depth += (c in "([{") - (c in ")]}")
        for separator in _BREAKS:
            end = k + 1
            if separator == " = " and depth:
                continue
            if line[:end].endswith(separator) and end - start > 20 and end <= WIDTH + 1:
                before = separator not in (", ", " = ")
                place = end - len(separator) + 1 if before else end
                if best is None or depth <= best[0]:
                    best = (depth, place)
    return None if best is None else best[1]
