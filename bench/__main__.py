"""`python -m bench [overhead | kernels]`: side by side with the peers, in one run."""

import sys

from . import kernels, overhead

SUITES = {"overhead": overhead.main, "kernels": kernels.main}


def main() -> int:
    names = sys.argv[1:] or list(SUITES)
    unknown = [n for n in names if n not in SUITES]
    if unknown:
        print(f"error: no suite {unknown[0]!r}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    for name in names:
        SUITES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
