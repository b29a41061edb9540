"""The recipe of a kernel on a target: the spec's own, or the one that the target's rules write.

Input: the plain schedules of a spec for a choice of dtypes, and a target. Output: a recipe, or the
story of how it was chosen. Invariant: what rules write is read from its text, as any recipe is.

Rules choose once for all levels of a target and all types of a kind, and anew where that recipe
does not serve. So which recipe a kernel has follows from its spec, its dtypes and the target alone,
whatever else is made beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from ..errors import TilesmithError
from ..ir.algebra import conjunction, conjuncts, index
from ..ir.index.linear import tidy
from ..ir.nodes import Binary, BinaryOp, Expr, Loop, Var
from ..ir.rules.verify import verify
from ..ir.text.print_expr import spec_text
from ..ir.types import INDEX
from ..ir.walk import loops, substitute, variables
from ..language import choices, yaml
from ..language.formulas import oracle
from ..language.model import KernelSpec, Recipe
from ..language.recipes import MAX_VARIANTS, read_recipes
from ..lower.finish import Finished, finish
from ..lower.index_limits import index_limits
from ..lower.lower import lower
from ..lower.variants import Plain, Plan, plans_of, suffix
from ..poly.prove import prove
from ..poly.queries.times import known
from ..schedule import recipe as recipes
from ..schedule.base import StepContext
from ..schedule.rules.choose import Chosen, Rules, Works, choose, to_yaml
from ..schedule.rules.parts.draft import Draft
from ..schedule.rules.parts.scalars import factors, of_lines
from .target import Target

CHOSEN = "the recipe that rules chose"
"""What a place in such a recipe has in place of a file."""


@final
@dataclass(frozen=True, slots=True)
class ByRules:
    """A recipe that rules wrote: its text, as a spec has it, and which rule took which block."""

    text: str
    recipe: Recipe
    chosen: tuple[Chosen, ...]


@final
class Written:
    """What a target's rules write for a spec: found once, for whoever makes its kernel for several
    levels or types.

    plains: those of the spec that are made already.
    """

    def __init__(self, spec: KernelSpec, plains: Sequence[Plain] = ()) -> None:
        self._spec = spec
        self._plains = {suffix(plain.dtypes): plain for plain in plains}
        self._found: dict[tuple[str, str], ByRules] = {}

    def usual(self, plain: Plain, target: Target, rules: Rules) -> ByRules:
        """The recipe for all levels of the target and all types of these kinds: what rules choose
        on the level that the target shows, for the first types. Nobody has lowered it yet.
        """
        first = self._first(plain, target)
        key = target.name, suffix(first.dtypes)
        if key not in self._found:
            shown = target.at(target.shown)
            self._found[key] = _written(_chosen(first, shown, rules, careful=False), first, shown)
        return self._found[key]

    def _first(self, plain: Plain, target: Target) -> Plain:
        """The plain schedules for the spec's first dtypes of the same kinds."""
        kinds = [dtype.kind for dtype in plain.dtypes.values()]
        for dtypes in choices(self._spec):
            alike = [dtype.kind for dtype in dtypes.values()] == kinds
            if alike and all(map(target.has_code_for, dtypes.values())):
                if dtypes == plain.dtypes:
                    return plain
                return self._plains.setdefault(suffix(dtypes), Plain(self._spec, dtypes))
        return plain


def own_recipe(spec: KernelSpec, target: Target) -> Recipe | None:
    """The spec's own."""
    return recipes.choose(spec.recipes, target.name, target.level)


def recipe_of(plain: Plain, target: Target, written: Written | None = None) -> Recipe | None:
    """None: the plain schedule; there is no recipe, and the target has no rules. written: what was
    found for other levels and types.
    """
    own = own_recipe(plain.spec, target)
    if own is not None:
        return own
    found = by_rules(plain, target, written=written)
    return found.recipe if found else None


def by_rules(
    plain: Plain, target: Target, rules: Rules | None = None, written: Written | None = None
) -> ByRules | None:
    """What the target's rules write, or others, whether the spec has a recipe or not; None without
    rules. written: what the same rules wrote before.
    """
    rules = rules or target.rules
    if rules is None:
        return None
    usual = (written or Written(plain.spec)).usual(plain, target, rules)
    if _serves(usual.recipe, plain, target):
        return usual
    return _written(_chosen(plain, target, rules, careful=True), plain, target)


def _serves(recipe: Recipe, plain: Plain, target: Target) -> bool:
    """Whether all its variants apply, are right, and have code."""
    try:
        for plan in plans_of(recipe, target.level, target.parameters(plain.dtypes)):
            _require_working(plan, plain, target)
    except TilesmithError:
        return False
    return True


def _require_working(plan: Plan, plain: Plain, target: Target) -> None:
    """Raises TilesmithError where a variant does not apply, is wrong, or has no code."""
    kernel = plain.under(plan.when)
    state = plain.bench.start(kernel)
    for step in recipes.run(state, plan.steps, StepContext(kernel, None, plain.bench)):
        state = step.state
    verify(state.kernel)
    lowered = lower(state, target.lowering)
    verify(lowered.kernel, lowered=True)
    prove(kernel, lowered, plain.bench)
    index_limits([(lowered.kernel, plan.when)])
    tree = finish(lowered.kernel, target.finishing)
    packed = [p.buffer.name for p in kernel.parameters]
    target.emit(kernel.name, {"": [Finished("", tree)]}, packed=packed)


