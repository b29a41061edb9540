"""How rules came to a recipe: the recipe itself, and which rule took which block.

Input: a kernel's plain schedules and a target. Output: YAML to append to a spec; the story is in
its comments.
"""

from collections.abc import Iterator
from textwrap import indent

from ..errors import TilesmithError
from ..lower.variants import Plain
from ..schedule.rules.choose import Chosen
from ..targets.recipes import ByRules, by_rules
from ..targets.target import Target


def written(plain: Plain, target: Target) -> str:
    """Raises TilesmithError where the target has no rules."""
    found = by_rules(plain, target)
    if found is None:
        raise TilesmithError(f"the target '{target.name}' has no rules")
    return with_story(found)


def with_story(found: ByRules) -> str:
    story = [line for chosen in found.chosen for line in _story(chosen)]
    return "".join(f"# {line}\n" for line in story) + "recipes:\n" + indent(found.text, "  ")


def _story(chosen: Chosen) -> Iterator[str]:
    if chosen.draft.when:
        yield f"when {' and '.join(chosen.draft.when)}:"
    if chosen.refused:
        yield f"what rules chose first cannot run: {' '.join(chosen.refused.split())}"
    for taken in chosen.taken:
        yield f"{taken.block}: {taken.rule}"
        for rule, reason in taken.declined:
            yield f"  not {rule}: {' '.join(reason.split())}"
