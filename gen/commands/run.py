"""`tilesmith run`: a kernel compiled, and compared with its oracle."""

import argparse
from pathlib import Path

from ..progress import progress
from ..trial import run as trial
from .arguments import Commands, dtype, dtypes, level, one, size


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "run",
        help="compile a kernel, compare it with its oracle, and time it",
        description="Runs the kernel on random arrays of the sizes given and on edge cases (small "
        "and long sizes, ties, extremes, NaN, strides), and prints errors and time. Needs a C "
        "compiler, and runs the C of `externals`.",
    )
    command.add_argument("file", type=Path, help="a spec")
    size = "a dim's size (default: 64, or less where there are many dims)"
    command.add_argument("--size", action="append", default=[], metavar="DIM=N", help=size)
    command.add_argument("--seed", type=int, default=0, help="of the random arrays")
    command.add_argument(
        "--emulate",
        action="store_true",
        help="run code for a GPU on the processor: find races, accesses out of bounds and threads"
        " at different barriers, and count what each launch asks of memory",
    )
    dtype(command)
    level(command, "this machine's best")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    sizes = dict(size(text) for text in options.size)
    spec = options.targets.load(options.file)
    wanted = dtypes(spec, options.dtype)
    if options.emulate:
        target = one(options, lambda t: t.shown).emulating()
    else:
        target = one(options, lambda t: t.here()[-1])
    with progress(2) as shown:
        report = trial.run(spec, wanted, target, sizes, options.seed, shown)
    print(report)
    return 0 if report.right else 1
