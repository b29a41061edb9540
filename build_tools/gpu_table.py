"""What the shipped kernels for GPUs ask for, as far as it is known without a GPU: a table.

Input: the specs in kernels_spec/ that are for GPUs; g++ for the emulator, and nvcc.
Output: a table in Markdown, a row for each launch of each variant: how long the proof as lowered
took, what the emulator counts of memory, and what nvcc tells of a thread. `--write` keeps it in
docs/cuda.md, with the date; with `--only`, the rows of other kernels stay.
"""

import argparse
import datetime
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np

from build_tools import markdown
from build_tools.check_kernel_list import for_gpus
from gen import language as specs
from gen.ir.nodes import Kernel
from gen.language import Dtypes, choices
from gen.language.model import KernelSpec
from gen.lower.variants import Plain, Variant, suffix, whens_of
from gen.pipeline import emit, load, schedule_to_emit
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.workbench import Workbench
from gen.targets.cuda.architectures import Architecture
from gen.targets.cuda.emulator.counts import AccessCount
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.machine_code import OfLaunch, of_launches
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from gen.trial.inputs import near, random_arrays, runs
from gen.trial.sizes import allowed, kernel_dims, sides

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cuda.md"
HEADING = "## What the shipped kernels ask for\n"
DTYPES = 2  # of each: float32 and float64
LEVEL = Architecture.SM_90
NEAR, LONG = (256, 32, 16, 8), 131_072
MOST = 2**25  # times that a block runs: seconds under the emulator
Sizes = Mapping[str, int]


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Of one launch, at a call that runs its variant. proof: of the variant, in seconds. counted:
    sectors asked and needed, and conflicts; None where no call of these runs the variant.
    """

    kernel: str
    dtypes: str
    launch: str
    sizes: Sizes
    proof: float
    counted: tuple[int, int, int] | None
    narrow: OfLaunch
    wide: OfLaunch

    HEAD = (
        *("kernel", "launch", "sizes", "proof, s", "sectors asked", "needed", "conflicts"),
        *("registers", "spilled", "shared", "at once"),
    )

    def cells(self) -> Iterator[str]:
        """registers, at once: with indices of 32 bits, and of 64."""
        yield from (f"{self.kernel} {self.dtypes}", self.launch)
        yield " ".join(f"{name}={size}" for name, size in self.sizes.items())
        yield f"{self.proof:.2f}"
        yield from map(str, self.counted or "---")
        narrow, wide = self.narrow.resources, self.wide.resources
        yield f"{narrow.registers}, {wide.registers}"
        yield str(max(narrow.spilled, wide.spilled))
        yield str(narrow.shared)
        yield f"{self.narrow.occupancy:.0%}, {self.wide.occupancy:.0%}"


@final
@dataclass(slots=True)
class Clock:
    """A prover that adds up how long it took, on this thread's processor."""

    seconds: float = 0.0

    def __call__(self, plain: Kernel, state: Scheduled, bench: Workbench | None = None) -> None:
        start = time.thread_time()
        prove(plain, state, bench)
        self.seconds += time.thread_time() - start


def rows(spec: KernelSpec, dtypes: Dtypes) -> Iterator[Row]:
    """The rows of one choice of dtypes."""
    target, clock = Cuda.at(LEVEL).emulating(), Clock()
    variants = schedule_to_emit(spec, dtypes, target, clock, Plain(spec, dtypes))
    resources = _resources(spec, dtypes, variants)
    kernel = load(spec, dtypes, variants, target)
    assert isinstance(kernel, Emulated)
    proof = clock.seconds / len(variants)
    told = {name.rpartition("_")[0] for name in resources}
    for sizes, counts in _calls(spec, dtypes, kernel, variants):
        for launch in dict.fromkeys(count.launch.rpartition("_")[0] for count in counts):
            told.discard(launch)
            here = [c for c in counts if c.launch.startswith(f"{launch}_")]
            asked = sum(c.asked for c in here if not c.shared)
            needed = sum(c.needed for c in here if not c.shared)
            counted = asked, needed, sum(c.conflicts for c in here)
            yield _row(spec, dtypes, launch, sizes, proof, counted, resources)
    for launch in sorted(told):
        yield _row(spec, dtypes, launch, {}, proof, None, resources)


