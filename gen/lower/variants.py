"""The variants of a kernel: what a recipe says of each, and what comes of it.

Input: a spec, a choice of dtypes and its recipe. Output: names, conditions and steps of the
variants; the plain schedules that they begin with; and a Variant, the record of one that is made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, final

from .. import language as specs
from ..errors import NoCode, Span, TilesmithError
from ..ir.algebra import FALSE
from ..ir.nodes import Expr, Kernel
from ..language import Dtypes
from ..language.model import KernelSpec, Recipe
from ..poly.certificate import Scheduled
from ..poly.workbench import Workbench
from ..schedule import recipe as recipes
from ..schedule.base import Primitive, Step
from .index_limits import NO_LIMITS, Limits, smallest
from .specialize import where


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What a recipe says of a variant. when: where it may run (None: for all sizes). span: its
    place, where it is written.
    """

    name: str
    when: Expr | None
    steps: tuple[Primitive, ...]
    span: Span | None


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a kernel, for one choice of dtypes on one target.

    start: the plain schedule under the variant's `when`. steps: the proved state after each step,
    composites written out. emitted: what lowering made of them, or why there is no code for them.
    in_place: the pairs of an input and an output that a call may give as one array. limits: of the
    sizes and scalars with which all indices stay in 64 bits.
    """

    plan: Plan
    start: Scheduled
    steps: tuple[Step, ...]
    emitted: Scheduled | NoCode
    in_place: frozenset[tuple[str, str]]
    limits: Limits = NO_LIMITS

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def when(self) -> Expr | None:
        return self.plan.when

    @property
    def span(self) -> Span | None:
        return self.plan.span

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


def whens_of(variants: Iterable[Variant | Plan]) -> tuple[Expr, ...]:
    """The conditions of those that have one."""
    return tuple(v.when for v in variants if v.when is not None)


def plans_of(recipe: Recipe | None, level: str, own: Mapping[str, int]) -> list[Plan]:
    """The plan of each variant; the plain schedule's where there is no recipe. own: the target's
    parameters. "plain" is the last variant's name alone, since others may have no steps either.
    A variant that these parameters rule out has no plan.
    """
    if recipe is None:
        return [Plan("plain", None, (), None)]
    variants = recipes.read(recipe, level, own)
    return [
        Plan("plain" if v.when is None and not v.steps else str(k), v.when, v.steps, text.span)
        for k, (v, text) in enumerate(zip(variants, recipe.variants, strict=True))
        if v.when != FALSE
    ]


E = TypeVar("E", bound=TilesmithError)


def blamed(
    error: E, start: Scheduled, steps: Sequence[Step], attempt: Callable[[Scheduled], object]
) -> E:
    """The error of an attempt on the last state, at the step that brought it; as it is where the
    plain schedule has it already.

    Errors are the same where they say the same up to what details follow.
    """
    before = (start, *(step.state for step in steps))
    what = _head(error)
    for state, step in zip(reversed(before[:-1]), reversed(steps), strict=True):
        if _refusal(state, attempt) != what:
            error.span = step.primitive.span or error.span
            return error
    return error


def _head(error: TilesmithError) -> str:
    return error.message.partition(": ")[0]


def _refusal(state: Scheduled, attempt: Callable[[Scheduled], object]) -> str | None:
    """What the attempt on a state fails with; None where it does not."""
    try:
        attempt(state)
    except TilesmithError as error:
        return _head(error)
    return None


def limits_of(variants: Sequence[Variant]) -> Limits:
    """The limits of sizes, and of the scalars that index, in any of the variants."""
    return smallest(v.limits for v in variants)


def suffix(dtypes: Dtypes) -> str:
    """The choice of dtypes as symbols and tables name it: `float32`, `float32_int8`."""
    return "_".join(d.value for d in dtypes.values())


def choice(spec: KernelSpec, name: str | None) -> Dtypes:
    """The choice of dtypes of that name, as `suffix` gives it; the first where there is no name.
    Raises TilesmithError.
    """
    choices = {suffix(dtypes): dtypes for dtypes in specs.choices(spec)}
    if name is None:
        return next(iter(choices.values()))
    if name not in choices:
        raise TilesmithError(f"{spec.name} has no dtype {name!r}: it has {', '.join(choices)}")
    return choices[name]
