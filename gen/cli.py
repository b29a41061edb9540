"""`tilesmith`: the author's loop on the command line.

stdout is the result, stderr the errors and progress. Exit codes: 0 right; 1 an error in a spec, a
recipe or a result; 2 a wrong command line.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from textwrap import dedent

from . import __version__
from .commands import arguments as common
from .commands import (
    bench,
    check,
    generate,
    init,
    primitives,
    prove,
    run,
    schema,
    show,
    tune,
)
from .errors import TilesmithError, told
from .targets.registry import TARGETS
from .targets.runtime import RUNTIME
from .targets.target import Registry

COMMANDS = (init, check, show, prove, run, bench, tune, generate, primitives, schema)


def main(arguments: Sequence[str] | None = None, targets: Registry = TARGETS) -> int:
    """Runs one command. targets: those that recipes and `--target` can name. Returns the exit
    code.
    """
    options = _parser(targets).parse_args(arguments)
    common.require_known(options)
    chosen: Callable[[argparse.Namespace], int] = options.run
    try:
        return chosen(options)
    except BrokenPipeError:
        return 0
    except (TilesmithError, OSError, MemoryError) as error:
        print(told(error), file=sys.stderr)
        return 1


def _parser(targets: Registry) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilesmith",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Kernels written as algebra in YAML, scheduled by recipes, proved, compiled.",
        epilog=dedent(
            """\
            a first session: a project of your own, and its first kernel
              tilesmith init my-kernels                  a package that builds, with tests and CI
              cd my-kernels/kernels_spec
              tilesmith check normalize.yaml             read it and try every step of its recipes
              tilesmith show normalize.yaml              the loops that the recipe makes of it
              tilesmith show normalize.yaml --steps      what each step changed
              tilesmith show normalize.yaml --html normalize.html
                                                         the same beside the C and its assembly
              tilesmith prove normalize.yaml             each step proved for all sizes, or refused
              tilesmith run normalize.yaml --size m=64 --size n=1000
                                                         compiled, compared with the oracle
              tilesmith bench normalize.yaml             timed beside the oracle
              tilesmith tune normalize.yaml              the recipe's parameters searched by time
              tilesmith generate normalize.yaml -o out/  the C sources

            `tilesmith COMMAND --help` tells the rest; `tilesmith build` is for meson.build
            files. Progress is shown on a terminal alone."""
        ),
    )
    parser.set_defaults(targets=targets)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--includedir",
        action="version",
        version=str(RUNTIME),
        help="print the folder of the runtime's headers and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser
