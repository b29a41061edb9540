"""Kernels tried: what `tilesmith run` prints.

`run`: a kernel compiled and compared with its oracle, or with its plain schedule where the spec has
none, on random arrays of the sizes asked for, on small sizes around its vectors' lengths and on
sizes on either side of each variant's `when`; and on inputs of each `InputKind`.
"""

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import final

import numpy as np

from .. import language as specs
from ..cache import cache_folder
from ..errors import TilesmithError
from ..ir.nodes import Expr, Kernel
from ..ir.text.print_expr import expr_to_text
from ..language import Dtypes
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..language.shapes import not_negative
from ..lower.variants import Variant, suffix, whens_of
from ..pipeline import load, schedule_to_emit
from ..poly.cache import prover
from ..poly.certificate import Scheduled
from ..poly.workbench import Workbench
from ..progress import SILENT, Progress
from ..schedule.base import Prover
from ..targets.target import Runnable, Target
from .comparison import MUTE, Comparison, compare, mute, tried
from .inputs import (
    MOST_WORK,
    Arrays,
    Call,
    kinds,
    long_sizes,
    near,
    random_arrays,
    strided,
    too_large,
    too_much,
)
from .kinds import InputKind
from .plain import Reference
from .sizes import changed, edges, kernel_dims, other_scalars, sides


@final
@dataclass(frozen=True, slots=True)
class RunReport:
    """A kernel's run: the asked-for case and its time, the edge cases, and those of other inputs.

    oracle: whether there is one; without it the kernel is compared with its plain schedule.
    variants: the names of all, in the order in which they are tried. traffic: what the case asks of
    memory, as a table, where it was emulated. where: of what the time is, in words.
    """

    kernel: str
    dtypes: str
    level: str
    case: Comparison
    milliseconds: float
    edges: tuple[Comparison, ...]
    oracle: bool
    variants: tuple[str, ...] = ()
    others: tuple[Comparison, ...] = ()
    traffic: tuple[str, ...] = ()
    where: str = ""

    @property
    def mute(self) -> bool:
        return self.case.mute or mute((self.case, *self.edges))

    @property
    def right(self) -> bool:
        return not self.mute and not _wrong((self.case, *self.edges, *self.others))

    def __str__(self) -> str:
        random, others = _wrong((self.case, *self.edges)), _wrong(self.others)
        lines = [
            f"{self.kernel} {self.dtypes} {self.level}  {_sizes(self.case)}",
            f"  time   {self.milliseconds:.3f} ms {self.where}",
            f"  error  {self._error()}",
            f"  edges  {self._edges(len(random))}",
        ]
        if self.others:
            counts = Counter(c.kind.value for c in self.others)
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            lines.append(f"  inputs {told}; {len(others)} wrong")
        if len(self.variants) > 1:
            lines.append(f"  ran    {self._ran()}")
        for c in (*random[:5], *others[:5]):
            inputs = "" if c.kind is InputKind.RANDOM else f", {c.kind.value}"
            lines.append(f"  wrong  {_sizes(c)}{inputs}: error {c.error:.2e} at {c.place}")
        if self.mute and not random:
            lines.append(f"  wrong  {MUTE}")
        if self.traffic:
            lines += ["  memory", *(f"    {line}" for line in self.traffic)]
        return "\n".join(lines)

    def _edges(self, wrong: int) -> str:
        told = f"{len(self.edges)} small sizes, {wrong} wrong"
        compared = any(c.compared for c in self.edges)
        return told if compared else f"{told}: nothing compared, no output has elements"

    def _error(self) -> str:
        case, other = self.case, "oracle" if self.oracle else "plain schedule"
        if not case.compared:
            return "nothing compared: the outputs have no elements at these sizes"
        if not case.finite and case.worst <= 1:
            return f"nothing compared: all results are NaN or infinite, as the {other}'s are"
        allows = "the spec allows" if self.oracle else "is allowed: the spec has no oracle"
        return f"{case.error:.2e} from the {other}, {case.worst:.3g} of what {allows}"

    def _ran(self) -> str:
        """Which variants ran, at how many of the calls."""
        cases = (self.case, *self.edges, *self.others)
        told = (_count(v, [c for c in cases if c.variant == v]) for v in self.variants)
        return f"of {len(cases)} calls {', '.join(told)}"


