"""From a spec's file to its sources, one call a stage.

Input: a spec, dtypes and a target. Output: for each variant of its recipe the trace of its schedule
and the lowered tree, all proved; and the C files and manifest entry of the whole kernel. Invariant:
nothing is emitted but what the prover has passed, and is checked to do the same (`lower.finish`).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from . import language as specs
from .binding.manifest import Argument, Entry, Parameter, entry_to_json
from .errors import NoCode, Span, SpecError, TilesmithError, located
from .ir.nodes import Expr, Intent, Kernel
from .ir.rules.verify import verify
from .ir.text.print_expr import expr_to_text
from .language import Dtypes, model
from .language.formulas import oracle
from .language.model import KernelSpec, Recipe
from .lower.finish import Finished, finish
from .lower.index_limits import NO_LIMITS, Limits, index_limits, smallest
from .lower.lower import lower
from .lower.specialize import where
from .poly.cache import prove_once
from .poly.certificate import PROVED, Scheduled
from .poly.checks.in_place import in_place, of_other_sizes
from .poly.limit import prove_within
from .poly.workbench import Workbench
from .schedule import recipe as recipes
from .schedule.base import Context, Primitive, Prover, Step
from .targets.target import Runnable, Target

PROOF_SECONDS = 60.0
"""The longest that one proof may take: a step's takes under a second on all that ships."""


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a kernel, for one choice of dtypes on one target.

    start: the plain schedule under the variant's `when`. steps: the proved state after each step,
    composites written out. emitted: what lowering made of them, or why there is no code for them.
    in_place: the pairs of an input and an output that a call may give as one array. limits: of the
    sizes and scalars with which all indices stay in 64 bits.
    """

    name: str
    when: Expr | None
    start: Scheduled
    steps: tuple[Step, ...]
    emitted: Scheduled | NoCode
    in_place: frozenset[tuple[str, str]]
    span: Span | None
    limits: Limits = NO_LIMITS

    @property
    def lowered(self) -> Scheduled:
        """What is emitted. Raises NoCode."""
        if isinstance(self.emitted, NoCode):
            raise self.emitted
        return self.emitted

    @property
    def scheduled(self) -> Scheduled:
        return self.steps[-1].state if self.steps else self.start


@final
@dataclass(frozen=True, slots=True)
class Generated:
    """All that is made of a spec: C files by name, the manifest entry, and seconds by stage."""

    c_files: dict[str, str]
    manifest: dict[str, object]
    seconds: dict[str, float]


def prover(folder: Path, seconds: float = PROOF_SECONDS) -> Prover:
    """The prover under a limit of time, with what it proved before remembered in a folder."""

    def within(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        prove_within(plain, state, seconds, bench=bench)

    return lambda plain, state, bench: prove_once(plain, state, folder, within, bench)


@final
@dataclass(slots=True)
class Plain:
    """The plain schedules of a spec for a choice of dtypes, each made once: what the workbench
    knows of one, such as its flow, then counts on all levels.
    """

    spec: KernelSpec
    dtypes: Dtypes
    bench: Workbench = field(default_factory=Workbench)
    made: dict[Expr | None, Kernel] = field(default_factory=dict)

    def under(self, when: Expr | None) -> Kernel:
        """The plain schedule where the condition of a variant holds."""
        if when not in self.made:
            self.made[when] = (
                specs.build(self.spec, self.dtypes)
                if when is None
                else where(self.under(None), when, self.spec.sizes)
            )
        return self.made[when]


def schedule(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    prove: Prover,
    *,
    each_step: bool = True,
    plain: Plain | None = None,
) -> tuple[Variant, ...]:
    """The kernel's variants on the target, in the order in which they are tried.

    The plain schedule is always there, as the last of them. What there is no code for is there,
    too, up to its last step. prove: proves each variant as it is emitted. each_step: and, verified,
    all that comes before. plain: what other levels made already.
    Raises SpecError and ScheduleError.
    """
    if not dtypes:  # of which `$lanes` and symbols are made
        hint = "write {T: [float32, float64]} under 'dtypes', and T where an element type stands"
        raise SpecError(f"'{spec.name}' has no type variable", spec.span, hint)
    plain = plain or Plain(spec, dtypes)
    with located(spec.span):
        return tuple(_variants(spec, dtypes, target, prove, each_step, plain))


def _variants(
    spec: KernelSpec, dtypes: Dtypes, target: Target, prove: Prover, each_step: bool, plain: Plain
) -> Iterator[Variant]:
    recipe = recipes.choose(spec.recipes, target.name, target.level)
    own = target.parameters(dtypes)
    for name, when, steps, span in _plans(recipe, target.level, own):
        with located(span):
            yield _variant(
                name,
                plain.under(when),
                when,
                steps,
                span,
                target,
                prove,
                plain.bench,
                each_step=each_step,
            )


_Plan = tuple[str, Expr | None, tuple[Primitive, ...], Span | None]


def _plans(recipe: Recipe | None, level: str, own: Mapping[str, int]) -> list[_Plan]:
    """Name, condition and steps of each variant; the plain schedule where none takes all sizes."""
    if recipe is None:
        return [("plain", None, (), None)]
    steps = recipes.read(recipe, level, own)
    plans: list[_Plan] = [
        (str(k) if s else "plain", v.when, s, v.span)
        for k, (v, s) in enumerate(zip(recipe.variants, steps, strict=True))
    ]
    if plans[-1][1] is not None:
        plans.append(("plain", None, (), recipe.span))
    return plans


def _variant(
    name: str,
    plain: Kernel,
    when: Expr | None,
    steps: tuple[Primitive, ...],
    span: Span | None,
    target: Target,
    prove: Prover,
    bench: Workbench,
    *,
    each_step: bool,
) -> Variant:
    start = bench.start(plain)
    if each_step:
        prove(plain, start, bench)  # so that no step is blamed for what the spec itself does wrong
    done = recipes.run(start, steps, Context(plain, prove if each_step else None, bench))
    last = done[-1].state if done else start
    verify(last.kernel)
    try:
        lowered = lower(last, target.lowering)
    except NoCode as missing:
        return Variant(name, when, start, done, _located(missing, done, target), frozenset(), span)
    verify(lowered.kernel, lowered=True)
    prove(plain, lowered, bench)
    shared, limits = in_place(lowered.kernel), index_limits([(lowered.kernel, when)])
    return Variant(name, when, start, done, lowered, shared, span, limits)


def _located(missing: NoCode, steps: Sequence[Step], target: Target) -> NoCode:
    """The error at the first step after which there is no code."""
    for step in steps:
        try:
            lower(step.state, target.lowering)
        except NoCode as first:
            return NoCode(first.message, step.primitive.span, first.hint)
    return missing


def schedule_to_emit(
    spec: KernelSpec, dtypes: Dtypes, target: Target, prove: Prover, plain: Plain | None = None
) -> tuple[Variant, ...]:
    """As `schedule`, but only what is emitted is proved, against the spec, end to end: that alone
    decides whether it is right. Where it is not, verifying and proving each step says which of them
    is wrong.
    """
    try:
        return schedule(spec, dtypes, target, prove, each_step=False, plain=plain)
    except TilesmithError:  # what refuses it may be far from the step that is to blame
        return schedule(spec, dtypes, target, prove)


def emit(
    spec: KernelSpec,
    variants: Mapping[str, Sequence[Variant]],
    target: Target,
    *,
    keep_marks: bool = False,
) -> Mapping[str, str]:
    """The sources of a kernel for a target, by file name; `variants` by the suffix of their dtypes.
    Raises as `finish` and `Target.emit`, which says what keep_marks is.
    """
    packed = [a.name for a in spec.arguments if _looped(spec, a)]
    done = {dtypes: [_finished(v, target) for v in chosen] for dtypes, chosen in variants.items()}
    return target.emit(spec.name, done, packed=packed, keep_marks=keep_marks)


def _finished(variant: Variant, target: Target) -> Finished:
    lowered = variant.lowered.kernel
    with located(variant.span or lowered.span):
        tree = finish(lowered, target.finishing)
    shared = frozenset(name for pair in variant.in_place for name in pair)
    return Finished(variant.name, tree, variant.when, shared, variant.span)


def load(spec: KernelSpec, dtypes: Dtypes, variants: Sequence[Variant], target: Target) -> Runnable:
    """The kernel for one choice of dtypes, compiled and loaded. Raises as `emit` and
    `Target.load`.
    """
    sources = emit(spec, {suffix(dtypes): variants}, target)
    signature, limits = specs.build(spec, dtypes), limits_of(variants)
    return target.load(signature, suffix(dtypes), sources, limits, oracle.defaults(spec))


def limits_of(variants: Sequence[Variant]) -> Limits:
    """The limits of sizes, and of the scalars that index, in any of the variants."""
    return smallest(v.limits for v in variants)


def generate(spec: KernelSpec, targets: Sequence[Target], prove: Prover) -> Generated:
    """The sources of a spec for some targets, and its manifest entry.

    Raises TilesmithError; nothing is generated where a proof fails.
    """
    clock = Stopwatch()
    files: dict[str, str] = {}
    steps: dict[str, object] = {}
    shared, harmless = frozenset[tuple[str, str]](), list[frozenset[tuple[str, str]]]()
    standing, limits = PROVED, list[Limits]()
    plains = [Plain(spec, dtypes) for dtypes in specs.choices(spec)]
    for target in targets:
        variants: dict[str, tuple[Variant, ...]] = {}
        for plain in plains:
            with clock("schedule and prove"):
                variants[suffix(plain.dtypes)] = schedule_to_emit(
                    spec, plain.dtypes, target, prove, plain
                )
        with clock("emit"):
            files |= emit(spec, variants, target)
        steps[target.level] = {
            dtypes_: {v.name: len(v.steps) for v in vs} for dtypes_, vs in variants.items()
        }
        limits += map(limits_of, variants.values())
        for variant in (v for vs in variants.values() for v in vs):
            shared |= variant.in_place
            harmless.append(variant.in_place | of_other_sizes(variant.lowered.kernel))
            standing |= variant.lowered.standing
    proof: dict[str, object] = {"status": str(standing), "steps": steps}
    if standing.tested:
        proof["tested"] = [t.step for t in standing.tested]
    in_place_ = shared.intersection(*harmless)
    entry = manifest_entry(spec, [t.level for t in targets], proof, in_place_, smallest(limits))
    return Generated(files, entry_to_json(entry), clock.seconds)


def suffix(dtypes: Dtypes) -> str:
    """The choice of dtypes as symbols and tables name it: `float32`, `float32_int8`."""
    return "_".join(d.value for d in dtypes.values())


def manifest_entry(
    spec: KernelSpec,
    levels: Sequence[str],
    proof: Mapping[str, object],
    in_place: frozenset[tuple[str, str]],
    limits: Limits = NO_LIMITS,
) -> Entry:
    """What the binding and the documentation know of the kernel.

    proof: what vouches for it, in words, and by level and dtypes the number of steps of each
    variant. in_place: the pairs of an input and an output that may be one array, whatever variant
    runs. limits: of sizes and scalars.
    """
    return Entry(
        kernel=spec.name,
        doc=spec.doc,
        signature=str(spec.signature),
        types={v.name: tuple(d.value for d in v.choices) for v in spec.dtypes},
        following={v.name: v.of for v in spec.dtypes if v.of is not None},
        dims=spec.dims,
        loop_dim=spec.loop_dim,
        arguments=tuple(_argument(spec, k, in_place) for k in range(len(spec.arguments))),
        parameters=tuple(Parameter(s.name, s.element, s.default) for s in spec.scalars),
        requires=specs.least_sizes(spec),
        constraints=tuple(expr_to_text(c) for c in specs.relations(spec)),
        named={size.name: expr_to_text(size.value) for size in spec.sizes},
        limits=limits.scalars,
        largest=limits.largest,
        products=tuple(map(expr_to_text, limits.products)),
        levels=tuple(levels),
        ordered=specs.is_ordered(spec),
        details={
            "follows": spec.follows,
            "accuracy": {f.output: f.text.text for f in spec.accuracy},
            "example": spec.example,
            "proof": dict(proof),
        },
    )


def _looped(spec: KernelSpec, argument: model.Argument) -> bool:
    """Whether the array has the loop dim: its slices are packed where a unit stride is needed."""
    return spec.loop_dim is not None and argument.shape[:1] == (spec.loop_dim,)


def _argument(spec: KernelSpec, position: int, in_place: frozenset[tuple[str, str]]) -> Argument:
    a = spec.arguments[position]
    looped = _looped(spec, a)
    axes = a.shape[1:] if looped else a.shape
    core = tuple(s if isinstance(s, str | int) else model.size_text(s) for s in axes)
    shared = tuple(b.name for b in spec.arguments if (b.name, a.name) in in_place)
    return Argument(a.name, a.intent, a.element, looped, core, shared)


@final
@dataclass
class Stopwatch:
    """Seconds spent by stage: `with clock("load"): ...` adds to `clock.seconds["load"]`."""

    seconds: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _start: float = 0.0

    def __call__(self, stage: str) -> "Stopwatch":
        self._stage, self._start = stage, time.perf_counter()
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = time.perf_counter() - self._start
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + spent


def inputs(spec: KernelSpec) -> tuple[str, ...]:
    """Names of the arrays that a caller gives."""
    return tuple(a.name for a in spec.arguments if a.intent is not Intent.OUT)
