"""Checks an installed tilesmith with NumPy alone: what cibuildwheel runs on each wheel.

Output: a line a level that this machine runs. Every kernel's example runs as a doctest on each of
them; exit status 1 where one prints something else, or where a level runs that was not asked for.
"""

import doctest
import os
import subprocess
import sys

import numpy as np

import tilesmith as ts


def failures() -> int:
    """How many examples fail on the level that this process runs at."""
    runner = doctest.DocTestRunner(verbose=False)
    for name, kernel in ts.kernels().items():
        names = {"np": np, "ts": ts}
        example = str(kernel["details"]["example"])
        runner.run(doctest.DocTestParser().get_doctest(example, names, name, name, None))
    results = runner.summarize(verbose=False)
    config = ts.show_config("dicts")
    print(f"{config['level']}: {results.attempted} calls, {results.failed} wrong")
    wanted = os.environ.get("TILESMITH_CPU_LEVEL", config["level"])
    return results.failed + int(results.attempted == 0) + int(config["level"] != wanted)


def main() -> int:
    if "--here" in sys.argv:
        return 1 if failures() else 0
    statuses = [
        subprocess.run(
            [sys.executable, "-P", __file__, "--here"],
            env=os.environ | {"TILESMITH_CPU_LEVEL": level},
            check=False,
        ).returncode
        for level in ts.show_config("dicts")["levels_supported"]
    ]
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
