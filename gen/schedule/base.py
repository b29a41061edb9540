"""What a primitive is, and the one way to run it.

Input: a tree with its certificate. Output: the tree and certificate after the step, verified and
proved. Invariant: no state leaves this module that the verifier and the prover have not passed,
but where whoever runs the steps asks both of the last.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields, replace
from enum import Enum
from itertools import islice
from typing import Any, ClassVar, dataclass_transform, final

from ..errors import ScheduleError, Span, TilesmithError
from ..ir.nodes import Kernel
from ..ir.rules.verify import IRError, verify
from ..ir.walk import loops
from ..poly.certificate import Scheduled, Standing, Tested
from ..poly.prove import prove as prove_with_isl
from ..poly.witness import Refused
from ..poly.workbench import Workbench
from .edit.allocation import hoist, sink
from .edit.nesting_rules import require_lanes
from .edit.tree import CannotApply, prune_shared
from .limits import too_large
from .nests import taken_apart
from .reach import reached

NOWHERE = Span("", 0, 0)
"""The span of a step that no recipe wrote."""

OF_ANY = ("span", "tested")
"""Fields that every primitive has; the others are its arguments."""

Prover = Callable[[Kernel, Scheduled, Workbench], None]
"""Takes the plain kernel, a state, and what is known; raises Refused, with a witness, where the two
differ.
"""


@final
class Layer(Enum):
    """Tiramisu's layers: a step of a later one never undoes an earlier one's decision."""

    ALGORITHM = "I"
    ORDER = "II"
    STORAGE = "III"
    COMMUNICATION = "IV"


@final
@dataclass(frozen=True, slots=True)
class Example:
    """A tree in the printed form of the IR, steps on it in the form of a recipe, and the refusal's
    text where they are refused. Else `tests/golden/primitives` has the tree after them.
    """

    title: str
    before: str
    steps: str
    refused: str = ""


@final
@dataclass(frozen=True, slots=True)
class StepContext:
    """What every step of a schedule needs: the kernel as the spec says it, and a prover.

    prove: None where trees are neither verified nor proved after each step, since whoever runs the
        steps asks both of what comes of them. bench: what is known of the kernel.
    """

    plain: Kernel
    prove: Prover | None = prove_with_isl
    bench: Workbench = field(default_factory=Workbench)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class _Declared:
    """Makes a frozen dataclass of every class under it, named as the class: `ComputeAt` is
    `compute_at`.
    """

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        cls.name = snake(cls.__name__)
        dataclass(frozen=True)(cls)


def snake(name: str) -> str:
    """A name of capitalised words, as YAML has it."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()


class Primitive(_Declared, ABC):
    """A step of a schedule. The fields are its arguments in YAML; its docstring documents it.

    tested: where data hides from the proof what a read takes, compare by the interpreter instead.
        Any step takes it.
    """

    aliases: ClassVar[tuple[str, ...]] = ()
    EXAMPLES: ClassVar[tuple[Example, ...]]

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)
    tested: bool = field(default=False, kw_only=True)

    @abstractmethod
    def apply(self, state: Scheduled) -> "Scheduled | Steps":
        """The tree after the step and its whole certificate, or of a composite the steps that it
        stands for. Raises CannotApply where the step does not apply.

        state: all temporaries are at the root. Of what the new state's reads share, loops that are
        not around both sides go by themselves; of its standing the laws alone count: those that
        the step takes for granted.
        """

    def remedies(self, state: Scheduled) -> Iterable[tuple["Primitive", ...]]:
        """Steps to take in place of this one, best first, where the proof refuses it. Each is tried
        before a hint names it.
        """
        return ()

    @final
    def __call__(self, state: Scheduled, context: StepContext) -> Scheduled:
        """The proved state after the step. Raises ScheduleError where it does not apply."""
        return trace(self, state, context)[-1].state

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the documentation, on one line."""
        return " ".join((cls.__doc__ or "").split("\n\n")[0].split())

    def __str__(self) -> str:
        """The step as a recipe writes it, defaults left out."""
        given = (
            (f.name.rstrip("_"), getattr(self, f.name))
            for f in sorted(fields(self), key=lambda f: f.name in OF_ANY)
            if f.name != "span" and getattr(self, f.name) != f.default
        )
        return f"{self.name}: {{{', '.join(f'{k}: {to_yaml(v)}' for k, v in given)}}}"


Steps = tuple[Primitive, ...]


def to_yaml(value: object) -> str:
    """A value as a recipe writes it."""
    match value:
        case tuple() | list():
            return f"[{', '.join(map(to_yaml, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {to_yaml(item)}' for key, item in value.items())}}}"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str() if set(value) & set(",:#%{}[]"):
            return f'"{value}"'
        case Enum():
            return str(value.value)
        case _:
            return str(value)


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A step that rewrites, and the proved state after it."""

    primitive: Primitive
    state: Scheduled


