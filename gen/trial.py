"""Kernels proved and tried: what `tilesmith prove` and `tilesmith run` print.

`proofs`: a spec's file to one result a step. `run`: a kernel compiled and compared with its oracle
on random arrays of the sizes asked for and on small sizes around its vectors' lengths.
"""

import itertools
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from . import jit
from . import spec as specs
from .errors import SpecError, TilesmithError
from .ir.nodes import Intent, Kernel
from .lower.lower import lower
from .lower.target import Level, Target
from .pipeline import Dtypes, emit, prover, schedule, suffix
from .poly.certificate import Scheduled
from .poly.flow import plain_flow
from .poly.prove import prove
from .spec import oracle
from .spec.build import choices
from .spec.model import KernelSpec

Array = NDArray[Any]
Arrays = Mapping[str, Array]


# ---------------------------------------------------------------- prove


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """A step of a variant, or its lowering, and how its proof went."""

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

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in Proof.__dataclass_fields__}


def proofs(path: Path, levels: Sequence[Level]) -> Iterator[Proof]:
    """A result for each step of each variant, dtype choice and level, up to the first refusal."""
    spec = specs.load(path)
    for level, dtypes in itertools.product(levels, choices(spec)):
        times: list[float] = []

        def timed(plain: Kernel, state: Scheduled, times: list[float] = times) -> None:
            start = time.perf_counter()
            prove(plain, state)
            times.append(time.perf_counter() - start)

        where = (spec.name, suffix(dtypes), level.value)
        try:
            variants = schedule(spec, dtypes, Target(level), timed)
        except TilesmithError as error:
            proved = f"after {len(times)} proved" if times else "before the first proof"
            yield Proof(*where, proved, "refused", sum(times), str(error))
            continue
        spent = iter(times)
        for variant in variants:
            yield Proof(*where, f"{variant.name}: the plain schedule", "proved", next(spent))
            for step in variant.steps:
                yield Proof(*where, f"{variant.name}: {step.primitive}", "proved", next(spent))
            yield Proof(*where, f"{variant.name}: lowered, end to end", "proved", next(spent))


# ---------------------------------------------------------------- run


@final
@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: the sizes, the largest error over the bound, and where it is."""

    sizes: Mapping[str, int]
    worst: float
    error: float
    place: str


@final
@dataclass(frozen=True, slots=True)
class Report:
    """A kernel's run: the asked-for case and its time, and the edge cases."""

    kernel: str
    dtypes: str
    level: str
    case: Case
    milliseconds: float
    edges: tuple[Case, ...]

    @property
    def right(self) -> bool:
        return all(c.worst <= 1 for c in (self.case, *self.edges))

    def __str__(self) -> str:
        wrong = [c for c in (self.case, *self.edges) if not c.worst <= 1]
        lines = [
            f"{self.kernel} {self.dtypes} {self.level}  {_sizes(self.case)}",
            f"  time   {self.milliseconds:.3f} ms on one thread, median of 7",
            f"  error  {self.case.error:.2e}, {self.case.worst:.2f} of what the spec allows",
            f"  edges  {len(self.edges)} small sizes, {len(wrong)} wrong",
        ]
        for c in wrong[:5]:
            lines.append(f"  wrong  {_sizes(c)}: error {c.error:.2e} at {c.place}")
        return "\n".join(lines)


def _sizes(case: Case) -> str:
    return " ".join(f"{name}={size}" for name, size in case.sizes.items())


def run(
    spec: KernelSpec, dtypes: Dtypes, level: Level, sizes: Mapping[str, int], seed: int = 0
) -> Report:
    """Compiles and runs the kernel. sizes: of dims; those not given are 64.

    Raises TilesmithError for an unknown dim or where there is no compiler.
    """
    unknown = [name for name in sizes if name not in spec.dims]
    if unknown:
        raise TilesmithError(
            f"{spec.name} has no dim {unknown[0]!r}: it has {', '.join(spec.dims)}"
        )
    target = Target(level)
    source = emit(
        spec,
        {suffix(dtypes): schedule(spec, dtypes, target, prover(jit.cache_folder() / "proofs"))},
        level,
    )
    kernel = jit.load(spec, dtypes, source, level)
    rng = np.random.default_rng(seed)
    full = {dim: sizes.get(dim, 64) for dim in spec.dims}
    arrays = random_arrays(spec, dtypes, full, rng)
    case = compare(spec, dtypes, kernel, arrays, full)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        kernel(arrays, full)
        times.append(time.perf_counter() - start)
    lanes = target.lanes(next(iter(dtypes.values())))
    small = tuple(
        compare(spec, dtypes, kernel, random_arrays(spec, dtypes, edge, rng), edge)
        for edge in edges(spec, lanes)
    )
    return Report(spec.name, suffix(dtypes), level.value, case, sorted(times)[3] * 1e3, small)


