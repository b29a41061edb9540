"""python -m bench scaling [kernels...] [--threads 1,2] [--max 256M] [--plot FILE] [--write]."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import ROOT, plot, results, run
from . import measuring, page, picture, series

PAGE = ROOT / "docs" / "scaling.md"
IMAGE = ROOT / "docs" / "img" / "scaling.svg"
COMMAND = "`python -m bench scaling --write`"
MOST_BYTES = 256 << 20
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Such as 4096, 64K, 256M, 1G."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    if not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 4096, 64K, 256M or 1G")
    return int(number) * unit


def parser(
    numbers: Callable[[str], tuple[int, ...]], count: Callable[[str], int]
) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench scaling",
        description="Time against size, and the jumps in it.",
    )
    made.add_argument("names", nargs="*", metavar="KERNEL", help="; ".join(series.SERIES))
    made.add_argument("--threads", type=numbers, default=(1, 2), help="such as 1,2")
    made.add_argument("--max", type=size, default=MOST_BYTES, help="bytes, such as 4M or 1G (256M)")
    made.add_argument("--rounds", type=count, default=5)
    made.add_argument("--json", type=Path, help="keep everything that was measured in this file")
    made.add_argument("--read", type=Path, help="a file of --json: measure nothing")
    made.add_argument("--plot", type=Path, help="draw it: a file .svg or .png")
    made.add_argument("--write", action="store_true", help="keep all of it in docs/scaling.md")
    return made


def main(
    words: Sequence[str],
    numbers: Callable[[str], tuple[int, ...]],
    count: Callable[[str], int],
) -> None:
    parsing = parser(numbers, count)
    options = parsing.parse_intermixed_args(words)
    if options.write and options.names:
        parsing.error("--write keeps all kernels: name none")
    chosen = series.chosen(options.names)
    drawn = [path for path in (options.plot, IMAGE if options.write else None) if path]
    for path in drawn:
        plot.check(path)  # now, and not at the end of a long run
    found = results.read(options.read) if options.read else _measured(chosen, options)
    lines = list(page.lines(found))
    print("\n".join(lines))
    for path in drawn:
        picture.draw(found, path)
    if options.write:
        from ..suite import keep  # which needs SciPy

        keep(
            PAGE, f"On {{date}} ({COMMAND}).\n", ["![Time against size](img/scaling.svg)\n", *lines]
        )


def _measured(chosen: Sequence[series.Series], options: argparse.Namespace) -> results.Results:
    settings = run.Settings(options.threads, options.rounds)

    def keeper(found: results.Results) -> None:
        if options.json:
            found.write(options.json)

    return measuring.measured(chosen, options.max, settings, keeper)
