"""Kernels tried: what `tilesmith run` prints.

`run`: a kernel compiled and compared with its oracle, or with its plain schedule where the spec has
none, on random arrays of the sizes asked for, on small sizes around its vectors' lengths and on
sizes on either side of each variant's `when`. Invariant: NaN alone beside NaN is not called right.
"""

import itertools
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from . import jit, plain
from . import spec as specs
from .errors import TilesmithError
from .ir import storage
from .ir.evaluate import numpy_dtype
from .ir.nodes import Intent, Kernel
from .ir.print_expr import expr_to_text
from .ir.sizes import value
from .ir.types import DType
from .lower.target import Level, Target
from .pipeline import Dtypes, emit, limits_of, prover, schedule, suffix
from .poly.certificate import Scheduled
from .progress import SILENT, Progress
from .schedule.base import Prover
from .sizes import allowed, edges, kernel_dims, sides, values_of
from .spec import oracle
from .spec.build import shape_of
from .spec.model import KernelSpec
from .spec.shapes import not_negative

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Call = Callable[[Mapping[str, Array], Mapping[str, int]], None]
"""A kernel called with all its arrays, outputs included, and its dims' sizes (`kernel_dims`)."""


@final
@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: the sizes, the largest error over the bound, and where it is.

    compared: how many results; finite: of how many of these the oracle makes a finite number.
    variant: which one ran, where that is known.
    """

    sizes: Mapping[str, int]
    worst: float
    error: float
    place: str
    compared: int
    finite: int
    variant: str = ""

    @property
    def mute(self) -> bool:
        """Whether there are results, but no number to tell a right kernel from a wrong one.

        Not where a size is 0: the mean of nothing is NaN.
        """
        return self.compared > 0 and self.finite == 0 and 0 not in self.sizes.values()


MUTE = (
    "all results are NaN or infinite, of positive inputs too, so a wrong kernel would not be seen:"
    " compare it on inputs for which the oracle is finite, by tilesmith.gen.compile"
)


def mute(cases: Sequence[Case]) -> bool:
    """Whether there are cases of sizes above 0 with results, and all of these are mute."""
    told = [c for c in cases if c.compared and 0 not in c.sizes.values()]
    return bool(told) and all(c.mute for c in told)


@final
@dataclass(frozen=True, slots=True)
class Report:
    """A kernel's run: the asked-for case and its time, and the edge cases.

    oracle: whether there is one; without it the kernel is compared with its plain schedule.
    variants: the names of all, in the order in which they are tried.
    """

    kernel: str
    dtypes: str
    level: str
    case: Case
    milliseconds: float
    edges: tuple[Case, ...]
    oracle: bool
    variants: tuple[str, ...] = ()

    @property
    def mute(self) -> bool:
        return self.case.mute or mute((self.case, *self.edges))

    @property
    def right(self) -> bool:
        return not self.mute and all(c.worst <= 1 for c in (self.case, *self.edges))

    def __str__(self) -> str:
        wrong = [c for c in (self.case, *self.edges) if not c.worst <= 1]
        lines = [
            f"{self.kernel} {self.dtypes} {self.level}  {_sizes(self.case)}",
            f"  time   {self.milliseconds:.3f} ms on one thread, median of 7",
            f"  error  {self._error()}",
            f"  edges  {len(self.edges)} small sizes, {len(wrong)} wrong",
        ]
        if len(self.variants) > 1:
            lines.append(f"  ran    {self._ran()}")
        for c in wrong[:5]:
            lines.append(f"  wrong  {_sizes(c)}: error {c.error:.2e} at {c.place}")
        if self.mute and not wrong:
            lines.append(f"  wrong  {MUTE}")
        return "\n".join(lines)

    def _error(self) -> str:
        case, other = self.case, "oracle" if self.oracle else "plain schedule"
        if not case.compared:
            return "nothing compared: the outputs have no elements at these sizes"
        if not case.finite and case.worst <= 1:
            return f"nothing compared: all results are NaN or infinite, as the {other}'s are"
        allows = "the spec allows" if self.oracle else "is allowed: the spec has no oracle"
        return f"{case.error:.2e} from the {other}, {case.worst:.3g} of what {allows}"

    def _ran(self) -> str:
        """Which variants ran, at how many sizes."""
        counts = Counter(c.variant for c in (self.case, *self.edges))
        told = (f"variant {v} at {counts[v] or 'none'}" for v in self.variants)
        return f"of {counts.total()} sizes {', '.join(told)}"


def _sizes(case: Case) -> str:
    return " ".join(f"{name}={size}" for name, size in case.sizes.items())


def compiled(
    spec: KernelSpec, dtypes: Dtypes, level: Level, shown: Progress = SILENT
) -> jit.Loaded:
    """The kernel scheduled, proved and compiled; proofs and libraries are remembered.

    Raises SpecError, ScheduleError, and TilesmithError where a scalar has no default to run with,
    or where there is no compiler.
    """
    _need_defaults(spec)
    prove_ = counting(prover(jit.cache_folder() / "proofs"), shown)
    variants = schedule(spec, dtypes, Target(level), prove_)
    source = emit(spec, {suffix(dtypes): variants}, level)
    shown.detail("compiling")
    return jit.load(spec, dtypes, source, level, limits=limits_of(variants))


def _need_defaults(spec: KernelSpec) -> None:
    if missing := [s.name for s in spec.scalars if s.default is None]:
        raise TilesmithError(f"{spec.name}: the scalar {missing[0]!r} has no default to run with")


def counting(prove: Prover, shown: Progress) -> Prover:
    """The prover, with the number of proofs so far shown."""
    done = itertools.count(1)

    def counted(plain: Kernel, state: Scheduled) -> None:
        prove(plain, state)
        shown.detail(f"{next(done)} proved")

    return counted


def run(
    spec: KernelSpec,
    dtypes: Dtypes,
    level: Level,
    sizes: Mapping[str, int],
    seed: int = 0,
    shown: Progress = SILENT,
) -> Report:
    """Compiles and runs the kernel. sizes: of dims; those not given are 64, or what the constraints
    allow near it. shown: gets two parts.

    Raises TilesmithError for an unknown dim, sizes that are not allowed, and as `compiled` does.
    """
    full = chosen(spec, sizes)
    shown.part(f"{spec.name} {suffix(dtypes)} {level.value}")
    kernel = compiled(spec, dtypes, level, shown)
    rng = np.random.default_rng(seed)
    shown.part("comparing")
    arrays = random_arrays(spec, dtypes, full, rng)
    dims, times = kernel_dims(spec, full), []
    case = tried(spec, dtypes, kernel, arrays, full, rng)
    case = replace(case, variant=kernel.variant(arrays, dims))
    for _ in range(7):
        start = time.perf_counter()
        kernel(arrays, dims)
        times.append(time.perf_counter() - start)
    small = []
    for sizes_ in (*edges(spec, _lanes(dtypes, level)), *sides(spec, level)):
        arrays = random_arrays(spec, dtypes, sizes_, rng)
        variant = kernel.variant(arrays, kernel_dims(spec, sizes_))
        small.append(replace(tried(spec, dtypes, kernel, arrays, sizes_, rng), variant=variant))
    return Report(
        spec.name,
        suffix(dtypes),
        level.value,
        case,
        sorted(times)[3] * 1e3,
        tuple(small),
        bool(spec.oracle),
        kernel.compiled.names,
    )


def _lanes(dtypes: Dtypes, level: Level) -> int:
    return Target(level).lanes(next(iter(dtypes.values())).computed)


def checks(
    spec: KernelSpec, dtypes: Dtypes, level: Level, kernel: Call, rng: np.random.Generator
) -> Iterator[Case]:
    """The kernel beside its oracle at small sizes around the level's vectors' length."""
    for edge in edges(spec, _lanes(dtypes, level)):
        yield tried(spec, dtypes, kernel, random_arrays(spec, dtypes, edge, rng), edge, rng)


def tried(
    spec: KernelSpec,
    dtypes: Dtypes,
    kernel: Call,
    arrays: Arrays,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Case:
    """`compare`, and where most results are no numbers, as of a logarithm, of positive inputs."""
    case = compare(spec, dtypes, kernel, arrays, sizes)
    if 2 * case.finite >= case.compared:
        return case
    positive = random_arrays(spec, dtypes, sizes, rng.spawn(1)[0], positive=True)
    other = compare(spec, dtypes, kernel, positive, sizes)
    worse = max(other, case, key=lambda c: c.worst)
    finite = case.finite + other.finite
    return replace(worse, compared=case.compared + other.compared, finite=finite)


def chosen(spec: KernelSpec, given: Mapping[str, int]) -> dict[str, int]:
    """A size for each dim: 64 where it is not given and the constraints allow that.

    Raises TilesmithError for an unknown dim, sizes that are not allowed, and where a scalar has no
    default: sizes may follow from it.
    """
    _need_defaults(spec)
    if unknown := [name for name in given if name not in spec.dims]:
        raise TilesmithError(
            f"{spec.name} has no dim {unknown[0]!r}: it has {', '.join(spec.dims)}"
        )
    free = [dim for dim in spec.dims if dim not in given]
    near = (64, 65, 32, 128, 3, 1)
    for combo in itertools.islice(itertools.product(near, repeat=len(free)), 10_000):
        sizes = {**given, **dict(zip(free, combo, strict=True))}
        if allowed(spec, sizes):
            return {dim: sizes[dim] for dim in spec.dims}
    texts = [*(f"{d} >= {n}" for d, n in specs.least_sizes(spec).items())]
    texts += [expr_to_text(c) for c in (*specs.relations(spec), *not_negative(spec))]
    raise TilesmithError(f"{spec.name}: give sizes for which {' and '.join(texts)}")


def random_arrays(
    spec: KernelSpec,
    dtypes: Dtypes,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    scalars: Mapping[str, float] | None = None,
    *,
    positive: bool = False,
) -> dict[str, Array]:
    """Every array argument: inputs random around 0, outputs uninitialised.

    positive: inputs of at least 1/2 instead. scalars: those of which shapes follow and that are
    not at their defaults.
    """
    arrays: dict[str, Array] = {}
    values = values_of(spec, sizes, scalars)

    def normal(*shape: int) -> Array:
        drawn = rng.standard_normal(shape)
        return np.abs(drawn) + 0.5 if positive else drawn

    for a in spec.arguments:
        shape = tuple(value(extent, values) for extent in shape_of(a.shape))
        element = dtypes.get(a.element) or DType(a.element)
        dtype = numpy_dtype(element)
        if a.intent is Intent.OUT:
            arrays[a.name] = np.empty(shape, dtype)
        elif element.is_float:
            arrays[a.name] = normal(*shape).astype(dtype)
        elif dtype.kind == "c":
            parts = normal(2, *shape)
            arrays[a.name] = (parts[0] + 1j * parts[1]).astype(dtype)
        elif dtype.kind == "b":
            arrays[a.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            arrays[a.name] = rng.integers(0, 100, shape).astype(dtype)
    return arrays


def compare(
    spec: KernelSpec, dtypes: Dtypes, kernel: Call, arrays: Arrays, sizes: Mapping[str, int]
) -> Case:
    """The kernel's outputs beside the oracle's, in units of the accuracy that the spec promises.

    kernel: is called with all arrays, and writes those that are outputs.
    """
    outputs = [arrays[a.name] for a in spec.arguments if a.intent is not Intent.IN]
    dims = kernel_dims(spec, sizes)
    if not any(output.size for output in outputs):
        kernel(arrays, dims)  # nothing to compare, and not every oracle takes nothing
        return Case(dict(sizes), 0.0, 0.0, "", 0, 0)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        exact = _exact(spec, dtypes, arrays, sizes)
    kernel(arrays, dims)
    values = {**arrays, **plain.temporaries(spec, dtypes, arrays, sizes)}
    bounds = oracle.accuracy_bound(spec, values)
    worst, error, place, compared, finite = 0.0, 0.0, "", 0, 0
    for name, expected in exact.items():
        got = arrays[name]
        if got.size == 0:
            continue
        compared += got.size
        finite += int(np.isfinite(expected).sum())
        with np.errstate(all="ignore"):
            value = storage.computed(got)
            wide = np.clongdouble if value.dtype.kind == "c" else np.longdouble
            off = np.abs(value.astype(wide) - expected)
            off = np.where((value == expected) | (np.isnan(value) & np.isnan(expected)), 0, off)
            bound = bounds.get(name, _usual(expected, got))
            ratio = np.where(off == 0, 0, off / np.maximum(bound, np.finfo(float).tiny))
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        if float(ratio[at]) >= worst:
            worst, error = float(ratio[at]), float(off[at])
            place = f"{name}[{', '.join(map(str, at))}]"
    return Case(dict(sizes), worst, error, place, compared, finite)


def _exact(
    spec: KernelSpec, dtypes: Dtypes, arrays: Arrays, sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The oracle's outputs, or those of the plain schedule where there is no oracle. Raises
    SpecError where the oracle fails.
    """
    if not spec.oracle:
        return plain.results(spec, dtypes, arrays, sizes)
    return oracle.evaluate(spec, arrays)


def _usual(expected: Array, got: Array) -> float:
    """The bound where a spec promises none: integers exactly, floats to 1000 eps of the largest."""
    if not (storage.is_float(got) or got.dtype.kind == "c") or not expected.size:
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    return float(1000 * storage.eps(got) * finite.max(initial=0))
