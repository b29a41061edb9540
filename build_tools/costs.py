"""Prints what each kernel costs: proof, generation and compile time, and bytes in the binary.

Input: specs (by default all that ship) and ISA levels. Output: a table, one line a kernel and the
total. Proofs are made anew, without the cache, so that the figures do not depend on earlier runs.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from build_tools.check_kernel_list import listed  # noqa: E402
from gen.ir.nodes import Kernel  # noqa: E402
from gen.pipeline import generate  # noqa: E402
from gen.poly.certificate import Scheduled  # noqa: E402
from gen.poly.prove import prove  # noqa: E402
from gen.poly.workbench import Workbench  # noqa: E402
from gen.targets.registry import TARGETS  # noqa: E402
from gen.targets.runtime import RUNTIME  # noqa: E402

FLAGS = ("-std=gnu11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC")
MARCH = {"v2": "x86-64-v2", "v3": "x86-64-v3", "v4": "x86-64-v4", "neon": "armv8-a"}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds, and bytes of code and constants, over all levels."""

    kernel: str
    prove: float
    generate: float
    compile: float
    bytes: int


class TimedProver:
    """The prover, with the seconds that it takes added up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        start = time.perf_counter()
        try:
            prove(plain, state, bench)
        finally:
            self.seconds += time.perf_counter() - start


def cost(spec: Path, levels: list[str]) -> Cost:
    """What one kernel costs."""
    prover = TimedProver()
    start = time.perf_counter()
    files = generate(TARGETS.load(spec), TARGETS.chosen(None, levels), prover).c_files
    generating = time.perf_counter() - start - prover.seconds
    start = time.perf_counter()
    size = sum(compiled_bytes(text, name.split(".")[1]) for name, text in files.items())
    return Cost(spec.stem, prover.seconds, generating, time.perf_counter() - start, size)


def compiled_bytes(text: str, level: str) -> int:
    """The size of the object file's sections that are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder) / "kernel.c", Path(folder) / "kernel.o"
        source.write_text(text)
        command = ["cc", *FLAGS, f"-march={MARCH[level]}", f"-I{RUNTIME}", "-c", str(source)]
        subprocess.run([*command, "-o", str(compiled)], check=True)
        lines = subprocess.run(
            ["size", str(compiled)], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    return int(lines[1].split()[3])


def table(costs: list[Cost]) -> str:
    """The costs and their total, as text."""
    total = Cost(
        "total",
        sum(c.prove for c in costs),
        sum(c.generate for c in costs),
        sum(c.compile for c in costs),
        sum(c.bytes for c in costs),
    )
    head = f"{'kernel':<14}{'prove s':>10}{'generate s':>12}{'compile s':>11}{'bytes':>10}"
    rows = ["{:<14}{:>10.3f}{:>12.3f}{:>11.3f}{:>10}".format(*astuple(c)) for c in [*costs, total]]
    return "\n".join([head, *rows])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What each kernel costs.")
    parser.add_argument("specs", type=Path, nargs="*", help="by default all in kernels_spec/")
    parser.add_argument("--levels", default="v2,v3,v4", help="ISA levels, for example v2,v3,v4")
    options = parser.parse_args(arguments)
    folder = ROOT / "kernels_spec"
    specs = options.specs or [folder / f"{kernel}.yaml" for kernel in listed(folder)]
    print(table([cost(spec, options.levels.split(",")) for spec in specs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
