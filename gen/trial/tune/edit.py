"""The winner written into a spec's text, of which all else stays as it is, to the byte.

Input: a text, the values of a recipe's parameters or a recipe of rules, and a comment. Output: the
text. Places come from the spec's own YAML layer, so comments and layout are never parsed away.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from ...errors import Span, TilesmithError
from ...language import yaml
from ...targets.target import Target
from .space import Assignment

TUNED = "# tuned on "
"""What the comment beside a winner begins with."""


@final
@dataclass(frozen=True, slots=True)
class Edit:
    """What stands in a span is replaced."""

    span: Span
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The edits' spans do not overlap."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: (e.span.line, e.span.column), reverse=True):
        row, start = edit.span.line - 1, edit.span.column - 1
        line = lines[row]
        lines[row] = f"{line[:start]}{edit.text}{line[start + edit.span.length :]}"
    return "\n".join(lines)


def with_values(text: str, path: str, recipe: str, target: Target, chosen: Assignment) -> str:
    """The text with other values of parameters, on the target's level. recipe: its target, as it
    stands there. One value for all levels becomes one for each, but where code is made
    for one level alone.
    """
    params = _get(_recipe(text, path, recipe), "params")
    assert isinstance(params, yaml.Map)
    whole = "." in recipe or len(target.usual) == 1
    edits: list[Edit] = []
    for key, node in params.entries:
        if key.text not in chosen:
            continue
        value = chosen[key.text]
        match node:
            case yaml.Map(entries):
                (found,) = (n for level, n in entries if level.text == target.level)
                assert isinstance(found, yaml.Scalar)
                edits.append(Edit(found.span, str(value)))
            case yaml.Scalar() if whole:
                edits.append(Edit(node.span, str(value)))
            case yaml.Scalar() if node.value != value:
                each = ((v, value if v == target.level else node.text) for v in target.levels)
                edits.append(Edit(node.span, f"{{{', '.join(f'{v}: {x}' for v, x in each)}}}"))
    return edited(text, edits)


def with_comment(text: str, path: str, recipe: str, comment: str, of: str) -> str:
    """The text with a line above the recipe's parameters, or where it has none its variants.
    comment: begins with TUNED. of: what older such comments have that this one takes the place of.
    """
    node = _recipe(text, path, recipe)
    keys = {key.text: key for key, _ in node.entries}
    at = keys.get("params", keys["variants"]).span.line - 1
    lines = text.split("\n")
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip(" "))]
    end = "\r" if lines[at].endswith("\r") else ""
    first = at
    while first and lines[first - 1].lstrip().startswith(TUNED):
        first -= 1
    kept = [line for line in lines[first:at] if of not in line]
    return "\n".join([*lines[:first], *kept, f"{indent}{comment}{end}", *lines[at:]])


def with_recipe(text: str, path: str, recipe: str) -> str:
    """The text with a recipe more, the last of its recipes; `recipe` is a list of one item. Raises
    TilesmithError where the list is in brackets.
    """
    root = yaml.parse(text, path)
    assert isinstance(root, yaml.Map)
    lines = text.rstrip("\n").split("\n")
    end = "\r" if lines[0].endswith("\r") else ""
    own = [f"{line}{end}" for line in recipe.rstrip("\n").split("\n")]
    found = _get(root, "recipes")
    if found is None:
        head = [] if lines[-1].endswith(end) else [lines.pop() + end]
        return "\n".join([*lines, *head, f"recipes:{end}", *(f"  {line}" for line in own), ""])
    if not isinstance(found, yaml.List) or found.span.text[found.span.column - 1 :][:1] != "-":
        hint = f"paste it there:\n{recipe}"
        raise TilesmithError("a recipe cannot be added to this list", found.span, hint)
    starts = [key.span.line for key, _ in root.entries if key.span.line > found.span.line]
    at = min(starts, default=len(lines) + 1) - 1
    while at > found.span.line and _empty(lines[at - 1]):
        at -= 1
    indent = " " * (found.span.column - 1)
    return "\n".join([*lines[:at], *(f"{indent}{line}" for line in own), *lines[at:], ""])


def _empty(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _recipe(text: str, path: str, target: str) -> yaml.Map:
    root = yaml.parse(text, path)
    recipes = _get(root, "recipes") if isinstance(root, yaml.Map) else root
    items: Sequence[yaml.Node] = recipes.items if isinstance(recipes, yaml.List) else ()
    for item in items:
        name = _get(item, "target") if isinstance(item, yaml.Map) else None
        if isinstance(item, yaml.Map) and isinstance(name, yaml.Scalar) and name.text == target:
            return item
    raise TilesmithError(f"{path}: there is no recipe for {target}")


def _get(node: yaml.Map, key: str) -> yaml.Node | None:
    return next((value for name, value in node.entries if name.text == key), None)
