"""What recipes ask for and do not get: advice on variants that are right, and slower for it.

Input: a spec, its variants on a target. Output: texts as errors have them, each at the step that
asked. Of recipes that rules write nothing is said.
"""

from collections.abc import Iterator, Sequence

from ..errors import NoCode, Span, TilesmithError, render
from ..ir.nodes import Scope
from ..ir.walk import buffers
from ..language.model import KernelSpec
from ..lower.variants import Variant
from ..schedule.base import Step
from ..targets.recipes import own_recipe
from ..targets.target import Target


def advice(spec: KernelSpec, variants: Sequence[Variant], target: Target) -> tuple[str, ...]:
    """Each text once."""
    if own_recipe(spec, target) is None:
        return ()
    return tuple(dict.fromkeys(text for v in variants for text in _of(v, target)))


def _of(variant: Variant, target: Target) -> Iterator[str]:
    if isinstance(variant.emitted, NoCode):
        return
    try:
        found = target.finishing.advice(variant.emitted.kernel)
    except TilesmithError:  # who emits it will say so
        return
    for told in found:
        span = _asked(variant.steps, told.about) or variant.span
        yield render("warning", told.message, span, told.hint)


def _asked(steps: Sequence[Step], name: str) -> Span | None:
    """The step after which the temporary is in registers."""
    for step in steps:
        buffer = buffers(step.state.kernel).get(name)
        if buffer is not None and buffer.scope is Scope.REGISTER:
            return step.primitive.span
    return None
