"""What the shipped kernels have to do on a CPU and what their recipes do: a table.

Input: the specs in kernels_spec/; a C compiler and objdump. Output: a table in Markdown, a row a
kernel, of float32 on one level, for the variant that is taken at sizes of 256 (less where that is
not allowed or too much). `--write` keeps it in docs/costs.md, with the date.
"""

import argparse
import datetime
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from build_tools import markdown
from gen.display.mix import Mix, main_loop
from gen.display.text import unproved
from gen.display.work import Work, done, needed
from gen.language import build, choices
from gen.language.model import KernelSpec
from gen.lower.variants import Variant, suffix
from gen.pipeline import emit, schedule
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.registry import TARGETS
from gen.trial.inputs import costed, whole
from gen.trial.sizes import values_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "costs.md"
HEADING = "## The shipped kernels on CPUs\n"
LEVEL = Level.V3


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Of one kernel. done: None where it cannot be counted."""

    kernel: str
    sizes: Mapping[str, int]
    variant: str
    needed: Work | None
    done: Work | None
    loop: Mix | None

    HEAD = ("kernel", "sizes", "variant", "operations", "read, KB", "written, KB", "densest loop")

    def cells(self) -> Iterator[str]:
        yield self.kernel
        yield " ".join(f"{name}={size}" for name, size in self.sizes.items())
        yield self.variant
        for field, unit in (("operations", 1), ("read", 1000), ("written", 1000)):
            yield f"{_number(self.needed, field, unit)} / {_number(self.done, field, unit)}"
        yield str(self.loop or "-")


def _number(work: Work | None, field: str, unit: int) -> str:
    return "-" if work is None else f"{getattr(work, field) / unit:.4g}"


def row(spec: KernelSpec) -> Row:
    """What is costed of a kernel: the first variant that runs at all."""
    dtypes, target = choices(spec)[0], Cpu(LEVEL)
    plain = build(spec, dtypes)
    sizes = costed(spec, plain)
    values = whole(values_of(spec, sizes))
    variants = schedule(spec, dtypes, target, unproved, each_step=False)
    variant, work = _runs(variants, values)
    code = target.instructions(emit(spec, {suffix(dtypes): variants}, target))
    symbol = re.escape(f"ts_{spec.name}_{suffix(dtypes)}_{LEVEL}_{variant.name}")
    own = [f for f in code if re.fullmatch(rf"{symbol}([_.].*)?", f.name)]
    return Row(spec.name, sizes, variant.name, needed(plain, values), work, main_loop(own))


def _runs(variants: Sequence[Variant], values: Mapping[str, int]) -> tuple[Variant, Work | None]:
    for variant in variants[:-1]:
        if (work := done(variant.lowered.kernel, values)) is None or work.written:
            return variant, work
    return variants[-1], done(variants[-1].lowered.kernel, values)


def table(found: Iterable[Row]) -> Iterator[str]:
    """Lines of Markdown."""
    return markdown.table(Row.HEAD, "lllrrrl", (each.cells() for each in found))


def put(page: str, lines: Iterable[str], date: datetime.date) -> str:
    """The page with the table as its last section."""
    before = page.partition(HEADING)[0]
    text = f"Counted for {LEVEL} on {date} (`python -m build_tools.costs_table --write`).\n"
    return "\n".join((f"{before}{HEADING}\n{text}", *lines, ""))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--only", help="kernels, with commas between")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    if given.write and given.only:
        parser.error("--write keeps all kernels: leave --only out")
    only = given.only.split(",") if given.only else ()
    paths = sorted((ROOT / "kernels_spec").glob("*.yaml"))
    paths = [path for path in paths if not only or path.stem in only]
    lines: list[str] = []
    for line in table(row(TARGETS.load(path)) for path in paths):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        today = datetime.datetime.now(datetime.UTC).date()
        PAGE.write_text(put(PAGE.read_text("utf-8"), lines, today), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
