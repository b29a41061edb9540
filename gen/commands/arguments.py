"""What several commands take: files, levels, sizes, dtypes."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from .. import language as specs
from ..errors import TilesmithError
from ..pipeline import suffix
from ..targets.cpu.levels import Level

LEVELS = tuple(level.value for level in Level)

Commands: TypeAlias = (
    "argparse._SubParsersAction[argparse.ArgumentParser]"  # argparse has no public name
)


def files(paths: Sequence[Path]) -> Iterator[Path]:
    """The files named, and the specs of the folders named."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.yaml"))
        else:
            yield path


def size(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.removeprefix("-").isdecimal():
        raise TilesmithError(f"a size is DIM=NUMBER, not {text!r}")
    if value.startswith("-"):
        raise TilesmithError(f"a size is at least 0, not {value}, as in {text!r}")
    return name, int(value)


def count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 4096")
    return int(text)


def dtypes(spec: specs.KernelSpec, wanted: str | None) -> specs.Dtypes:
    """The choice of dtypes named, as in symbols; the first without a name."""
    choices = {suffix(c): c for c in specs.choices(spec)}
    if wanted is None:
        return next(iter(choices.values()))
    if wanted not in choices:
        raise TilesmithError(f"{spec.name} has no dtype {wanted!r}: it has {', '.join(choices)}")
    return choices[wanted]


def many_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="specs, or folders of specs"
    )
    command.add_argument(
        "--levels",
        type=levels,
        default=["v2", "v3", "v4"],
        help=f"ISA levels, of {', '.join(LEVELS)} (default v2,v3,v4)",
    )


def levels(text: str) -> list[str]:
    named = text.split(",")
    unknown = [level for level in named if level not in LEVELS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown level {unknown[0]!r}: there are {', '.join(LEVELS)}"
        )
    return named


def dtype(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dtype", help="for example float64 (default: the spec's first)")
