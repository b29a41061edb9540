"""From a spec's file to its sources, one call a stage.

Input: a spec, dtypes and a target. Output: for each variant of its recipe the trace of its schedule
and the lowered tree, all proved; and the C files and manifest entry of the whole kernel. Invariant:
nothing is emitted but what the prover has passed, and is checked to do the same (`lower.finish`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from . import language as specs
from .binding.entry import entry_of, looped
from .binding.manifest import entry_to_json
from .errors import NoCode, SpecError, TilesmithError, located
from .ir.nodes import Kernel
from .ir.rules.verify import verify
from .language import Dtypes
from .language.declared.scalars import members_of
from .language.formulas import oracle
from .language.model import KernelSpec, Recipe
from .language.syntax.members import errors_in_words
from .lower.finish import Finished, finish
from .lower.index_limits import index_limits
from .lower.lower import lower
from .lower.variants import Plain, Plan, Variant, blamed, limits_of, plans_of, suffix
from .poly.certificate import Scheduled
from .poly.checks.in_place import in_place
from .poly.witness import Refused
from .schedule import recipe as recipes
from .schedule.base import Prover, StepContext
from .targets.recipes import Written, own_recipe, recipe_of
from .targets.target import Runnable, Target


@final
@dataclass(frozen=True, slots=True)
class Generated:
    """All that is made of a spec: C files by name, and the manifest entry."""

    c_files: dict[str, str]
    manifest: dict[str, object]


def schedule(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    prove: Prover,
    *,
    each_step: bool = True,
    plain: Plain | None = None,
    written: Written | None = None,
) -> tuple[Variant, ...]:
    """The kernel's variants on the target, in the order in which they are tried.

    The last of them takes all sizes; without a recipe it is the plain schedule. What there is no
    code for is there, too, up to its last step. prove: proves each variant as it is emitted.
    each_step: and, verified, all that comes before. plain: what other levels made already; written:
    what rules wrote for them. Raises SpecError and ScheduleError.
    """
    if not dtypes:  # of which `$lanes` and symbols are made
        hint = "write {T: [float32, float64]} under 'dtypes', and T where an element type stands"
        raise SpecError(f"'{spec.name}' has no type variable", spec.span, hint)
    plain = plain or Plain(spec, dtypes)
    with errors_in_words(members_of(spec.scalars)):
        return _variants(recipe_of(plain, target, written), plain, target, prove, each_step)


def _variants(
    recipe: Recipe | None, plain: Plain, target: Target, prove: Prover, each_step: bool
) -> tuple[Variant, ...]:
    with located(plain.spec.span):
        return tuple(
            _variant(plan, plain, target, prove, each_step)
            for plan in plans_of(recipe, target.level, target.parameters(plain.dtypes))
        )


def _variant(plan: Plan, plain: Plain, target: Target, prove: Prover, each_step: bool) -> Variant:
    with located(plan.span):
        kernel, bench = plain.under(plan.when), plain.bench
        start = bench.start(kernel)
        if each_step:
            prove(kernel, start, bench)  # no step is blamed for what the spec itself does wrong
        context = StepContext(kernel, prove if each_step else None, bench)
        done = recipes.run(start, plan.steps, context)
        last = done[-1].state if done else start
        verify(last.kernel)
        try:
            lowered = lower(last, target.lowering)
        except TilesmithError as wrong:
            error = blamed(wrong, start, done, lambda state: lower(state, target.lowering))
            if not isinstance(error, NoCode):
                raise error from None
            return Variant(plan, start, done, error, frozenset())
        verify(lowered.kernel, lowered=True)
        prove(kernel, lowered, bench)
        limits = index_limits([(lowered.kernel, plan.when)])
        return Variant(plan, start, done, lowered, in_place(lowered.kernel), limits)


def schedule_to_emit(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    prove: Prover,
    plain: Plain | None = None,
    written: Written | None = None,
) -> tuple[Variant, ...]:
    """As `schedule`, but only what is emitted is proved, against the spec, end to end: that alone
    decides whether it is right. Where it is not, verifying and proving each step says which of them
    is wrong.
    """
    try:
        return schedule(spec, dtypes, target, prove, each_step=False, plain=plain, written=written)
    except TilesmithError:  # what refuses it may be far from the step that is to blame
        return schedule(spec, dtypes, target, prove)


def made(
    spec: KernelSpec, dtypes: Dtypes, target: Target, prove: Prover
) -> tuple[tuple[Variant, ...], Mapping[str, str]]:
    """What `schedule_to_emit` and `emit` make, without a proof or a text made twice where rules
    write the recipe. Raises as these.
    """
    if dtypes:
        plain = Plain(spec, dtypes)
        if found := _by_usual(spec, [plain], target, prove, Written(spec, [plain])):
            by_dtypes, sources = found
            return by_dtypes[suffix(dtypes)], sources
    variants = schedule_to_emit(spec, dtypes, target, prove)
    return variants, emit(spec, {suffix(dtypes): variants}, target)


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
    packed = [a.name for a in spec.arguments if looped(spec, a)]
    done = {dtypes: [_finished(v, target) for v in chosen] for dtypes, chosen in variants.items()}
    return target.emit(spec.name, done, packed=packed, keep_marks=keep_marks)


def finished_tree(variant: Variant, target: Target) -> Kernel:
    """The tree of a variant that is emitted. Raises as `finish`, at the step that is to blame."""
    lowered = variant.lowered.kernel
    with located(variant.span or lowered.span):
        try:
            return finish(lowered, target.finishing)
        except Refused:  # a mistake of a pass, not of a recipe
            raise
        except TilesmithError as wrong:

            def attempt(state: Scheduled) -> object:
                return finish(lower(state, target.lowering).kernel, target.finishing)

            raise blamed(wrong, variant.start, variant.steps, attempt) from None


def _finished(variant: Variant, target: Target) -> Finished:
    tree = finished_tree(variant, target)
    shared = frozenset(name for pair in variant.in_place for name in pair)
    return Finished(variant.name, tree, variant.when, shared, variant.span)


def load(
    spec: KernelSpec,
    dtypes: Dtypes,
    variants: Sequence[Variant],
    target: Target,
    sources: Mapping[str, str] | None = None,
) -> Runnable:
    """The kernel for one choice of dtypes, compiled and loaded. sources: what `emit` made, where it
    was asked already. Raises as `emit` and `Target.load`.
    """
    sources = sources or emit(spec, {suffix(dtypes): variants}, target)
    signature, limits = specs.build(spec, dtypes), limits_of(variants)
    return target.load(signature, suffix(dtypes), sources, limits, oracle.defaults(spec))


def generate(spec: KernelSpec, targets: Sequence[Target], prove: Prover) -> Generated:
    """The sources of a spec for some targets, and its manifest entry. What a target has no code
    for, of the choices of dtypes, is left out.

    Raises TilesmithError; nothing is generated where a proof fails.
    """
    files: dict[str, str] = {}
    made: dict[str, Variants] = {}
    plains = [Plain(spec, dtypes) for dtypes in specs.choices(spec)]
    written = Written(spec, plains)
    for target in targets:
        those = [p for p in plains if all(map(target.has_code_for, p.dtypes.values()))]
        found = _by_usual(spec, those, target, prove, written)
        made[target.level], sources = found or _one_by_one(spec, those, target, prove, written)
        files |= sources
    return Generated(files, entry_to_json(entry_of(spec, made)))


Variants = dict[str, tuple[Variant, ...]]
"""By the suffix of their dtypes."""


def _by_usual(
    spec: KernelSpec, plains: Sequence[Plain], target: Target, prove: Prover, written: Written
) -> tuple[Variants, Mapping[str, str]] | None:
    """The variants on a target, and their sources, by what rules write for all of its levels; None
    where that serves not all dtypes, and where a recipe is the spec's own. It finds what
    `recipe_of` finds, and does nothing twice.
    """
    rules = None if own_recipe(spec, target) else target.rules
    if rules is None:
        return None
    try:
        made = {
            suffix(p.dtypes): _variants(
                written.usual(p, target, rules).recipe, p, target, prove, each_step=False
            )
            for p in plains
        }
        return made, emit(spec, made, target)
    except TilesmithError:
        return None


def _one_by_one(
    spec: KernelSpec, plains: Sequence[Plain], target: Target, prove: Prover, written: Written
) -> tuple[Variants, Mapping[str, str]]:
    """The variants on a target, and their sources, each by the recipe that it has."""
    made = {
        suffix(p.dtypes): schedule_to_emit(spec, p.dtypes, target, prove, p, written)
        for p in plains
    }
    return made, emit(spec, made, target)
