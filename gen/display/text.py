"""What `tilesmith show` prints: a kernel at a stage, or what each step changed.

Input: a spec, dtypes and a target. Output: text: IR as a script, differences a step, or C.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import assert_never, final

from ..errors import TilesmithError
from ..ir.nodes import Kernel
from ..ir.text.printer import to_text
from ..language import Dtypes
from ..language.declared.scalars import members_of
from ..language.model import KernelSpec
from ..language.syntax.members import Members, in_words
from ..lower.variants import Plain, Variant, suffix
from ..pipeline import emit, finished_tree, schedule
from ..poly.certificate import Scheduled
from ..poly.workbench import Workbench
from ..progress import SILENT, Progress
from ..targets.target import Target, joined
from .choices import written
from .differences import Line, Mark, differences, excerpt
from .story import Moment, story

STAGES = ("plain", "scheduled", "lowered", "finished", "c")


@final
@dataclass(frozen=True, slots=True)
class Steps:
    """The plain schedule, then what each step of a variant changed; whole: each tree whole.

    colour: with the codes by which terminals colour.
    """

    variant: str | None
    whole: bool = False
    colour: bool = False


@final
@dataclass(frozen=True, slots=True)
class AfterStep:
    """A variant after its first `step` steps."""

    variant: str | None
    step: int


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """A variant at one of STAGES."""

    stage: str
    variant: str | None


@final
@dataclass(frozen=True, slots=True)
class WrittenByRules:
    """The recipe that the target's rules write, whether the spec has one or not."""


View = Steps | AfterStep | Stage | WrittenByRules


def text(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    view: View,
    shown: Progress = SILENT,
    usual: Callable[[Sequence[Variant]], Variant] = itemgetter(0),
    made: Callable[[Sequence[Variant]], None] = lambda variants: None,
) -> str:
    """The view as text. usual: which variant it is of, where it has no name. made: is called with
    all variants, where there are some. Raises TilesmithError, also where there is no such variant
    or step.

    Steps are proved; the other views show what is there, proved or not.
    """
    if isinstance(view, WrittenByRules):
        return written(Plain(spec, dtypes), target)
    variants = schedule(spec, dtypes, target, unproved)
    made(variants)
    if isinstance(view, Stage) and view.stage == "c":
        return joined(emit(spec, {suffix(dtypes): variants}, target))
    variant = usual(variants) if view.variant is None else named(variants, view.variant)
    match view:
        case Steps(_, whole, colour):
            shown.part(f"{spec.name} {suffix(dtypes)} {target.level}")
            words = members_of(spec.scalars)
            lines = _told(story(variant, shown), len(variant.steps), whole, words)
            return "\n".join(map(_coloured if colour else _plain, lines)) + "\n"
        case AfterStep(_, step):
            if not 0 <= step <= len(variant.steps):
                raise TilesmithError(
                    f"variant {variant.name} has {len(variant.steps)} steps, not {step}"
                )
            return to_text(variant.steps[step - 1].state.kernel if step else variant.start.kernel)
        case Stage(stage, _):
            return to_text(_at(variant, stage, target))
        case _:
            assert_never(view)


def unproved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    """In place of a prover, where what is there is to be seen, proved or not."""


def _at(variant: Variant, stage: str, target: Target) -> Kernel:
    match stage:
        case "plain":
            return variant.start.kernel
        case "scheduled":
            return variant.scheduled.kernel
        case "lowered":
            return variant.lowered.kernel
        case "finished":
            return finished_tree(variant, target)
        case _:
            raise TilesmithError(f"there is no stage {stage!r}: there are {', '.join(STAGES)}")


def named(variants: Sequence[Variant], name: str) -> Variant:
    """The variant of that name. Raises TilesmithError where there is none."""
    for variant in variants:
        if variant.name == name:
            return variant
    names = ", ".join(v.name for v in variants)
    raise TilesmithError(f"there is no variant {name!r}: there are {names}")


# ---------------------------------------------------------------- steps

_Line = Line | str  # a line of a tree, or one about it


def _told(moments: Sequence[Moment], steps: int, whole: bool, words: Members) -> Iterator[_Line]:
    before = ""
    for number, moment in enumerate(moments):
        after = to_text(moment.kernel)
        if number:
            yield ""
        yield from _heading(number if number <= steps else 0, moment, words)
        if whole or not number:
            yield from (Line(Mark.KEPT, line) for line in after.splitlines())
        else:
            yield from excerpt(differences(before, after))
        before = after


def _heading(number: int, moment: Moment, words: Members) -> Iterator[str]:
    """number: of the step, if it is one. words: what scalars may be."""
    step = f"step {number}: " * (number > 0)
    yield f"# {step}{moment.title}"
    if moment.span is not None:
        where = f"{Path(moment.span.path).name}:{moment.span.line}"
        yield f"#   {where}  {' '.join(moment.span.text.split())}"
        for use in moment.span.uses:
            yield f"#     of the {use.kind} {use.name}, used in line {use.span.line}"
    yield f"#   {moment.proof}"
    yield from (f"#     {in_words(line, words)}" for line in moment.proof.detail)


def _plain(line: _Line) -> str:
    return line if isinstance(line, str) else f"{line.mark.value} {line.text}".rstrip()


_COLOURS = {Mark.ADDED: "32", Mark.REMOVED: "31", Mark.DEEPER: "36", Mark.OUTWARD: "36"}


def _coloured(line: _Line) -> str:
    code = "1" if isinstance(line, str) else _COLOURS.get(line.mark, "")
    return f"\033[{code}m{_plain(line)}\033[0m" if code and _plain(line) else _plain(line)
