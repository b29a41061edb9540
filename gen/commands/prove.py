"""`tilesmith prove`: every step of every recipe proved, for all sizes."""

import argparse
import json
import sys

from .. import language as specs
from ..errors import TilesmithError, told
from ..progress import progress
from ..targets.cpu.levels import Level
from ..trial.proofs import proofs, summary
from .arguments import Commands, files, many_files


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "prove",
        help="prove every step of every recipe, for all sizes",
        description="Prints a line a step: proved, tested, or refused with an example. Levels "
        "whose vectors have equally many lanes give equal lines; each is proved on its own.",
    )
    many_files(command)
    command.add_argument("--json", action="store_true", help="one object a step")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    levels = [Level(level) for level in options.levels]
    loaded, failed = [], False
    for path in files(options.files):
        try:
            loaded.append(specs.load(path))
        except (TilesmithError, OSError) as error:
            failed = True
            print(told(error), file=sys.stderr)
    with progress(len(levels) * sum(len(specs.choices(spec)) for spec in loaded)) as shown:
        results = [result for spec in loaded for result in proofs(spec, levels, shown)]
    as_json = json.dumps([r.as_json() for r in results], indent=2)
    for line in [as_json] if options.json else [*results, *summary(results)]:
        print(line)
    return 1 if failed or any(r.refused for r in results) else 0