def _row(
    spec: KernelSpec,
    dtypes: Dtypes,
    launch: str,
    sizes: Sizes,
    proof: float,
    counted: tuple[int, int, int] | None,
    resources: Mapping[str, OfLaunch],
) -> Row:
    own = launch.removeprefix(f"ts_{spec.name}_{suffix(dtypes)}_")
    narrow, wide = resources[f"{launch}_i32"], resources[f"{launch}_i64"]
    return Row(spec.name, suffix(dtypes), own, sizes, proof, counted, narrow, wide)


def _resources(
    spec: KernelSpec, dtypes: Dtypes, variants: tuple[Variant, ...]
) -> dict[str, OfLaunch]:
    """What nvcc tells of each entry point."""
    texts = emit(spec, {suffix(dtypes): variants}, Cuda.at(LEVEL))
    text = next(t for file, t in texts.items() if file.endswith(".cu"))
    return {found.resources.name: found for found in of_launches(text, LEVEL)}


def _calls(
    spec: KernelSpec, dtypes: Dtypes, kernel: Emulated, variants: Sequence[Variant]
) -> Iterator[tuple[Sizes, tuple[AccessCount, ...]]]:
    """For each variant a call that runs it, where there is one of these: arrays in C's order and in
    Fortran's, long ones, and sizes around conditions.
    """
    asked = {variant.name for variant in variants}
    plain = specs.build(spec, dtypes)
    at_hand = near(spec, plain, {}, NEAR, MOST) or {}
    long = {**dict.fromkeys(spec.dims, 2), spec.dims[-1]: LONG}
    calls: list[tuple[Sizes, Literal["C", "F"]]] = [(at_hand, "C"), (at_hand, "F")]
    calls += [(long, "C")] if runs(spec, plain, long) <= MOST else []
    calls += [(dict(found), "C") for found in sides(spec, whens_of(variants))]
    for sizes, order in calls:
        if not asked or not allowed(spec, sizes):
            continue
        drawn = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
        arrays = {name: np.array(x, order=order) for name, x in drawn.items()}
        dims = kernel_dims(spec, sizes)
        if (variant := kernel.variant(arrays, dims)) in asked:
            asked.remove(variant)
            yield sizes, kernel.counts(arrays, dims)


def table(found: Iterable[Row]) -> Iterator[str]:
    """Lines of Markdown."""
    marks = "lll".ljust(len(Row.HEAD), "r")
    return markdown.table(Row.HEAD, marks, (row.cells() for row in found))


def merged(page: str, lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table, and those of the page's that are of other kernels."""
    *head, rule = itertools.islice(made := iter(lines), 2)
    rows = [*made]
    names = {_kernel(row) for row in rows}
    old = (line for line in page.partition(HEADING)[2].splitlines() if line.startswith("| "))
    rows += [row for row in old if _kernel(row) not in names and row not in head]
    yield from (
        *head,
        rule,
        *sorted(rows, key=_kernel),
    )  # of one kernel in the order in which they are


def _kernel(row: str) -> str:
    return row.split()[1]


def put(page: str, lines: Iterable[str], date: datetime.date) -> str:
    """The page with the table in its section, which is the last one where there is none."""
    before, heading, rest = page.partition(HEADING)
    after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
    text = (
        f"Counted by the emulator and told by nvcc for {LEVEL} on {date}"
        " (`python -m build_tools.gpu_table --write`).\n"
        "Sectors, asked and needed, are of 32 bytes of global memory; conflicts are passes of"
        " shared memory beyond the first,\nor the second of 8-byte elements. Registers are those of"
        " a thread with indices of 32 bits and of 64; spilled and shared\nmemory is in bytes. The"
        " proof is that of a variant as lowered. *At once* is the share of a multiprocessor's"
        " threads that\nregisters and shared memory let run at once. A dash is of a variant that"
        " no call runs of those that are counted here.\n"
    )
    start = before if heading else f"{page.rstrip()}\n\n"
    return "\n".join((f"{start}{HEADING}\n{text}", *lines, "")) + (f"\n{after}" if after else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--only", help="kernels, with commas between")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    only = given.only.split(",") if given.only else ()
    found: list[Row] = []
    for path in sorted((ROOT / "kernels_spec").glob("*.yaml")):
        if path.stem in for_gpus(path.parent) and (not only or path.stem in only):
            spec = TARGETS.load(path)
            for dtypes in choices(spec)[:DTYPES]:
                found += rows(spec, dtypes)
    print("\n".join(table(found)))
    if given.write:
        today, page = datetime.datetime.now(datetime.UTC).date(), PAGE.read_text("utf-8")
        lines = merged(page, table(found)) if only else table(found)
        PAGE.write_text(put(page, lines, today), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
