"""`tilesmith schema`: the JSON Schema of specs, printed."""

import argparse

from ..reference import schema
from .arguments import Commands


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "schema",
        help="print the JSON Schema of specs, for editors",
        description="Editors complete and check a spec that says in its first line where a copy "
        "is: # yaml-language-server: $schema=tilesmith.schema.json",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print(schema.text(options.targets), end="")
    return 0
