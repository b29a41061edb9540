"""Every step of a spec's recipes proved: what `tilesmith prove` prints.

Input: a spec and targets. Output: a Proof a step, up to the first refusal of each choice. As with
`check` it ends, whatever is in the file: all of it happens in a child process of limited time and
memory.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from .. import language as specs
from ..errors import NoCode, TilesmithError, told
from ..ir.nodes import Kernel
from ..language.model import KernelSpec
from ..lower.variants import Plain, Variant, suffix
from ..pipeline import finished_tree, schedule
from ..poly.certificate import Scheduled
from ..poly.limit import NoAnswer, within
from ..poly.prove import prove
from ..poly.workbench import Workbench
from ..progress import SILENT, Progress
from ..targets.recipes import Written
from ..targets.target import Registry, Target

SECONDS = 600
"""The longest that a file may take, of processor time: what ships takes under 60."""

NO_CODE = "no code"
"""The status of what is proved up to its last step, and has no code on the target."""


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """A step of a variant, or its lowering or finishing, and how its proof went. status: "refused",
    or what is proved: "proved", "proved given LAW"; "no code": all steps are proved, and nothing is
    lowered.
    """

    kernel: str
    dtypes: str
    level: str
    step: str
    status: str
    seconds: float
    detail: str = ""

    def __str__(self) -> str:
        where = f"{self.kernel} {self.dtypes} {self.level}"
        line = f"{where:28} {self.status:8} {self.seconds:6.3f} s  {self.step}"
        return f"{line}\n{self.detail}" if self.detail else line

    @property
    def refused(self) -> bool:
        return self.status == "refused"

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in Proof.__dataclass_fields__}


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def summary(results: Sequence[Proof]) -> Iterator[str]:
    """A line for each way in which kernels came out: how many, and for how many types and levels.

    What a step takes for granted, all after it do: the last says what is true of a kernel.
    """
    last = {key: result.status for key, result in _last(results).items()}
    for status in dict.fromkeys(last.values()):
        those = (key for key in last if last[key] == status)
        kernels, dtypes, levels = map(set, zip(*those, strict=True))
        parts = counted(len(kernels), "kernel"), counted(len(dtypes), "type")
        yield f"{status}: {', '.join(parts)}, {counted(len(levels), 'level')}"


def without_code(results: Sequence[Proof]) -> bool:
    """Whether there are results, and the target has code for none of the kernels and types."""
    return bool(results) and {r.status for r in _last(results).values()} == {NO_CODE}


def _last(results: Sequence[Proof]) -> dict[tuple[str, str, str], Proof]:
    """How each kernel came out, for each choice of types and level."""
    return {(r.kernel, r.dtypes, r.level): r for r in results}


def of_file(
    path: Path,
    registry: Registry,
    targets: Sequence[Target],
    seconds: int = SECONDS,
    shown: Progress = SILENT,
) -> tuple[Proof, ...] | str:
    """The results of a file, or in words the error for which there are none. registry: the targets
    that there are; targets: those to prove for.
    """
    try:
        return within(seconds, _of_file, path, registry, targets, shown)
    except NoAnswer as none:
        return f"error: {path}: {none}: `--seconds` and fewer `--levels` let each have more time"


def _of_file(
    path: Path, registry: Registry, targets: Sequence[Target], shown: Progress
) -> tuple[Proof, ...] | str:
    try:
        return tuple(proofs(registry.load(path), targets, shown))
    except (TilesmithError, OSError) as error:
        return told(error)


def proofs(
    spec: KernelSpec, targets: Sequence[Target], shown: Progress = SILENT
) -> Iterator[Proof]:
    """A result for each step of each variant, dtype choice and target, up to the first refusal."""
    plains = [Plain(spec, dtypes) for dtypes in specs.choices(spec)]
    written = Written(spec, plains)
    for target, plain in itertools.product(targets, plains):
        dtypes = plain.dtypes
        choice = f"{suffix(dtypes)} {target.level}"
        shown.detail(choice)
        times: list[tuple[Scheduled, float]] = []

        def timed(
            kernel: Kernel,
            state: Scheduled,
            bench: Workbench,
            times: list[tuple[Scheduled, float]] = times,
            choice: str = choice,
        ) -> None:
            start = time.perf_counter()
            prove(kernel, state, bench)
            times.append((state, time.perf_counter() - start))
            shown.detail(f"{choice}  {len(times)} proved")

        where = (spec.name, suffix(dtypes), target.level)
        try:
            variants = schedule(spec, dtypes, target, timed, plain=plain, written=written)
        except TilesmithError as error:
            after = f"after {len(times)} proved" if times else "before the first proof"
            yield Proof(*where, after, "refused", sum(s for _, s in times), str(error))
            continue
        spent = iter(times)
        for variant in variants:
            steps = (str(step.primitive) for step in variant.steps)
            missing = variant.emitted if isinstance(variant.emitted, NoCode) else None
            last = () if missing else ("lowered, end to end",)
            for what in ("the plain schedule", *steps, *last):
                state, seconds = next(spent)
                yield Proof(*where, f"{variant.name}: {what}", str(state.standing), seconds)
            if missing:
                what = f"{variant.name}: no code for this target yet"
                yield Proof(*where, what, NO_CODE, 0.0, str(missing))
            else:
                yield _finished(where, variant, target)


def _finished(where: tuple[str, str, str], variant: Variant, target: Target) -> Proof:
    """That what is emitted does what is lowered."""
    status, detail = str(variant.lowered.standing), ""
    start = time.perf_counter()
    try:
        finished_tree(variant, target)
    except TilesmithError as error:
        status, detail = "refused", str(error)
    seconds = time.perf_counter() - start
    what = f"{variant.name}: finished, equal to the lowered tree"
    return Proof(*where, what, status, seconds, detail)
