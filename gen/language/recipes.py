"""The outline of recipes: targets, parameters, variants and steps, whose arguments stay YAML.

Which targets there are is their registry's to say (`targets.target.Registry.check`); which
primitives there are and what they take is the schedule's. `yaml.decode` reads a step's arguments by
the primitive's fields.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import Span, SpecError
from ..ir import nodes as ir
from ..ir.walk import variables
from . import yaml
from .body.indices import condition_expr
from .macros import Macro, check_used, written_out
from .model import Param, Recipe, RecipeVariant
from .syntax import grammar
from .syntax.members import Members

MAX_VARIANTS = 64  # each call tries them in order


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    target: yaml.Scalar
    variants: tuple[yaml.Map, ...]
    span: Span
    params: yaml.Map | None = None


@dataclass(frozen=True, slots=True)
class VariantEntry:
    steps: yaml.List
    span: Span
    when: yaml.Scalar | None = None


def read_recipes(
    node: yaml.List | None,
    dims: tuple[str, ...],
    members: Members | None = None,
    macros: Mapping[str, Macro] | None = None,
) -> tuple[Recipe, ...]:
    """The recipes of a spec, macros written out. members: of scalars that are words. Raises
    SpecError.
    """
    recipes: list[Recipe] = []
    for item in node.items if node else ():
        recipe = _recipe(item, dims, members or {}, macros or {})
        if any(recipe.target == other.target for other in recipes):
            raise SpecError(f"the target '{recipe.target}' has a recipe already", item.span)
        recipes.append(recipe)
    steps = (step for recipe in recipes for variant in recipe.variants for step in variant.steps)
    check_used(macros or {}, steps)
    return tuple(recipes)


def mentioned(recipes: Iterable[Recipe]) -> frozenset[str]:
    """The words that the arguments and parameters of recipes begin names with: `k` in `factors:
    [null, k]`, and `y` in `loop: y.i`.
    """
    texts = [
        text for r in recipes for v in r.variants for s in v.steps for text in yaml.texts(s.args)
    ]
    texts += [str(value) for r in recipes for p in r.params for _, value in p.values]
    return frozenset(name for text in texts for name in _WORD.findall(text))


def used(variant: RecipeVariant) -> frozenset[str]:
    """The parameters that a variant uses, in its steps and its `when`."""
    texts = [text for step in variant.steps for text in yaml.texts(step.args)]
    texts += variables(variant.when) if variant.when is not None else ()
    return frozenset(text[1:] for text in texts if text.startswith("$"))


_WORD = re.compile(r"(?<![\w.$])[A-Za-z_]\w*")


def _recipe(
    node: yaml.Node, dims: tuple[str, ...], members: Members, macros: Mapping[str, Macro]
) -> Recipe:
    entry = yaml.decode(node, RecipeEntry, "the recipe")
    if len(entry.variants) > MAX_VARIANTS:
        found = f"the recipe has {len(entry.variants)} variants; the limit is {MAX_VARIANTS}"
        raise SpecError(found, entry.variants[MAX_VARIANTS].span)
    variants = tuple(_variant(v, dims, members, macros) for v in entry.variants)
    if not variants:
        raise SpecError(
            "the recipe has no variants", entry.span, "`- steps: []` is the plain schedule"
        )
    for variant in variants[:-1]:
        if variant.when is None:
            raise SpecError("only the last variant has no 'when'", variant.span)
    if variants[-1].when is not None:
        raise SpecError(
            "the last variant must have no 'when'",
            variants[-1].span,
            "add '- steps: []', the plain schedule",
        )
    target = entry.target
    params = _params(entry.params)
    names = tuple(macro.key for macro in macros.values())
    return Recipe(target.text, params, variants, entry.span, target.span, names)


def _params(node: yaml.Map | None) -> tuple[Param, ...]:
    params: list[Param] = []
    for key, value in node.entries if node else ():
        levels = value.entries if isinstance(value, yaml.Map) else ((None, value),)
        values = tuple((level.text if level else "", _value(v)) for level, v in levels)
        spans = tuple(level.span if level else key.span for level, _ in levels)
        params.append(Param(key.text, values, key.span, spans))
    return tuple(params)


def _value(node: yaml.Node) -> int | str:
    match node:
        case yaml.Scalar(int(value) | str(value)) if not isinstance(value, bool):
            return value
        case _:
            raise SpecError("a parameter's value must be an integer or a word", node.span)


def _variant(
    node: yaml.Map, dims: tuple[str, ...], members: Members, macros: Mapping[str, Macro]
) -> RecipeVariant:
    entry = yaml.decode(node, VariantEntry, "the variant")
    when = _condition(entry.when, dims, members) if entry.when is not None else None
    return RecipeVariant(when, written_out(entry.steps, macros), entry.span)


def _condition(scalar: yaml.Scalar, dims: tuple[str, ...], members: Members) -> ir.Expr:
    """A condition over dims and parameters, which keep the `$` of their names."""
    parameters = frozenset(grammar.PARAMETER.findall(scalar.text))
    expr = grammar.expression(scalar, grammar.Words(parameters=parameters, members=members))
    return condition_expr(expr, {*dims, *members, *(f"${name}" for name in parameters)})
