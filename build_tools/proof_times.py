"""Prints how long the proofs of heat take, with 2 to 16 time levels in one pass over tiles.

Input: numbers of levels. Output: a table, one line a number: seconds of processor time of a step's
proof, median and longest, and of the lowered tree's; after that, of all of them. Nothing is
remembered from earlier runs.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from textwrap import indent

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.language import yaml
from gen.language.recipes import read_recipes
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.workbench import Workbench
from gen.schedule.base import StepContext
from gen.schedule.recipe import read, run
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

STAGE = """\
for {0}.i in range(h):
    for {0}.j in range(w):
        with block("{0}", i=spatial({0}.i), j=spatial({0}.j)):
            {0}[i, j] = (
                {1}[i, j] + ({1}[i - 1, j] + {1}[i + 1, j] + {1}[i, j - 1] + {1}[i, j + 1]
                - {1}[i, j] * 4.0) * 0.125
                if 1 <= i and i < h - 1 and 1 <= j and j < w - 1 else {1}[i, j]
            )
"""


def heat(levels: int) -> Kernel:
    """The border keeps its values. A level is a stage of its own: `u` after one step, and so on."""
    names = ["x", *(f"u{k}" for k in range(1, levels)), "y"]
    stages = "".join(map(STAGE.format, names[1:], names))
    temporaries = ", ".join(f"{name}=float32[h, w]" for name in names[1:-1])
    return from_text(
        "def heat(h, w, x: float32[h, w], y: Out[float32[h, w]]):\n"
        f"    with allocate({temporaries}):\n{indent(stages, '        ')}"
    )


def recipe(levels: int) -> str:
    """Each tile of the last level, with what it needs of the levels before."""
    moved = (f"compute_at: {{block: u{k}, loop: y.j_0}}" for k in range(levels - 1, 0, -1))
    tiled = "tile: {loops: [y.i, y.j], sizes: [16, 32]}"
    steps = (tiled, *moved, "vectorize: {loop: y.j_1, width: 8}", "parallel: {loop: y.i_0}")
    lines = "".join(f"    - {step}\n" for step in steps)
    return f"- target: cpu\n  variants:\n  - steps:\n{lines}"


def times(levels: int) -> list[float]:
    """Of the plain schedule, of each step, and of the lowered tree."""
    result: list[float] = []

    def timed(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        start = time.process_time()
        prove(plain, state, bench)
        result.append(time.process_time() - start)

    plain, bench = heat(levels), Workbench()
    state = bench.start(plain)
    timed(plain, state, bench)
    recipes = yaml.parse(recipe(levels), "heat")
    assert isinstance(recipes, yaml.List)
    steps = read(read_recipes(recipes, ())[0], "v3", {"lanes": 8, "line_bytes": 64})[0].steps
    state = run(state, steps, StepContext(plain, timed, bench))[-1].state
    timed(plain, lower(state, Cpu(Level.V3).lowering), bench)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("levels", nargs="*", type=int, default=[2, 4, 8, 12, 16])
    print("levels  median  longest  lowered  all")
    for levels in parser.parse_args().levels:
        *steps, lowered = times(levels)
        middle, most, together = statistics.median(steps), max(steps), sum((*steps, lowered))
        print(f"{levels:6}  {middle:6.3f}  {most:7.3f}  {lowered:7.3f}  {together:.1f}", flush=True)


if __name__ == "__main__":
    main()
