"""`tilesmith primitives`: the steps that a recipe can take, listed or explained."""

import argparse

from ..reference import primitives as reference
from .arguments import Commands


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "primitives", help="list the steps that a recipe can take, or explain one"
    )
    alone = command.add_mutually_exclusive_group()
    explain = "explain this step, intrinsic or law: documentation, arguments, examples"
    alone.add_argument("name", nargs="?", metavar="NAME", help=explain)
    alone.add_argument("--json", action="store_true", help="as JSON, with their arguments")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.json:
        print(reference.as_json())
    else:
        print(reference.step(options.name) if options.name else reference.names())
    return 0
