"""`tilesmith prove`: every step of every recipe proved, for all sizes."""

import argparse
import json
import sys

from ..progress import progress
from ..trial.proofs import SECONDS, Proof, of_file, summary, without_code
from .arguments import Commands, chosen, count, files, many_files


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "prove",
        help="prove every step of every recipe, for all sizes",
        description="Prints a line a step: proved, tested, or refused with an example. Levels "
        "whose vectors have equally many lanes give equal lines; each is proved on its own. With "
        "--target it fails where that target has code for nothing of what is proved.",
    )
    many_files(command)
    command.add_argument("--json", action="store_true", help="one object a step")
    longest = f"the longest that a file may take, of processor time (default {SECONDS})"
    command.add_argument("--seconds", type=count, default=SECONDS, metavar="N", help=longest)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    targets = chosen(options)
    paths = list(files(options.files))
    results: list[Proof] = []
    failed = False
    with progress(len(paths)) as shown:
        for path in paths:
            shown.part(path.stem)
            found = of_file(path, options.targets, targets, options.seconds, shown)
            if isinstance(found, str):
                failed = True
                shown.clear()
                print(found, file=sys.stderr)
            else:
                results += found
    as_json = json.dumps([r.as_json() for r in results], indent=2)
    for line in [as_json] if options.json else [*results, *summary(results)]:
        print(line)
    if options.target is not None and without_code(results):
        failed = True
        print(
            f"error: {options.target} has code for none of these kernels and types: what is proved "
            "is never compiled\n  hint: the lines above say for each what it lacks",
            file=sys.stderr,
        )
    return 1 if failed or any(r.refused for r in results) else 0
