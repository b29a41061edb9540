"""The recipe that a choice of values makes: the spec's own with other parameters, what rules wrote
with other numbers, or what other rules write.

Input: the plain schedules of a spec and a target. Output: a Subject. Invariant: every choice of
values makes a recipe, which is then proved like any other.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from ...errors import TilesmithError
from ...language import yaml
from ...language.model import Recipe
from ...lower.variants import Plain
from ...schedule.rules.choose import Rule, Rules
from ...schedule.rules.parts.draft import Declined, Draft
from ...schedule.rules.parts.nest import Nest
from ...targets.recipes import CHOSEN, ByRules, by_rules, of_text
from ...targets.target import Target
from .edit import Edit, edited, with_values
from .space import Assignment, Knob, Value, values_on


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """values: of all that there is to search, as it is now. recipe: what other values make of it.
    text: such a recipe as YAML; None where it stands in the spec already. rules: the knobs, where
    they are choices of rules; else they are numbers.
    """

    values: Mapping[str, Value]
    recipe: Callable[[Assignment], Recipe]
    text: Callable[[Assignment], str] | None = None
    rules: tuple[Knob, ...] = ()


def of_recipe(recipe: Recipe, target: Target) -> Subject:
    """The spec's own recipe. Raises TilesmithError where it has no parameters."""
    values = values_on(recipe, target.level)
    if not values:
        raise TilesmithError(
            f"the recipe for {recipe.target} has no parameters to search",
            recipe.span,
            "write `params: {rows: 4}` in it, and `$rows` in a step in place of the number",
        )
    return Subject(values, lambda chosen: _with(recipe, target.level, chosen))


def of_rules(plain: Plain, target: Target) -> Subject:
    """What the target's rules write, its numbers as parameters."""
    text = _general(_by_rules(plain, target, None).text, plain, target)
    recipe = of_text(text, plain.spec)

    def written(chosen: Assignment) -> str:
        return with_values(text, CHOSEN, recipe.target, target, chosen) if chosen else text

    values = values_on(recipe, target.level)
    return Subject(values, lambda chosen: of_text(written(chosen), plain.spec), written)


def of_structure(plain: Plain, target: Target) -> Subject:
    """The rules that take each block: a knob for each block that more than one rule takes. Raises
    TilesmithError where there is none.
    """
    first = _by_rules(plain, target, None)
    knobs = tuple(_alternatives(first, plain, target))
    if not knobs:
        raise TilesmithError(
            f"{plain.spec.name}: each block is taken by one rule alone: there is nothing to choose",
            hint="without --structure the numbers in what rules wrote are searched",
        )
    assert target.rules is not None
    rules = target.rules

    def written(chosen: Assignment) -> str:
        picked = {name.removeprefix(OF): str(rule) for name, rule in chosen.items()}
        return _general(_by_rules(plain, target, _picked(rules, picked)).text, plain, target)

    values = {knob.name: knob.start for knob in knobs}
    return Subject(values, lambda chosen: of_text(written(chosen), plain.spec), written, knobs)


OF = "rule of "
"""What the names of such knobs begin with; a block's name follows."""


def _with(recipe: Recipe, level: str, chosen: Assignment) -> Recipe:
    """The recipe, with other values on a level."""
    params = tuple(
        replace(p, values=((level, chosen[p.name]),), spans=(p.span,)) if p.name in chosen else p
        for p in recipe.params
    )
    return replace(recipe, params=params)


def _by_rules(plain: Plain, target: Target, rules: Rules | None) -> ByRules:
    found = by_rules(plain, target, rules)
    if found is None:
        hint = "write a recipe for it, with `params`"
        raise TilesmithError(f"the target {target.name} has no rules to tune", hint=hint)
    return found


# ---------------------------------------------------------------- among rules


