"""What a primitive is, and the one way to run it.

Input: a tree with its certificate. Output: the tree and certificate after the step, verified and
proved. Invariant: no state leaves this module that the verifier and the prover have not passed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import ClassVar, final

from ..errors import ScheduleError, Span
from ..ir.nodes import Kernel
from ..ir.verify import IRError, verify
from ..poly.certificate import Scheduled
from ..poly.prove import prove as prove_with_isl
from ..poly.witness import Refused
from .allocation import hoist, sink
from .edit import CannotApply
from .nests import taken_apart

NOWHERE = Span("", 0, 0)
"""The span of a step that no recipe wrote."""

Prover = Callable[[Kernel, Scheduled], None]
"""Takes the plain kernel and a state; raises Refused, with a witness, where they differ."""


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
    """A tree, steps on it, and what comes of them: the tree after, or the refusal's text.

    Both trees are in the printed form of the IR, steps in the form of a recipe.
    """

    title: str
    before: str
    steps: str
    after: str = ""
    refused: str = ""


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What every step of a schedule needs: the kernel as the spec says it, and a prover."""

    plain: Kernel
    prove: Prover = prove_with_isl


@dataclass(frozen=True)
class Primitive(ABC):
    """A step of a schedule. The fields are its arguments in YAML; its docstring documents it.

    A composite has no rewrite of its own: `expand` names the steps that it stands for.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    layer: ClassVar[Layer]
    EXAMPLES: ClassVar[tuple[Example, ...]]

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)

    @abstractmethod
    def check(self, state: Scheduled) -> str | None:
        """Why the step cannot apply; None where it can. All temporaries are at the root."""

    def expand(self, state: Scheduled) -> tuple["Primitive", ...]:
        """The steps of a composite; none for a step that rewrites by itself."""
        return ()

    def rewrite(self, state: Scheduled) -> Scheduled:
        """The tree after the step and its whole certificate, for a step that `check` passed."""
        raise NotImplementedError(f"{self.name} is a composite")

    @final
    def __call__(self, state: Scheduled, context: Context) -> Scheduled:
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
            for f in fields(self)
            if f.name != "span" and getattr(self, f.name) != f.default
        )
        return f"{self.name}: {{{', '.join(f'{k}: {_yaml(v)}' for k, v in given)}}}"


def _yaml(value: object) -> str:
    match value:
        case tuple():
            return f"[{', '.join(map(_yaml, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
        case None:
            return "null"
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


def trace(primitive: Primitive, state: Scheduled, context: Context) -> tuple[Step, ...]:
    """The steps that a primitive stands for, each checked, rewritten, verified and proved.

    Raises ScheduleError naming the primitive, its block and loop and its line in the recipe.
    """
    flat = hoist(state)
    try:
        reason = primitive.check(flat)
        if reason is not None:
            raise CannotApply(reason)
        parts = primitive.expand(flat)
        new = state if parts else sink(primitive.rewrite(flat))
    except CannotApply as refusal:
        raise _error(primitive, refusal.reason, refusal.hint) from None
    if not parts:
        if broken := taken_apart(state.kernel, new.kernel):
            raise _error(primitive, broken)
        try:
            verify(new.kernel)
            context.prove(context.plain, new)
        except IRError as error:
            raise _error(primitive, f"the tree breaks a rule: {error.message}") from error
        except Refused as refused:
            raise _refused(primitive, refused) from refused
        except ScheduleError as error:
            raise _error(primitive, error.message) from error
        return (Step(primitive, new),)
    done: list[Step] = []
    for part in parts:
        done += trace(part, done[-1].state if done else state, context)
    return tuple(done)


def _refused(primitive: Primitive, refused: Refused) -> ScheduleError:
    case = refused.witness.lines() if refused.witness else ()
    notes = tuple(f"{'  ' if k else 'for example: '}{line}" for k, line in enumerate(case))
    return _error(primitive, f"the proof was refused: {refused.reason}", notes=notes)


def _error(
    primitive: Primitive, reason: str, hint: str | None = None, notes: tuple[str, ...] = ()
) -> ScheduleError:
    where = [
        f"{key} {_yaml(getattr(primitive, key))}"
        for key in ("block", "loop", "loops", "buffer")
        if getattr(primitive, key, None)
    ]
    span = None if primitive.span == NOWHERE else primitive.span
    return ScheduleError(f"{primitive.name} ({', '.join(where)}): {reason}", span, hint, notes)
