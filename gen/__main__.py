"""`tilesmith`, and `python -m tilesmith.gen`; from the source tree `python -m gen`."""

import sys


def main() -> int:
    """Runs one command. A build starts dozens of processes, most of which only ask for a path: they
    load nothing of the other commands.
    """
    if sys.argv[1:2] == ["build"]:
        from .commands import build

        return build.main(sys.argv[2:])
    from . import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
