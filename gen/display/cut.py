"""A spec as far as its steps are right, for those who look for what is wrong with the next.

Input: a spec, and the error of one of its steps. Output: the spec whose variant ends before it.
"""

from dataclasses import replace

from ..errors import Span, TilesmithError
from ..language.model import KernelSpec, Recipe, RecipeVariant
from ..language.recipes import used


def before(spec: KernelSpec, error: TilesmithError) -> KernelSpec | None:
    """None where the error is of no step."""
    for recipe in spec.recipes:
        for variant in recipe.variants:
            count = _refused(variant, error.span)
            if count is not None:
                cut = _with(recipe, variant, replace(variant, steps=variant.steps[:count]))
                return replace(spec, recipes=tuple(cut if r is recipe else r for r in spec.recipes))
    return None


def _refused(variant: RecipeVariant, span: Span | None) -> int | None:
    """The number of the step that the place is in: each begins a line."""
    places = [_lines(step.span) for step in variant.steps]
    if span is None or span.path != variant.span.path or not places or _lines(span) < places[0]:
        return None
    place = _lines(span)
    number = sum(begin <= place for begin in places) - 1
    inside = place == places[number] or number + 1 < len(places)
    return number if inside else None


def _lines(span: Span) -> tuple[int, ...]:
    """The line of a step in the recipe; where that uses a macro, then the line in the macro, and so
    on: in the order of the steps that are written out.
    """
    return tuple(place.line for place in reversed((span, *(use.span for use in span.uses))))


def _with(recipe: Recipe, old: RecipeVariant, new: RecipeVariant) -> Recipe:
    """The recipe with another variant, and the parameters that are still used."""
    variants = tuple(new if v is old else v for v in recipe.variants)
    names = frozenset[str]().union(*map(used, variants))
    return replace(recipe, variants=variants,
                   params=tuple(p for p in recipe.params if p.name in names))  # fmt: skip
