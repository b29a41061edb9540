"""Macros: steps with a name that recipes use in several places, and what their uses come to.

Input: the `macros` of a file, and the steps of a variant as they are written. Output: the steps of
primitives, each at its place in the macro, which knows its use (`Span.use`). Invariant: no use is
left; a use makes no more than a file may hold, and reading it ends.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from ..errors import Span, SpecError, Use
from . import yaml
from .declared.type_variables import check_name
from .model import RecipeStep

MAX_MACROS = 64
MAX_WRITTEN = yaml.MAX_BYTES
"""Characters in what the macros of a variant come to: they may use each other, each twice."""


@dataclass(frozen=True, slots=True)
class MacroEntry:
    steps: yaml.List
    span: Span
    params: tuple[yaml.Scalar, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Macro:
    """key: its name, where it is defined."""

    key: yaml.Scalar
    params: tuple[str, ...]
    steps: tuple[RecipeStep, ...]

    @property
    def name(self) -> str:
        return self.key.text


def read_macros(entries: Sequence[tuple[yaml.Scalar, yaml.Node]]) -> dict[str, Macro]:
    """The macros of a file, by name; none uses itself. Raises SpecError."""
    if len(entries) > MAX_MACROS:
        found = f"the file has {len(entries)} macros; the limit is {MAX_MACROS}"
        raise SpecError(found, entries[MAX_MACROS][0].span)
    macros = {key.text: _macro(key, node) for key, node in entries}
    _check_ends(macros)
    return macros


def written_out(steps: yaml.List, macros: Mapping[str, Macro]) -> tuple[RecipeStep, ...]:
    """The steps of a variant, with those of macros in place of their uses. Raises SpecError."""
    done: list[RecipeStep] = []
    length = 0
    for step in map(_read_step, steps.items):
        for each in _written_out(step, macros):
            done.append(each)
            for text in (each.primitive, *yaml.texts(each.args)) if each.span.use else ():
                length += len(text)
                if length > MAX_WRITTEN:
                    found = f"macros come to more than {MAX_WRITTEN} characters in this variant"
                    raise SpecError(found, step.span)
    return tuple(done)


def check_used(macros: Mapping[str, Macro], steps: Iterable[RecipeStep]) -> None:
    """Raises SpecError for a macro that nothing uses. steps: of all recipes, written out."""
    used = {use.name for step in steps for use in step.span.uses}
    used |= {step.primitive for macro in macros.values() for step in macro.steps}
    for name, macro in macros.items():
        if name not in used:
            raise SpecError(f"nothing uses the macro '{name}'", macro.key.span)


# ---------------------------------------------------------------- definitions

_PARAM = r"[A-Za-z]+(?:_[A-Za-z]+)*"
_IN_TEXT = re.compile(rf"\$({_PARAM})")
_WHOLE = re.compile(r"\$[A-Za-z_]\w*")
"""A name of the recipe or the target, which may have digits."""


def _macro(key: yaml.Scalar, node: yaml.Node) -> Macro:
    check_name(key)
    entry = yaml.decode(node, MacroEntry, f"the macro '{key.text}'")
    params = tuple(p.text for p in entry.params)
    for k, param in enumerate(entry.params):
        if not re.fullmatch(_PARAM, param.text):
            hint = "a macro's parameter is letters and single underscores: $loop0 is $loop and a 0"
            raise SpecError(f"'{param.text[:64]}' is not a name", param.span, hint)
        if param.text in params[:k]:
            raise SpecError(f"the parameter '{param.text}' is there twice", param.span)
    if not entry.steps.items:
        raise SpecError(f"the macro '{key.text}' has no steps", key.span)
    macro = Macro(key, params, tuple(map(_read_step, entry.steps.items)))
    named = {name for step in macro.steps for name in _params_in(step.args, macro)}
    for param in entry.params:
        if param.text not in named:
            raise SpecError(f"nothing uses the parameter '${param.text}'", param.span)
    return macro


def _params_in(node: yaml.Node, macro: Macro) -> Iterator[str]:
    """The parameters that a step's arguments name. Raises SpecError where a part of a text is a
    parameter, and not the macro's: what is a whole text may be the recipe's or the target's.
    """
    match node:
        case yaml.Scalar(_, text):
            for name in _IN_TEXT.findall(text):
                if name in macro.params:
                    yield name
                elif not _WHOLE.fullmatch(text):
                    found = f"the macro '{macro.name}' has no parameter '${name}'"
                    raise SpecError(found, node.span, yaml.hint(name, macro.params))
        case yaml.List(items):
            for item in items:
                yield from _params_in(item, macro)
        case yaml.Map(entries):
            for _, value in entries:
                yield from _params_in(value, macro)
        case _:
            assert_never(node)


def _check_ends(macros: Mapping[str, Macro]) -> None:
    """Refuses macros that use themselves: those that are left when all are taken away that use
    none that is left.
    """
    left = dict(macros)
    while ready := [n for n, m in left.items() if all(s.primitive not in left for s in m.steps)]:
        for name in ready:
            del left[name]
    if not left:
        return
    way = [next(iter(left))]
    while way[-1] not in way[:-1]:
        way.append(next(s.primitive for s in left[way[-1]].steps if s.primitive in left))
    name, *through = way[way.index(way[-1]) : -1]
    step = next(s for s in left[name].steps if s.primitive in left)
    by = f", by way of {', '.join(map(repr, through))}" if through else ""
    hint = "a macro is made of primitives and other macros, and has no primitive's name"
    raise SpecError(f"the macro '{name}' uses itself{by}", step.span, hint)


def _read_step(node: yaml.Node) -> RecipeStep:
    match node:
        case yaml.Map(((yaml.Scalar(_, primitive), args),)) if primitive:
            return RecipeStep(primitive, args, node.span)
        case yaml.Scalar(str(primitive)):
            return RecipeStep(primitive, yaml.Map((), node.span), node.span)
        case _:
            hint = "write '- split: {loop: y.j, factors: [8]}'"
            raise SpecError("a step is one primitive with a map of arguments", node.span, hint)


# ---------------------------------------------------------------- uses


def _written_out(step: RecipeStep, macros: Mapping[str, Macro]) -> Iterator[RecipeStep]:
    macro = macros.get(step.primitive)
    if macro is None:
        yield step
        return
    given = _arguments(step, macro)
    use = Use("macro", macro.name, macro.params, step.span)
    for inner in macro.steps:
        args = _substituted(inner.args, given, use)
        yield from _written_out(
            RecipeStep(inner.primitive, args, replace(inner.span, use=use)), macros
        )


def _arguments(step: RecipeStep, macro: Macro) -> dict[str, yaml.Scalar | yaml.List]:
    """What a use gives for each parameter: a scalar, or a list of them."""
    if not isinstance(step.args, yaml.Map):
        form = ", ".join(f"{param}: ..." for param in macro.params)
        hint = f"write '- {macro.name}: {{{form}}}'"
        raise SpecError("a macro is used with a map of its parameters", step.span, hint)
    given: dict[str, yaml.Scalar | yaml.List] = {}
    for key, value in step.args.entries:
        if key.text not in macro.params:
            hint = yaml.hint(key.text, macro.params) or _listed(macro)
            found = f"the macro '{macro.name}' has no parameter '{key.text}'"
            raise SpecError(found, key.span, hint)
        items = value.items if isinstance(value, yaml.List) else (value,)
        if isinstance(value, yaml.Map) or not all(isinstance(x, yaml.Scalar) for x in items):
            found = f"'{key.text}' of the macro '{macro.name}' must be a word, a number or a list"
            raise SpecError(f"{found} of these", value.span)
        given[key.text] = value
    for param in macro.params:
        if param not in given:
            raise SpecError(f"the macro '{macro.name}' needs the parameter '{param}'", step.span)
    return given


def _listed(macro: Macro) -> str:
    return f"its parameters are {', '.join(macro.params)}" if macro.params else "it has none"


def _substituted(
    node: yaml.Node, given: Mapping[str, yaml.Scalar | yaml.List], use: Use
) -> yaml.Node:
    """What a macro says, at its own place, with what a use gives in place of its parameters."""
    span = replace(node.span, use=use)
    match node:
        case yaml.Scalar(_, text):
            whole = _IN_TEXT.fullmatch(text)
            if whole and whole[1] in given:
                return _placed(given[whole[1]], span)
            names = [name for name in _IN_TEXT.findall(text) if name in given]
            if not names:
                return replace(node, span=span)
            parts = {name: _part(name, given[name], span) for name in names}
            joined = _IN_TEXT.sub(lambda found: parts[found[1]], text)
            if len(joined) > yaml.MAX_LINE:
                found = f"a text of the macro comes to more than {yaml.MAX_LINE} characters"
                raise SpecError(found, span)
            return replace(node, value=joined, text=joined, span=span)
        case yaml.List(items):
            return replace(node, items=tuple(_substituted(x, given, use) for x in items), span=span)
        case yaml.Map(entries):
            new = tuple((_placed_key(k, use), _substituted(v, given, use)) for k, v in entries)
            return replace(node, entries=new, span=span)
        case _:
            assert_never(node)


def _part(name: str, value: yaml.Scalar | yaml.List, span: Span) -> str:
    """A parameter's value as a part of a text."""
    if isinstance(value, yaml.List) or isinstance(value.value, bool | float | None):
        what = "a list" if isinstance(value, yaml.List) else f"'{value.text}'"
        found = f"'${name}' is {what} here: a part of a name is a word or an integer"
        raise SpecError(found, span)
    return value.text


def _placed(value: yaml.Scalar | yaml.List, span: Span) -> yaml.Scalar | yaml.List:
    if isinstance(value, yaml.Scalar):
        return replace(value, span=span)
    return replace(value, items=tuple(replace(x, span=span) for x in value.items), span=span)


def _placed_key(key: yaml.Scalar, use: Use) -> yaml.Scalar:
    return replace(key, span=replace(key.span, use=use))
