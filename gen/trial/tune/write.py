"""The winner in its place: parameters of a recipe that is there, or a recipe that rules wrote.

Input: a spec's text and a report with a winner. Output: the text. Invariant: read again, it is the
same spec but for what has won, on the level that it has won on.
"""

from dataclasses import replace

from ...errors import TilesmithError
from ...language import loads
from ...language.model import KernelSpec
from ...schedule import recipe as recipes
from ...targets.target import Target
from .edit import with_comment, with_recipe, with_values
from .report import TuneReport
from .space import values_on
from .subjects import Subject


def written(text: str, spec: KernelSpec, target: Target, report: TuneReport, date: str) -> str:
    """Raises TilesmithError where the text cannot be changed so."""
    assert report.winner is not None
    chosen, subject = report.winner.chosen, report.subject
    if subject.text is None:
        own = recipes.choose(spec.recipes, target.name, target.level)
        assert own is not None
        name = own.target
        new = with_values(text, spec.path, name, target, chosen)
    else:
        name = target.name if len(target.usual) == 1 else f"{target.name}.{target.level}"
        head, rest = subject.text(chosen).split("\n", 1)
        recipe = f"{head.replace(target.name, name)}\n{rest}"
        new = with_recipe(text, spec.path, recipe)
    new = with_comment(new, spec.path, name, report.comment(date), f" ({target.level}, ")
    _check(new, spec, target, subject, report)
    return new


def _check(
    text: str, spec: KernelSpec, target: Target, subject: Subject, report: TuneReport
) -> None:
    assert report.winner is not None
    new, wanted = loads(text, spec.path), subject.recipe(report.winner.chosen)
    found = recipes.choose(new.recipes, target.name, target.level)
    right = found is not None and (
        found.variants == wanted.variants
        and values_on(found, target.level) == values_on(wanted, target.level)
    )
    one = len(target.usual) == 1  # what is made for it is made for all levels
    for level in () if one else target.levels:
        if level != target.level:
            old = recipes.choose(spec.recipes, target.name, level)
            now = recipes.choose(new.recipes, target.name, level)
            same = old and values_on(old, level), now and values_on(now, level)
            right = right and same[0] == same[1]
    if not right or replace(new, recipes=()) != replace(spec, recipes=()):
        hint = f"the winner is {report.winner}: copy it"
        raise TilesmithError(f"{spec.path} cannot be changed so that all else stays", hint=hint)