def trace(primitive: Primitive, state: Scheduled, context: StepContext) -> tuple[Step, ...]:
    """The steps that a primitive stands for, each checked, rewritten, verified and proved.

    Raises ScheduleError naming the primitive, its block and loop and its line in the recipe, with
    what to do instead where something is known.
    """
    try:
        return _trace(primitive, state, context)
    except ScheduleError as error:
        if isinstance(error.__cause__, Refused | ScheduleError):  # and not a failed check
            error.hint = _remedy(primitive, state, context) or error.hint
        raise


TRIED = 3  # remedies a refusal


def _remedy(primitive: Primitive, state: Scheduled, context: StepContext) -> str | None:
    """The first remedy that the prover accepts, as a recipe writes it."""
    try:
        for steps in islice(primitive.remedies(state), TRIED):
            if _legal(steps, state, context):
                return f"legal in place of this step: {', then '.join(map(str, steps))}"
    except (CannotApply, TilesmithError):
        return None  # what is known of the tree is not enough to look for one
    return None


def _legal(steps: Iterable[Primitive], state: Scheduled, context: StepContext) -> bool:
    try:
        for step in steps:
            state = _trace(step, state, context)[-1].state
    except TilesmithError:
        return False
    return True


def _trace(primitive: Primitive, state: Scheduled, context: StepContext) -> tuple[Step, ...]:
    flat = hoist(state)
    try:
        new = primitive.apply(flat)
        if isinstance(new, Scheduled):
            new = _whole(state, flat, new)
    except CannotApply as refusal:
        raise _error(primitive, refusal.reason, refusal.hint) from None
    if not isinstance(new, Scheduled):
        return _each(primitive, new, state, context)
    try:
        if context.prove is not None:
            verify(new.kernel)
            new = proved(context, new, str(primitive) if primitive.tested else None)
    except IRError as error:
        raise _error(primitive, f"the tree breaks a rule: {error.message}") from error
    except Refused as refused:
        raise _refused(primitive, refused) from refused
    except ScheduleError as error:
        raise _error(primitive, error.message) from error
    return (Step(primitive, new),)


def _each(
    primitive: Primitive, parts: Steps, state: Scheduled, context: StepContext
) -> tuple[Step, ...]:
    """The steps of a composite, as if each stood where it does in the recipe."""
    done: list[Step] = []
    for part in parts:
        part = replace(part, tested=primitive.tested, span=primitive.span)
        try:
            done += _trace(part, done[-1].state if done else state, context)
        except ScheduleError as error:
            if not isinstance(part, type(primitive)):
                error.message = f"{primitive.name} stands for {error.message}"
            raise
    return tuple(done)


def _whole(state: Scheduled, flat: Scheduled, new: Scheduled) -> Scheduled:
    """What a primitive made of `flat`, with temporaries where they live. Raises CannotApply where
    it is more than any step may change.
    """
    flow = prune_shared(new.kernel, new.flow)
    after = sink(reached(replace(new, flow=flow)))
    _require_annotated(flat.kernel, after.kernel)
    if large := too_large(flat.kernel, after.kernel):
        raise CannotApply(*large)
    require_lanes(after.kernel)
    if broken := taken_apart(state.kernel, after.kernel):
        raise CannotApply(broken)
    return replace(after, standing=flat.standing | Standing(new.standing.laws))


def proved(context: StepContext, state: Scheduled, tested: str | None) -> Scheduled:
    """The state, proved. tested: the step, where it leaves to tests the reads that data hides; the
    standing then says so. Raises Refused.
    """
    assert context.prove is not None
    while True:
        try:
            context.prove(context.plain, state, context.bench)
            return state
        except Refused as refused:
            read = refused.hidden
            if tested is None or read is None or read in state.standing.reads:
                raise
            standing = Standing(tested=(Tested(tested, frozenset({read})),))
            state = replace(state, standing=state.standing | standing)


def _require_annotated(before: Kernel, after: Kernel) -> None:
    """Refuses a step after which a loop is gone that `annotate` has said something of."""
    left = {loop.var for loop in loops(after.body)}
    for loop in loops(before.body):
        if loop.annotations and loop.var not in left:
            key = loop.annotations[0][0]
            raise CannotApply(
                f"loop '{loop.var}' would be gone, which is annotated with '{key}'",
                "annotate last, or unannotate it",
            )


def _refused(primitive: Primitive, refused: Refused) -> ScheduleError:
    case = refused.witness.lines() if refused.witness else ()
    notes = tuple(f"{'  ' if k else 'for example: '}{line}" for k, line in enumerate(case))
    return _error(primitive, f"the proof was refused: {refused.reason}", refused.hint, notes)


def _error(
    primitive: Primitive, reason: str, hint: str | None = None, notes: tuple[str, ...] = ()
) -> ScheduleError:
    where = [
        f"{key} {to_yaml(getattr(primitive, key))}"
        for key in ("block", "blocks", "loop", "loops", "buffer")
        if getattr(primitive, key, None)
    ]
    span = None if primitive.span == NOWHERE else primitive.span
    return ScheduleError(f"{primitive.name} ({', '.join(where)}): {reason}", span, hint, notes)
