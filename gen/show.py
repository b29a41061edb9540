"""What `tilesmith show` prints: a kernel at a stage, or the difference that each step made.

Input: a spec, dtypes and a level. Output: text: IR as a script, a unified diff a step, or C.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never, final

from .errors import TilesmithError
from .ir.nodes import Kernel
from .ir.printer import to_text
from .lower.target import Level, Target
from .pipeline import Dtypes, Variant, emit, schedule, suffix
from .poly.certificate import Scheduled
from .spec.model import KernelSpec

STAGES = ("plain", "steps", "scheduled", "lowered", "c")


@final
@dataclass(frozen=True, slots=True)
class Steps:
    """The plain schedule, then each step of a variant as a difference."""

    variant: str


@final
@dataclass(frozen=True, slots=True)
class AfterStep:
    """A variant after its first `step` steps."""

    variant: str
    step: int


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """A variant at one of STAGES."""

    stage: str
    variant: str


View = Steps | AfterStep | Stage


def text(spec: KernelSpec, dtypes: Dtypes, level: Level, view: View) -> str:
    """The view as text. Raises TilesmithError, also where there is no such variant or step."""
    variants = schedule(spec, dtypes, Target(level), _unproved)
    if isinstance(view, Stage) and view.stage == "c":
        return emit(spec, {suffix(dtypes): variants}, level)
    variant = _named(variants, view.variant)
    match view:
        case Steps():
            return "\n".join(_differences(variant))
        case AfterStep(_, step):
            if not 0 <= step <= len(variant.steps):
                raise TilesmithError(
                    f"variant {variant.name} has {len(variant.steps)} steps, not {step}"
                )
            return to_text(variant.steps[step - 1].state.kernel if step else variant.start.kernel)
        case Stage(stage, _):
            return to_text(_at(variant, stage))
        case _:
            assert_never(view)


def _unproved(plain: Kernel, state: Scheduled) -> None:
    """`show` shows what is there, proved or not: `prove` tells which."""


def _at(variant: Variant, stage: str) -> Kernel:
    match stage:
        case "plain":
            return variant.start.kernel
        case "scheduled":
            return variant.scheduled.kernel
        case "lowered":
            return variant.lowered.kernel
        case _:
            raise TilesmithError(f"there is no stage {stage!r}: there are {', '.join(STAGES)}")


def _named(variants: tuple[Variant, ...], name: str) -> Variant:
    for variant in variants:
        if variant.name == name:
            return variant
    if len(variants) == 1 and name == "0":  # what is asked for by default
        return variants[0]
    names = ", ".join(v.name for v in variants)
    raise TilesmithError(f"there is no variant {name!r}: there are {names}")


def _differences(variant: Variant) -> Iterator[str]:
    before = to_text(variant.start.kernel)
    yield before
    for number, step in enumerate(variant.steps, 1):
        after = to_text(step.state.kernel)
        yield f"# step {number}: {step.primitive}"
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), n=2, lineterm="", fromfile="", tofile=""
        )
        yield "\n".join(line for line in lines if not line.startswith(("---", "+++"))) + "\n"
        before = after
