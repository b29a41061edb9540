"""What the shipped kernels for GPUs ask for, as far as it is known without a GPU: a table.

Input: the specs in kernels_spec/ that have a recipe for cuda; g++ for the emulator, and nvcc.
Output: a table in Markdown, a row for each launch of each variant: how long the proof as lowered
took, what the emulator counts of memory, and what nvcc tells of a thread. `--write` keeps it in
docs/cuda.md, with the date.
"""

import argparse
import datetime
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np

from gen.ir.nodes import Kernel
from gen.language import Dtypes, choices
from gen.language.model import KernelSpec
from gen.lower.variants import Plain, Variant, suffix
from gen.pipeline import emit, load, schedule_to_emit
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.workbench import Workbench
from gen.targets.cuda.architectures import Architecture
from gen.targets.cuda.compilers import Resources, compiled
from gen.targets.cuda.emulator.counts import AccessCount
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from gen.trial.inputs import random_arrays
from gen.trial.sizes import kernel_dims

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cuda.md"
HEADING = "## What the shipped kernels ask for\n"
DTYPES = 2  # of each: float32 and float64
LEVEL = Architecture.SM_90
NEAR, LONG = 256, 131_072
Sizes = Mapping[str, int]


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Of one launch, at a call that runs its variant. proof: of the variant, in seconds."""

    kernel: str
    dtypes: str
    launch: str
    sizes: Sizes
    proof: float
    asked: int
    needed: int
    conflicts: int
    narrow: Resources
    wide: Resources

    HEAD = (
        *("kernel", "launch", "sizes", "proof, s", "sectors asked", "needed", "conflicts"),
        *("registers", "spilled", "shared"),
    )

    def cells(self) -> Iterator[str]:
        """registers: with indices of 32 bits, and of 64."""
        yield from (f"{self.kernel} {self.dtypes}", self.launch)
        yield " ".join(f"{name}={size}" for name, size in self.sizes.items())
        yield f"{self.proof:.2f}"
        yield from (str(self.asked), str(self.needed), str(self.conflicts))
        yield f"{self.narrow.registers}, {self.wide.registers}"
        yield str(max(self.narrow.spilled, self.wide.spilled))
        yield str(self.narrow.shared)


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
    for sizes, counts in _calls(spec, dtypes, kernel, variants):
        for launch in dict.fromkeys(count.launch.rpartition("_")[0] for count in counts):
            here = [c for c in counts if c.launch.startswith(f"{launch}_")]
            yield Row(
                kernel=spec.name,
                dtypes=suffix(dtypes),
                launch=launch.removeprefix(f"ts_{spec.name}_{suffix(dtypes)}_"),
                sizes=sizes,
                proof=proof,
                asked=sum(c.asked for c in here if not c.shared),
                needed=sum(c.needed for c in here if not c.shared),
                conflicts=sum(c.conflicts for c in here),
                narrow=resources[f"{launch}_i32"],
                wide=resources[f"{launch}_i64"],
            )


def _resources(
    spec: KernelSpec, dtypes: Dtypes, variants: tuple[Variant, ...]
) -> dict[str, Resources]:
    """What nvcc tells of each entry point."""
    texts = emit(spec, {suffix(dtypes): variants}, Cuda.at(LEVEL))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, f"{spec.name}.cu")
        source.write_text(next(t for file, t in texts.items() if file.endswith(".cu")), "utf-8")
        return {e.name: e for e in compiled(source, LEVEL, Path(folder, "out.cubin"))}


def _calls(
    spec: KernelSpec, dtypes: Dtypes, kernel: Emulated, variants: Sequence[Variant]
) -> Iterator[tuple[Sizes, tuple[AccessCount, ...]]]:
    """For each variant a call that runs it: arrays in C's order, in Fortran's, and long ones."""
    asked = {variant.name for variant in variants}
    near, long = dict.fromkeys(spec.dims, NEAR), dict.fromkeys(spec.dims, 2)
    long[spec.dims[-1]] = LONG
    calls: tuple[tuple[Sizes, Literal["C", "F"]], ...] = ((near, "C"), (near, "F"), (long, "C"))
    for sizes, order in calls:
        drawn = random_arrays(spec, dtypes, sizes, np.random.default_rng(0))
        arrays = {name: np.array(x, order=order) for name, x in drawn.items()}
        dims = kernel_dims(spec, sizes)
        if (variant := kernel.variant(arrays, dims)) in asked:
            asked.remove(variant)
            yield sizes, kernel.counts(arrays, dims)
    assert not asked, f"no call runs {', '.join(asked)} of {spec.name}"


def table(found: Iterable[Row]) -> Iterator[str]:
    """Lines of Markdown."""
    yield f"| {' | '.join(Row.HEAD)} |"
    yield f"|{'---|' * 3}{'--:|' * (len(Row.HEAD) - 3)}"
    for row in found:
        yield f"| {' | '.join(row.cells())} |"


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
        " proof is that of a variant as lowered.\n"
    )
    start = before if heading else f"{page.rstrip()}\n\n"
    return "\n".join((f"{start}{HEADING}\n{text}", *lines, "")) + (f"\n{after}" if after else "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--only", help="kernels, with commas between")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    if given.write and given.only:
        parser.error("--write keeps all kernels: leave --only out")
    only = given.only.split(",") if given.only else ()
    found: list[Row] = []
    for path in sorted((ROOT / "kernels_spec").glob("*.yaml")):
        spec = TARGETS.load(path)
        if TARGETS.has_recipe(spec, Cuda.name) and (not only or path.stem in only):
            for dtypes in choices(spec)[:DTYPES]:
                found += rows(spec, dtypes)
    print("\n".join(table(found)))
    if given.write:
        today = datetime.datetime.now(datetime.UTC).date()
        PAGE.write_text(put(PAGE.read_text("utf-8"), table(found), today), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