def edges(spec: KernelSpec, lanes: int) -> Iterator[dict[str, int]]:
    """Every pair of small sizes around the vectors' length, for each two of the dims."""
    around = sorted({0, 1, 2, lanes - 1, lanes, lanes + 1, 4 * lanes + 3})
    if len(spec.dims) == 1:
        combos: Iterator[tuple[int, ...]] = ((n,) for n in around)
    else:
        combos = (
            tuple(pair[k % 2] for k in range(len(spec.dims)))
            for pair in itertools.product(around, around)
        )
    for combo in combos:
        edge = dict(zip(spec.dims, combo, strict=True))
        if all(edge[dim] >= least for dim, least in specs.least_sizes(spec).items()):
            yield edge


def random_arrays(
    spec: KernelSpec, dtypes: Dtypes, sizes: Mapping[str, int], rng: np.random.Generator
) -> dict[str, Array]:
    """Every array argument: inputs random around 0, outputs uninitialised."""
    arrays: dict[str, Array] = {}
    for a in spec.arguments:
        shape = tuple(sizes[s] if isinstance(s, str) else s for s in a.shape)
        dtype = np.dtype(dtypes[a.element].value if a.element in dtypes else a.element)
        if a.intent is Intent.OUT:
            arrays[a.name] = np.empty(shape, dtype)
        elif dtype.kind == "f":
            arrays[a.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            arrays[a.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            arrays[a.name] = rng.integers(0, 100, shape).astype(dtype)
    return arrays


def compare(
    spec: KernelSpec,
    dtypes: Dtypes,
    kernel: "jit.Loaded",
    arrays: Arrays,
    sizes: Mapping[str, int],
) -> Case:
    """The kernel's outputs beside the oracle's, in units of the accuracy that the spec promises."""
    outputs = [arrays[a.name] for a in spec.arguments if a.intent is not Intent.IN]
    if not any(output.size for output in outputs):
        kernel(arrays, sizes)  # nothing to compare, and not every oracle takes nothing
        return Case(dict(sizes), 0.0, 0.0, "")
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        exact = _exact(spec, arrays)
    kernel(arrays, sizes)
    values = {**arrays, **temporaries(spec, dtypes, arrays, sizes)}
    bounds = oracle.accuracy_bound(spec, values)
    worst, error, place = 0.0, 0.0, ""
    for name, expected in exact.items():
        got = arrays[name]
        if got.size == 0:
            continue
        with np.errstate(all="ignore"):
            off = np.abs(got.astype(np.longdouble) - expected)
            off = np.where((got == expected) | (np.isnan(got) & np.isnan(expected)), 0, off)
            bound = bounds.get(name, _usual(expected, got))
            ratio = np.where(off == 0, 0, off / np.maximum(bound, np.finfo(float).tiny))
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        if float(ratio[at]) >= worst:
            worst, error = float(ratio[at]), float(off[at])
            place = f"{name}[{', '.join(map(str, at))}]"
    return Case(dict(sizes), worst, error, place)


def _exact(spec: KernelSpec, arrays: Arrays) -> dict[str, Array]:
    """The oracle's outputs. Raises SpecError at the oracle for whatever goes wrong in it."""
    try:
        return oracle.evaluate(spec, arrays)
    except (ArithmeticError, MemoryError, TypeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise SpecError(f"the oracle fails: {reason}", spec.oracle[0].text.span) from error


def _usual(expected: Array, got: Array) -> float:
    """The bound where a spec promises none: integers exactly, floats to 1000 eps of the largest."""
    if got.dtype.kind not in "fc" or not expected.size:
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    return float(1000 * np.finfo(got.dtype).eps * finite.max(initial=0))


def temporaries(
    spec: KernelSpec,
    dtypes: Dtypes,
    arrays: Arrays,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float] | None = None,
) -> dict[str, Array]:
    """The values of the temporaries that the accuracy formula names, by the plain schedule."""
    wanted = oracle.needed_temporaries(spec)
    if not wanted:
        return {}
    plain = oracle.expose(specs.build(spec, dtypes), wanted)
    lowered = lower(Scheduled(plain, plain_flow(plain)), Target(Level.V2))
    compiled = jit.compile_kernel(lowered.kernel, Level.V2)
    given = dict(arrays)
    for p in plain.parameters:
        if p.buffer.name not in given or p.intent is Intent.OUT:
            shape = jit.shape_of(p.buffer, sizes)
            given[p.buffer.name] = np.empty(shape, p.buffer.dtype.value)
    defaults = {s.name: s.default for s in spec.scalars if s.default is not None}
    compiled(given, {**defaults, **(scalars or {})}, dims=sizes)
    return {name: given[name] for name in wanted}
