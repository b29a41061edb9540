"""The parts of the check: in which order they run, and what a process of each does."""

import importlib
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, final

from . import bench, cases, large, launches, libraries, peers, right, sanitizer, times
from .budget import Budget
from .formulas import FORMULAS, F
from .jobs import Job, Stage, crashed
from .rows import Row, Status, failure


def stages(wanted: Sequence[str], program: str | None) -> list[Stage]:
    """All of them. wanted: kernels. program: compute-sanitizer, where there is one."""
    known = [name for name in wanted if name in FORMULAS]

    def sound(rows: Sequence[Row], names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in crashed(rows))

    def alone(part: str) -> Callable[[Sequence[Row]], list[Job | Row]]:
        return lambda rows: [Job(part, names)] if (names := sound(rows, known)) else []

    machine = Stage("machine", 0.1, 1, lambda rows: [Job("machine")])
    stages = [
        Stage("right", 0.35, 12, lambda rows: [Job("right", (name,)) for name in wanted]),
        Stage("large", 0.3, 1, lambda rows: [Job("large", (n,)) for n in sound(rows, known)]),
        Stage("overhead", 0.2, 1, alone("overhead")),
        Stage("launches", 0.2, 1, alone("launches")),
        Stage("libraries", 0.2, 1, lambda rows: [Job("libraries")]),
        Stage("times", 0.55, 1, alone("times")),
        Stage("bench", 0.5, 1, alone("bench")),
        Stage("control", 0.4, 2, lambda rows: _controls(program)),
        Stage("sanitizer", 0.7, 12, lambda rows: _sanitized(rows, wanted, program)),
        Stage("compiled", 0.6, 1, alone("compiled")),
        Stage("bench compiled", 1.0, 1, alone("bench_compiled")),
    ]
    return [machine, *(replace(stage, jobs=partial(_where_it_can, stage)) for stage in stages)]


def _where_it_can(stage: Stage, rows: Sequence[Row]) -> Sequence[Job | Row]:
    """The stage's jobs; none where the machine has no GPU, CuPy or package that can be used."""
    if any(row.part == "machine" and row.status is Status.FAILED for row in rows):
        return [Row(stage.name, "all of it", "", Status.SKIPPED, "the machine cannot")]
    return stage.jobs(rows)


def _controls(program: str | None) -> list[Job | Row]:
    if program is None:
        text, both = "there is none on PATH, nor where CUDA has it", " and ".join(sanitizer.TOOLS)
        return [Row(sanitizer.PART, "compute-sanitizer", both, Status.SKIPPED, text)]
    return [
        Job("planted", (sanitizer.CONTROL,), tool, sanitizer.prefix(program, tool))
        for tool in sanitizer.TOOLS
    ]


def _sanitized(rows: Sequence[Row], wanted: Sequence[str], program: str | None) -> list[Job | Row]:
    if program is None:
        return []
    return [
        Job("small", (name,), tool, sanitizer.prefix(program, tool))
        for tool in sanitizer.TOOLS
        if sanitizer.trusted(tool, rows)
        for name in wanted
    ]


# ---------------------------------------------------------------- what a process does


@final
@dataclass(frozen=True, slots=True)
class Work:
    """A job, in its own process. folder: what was carried. scale: as of `formulas.works`."""

    folder: Path
    subjects: Sequence[str]
    tool: str
    budget: Budget
    scale: int = 1

    @property
    def cases(self) -> Path:
        return self.folder / "cases"

    def dtypes(self, kernel: str) -> list[str]:
        """Of the formulas' dtypes those that there are cases of, with results of the same."""
        found = dict.fromkeys(case.dtypes for case in cases.load(self.cases, kernel))
        alike = (set(dtypes.split("_")) for dtypes in found)
        return [of for (of, *others) in alike if not others and of in ("float32", "float64")]


def run(part: str, work: Work) -> Iterator[Row]:
    """The rows of a part. What is raised gives a row, too."""
    try:
        yield from PARTS[part](work)
    except Exception as error:
        yield failure(part, ", ".join(work.subjects), "all of it", error)


def _package() -> ModuleType:
    importlib.import_module("cupy")
    return importlib.import_module("tilesmith")


