"""`tilesmith init`: a new project of kernels, written."""

import argparse
from pathlib import Path

from .. import project
from .arguments import Commands


def add(commands: Commands) -> None:
    command = commands.add_parser(
        "init",
        help="begin a project of kernels: specs, build files, tests, CI",
        description="Writes a folder whose kernels build into a wheel that needs NumPy alone, "
        "and prints the files. Nothing that exists is changed.",
    )
    command.add_argument("name", help="of the project, such as my-kernels; imported as my_kernels")
    command.add_argument("-o", "--output", type=Path, help="the new folder (default: the name)")
    command.add_argument(
        "--cuda", action="store_true", help="with a recipe for GPUs, and what their code needs"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    folder = options.output or Path(options.name)
    made = project.create(options.name, folder, options.targets, cuda=options.cuda)
    print(*made, sep="\n")
    return 0
