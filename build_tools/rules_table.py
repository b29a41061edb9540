"""What rules write beside the recipes of the kernels that ship: times, as ratios.

python -m build_tools.rules_table [kernels...] [--rounds N] [--threads 1,2] [--kinds main,odd,small]
                                  [--level v3] [--specs FOLDER]

For each kernel that has a recipe for this machine, at the sizes of the benchmark: the time of its
own recipe over that of the rules' (above 1, the rules are faster). Both run in one process, round
by round. Sizes that the spec does not allow are left out; where none is left, those of
`tilesmith bench` are taken. --specs: of another commit, whose recipes are compared with today's
rules.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

from bench.kernels import KERNELS
from bench.kernels.kernel import KINDS, Dims, Kernel
from gen import language as specs
from gen.errors import TilesmithError
from gen.language.model import KernelSpec
from gen.targets.registry import TARGETS
from gen.trial.sizes import allowed
from gen.trial.timing import BY_RULES, Order, Row, bench, usual_sizes

FOLDER = Path(__file__).parents[1] / "kernels_spec"

ORDERS: dict[str, Order] = {"last": "C", "first": "F"}


def main() -> None:
    options = _options()
    target = TARGETS.chosen(None, [options.level])[0]
    print(f"own recipe's time / rules' time, {target.level}; threads: {options.threads}\n")
    ratios: list[float] = []
    for name in sorted(KERNELS):
        stem, _, end = name.rpartition("_")
        path, order = (stem, ORDERS[end]) if end in ORDERS else (name, ORDERS["last"])
        file = options.specs / f"{path}.yaml"
        if not file.exists() or (options.kernels and path not in options.kernels):
            continue
        spec = TARGETS.load(file)
        dtypes = next(iter(specs.choices(spec)))
        if not TARGETS.has_recipe(spec, target.name):
            continue
        sizes = list(_sizes(spec, KERNELS[name], options.kinds)) or usual_sizes(spec)[-2:]
        given = spec, dtypes, [target], options.threads, sizes, options.rounds
        try:
            rows = bench(*given, rules=True, order=order).rows
        except TilesmithError as error:  # no table is lost for one kernel
            print(f"{name:18} not timed: {error.message}", flush=True)
            continue
        for row in rows:
            found = list(_ratios(row))
            ratios += found
            told = " ".join(f"{dim}={size}" for dim, size in row.sizes.items())
            print(f"{name:18} {told:34} " + "  ".join(f"{r:5.2f}" for r in found), flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean {mean:.3f}, least {min(ratios):.2f}, of {len(ratios)} times")


def _sizes(spec: KernelSpec, kernel: Kernel, kinds: list[str]) -> Iterator[dict[str, int]]:
    every = [dims for kind in kinds for dims in kernel.sizes.get(kind, ())]
    for dims in dict.fromkeys(every):
        found = _dims(spec, kernel.inputs(*dims))
        if found and allowed(spec, found):
            yield found


def _dims(spec: KernelSpec, shapes: tuple[Dims, ...]) -> dict[str, int]:
    """The kernel's sizes in a call with arrays of these shapes."""
    inputs = [a for a in spec.arguments if a.intent.value != "out"]
    found: dict[str, int] = {}
    for argument, shape in zip(inputs, shapes, strict=False):
        names = [size for size in argument.shape if size != spec.loop_dim]
        core = shape[len(shape) - len(names) :]
        if len(names) < len(argument.shape):
            found[str(spec.loop_dim)] = math.prod(shape[: len(shape) - len(names)])
        found |= {s: n for s, n in zip(names, core, strict=True) if isinstance(s, str)}
    return {dim: found[dim] for dim in spec.dims} if set(spec.dims) <= set(found) else {}


def _ratios(row: Row) -> Iterator[float]:
    own = {t.threads: t.seconds for t in row.timings if BY_RULES not in t.level}
    for timing in row.timings:
        if BY_RULES in timing.level:
            yield own[timing.threads] / timing.seconds


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2])
    parser.add_argument("--kinds", type=lambda t: t.split(","), default=list(KINDS))
    parser.add_argument("--level", default=TARGETS[None].here()[-1])
    parser.add_argument("--specs", type=Path, default=FOLDER)
    return parser.parse_args()


if __name__ == "__main__":
    main()
