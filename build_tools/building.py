"""Runs the command that builds, and says how far the build is: pip says nothing until it is done.

Input: a command, such as `pip install -e .`, that builds in a folder of `build/`. Output: how many
kernels are generated and how many files compiled, on a terminal in one line, elsewhere a line each
ten seconds; the command's own output in `build/build.log`, and its end where it fails; its exit
status.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from build_tools.check_kernel_list import listed  # noqa: E402

SECONDS = 10.0  # between lines, where they stay
LINES = 60  # of an output that ends in an error


def state(build: Path, since: float) -> str:
    """What the build has made since a time."""
    kernels = listed(ROOT / "kernels_spec")
    made = ((p.stat().st_mtime, p.stem) for p in build.glob("*/*.json") if p.stem in kernels)
    new = sorted((at, name) for at, name in made if at >= since)
    compiled = sum(path.stat().st_mtime >= since for path in build.glob("*/*.p/*.o"))
    latest = f" ({new[-1][1]})" if new else ""
    return (
        f"  kernels proved and generated: {len(new)} of {len(kernels)}{latest}; "
        f"files compiled: {compiled}"
    )


def main(command: Sequence[str], build: Path = ROOT / "build") -> int:
    start, said, terminal = time.time(), time.monotonic(), sys.stdout.isatty()
    build.mkdir(exist_ok=True)
    log = build / "build.log"
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while child.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - said >= (1 if terminal else SECONDS):
                said = time.monotonic()
                print(f"\r\033[K{state(build, start)}" if terminal else state(build, start),
                      end="" if terminal else "\n", flush=True)  # fmt: skip
    if terminal:
        print("\r\033[K", end="")
    if child.returncode:
        print(*log.read_text("utf-8", "replace").splitlines()[-LINES:], sep="\n")
        print(f"this failed: {' '.join(command)}; {log} has all that it said")
    else:
        print(f"{state(build, start)}; {time.time() - start:.0f} seconds", flush=True)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
