"""Recipes: from a spec's YAML to primitives, and their run.

Input: the recipes of a spec, a target and the parameters' environment. Output: primitives with
their arguments, and the proved states that they lead through.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, assert_never, final

from ..errors import ScheduleError, Span, SpecError
from ..ir.algebra import index
from ..ir.nodes import Expr
from ..ir.walk import substitute, variables
from ..language import yaml
from ..language.model import Param, Recipe, RecipeStep, RecipeVariant
from ..language.recipes import read_recipes
from ..poly.certificate import Scheduled
from .base import OF_ANY, Primitive, Step, StepContext, to_yaml, trace
from .edit.tree import CannotApply, nearest
from .registry import is_primitive, lookup


@final
@dataclass(frozen=True, slots=True)
class ReadVariant:
    """A variant with the parameters' values in it. when: where it may run; None: for all sizes."""

    when: Expr | None
    steps: tuple[Primitive, ...]


@final
@dataclass(frozen=True, slots=True)
class _Reading:
    """What a recipe is read with. values: of its parameters and the target's; None: none on this
    level. macros: of its file. used: gets the parameters that are used.
    """

    values: Mapping[str, int | str | None]
    level: str
    macros: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)


def choose(recipes: Iterable[Recipe], target: str, level: str) -> Recipe | None:
    """The most specific recipe for a level of a target: one for `target.level` before one for
    `target`.
    """
    by_target = {recipe.target: recipe for recipe in recipes}
    return by_target.get(f"{target}.{level}") or by_target.get(target)


def read(recipe: Recipe, level: str, own: Mapping[str, int]) -> tuple[ReadVariant, ...]:
    """The variants of a recipe on one level.

    own: the parameters that the target defines itself. Raises ScheduleError or SpecError, at the
    place in the file, for unknown primitives, arguments and parameters, for parameters that none
    uses or that have no value on the level, and for macros with a primitive's name.
    """
    for macro in recipe.macros:
        if is_primitive(macro.text):
            reason = f"'{macro.text}' is a primitive: a macro cannot be named so"
            raise ScheduleError(reason, macro.span)
    values = {p.name: _value(p, level) for p in recipe.params}
    for param in recipe.params:
        if param.name in own:
            reason = f"'${param.name}' is the target's own: a parameter cannot be named so"
            raise ScheduleError(reason, param.span)
    macros = tuple(macro.text for macro in recipe.macros)
    reading = _Reading({**values, **own}, level, macros)
    result = tuple(_variant(v, reading) for v in recipe.variants)
    for param in recipe.params:
        if param.name not in reading.used:
            raise ScheduleError(f"nothing uses the parameter '${param.name}'", param.span)
    return result


def steps_of(text: str, own: Mapping[str, int] | None = None) -> tuple[Primitive, ...]:
    """The steps that a text has, a line or more each, as a variant of a recipe has them. own: as
    above. Raises as above.
    """
    lines = "".join(f"      {line}\n" for line in text.strip().splitlines())
    node = yaml.parse("- target: any\n  variants:\n  - steps:\n" + lines, "recipe.yaml")
    assert isinstance(node, yaml.List)
    return read(read_recipes(node, ())[0], "any", own or {})[0].steps


def step_of(name: str, arguments: Mapping[str, object], own: Mapping[str, int]) -> Primitive:
    """The step that `steps_of` reads from `- NAME: ARGUMENTS` as `to_yaml` writes it, without the
    reading of text, which takes longer than the step. Raises as `steps_of`.
    """
    line = f"{name}: {to_yaml(dict(arguments))}"
    yaml.check_limits(f"- {line}", _PLACE.path)
    args = yaml.Map(tuple((_scalar(k), _node(v)) for k, v in arguments.items()), _PLACE)
    return _primitive(RecipeStep(name, args, _PLACE), _Reading(own, "any"))


_PLACE = Span("a step of a rule", 1, 1)


def _node(value: object) -> yaml.Node:
    """The tree of a value's text in `to_yaml`."""
    match value:
        case tuple() | list():
            return yaml.List(tuple(map(_node, value)), _PLACE)
        case dict():
            return yaml.Map(tuple((_scalar(k), _node(v)) for k, v in value.items()), _PLACE)
        case _:
            return _scalar(value)


def _scalar(value: object) -> yaml.Scalar:
    text = to_yaml(value)
    quoted = text.startswith('"')
    text = text.strip('"') if quoted else text
    source = yaml.SourceText(_PLACE.path, (text,))
    return yaml.Scalar(text if quoted else yaml.plain(text, _PLACE), text, _PLACE, source)


def _variant(variant: RecipeVariant, reading: _Reading) -> ReadVariant:
    steps = tuple(_primitive(step, reading) for step in variant.steps)
    if variant.when is None:
        return ReadVariant(None, steps)
    given: dict[str, Expr] = {}
    for name in sorted(n for n in variables(variant.when) if n.startswith("$")):
        value = _given(name, variant.span, reading)
        if not isinstance(value, int):
            raise ScheduleError(f"the parameter '{name}' is no number", variant.span)
        given[name] = index(value)
    return ReadVariant(substitute(variant.when, given), steps)