def _count(variant: str, cases: Sequence[Comparison]) -> str:
    """At how many calls a variant ran, and with which scalars if only with others than usual."""
    told = {_told(c.scalars) for c in cases}
    scalars = "" if "" in told else f" (with{' or'.join(sorted(told))})" if told else ""
    return f"variant {variant} at {len(cases) or 'none'}{scalars}"


def _wrong(cases: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    return tuple(c for c in cases if not c.worst <= 1)


def _sizes(case: Comparison) -> str:
    return (_told(case.sizes) + _told(case.scalars)).strip()


def _told(values: Mapping[str, float | str]) -> str:
    return "".join(f" {name}={value}" for name, value in values.items())


def compiled(
    spec: KernelSpec, dtypes: Dtypes, target: Target, shown: Progress = SILENT
) -> Runnable:
    """The kernel scheduled, proved and compiled; proofs and libraries are remembered.

    Raises SpecError, ScheduleError, and TilesmithError where a scalar has no default to run with,
    or where there is no compiler.
    """
    return load(spec, dtypes, scheduled(spec, dtypes, target, shown), target)


def scheduled(
    spec: KernelSpec, dtypes: Dtypes, target: Target, shown: Progress = SILENT
) -> tuple[Variant, ...]:
    """What `compiled` compiles. Raises as that does."""
    _need_defaults(spec)
    prove_ = counting(prover(cache_folder() / "proofs"), shown)
    variants = schedule_to_emit(spec, dtypes, target, prove_)
    shown.detail("compiling")
    return variants


def _need_defaults(spec: KernelSpec) -> None:
    if missing := [s.name for s in spec.scalars if s.default is None]:
        raise TilesmithError(f"{spec.name}: the scalar {missing[0]!r} has no default to run with")


def counting(prove: Prover, shown: Progress) -> Prover:
    """The prover, with the number of proofs so far shown."""
    done = itertools.count(1)

    def counted(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        prove(plain, state, bench)
        shown.detail(f"{next(done)} proved")

    return counted


def run(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    sizes: Mapping[str, int],
    seed: int = 0,
    shown: Progress = SILENT,
) -> RunReport:
    """Compiles and runs the kernel. sizes: of dims; those not given are 64, or what the constraints
    allow near it. shown: gets two parts.

    Raises TilesmithError for an unknown dim, sizes that are not allowed, and as `compiled` does.
    """
    full = chosen(spec, sizes)
    plain = specs.build(spec, dtypes)
    if why := too_large(spec, plain, full) or too_much(spec, plain, full):
        raise TilesmithError(why)
    shown.part(f"{spec.name} {suffix(dtypes)} {target.level}")
    variants = scheduled(spec, dtypes, target, shown)
    kernel = load(spec, dtypes, variants, target)
    rng = np.random.default_rng(seed)
    shown.part("comparing")
    arrays = random_arrays(spec, dtypes, full, rng)
    dims, times = kernel_dims(spec, full), []
    whens = whens_of(variants)
    usual, *settings = _settings(Reference(spec, dtypes), whens, target.width(dtypes), kernel)
    case = usual.tried(arrays, full, rng)
    traffic = kernel.traffic(arrays, dims)
    for _ in range(1 if traffic else 7):
        start = time.perf_counter()
        kernel(arrays, dims)
        times.append(time.perf_counter() - start)
    small = [
        each.tried(random_arrays(each.spec, dtypes, sizes_, rng), sizes_, rng)
        for each in (usual, *settings)
        for sizes_ in each.sizes
    ]
    return RunReport(
        spec.name,
        suffix(dtypes),
        target.level,
        case,
        median(times) * 1e3,
        tuple(small),
        bool(spec.oracle),
        kernel.names,
        (*_others(usual, rng), *(c for each in settings for c in _of_kinds(each, each.turns, rng))),
        traffic,
        kernel.where,
    )


@final
@dataclass(frozen=True, slots=True)
class _Setting:
    """Scalars that a kernel is tried with, and small sizes: `reference` and `kernel` have them for
    their defaults. scalars: those that differ from the spec's.
    """

    reference: Reference
    kernel: Runnable
    sizes: Sequence[Mapping[str, int]]
    scalars: Mapping[str, float | str]

    @property
    def spec(self) -> KernelSpec:
        return self.reference.spec

    @property
    def turns(self) -> list[tuple[InputKind, Mapping[str, int]]]:
        """The small sizes, each with one kind of inputs, in turn."""
        known = kinds(specs.build(self.spec, self.reference.dtypes))
        return [*zip(itertools.cycle(known), self.sizes, strict=False)]

    def tried(
        self, arrays: Arrays, sizes: Mapping[str, int], rng: np.random.Generator
    ) -> Comparison:
        variant = self.kernel.variant(arrays, kernel_dims(self.spec, sizes))
        case = tried(self.reference, self.kernel, arrays, sizes, rng)
        return replace(case, variant=variant, scalars=self.scalars)

    def compared(
        self, kind: InputKind, sizes: Mapping[str, int], rng: np.random.Generator
    ) -> Comparison:
        """On random arrays of a kind."""
        arrays = random_arrays(self.spec, self.reference.dtypes, sizes, rng, kind=kind)
        ran = ""

        def noted(given: Arrays, dims: Mapping[str, int]) -> None:
            nonlocal ran
            self.kernel(given, dims)
            ran = self.kernel.variant(given, dims)

        called = strided(self.spec, noted, rng) if kind is InputKind.STRIDED else noted
        case = compare(self.reference, called, arrays, sizes, kind)
        return replace(case, variant=ran, scalars=self.scalars)


def _settings(
    reference: Reference, whens: Sequence[Expr], width: int, kernel: Runnable
) -> Iterator[_Setting]:
    """The scalars at their defaults; then each other word, and, for each variant that these leave
    out, other numbers.
    """
    spec, dtypes = reference.spec, reference.dtypes
    plain = specs.build(spec, dtypes)
    yield _Setting(reference, kernel, [*edges(spec, width), *sides(spec, whens)], {})
    for other, beside in other_scalars(spec, whens):
        values = oracle.defaults(other)
        sizes = [s for s in (*edges(other, width), *beside) if not too_large(other, plain, s)]
        called = kernel.with_scalars(values)
        yield _Setting(Reference(other, dtypes), called, sizes, changed(spec, other))


def _others(usual: _Setting, rng: np.random.Generator) -> Iterator[Comparison]:
    """The kernel on inputs of each kind that says something of it: at each small size on one kind,
    in turn, and on all kinds at a size that is larger than the recipes' tiles; and on long ones.
    """
    spec, turns = usual.spec, usual.turns
    plain = specs.build(spec, usual.reference.dtypes)
    if (middle := near(spec, plain, {}, (37, 19, 11, 7, 4, 2), MOST_WORK)) is not None:
        turns += [(kind, middle) for kind in kinds(plain)]
    turns += [(InputKind.LONG, sizes) for sizes in long_sizes(spec, plain)]
    yield from _of_kinds(usual, turns, rng)


def _of_kinds(
    setting: _Setting,
    turns: Sequence[tuple[InputKind, Mapping[str, int]]],
    rng: np.random.Generator,
) -> Iterator[Comparison]:
    return (setting.compared(kind, sizes, rng) for kind, sizes in turns)


def checks(
    spec: KernelSpec, dtypes: Dtypes, target: Target, kernel: Call, rng: np.random.Generator
) -> Iterator[Comparison]:
    """The kernel beside its oracle, or its plain schedule where it has none, at small sizes around
    the target's vectors' length.
    """
    reference = Reference(spec, dtypes)
    for edge in edges(spec, target.width(dtypes)):
        yield tried(reference, kernel, random_arrays(spec, dtypes, edge, rng), edge, rng)


def chosen(spec: KernelSpec, given: Mapping[str, int]) -> dict[str, int]:
    """A size for each dim: 64 where it is not given and the constraints allow that; less in kernels
    of so many dims that this would take minutes, or more than a GB.

    Raises TilesmithError for an unknown dim, sizes that are not allowed, and where a scalar has no
    default: sizes may follow from it.
    """
    _need_defaults(spec)
    if unknown := [name for name in given if name not in spec.dims]:
        raise TilesmithError(
            f"{spec.name} has no dim {unknown[0]!r}: it has {', '.join(spec.dims)}"
        )
    plain = specs.build(spec, specs.choices(spec)[0])
    if (found := near(spec, plain, given, (64, 32, 16, 8, 4, 2), _WAITED)) is not None:
        return found
    texts = [*(f"{d} >= {n}" for d, n in specs.least_sizes(spec).items())]
    texts += [expr_to_text(c) for c in (*specs.relations(spec), *not_negative(spec))]
    raise TilesmithError(f"{spec.name}: give sizes for which {' and '.join(texts)}")


_WAITED = 2**26
"""The most that innermost blocks run, where nobody says the sizes: some seconds."""
