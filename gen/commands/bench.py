"""`tilesmith bench`: a kernel timed beside its oracle."""

import argparse
import json
import os
from pathlib import Path

from ..progress import progress
from ..trial import timing
from .arguments import Commands, count, dtype, dtypes, here, levels, size


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "bench",
        help="time a kernel beside its oracle",
        description="Compiles the kernel, compares it with its oracle at the sizes given and at "
        "small ones, and prints the least milliseconds of each call beside those of the oracle as "
        "NumPy and SciPy run it. Needs a C compiler.",
    )
    command.add_argument("file", type=Path, help="a spec")
    command.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="DIM=N,...",
        help="the sizes of a row, and again for each row (default: three rows, of arrays of about "
        "4096, 65536 and 1048576 elements)",
    )
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    command.add_argument(
        "--threads",
        type=_counts,
        default=sorted({1, processors}),
        help=f"numbers of threads, such as 1,2,4 (default: 1 and this machine's, {processors})",
    )
    levels(command, "this machine's best")
    dtype(command)
    command.add_argument(
        "--rounds", type=count, default=5, help="rounds, of which the best counts (default 5)"
    )
    rules = "beside the recipe that rules would write, if the spec has one of its own"
    command.add_argument("--rules", action="store_true", help=rules)
    order = "of the arrays in memory: the last axis side by side (C, the default), or the first (F)"
    command.add_argument("--order", choices=["C", "F"], default="C", help=order)
    command.add_argument("--json", action="store_true", help="as JSON, in seconds")
    command.set_defaults(run=run)


def _counts(text: str) -> list[int]:
    return [count(part) for part in text.split(",")]


def run(options: argparse.Namespace) -> int:
    spec = options.targets.load(options.file)
    sizes = [dict(map(size, text.split(","))) for text in options.sizes]
    sizes = sizes or timing.usual_sizes(spec)
    targets, wanted = here(options), dtypes(spec, options.dtype)
    with progress(len(targets) * (1 + options.rules) + len(sizes)) as shown:
        report = timing.bench(
            spec,
            wanted,
            targets,
            options.threads,
            sizes,
            options.rounds,
            shown,
            rules=options.rules,
        )
    print(json.dumps(report.as_json(), indent=2) if options.json else report)
    return 0
