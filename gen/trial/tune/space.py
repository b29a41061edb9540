"""What is searched: names, and the values that each may have.

Input: a recipe's parameters on one level, and what `--param` asks for. Output: knobs.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ...errors import TilesmithError
from ...language import yaml
from ...language.model import Recipe

Value = int | str
Assignment = Mapping[str, Value]
"""A value for each knob, by name."""

MOST_VALUES = 64  # of a knob
SMALL = 16
"""Up to here each number counts, as of rows in registers; above it, doublings."""


@final
@dataclass(frozen=True, slots=True)
class Knob:
    """values: those to try, `start` among them. start: what it is before the search."""

    name: str
    values: tuple[Value, ...]
    start: Value

    def __str__(self) -> str:
        return f"{self.name} {', '.join(map(str, self.values))} (now {self.start})"


def neighbours(value: int) -> tuple[int, ...]:
    """The numbers to try where a parameter has this value and nobody says which."""
    near = range(value - 2, value + 3) if value <= SMALL else ()
    found = {value // 4, value // 2, value, 2 * value, 4 * value, *near}
    return tuple(sorted(n for n in found if n >= min(1, value)))


def asked(text: str) -> tuple[str, tuple[Value, ...]]:
    """A name and its values: `rows=4,6,8`, `rows=4..8` or, doubling, `strip=64..1024*2`. Raises
    TilesmithError.
    """
    name, equals, values = text.partition("=")
    found: list[Value] = []
    for part in values.split(","):
        if span := re.fullmatch(r"(\d{1,10})\.\.(\d{1,10})(?:\*(\d{1,4}))?", part):
            found += _range(int(span[1]), int(span[2]), int(span[3]) if span[3] else None, text)
        elif re.fullmatch(r"\d{1,10}|[A-Za-z_][\w.]*", part):
            found.append(int(part) if part.isdigit() else part)
        else:
            equals = ""
    if not (name and equals):
        raise TilesmithError(
            f"a parameter to search is NAME=VALUE,... or NAME=FIRST..LAST, not {text!r}",
            hint="rows=4,6,8 tries three values, rows=4..8 five, strip=64..1024*2 doubles",
        )
    if len(found) > MOST_VALUES:
        raise TilesmithError(f"{name!r} has {len(found)} values to try: at most {MOST_VALUES}")
    return name, tuple(dict.fromkeys(found))


def _range(first: int, last: int, factor: int | None, text: str) -> list[int]:
    if first > last or factor in (0, 1) or (factor and not first):
        raise TilesmithError(f"no values are in {text!r}")
    if factor is None:
        return list(range(first, min(last, first + MOST_VALUES) + 1))
    found = [first]
    while found[-1] * factor <= last:
        found.append(found[-1] * factor)
    return found


def values_on(recipe: Recipe, level: str) -> dict[str, Value]:
    """The recipe's parameters that have a value on the level."""
    by_name = {p.name: dict(p.values) for p in recipe.params}
    found = {name: values.get(level, values.get("")) for name, values in by_name.items()}
    return {name: value for name, value in found.items() if value is not None}


def knobs(
    values: Mapping[str, Value],
    used: Collection[str],
    wanted: Sequence[tuple[str, tuple[Value, ...]]],
) -> tuple[Knob, ...]:
    """What is searched of parameters with these values: what is wanted, else all integers.

    used: those that make a difference at the sizes that are measured; no others are searched.
    Raises TilesmithError for a name that there is not, or that makes no difference.
    """
    for name, _ in wanted:
        if name not in values:
            known = ", ".join(values)
            hint = yaml.hint(name, values)
            raise TilesmithError(f"there is no parameter {name!r}: there are {known}", hint=hint)
        if name not in used:
            raise TilesmithError(
                f"{name!r} makes no difference: no variant that runs at these sizes uses it",
                hint="give sizes at which another variant runs, by `--size`",
            )
    given = dict(wanted) or {
        name: neighbours(value)
        for name, value in values.items()
        if isinstance(value, int) and name in used
    }
    return tuple(
        Knob(name, _with(tries, values[name]), values[name]) for name, tries in given.items()
    )


def _with(tries: tuple[Value, ...], start: Value) -> tuple[Value, ...]:
    """In order, numbers before words."""
    return tuple(sorted({*tries, start}, key=lambda v: (isinstance(v, str), v)))