def _works(plain: Plain, target: Target) -> Works:
    """Asks a draft as whoever takes the recipe will: by its text, for the sizes that it is for."""

    def works(draft: Draft) -> None:
        rest = replace(draft, when=(), lines=())
        variants = [draft, rest] if draft.when else [draft]
        recipe = of_text(to_yaml(target.name, [Chosen(d) for d in variants]), plain.spec)
        plan, *_ = plans_of(recipe, target.level, target.parameters(plain.dtypes))
        if plan.when is None or _ever_holds(plan.when, plain):  # else `_written` leaves it out
            _require_working(plan, plain, target)

    return works


def _written(chosen: Sequence[Chosen], plain: Plain, target: Target) -> ByRules:
    """Without variants for no sizes, such as rules write where two axes have one size."""
    chosen = fitting(chosen, target.name)
    variants = of_text(to_yaml(target.name, chosen), plain.spec).variants
    needed = [c for c, v in zip(chosen, variants, strict=True) if _ever_holds(v.when, plain)]
    text = to_yaml(target.name, needed)
    return ByRules(text, of_text(text, plain.spec), tuple(needed))


def fitting(chosen: Sequence[Chosen], target: str) -> Sequence[Chosen]:
    """As many as a recipe's text may have: where several blocks have variants for the sizes of
    their own axes, there is one for each combination. Those of the most conditions are left out,
    which are for the fewest sizes; the variants after them are for these sizes, too.
    """
    kept = [*chosen]
    while len(kept) > 1 and (
        len(kept) > MAX_VARIANTS or len(to_yaml(target, kept).encode()) > yaml.MAX_BYTES
    ):
        counts = [len(each.draft.when) for each in kept[:-1]]
        del kept[counts.index(max(counts))]
    return kept


def _ever_holds(when: Expr | None, plain: Plain) -> bool:
    """Whether a condition holds for any sizes and scalars, as far as isl can say it."""
    given = (*plain.under(None).assumptions, *(conjuncts(when) if when else ()))
    parameters = {name for each in given for name in variables(each) if name.startswith("$")}
    return not known((*_names(plain.spec), *parameters), given).is_empty()


def of_text(text: str, spec: KernelSpec) -> Recipe:
    """The recipe that such a text is. Raises SpecError."""
    node = yaml.parse(text, CHOSEN)
    assert isinstance(node, yaml.List)
    (recipe,) = read_recipes(node, _names(spec))
    return recipe


def _names(spec: KernelSpec) -> tuple[str, ...]:
    """What a `when` may name."""
    return (*spec.all_dims, *(s.name for s in spec.scalars if s.element == INDEX.value))


def _chosen(plain: Plain, target: Target, rules: Rules, *, careful: bool) -> tuple[Chosen, ...]:
    """What is chosen for all calls; before it, where that is better, for scalars at their defaults
    (`rules.scalars`). careful: each variant is lowered, proved and emitted.
    """
    general = _chosen_under(plain, target, rules, {}, careful)
    kernel, defaults = plain.under(None), oracle.defaults(plain.spec)
    fixed = {name: int(defaults[name]) for name in factors(kernel) if name in defaults}
    if not fixed:
        return general
    best = _chosen_under(plain, target, rules, fixed, careful)
    for name in [name for name in fixed if name not in of_lines(kernel)]:
        fewer = {other: value for other, value in fixed.items() if other != name}
        chosen = _chosen_under(plain, target, rules, fewer, careful) if fewer else general
        if _loops(chosen, fixed) == _loops(best, fixed):
            fixed, best = fewer, chosen
    return (*best, *general) if fixed else general


def _loops(chosen: Sequence[Chosen], fixed: Mapping[str, int]) -> list[object]:
    """The steps of each variant, and what their loops run over where scalars have these values."""
    values = {name: index(value) for name, value in fixed.items()}

    def over(loop: Loop) -> object:
        return loop.var, *(tidy(substitute(end, values)) for end in (loop.lower, loop.upper))

    return [(c.draft.lines, [over(x) for x in loops(c.draft.kernel.body)]) for c in chosen]


def _chosen_under(
    plain: Plain, target: Target, rules: Rules, fixed: Mapping[str, int], careful: bool
) -> tuple[Chosen, ...]:
    """The variants where scalars have these values."""
    conditions = [Binary(BinaryOp.EQ, Var(name), index(value)) for name, value in fixed.items()]
    when = conjunction(*conditions) if conditions else None
    kernel, bench = plain.under(when), plain.bench
    draft = Draft(
        bench.start(kernel),
        StepContext(kernel, None, bench),
        target.parameters(plain.dtypes),
        when=tuple(map(spec_text, conditions)),
        loop_dim=plain.spec.loop_dim,
    )
    return choose(draft, rules, _works(plain, target) if careful else None)