def machine(work: Work) -> Iterator[Row]:
    """Versions, so that a table says what it is of."""
    cupy = importlib.import_module("cupy")
    device = cupy.cuda.runtime.getDeviceProperties(0)
    told: dict[str, Any] = {
        "GPU": device["name"].decode(),
        "architecture": f"sm_{cupy.cuda.Device(0).compute_capability}",
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "CUDA": cupy.cuda.runtime.runtimeGetVersion(),
        "CuPy": cupy.__version__,
        "Python": platform.python_version(),
    }
    told["tilesmith"] = _package().show_config("dicts").get("version", "")
    told["code"] = "machine code" if find_spec("tilesmith_cuda") else "source, by NVRTC"
    module, why = peers.torch()
    told["PyTorch"] = why if module is None else module.__version__
    for name, value in told.items():
        yield Row("machine", name, str(value), Status.MEASURED)


def right_(work: Work) -> Iterator[Row]:
    f, ts = peers.functions(), _package()
    for kernel in work.subjects:
        found = cases.load(work.cases, kernel)
        yield from right.check(f.xp, ts, kernel, found, work.budget)


def large_(work: Work) -> Iterator[Row]:
    f, ts = peers.functions(), _package()
    for kernel in work.subjects:
        yield from large.check(f, ts, kernel, work.dtypes(kernel), work.budget, work.scale)


def small(work: Work) -> Iterator[Row]:
    """A few cases for compute-sanitizer, with memory of their own so that it knows their ends."""
    f, ts = peers.functions(), _package()
    f.xp.cuda.set_allocator(None)
    for kernel in work.subjects:
        found = list(cases.load(work.cases, kernel))
        every = max(1, len(found) // CASES)
        yield from right.check(f.xp, ts, kernel, iter(found[::every]), work.budget)


CASES = 12  # that compute-sanitizer sees of a kernel


def planted(work: Work) -> Iterator[Row]:
    f = peers.functions()
    f.xp.cuda.set_allocator(None)
    sanitizer.plant(f.xp, work.tool)
    yield from ()


def launches_(work: Work) -> Iterator[Row]:
    yield from launches.check(peers.functions(), _package(), work.subjects, work.budget)


def overhead(work: Work) -> Iterator[Row]:
    yield from launches.overhead(peers.functions(), _package(), work.subjects)


def libraries_(work: Work) -> Iterator[Row]:
    yield from libraries.check(peers.functions().xp, _package(), work.budget)


def times_(work: Work) -> Iterator[Row]:
    f, (module, why) = peers.functions(), peers.torch()
    if module is None:
        yield Row(times.PART, "torch", "PyTorch eager", Status.SKIPPED, why)
    yield from _timed(f, work, peers.peers_of(f, module), times.PART)


def compiled(work: Work) -> Iterator[Row]:
    f, (module, why) = peers.functions(), peers.torch()
    if module is None:
        yield Row("compiled", "torch", "torch.compile", Status.SKIPPED, why)
        return
    yield from _timed(f, work, peers.compiled_peers_of(module), "compiled")


def bench_(work: Work, *, compiled: bool = False) -> Iterator[Row]:
    f, (module, why) = peers.functions(), peers.torch()
    if module is None:
        yield Row(bench.PART, "torch", "all of it", Status.SKIPPED, why)
        return
    _package()  # before the benchmark's modules, which look for it themselves
    watch = times.Events(f.xp)
    yield from bench.rows(f.xp, module, watch, work.budget, compiled=compiled)


def _timed(
    f: F, work: Work, peers_of: Callable[..., Mapping[str, times.Peer]], part: str
) -> Iterator[Row]:
    todo = [(kernel, work.dtypes(kernel)) for kernel in work.subjects]
    watch = times.Events(f.xp)
    yield from times.rows(f, _package(), watch, todo, peers_of, work.budget, part, work.scale)


PARTS: Mapping[str, Callable[[Work], Iterator[Row]]] = {
    "machine": machine,
    "right": right_,
    "large": large_,
    "overhead": overhead,
    "launches": launches_,
    "libraries": libraries_,
    "times": times_,
    "planted": planted,
    "small": small,
    "compiled": compiled,
    "bench": bench_,
    "bench_compiled": partial(bench_, compiled=True),
}
