"""Measures the functions of ts_math.h and ts_math_more.h: `python -m build_tools.accuracy NAME...`.

Input: the headers, a C compiler, and this machine's instruction set. Output: the lines of these
functions, or all, in docs/accuracy.md: the largest error for each type and ISA level. `--every N`
goes over one float32 in N: with 1, a function takes some minutes.
"""

import argparse
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = Path(__file__).parent
RUNTIME = ROOT / "gen" / "targets" / "cpu" / "runtime"
PAGE = ROOT / "docs" / "accuracy.md"

# /proc/cpuinfo's name of one feature that each level adds.
LEVELS = {"v2": "sse4_2", "v3": "avx2", "v4": "avx512vl"}
BATCHES = 256  # of float64, of 8,192
SAMPLE_STEP = 509  # prime, so that samples meet every pattern of low bits

PREFACE = """# Accuracy of the inlined functions

Written by `python -m build_tools.accuracy` from `ts_math.h` and `ts_math_more.h` in
`gen/targets/cpu/runtime/`.
The largest error in units in the last place of the exact result, and the argument where it is; at
most 0.5 means correctly rounded. float32 over as many of its 2^32 values as the line says, against
the C library in double precision. float64 over 2,097,152 values from 2^-55 to 2^11 in size, or to
infinity where build_tools/accuracy_functions.h says so, against the C library in long double
precision. pow has an exponent for each that makes the result anything from 0 to infinity; hypot and
atan2 have a second argument of either sign, up to 2^20 times larger or smaller. erfinv is against
Newton's steps. Below -2, where lgamma has zeros and is a difference of two larger numbers, its
errors are in units in the last place of 1, or of the result where that is more; elsewhere of the
result, next to its zeros at 1 and 2, too. Vector and scalar forms gave the same bits on every 16th
batch of these values. What is not in the table is exact: round, trunc, sign, copysign, fmod, floor
and ceil.

"""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One function of one type on one level; `differing` scalar results are not the vector's."""

    level: str
    dtype: str
    function: str
    ulp: float
    at: float
    differing: int


def machine_levels() -> tuple[str, ...]:
    """The ISA levels that this machine runs."""
    flags = Path("/proc/cpuinfo").read_text().split()
    return tuple(level for level, feature in LEVELS.items() if feature in flags)


def build(folder: Path, levels: tuple[str, ...], compiler: str) -> Path:
    """Compiles the measuring program for `levels` into `folder`; raises CalledProcessError."""
    common = [
        compiler,
        "-std=gnu11",
        "-O2",
        "-ffp-contract=off",
        f"-I{RUNTIME}",
        "-Wall",
        "-Wextra",
    ]
    objects = []
    for level in levels:
        target = folder / f"accuracy_{level}.o"
        flags = [f"-march=x86-64-{level}", f"-DLEVEL={level}", "-c"]
        subprocess.run(
            [*common, *flags, str(SOURCES / "accuracy_level.c"), "-o", str(target)], check=True
        )
        objects.append(str(target))
    program = folder / "accuracy"
    names = " ".join(f"X({level})" for level in levels)
    main = [f"-DLEVELS={names}", "-fopenmp", str(SOURCES / "accuracy.c"), *objects, "-lm"]
    subprocess.run([*common, *main, "-o", str(program)], check=True)
    return program


def measure(
    program: Path, step: int, batches: int = BATCHES, names: tuple[str, ...] = ()
) -> list[Measurement]:
    """Runs the program over every `step`-th float32, and as many `batches` of float64, of the
    functions of these names or all.
    """
    command = [str(program), str(step), str(batches), *names]
    lines = subprocess.run(command, check=True, capture_output=True, text=True)
    return [
        Measurement(level, dtype, function, float(ulp), float(at), int(differing))
        for level, dtype, function, ulp, at, differing in map(str.split, lines.stdout.splitlines())
    ]


def rows(measurements: list[Measurement], every: int) -> dict[str, str]:
    """Lines of a Markdown table, by the function and type that start them."""
    found = {}
    for dtype, name in (("f32", "float32"), ("f64", "float64")):
        of = "2,097,152" if dtype == "f64" else "all" if every == 1 else f"one in {every}"
        for function in dict.fromkeys(m.function for m in measurements):
            cells = [
                f"{m.ulp:.2f}" + (f" at {m.at:.6g}" if m.ulp > 0.5 else "")
                for m in measurements
                if (m.dtype, m.function) == (dtype, function)
            ]
            start = f"| {function} | {name} |"
            found[start] = " | ".join([f"{start} {of}", *cells]) + " |"
    return found


def table(page: str, measured: dict[str, str], levels: tuple[str, ...]) -> str:
    """A Markdown table of what is measured, and of the lines of `page` that are not."""
    known = [line for line in page.splitlines() if line.startswith("| ")][1:]
    kept = {" | ".join(line.split(" | ")[:2]) + " |": line for line in known}
    head = ["| function | type | values tried | " + " | ".join(levels) + " |"]
    return "\n".join([*head, "|---" * (3 + len(levels)) + "|", *(kept | measured).values()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", metavar="NAME", help="of the table; default: all")
    parser.add_argument("--every", type=int, default=SAMPLE_STEP, metavar="N")
    parser.add_argument("--compiler", default=os.environ.get("CC", "gcc"))
    args = parser.parse_args()
    levels = machine_levels()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), levels, args.compiler)
        measurements = measure(program, args.every, names=tuple(args.functions))
    if any(m.differing for m in measurements):
        raise SystemExit(f"scalar and vector forms differ: {measurements}")
    measured = rows(measurements, args.every)
    PAGE.write_text(PREFACE + table(PAGE.read_text(), measured, levels))
    print("\n".join(measured.values()))


if __name__ == "__main__":
    main()
