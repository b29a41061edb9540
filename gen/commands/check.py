"""`tilesmith check`: specs and recipes read, and every step tried, without a compiler.

Prints all errors, not the first one.
"""

import argparse

from ..trial import check
from ..trial.proofs import counted
from .arguments import Commands, chosen, files, many_files


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "check",
        help="read specs and recipes, and try every step",
        description="Prints errors as path:line:column: error: ..., with the line and a hint; "
        "exit code 1 if there is one; and warnings of what is right, and "
        "slower than its recipe asks for. Steps are tried but not proved: see `prove`.",
    )
    many_files(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    failed = tried = 0
    for path in files(options.files):
        found = check.checked(path, options.targets, chosen(options))
        for text in found.advice:
            print(text)
        tried += found.error is None
        if found.error is not None:
            failed += 1
            print(found.error)
    if tried:
        print(counted(tried, "spec"), "without errors (not proved: tilesmith prove does that)")
    return 1 if failed else 0