def _value(param: Param, level: str) -> int | str | None:
    """The parameter's value on the level; None where it has none."""
    values = dict(param.values)
    return values.get(level, values.get(""))


def _primitive(step: RecipeStep, reading: _Reading) -> Primitive:
    try:
        primitive = lookup(step.primitive, reading.macros)
    except CannotApply as unknown:
        raise ScheduleError(unknown.reason, step.span, unknown.hint) from None
    if not isinstance(step.args, yaml.Map):
        message, hint = "a step is one primitive with a map of arguments", _as_map(primitive, step)
        raise SpecError(message, step.span, hint)
    arguments = _substitute(step.args, reading)
    read_ = yaml.decode(arguments, primitive, primitive.name)
    return replace(read_, span=step.span, **_of_target(read_, step, reading.values))


def _of_target(
    step: Primitive, given: RecipeStep, values: Mapping[str, int | str | None]
) -> dict[str, Any]:
    """The arguments that were left out and are a parameter of the target by default."""
    found: dict[str, Any] = {}
    for f in fields(step):
        default = f.default
        if isinstance(default, str) and default[:1] == "$" and getattr(step, f.name) == default:
            if default[1:] not in values:
                reason = f"the target has no '{default}': give '{f.name}'"
                raise ScheduleError(reason, given.span)
            found[f.name] = values[default[1:]]
    return found


def _as_map(primitive: type[Primitive], step: RecipeStep) -> str:
    """The step as it should be, as far as one value tells: it is the first argument's."""
    own = [f for f in fields(primitive) if f.name not in OF_ANY]
    value = step.args.text if isinstance(step.args, yaml.Scalar) else ""
    given = [f"{f.name.rstrip('_')}: {value[:64] or '...'}" for f in own[:1]]
    given += [f"{f.name.rstrip('_')}: ..." for f in own[1:] if f.default is MISSING]
    return f"write '- {step.primitive}: {{{', '.join(given)}}}'"


def _given(text: str, span: Span, reading: _Reading) -> int | str:
    """The value of the parameter that `$name` is. Raises ScheduleError."""
    name = text[1:]
    if name not in reading.values:
        known = (*reading.values, *(span.use.params if span.use else ()))
        raise ScheduleError(f"there is no parameter '{text}'", span, nearest(name, known))
    value = reading.values[name]
    if value is None:
        raise ScheduleError(f"the parameter '{text}' has no value on {reading.level}", span)
    reading.used.add(name)
    return value


def _substitute(node: yaml.Node, reading: _Reading) -> yaml.Node:
    """The arguments with the parameters' values in place of `$name`."""
    match node:
        case yaml.Scalar(str() as text) if text.startswith("$"):
            value = _given(text, node.span, reading)
            return _small(replace(node, value=value, text=str(value)))
        case yaml.Scalar():
            return _small(node)
        case yaml.List(items):
            return replace(node, items=tuple(_substitute(x, reading) for x in items))
        case yaml.Map(entries):
            new = tuple((k, _substitute(v, reading)) for k, v in entries)
            return replace(node, entries=new)
        case _:
            assert_never(node)


LARGEST = 2**31
"""Of the integers in a step. Proofs know no bounds, but code counts in 64 bits: a loop that is
shifted by 2**63 - 1 is proved, and wrong. No size or distance of use is as large."""

_NUMBER = re.compile(r"(?<![\w.])\d\w*")


def _small(node: yaml.Scalar) -> yaml.Scalar:
    """The argument. Raises ScheduleError where a number in it is larger than LARGEST."""
    text = str(node.value) if isinstance(node.value, int) else node.text
    for digits in _NUMBER.findall(text):
        try:
            number = int(digits) if digits.isdecimal() else int(digits, 0)
        except ValueError:  # 1e9, which no index is
            continue
        if number > LARGEST:
            raise ScheduleError(
                f"{digits} is too large: the integers of a recipe are at most 2**31",
                node.span,
                "code counts in 64 bits, and what is made of larger ones may not fit",
            )
    return node


def run(start: Scheduled, steps: Sequence[Primitive], context: StepContext) -> tuple[Step, ...]:
    """The steps, composites written out, each with the proved state after it.

    Raises ScheduleError at the first that does not apply.
    """
    done: list[Step] = []
    for primitive in steps:
        done += trace(primitive, done[-1].state if done else start, context)
    return tuple(done)


def apply(start: Scheduled, steps: Sequence[Primitive], context: StepContext) -> list[Scheduled]:
    """The states that the steps lead through: the start, then one a step of `run`."""
    return [start, *(step.state for step in run(start, steps, context))]