def _alternatives(first: ByRules, plain: Plain, target: Target) -> Iterator[Knob]:
    """For each block the rules that take it, one after another, where all before are left out."""
    assert target.rules is not None
    names = (*(rule.name for rule in target.rules.rules), target.rules.fallback.name)
    taken = {t.block: t.rule for chosen in first.chosen for t in chosen.taken}
    for block, start in taken.items():
        found = [start]
        for name in names[names.index(start) + 1 :] if start in names else ():
            again = _by_rules(plain, target, _picked(target.rules, {block: name}))
            if any(t.block == block and t.rule == name for c in again.chosen for t in c.taken):
                found.append(name)
        if len(found) > 1:
            yield Knob(f"{OF}{block}", tuple(found), start)


def _picked(rules: Rules, picked: Mapping[str, str]) -> Rules:
    """The rules, where all but one decline a block; the fallback takes what that one declines."""

    def only(rule: Rule) -> Rule:
        def apply(draft: Draft, nest: Nest) -> Iterable[Draft]:
            if picked.get(nest.name, rule.name) != rule.name:
                raise Declined("another rule is tried")
            return rule.apply(draft, nest)

        return Rule(rule.name, apply)

    return replace(rules, rules=tuple(map(only, rules.rules)))


# ---------------------------------------------------------------- numbers in what rules write


def _general(text: str, plain: Plain, target: Target) -> str:
    """The recipe with a parameter in place of each number that may be another: the factors of a
    split, the accumulators of vectors, and what the target lends but is no fact of the machine.
    """
    own = target.parameters(plain.dtypes)
    lent = {name: value for name, value in own.items() if name not in target.facts}
    names = _Names(set(own))
    edits = [
        Edit(node.span, f"${names.of(stem, value)}")
        for stem, node, value in _numbers(yaml.parse(text, CHOSEN), lent)
    ]
    if not edits:
        return text
    head, rest = edited(text, edits).split("\n", 1)
    params = ", ".join(f"{name}: {value}" for (_, value), name in names.known.items())
    return f"{head}\n  params: {{{params}}}\n{rest}"


class _Names:
    """A name for each number, by what it is for: `thread`, and `thread_2` for another value.

    taken: the target's own, which a recipe's may not be.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.known: dict[tuple[str, int], str] = {}

    def of(self, stem: str, value: int) -> str:
        if (stem, value) not in self.known:
            tries = itertools.chain([stem], (f"{stem}_{k}" for k in itertools.count(2)))
            self.known[stem, value] = next(t for t in tries if t not in self.taken)
            self.taken.add(self.known[stem, value])
        return self.known[stem, value]


def _numbers(node: yaml.Node, lent: Mapping[str, int]) -> Iterator[tuple[str, yaml.Scalar, int]]:
    """What each number is for, where it stands, and its value."""
    match node:
        case yaml.Scalar(str() as text) if text[:1] == "$" and text[1:] in lent:
            yield text[1:], node, lent[text[1:]]
        case yaml.List(items):
            for item in items:
                yield from _numbers(item, lent)
        case yaml.Map(entries):
            beside = {key.text: value for key, value in entries}
            for key, value in entries:
                if key.text == "factors" and isinstance(value, yaml.List):
                    yield from _factors(value, beside.get("as"), lent)
                elif key.text == "accumulators" and _number(value):
                    assert isinstance(value, yaml.Scalar)
                    yield "acc", value, int(value.text)
                else:
                    yield from _numbers(value, lent)
        case _:
            pass


def _factors(
    node: yaml.List, names: yaml.Node | None, lent: Mapping[str, int]
) -> Iterator[tuple[str, yaml.Scalar, int]]:
    """The factors of a split, by the last word of the loops that they are the extents of."""
    loops = names.items if isinstance(names, yaml.List) else ()
    for k, item in enumerate(node.items):
        if isinstance(item, yaml.Scalar) and _number(item):
            loop = loops[k] if k < len(loops) else None
            text = loop.text if isinstance(loop, yaml.Scalar) else "factor"
            stem = re.sub(r"\W", "_", text.rpartition(".")[2])
            yield (stem if stem[:1].isalpha() else f"factor_{stem}"), item, int(item.text)
        else:
            yield from _numbers(item, lent)


def _number(node: yaml.Node) -> bool:
    return isinstance(node, yaml.Scalar) and type(node.value) is int and node.value > 1
