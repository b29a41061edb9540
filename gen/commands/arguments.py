"""What several commands take: files, targets and their levels, sizes, dtypes."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from .. import language as specs
from ..errors import TilesmithError
from ..lower.variants import choice
from ..targets.target import Registry, Target

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
    return choice(spec, wanted)


def many_files(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="specs, or folders of specs"
    )
    levels(command, "those that are usually built")


def levels(command: argparse.ArgumentParser, usual: str) -> None:
    """`--levels` and `--target`. usual: what is taken where no level is asked for."""
    text = f"of the target, with commas between (default: {usual})"
    command.add_argument("--levels", type=_words, metavar="LEVEL,...", help=text)
    _target(command)


def level(command: argparse.ArgumentParser, usual: str) -> None:
    """`--level` and `--target`. usual: as in `levels`."""
    command.add_argument("--level", help=f"of the target (default: {usual})")
    _target(command)


def _words(text: str) -> list[str]:
    return text.split(",")


def _target(command: argparse.ArgumentParser) -> None:
    text = "what code is made for (default: the first that there is, as in recipes)"
    command.add_argument("--target", metavar="NAME", help=text)
    command.set_defaults(command=command)


def require_known(options: argparse.Namespace) -> None:
    """Ends with exit code 2 where there is no such target or level."""
    if "target" not in options:
        return
    asked = options.levels if "levels" in options else options.level and [options.level]
    try:
        options.targets.chosen(options.target, asked)
    except TilesmithError as unknown:
        options.command.error(unknown.message)


def chosen(options: argparse.Namespace) -> tuple[Target, ...]:
    """The target at each level that is asked for, or at its usual ones."""
    targets: Registry = options.targets
    return targets.chosen(options.target, options.levels)


def shipped(options: argparse.Namespace, spec: specs.KernelSpec) -> tuple[Target, ...]:
    """As `chosen`, but by default all that the spec has recipes for."""
    if options.target is None and options.levels is None:
        targets: Registry = options.targets
        return targets.shipped(spec)
    return chosen(options)


def here(options: argparse.Namespace) -> tuple[Target, ...]:
    """As `chosen`, but by default at the best level that this machine runs."""
    targets: Registry = options.targets
    asked = options.levels or targets[options.target].here()[-1:]
    return targets.chosen(options.target, asked)


def one(options: argparse.Namespace, usual: Callable[[type[Target]], str]) -> Target:
    """The target at the one level that is asked for, or at its usual one."""
    targets: Registry = options.targets
    asked = options.level or usual(targets[options.target])
    return targets.chosen(options.target, [asked])[0]


def dtype(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dtype", help="for example float64 (default: the spec's first)")
