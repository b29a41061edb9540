"""What `tilesmith check` does with a file, whatever is in it: it ends.

Input: a spec's path, the targets that there are and those to try. Output: the first error and
advice, in words. All of it happens in a child process of SECONDS and of limited memory, since isl
may take any and cannot be stopped from within.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from .. import language as specs
from ..binding.entry import manifest_entry
from ..binding.manifest import validate
from ..display.advice import advice
from ..display.text import unproved
from ..errors import SpecError, TilesmithError, told
from ..lower.variants import Plain
from ..pipeline import schedule
from ..poly.limit import NoAnswer, within
from ..targets.recipes import Written
from ..targets.target import Registry, Target

SECONDS = 60.0
"""The longest that a file may take, of processor time: what ships takes under 5."""


@final
@dataclass(frozen=True, slots=True)
class Checked:
    """error: what is wrong with a spec or with a step of its recipes, if anything is. advice: what
    is right, and slower than the recipe asks for.
    """

    error: str | None = None
    advice: tuple[str, ...] = ()


def checked(path: Path, targets: Registry, chosen: Sequence[Target]) -> Checked:
    """What there is to say of a spec and its recipes; nothing is proved."""
    try:
        return within(SECONDS, _checked, path, targets, chosen)
    except NoAnswer as none:
        return Checked(f"error: {path}: {none}: the spec, or a step of its recipes, is too large")


def _checked(path: Path, targets: Registry, chosen: Sequence[Target]) -> Checked:
    found: list[str] = []
    try:
        spec = targets.load(path)
        _require_callable(spec)
        plains = [Plain(spec, dtypes) for dtypes in specs.choices(spec)]
        written = Written(spec, plains)
        for plain, target in itertools.product(plains, chosen):
            made = schedule(spec, plain.dtypes, target, unproved, plain=plain, written=written)
            found += advice(spec, made, target)
    except (TilesmithError, OSError) as wrong:
        return Checked(told(wrong), tuple(dict.fromkeys(found)))
    except RecursionError:
        return Checked(f"error: {path}: something in it nests too deep")
    return Checked(None, tuple(dict.fromkeys(found)))


def _require_callable(spec: specs.KernelSpec) -> None:
    """Refuses what `generate` would, once all is proved. Raises SpecError."""
    try:
        validate(manifest_entry(spec, (), {}))
    except TilesmithError as wrong:
        raise SpecError(wrong.message, wrong.span or spec.span, wrong.hint) from None
