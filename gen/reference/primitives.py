"""What `tilesmith primitives` prints: the steps that a recipe can take, or one of them in full.

Input: the registry and the primitives' own documentation, fields and examples; the intrinsics and
laws that two of them take. Output: texts.
"""

import json
from dataclasses import MISSING, Field, fields
from enum import Enum
from inspect import cleandoc
from textwrap import indent
from types import NoneType, UnionType
from typing import Literal, get_args, get_origin, get_type_hints

from ..errors import TilesmithError
from ..ir.text.parser import from_text
from ..ir.text.printer import to_text
from ..poly import laws
from ..poly.certificate import Scheduled
from ..poly.values.flow import plain_flow
from ..schedule import intrinsics, recipe
from ..schedule.base import OF_ANY, Example, Layer, Primitive, StepContext
from ..schedule.edit.tree import CannotApply
from ..schedule.registry import LAYERS, lookup


def names() -> str:
    """A line a primitive, then what two of them take, and what makes one step of several."""
    lines = []
    for layer, p in _by_layer():
        also = f" (also {', '.join(p.aliases)})" if p.aliases else ""
        lines.append(f"{p.name:24} {layer.value:4} {p.summary()}{also}")
    lines += ["", f"intrinsics, which tensorize takes: {', '.join(intrinsics.names())}"]
    lines += [f"laws, which rescale takes: {', '.join(laws.names())}"]
    lines += ["macros, lists of steps with a name: a spec's own, under its key `macros`"]
    return "\n".join(lines)


def _by_layer() -> list[tuple[Layer, type[Primitive]]]:
    return [(layer, p) for layer, found in LAYERS.items() for p in found]


def as_json() -> str:
    """The primitives with their arguments' names, for programs."""
    rows = [
        {
            "name": p.name,
            "layer": layer.value,
            "aliases": list(p.aliases),
            "arguments": [f.name.rstrip("_") for f in fields(p) if f.name not in OF_ANY],
            "summary": p.summary(),
        }
        for layer, p in _by_layer()
    ]
    return json.dumps(rows, indent=2)


def step(name: str) -> str:
    """A primitive in full: documentation, arguments and examples; or an intrinsic, or a law. Raises
    TilesmithError for a name that is none.
    """
    if name in intrinsics.names():
        return _intrinsic(name)
    if name in laws.names():
        return _law(name)
    try:
        primitive = lookup(name)
    except CannotApply as unknown:
        hint = unknown.hint or "`tilesmith primitives` lists them"
        raise TilesmithError(unknown.reason, hint=hint) from None
    rows = [[cell.replace("`", "") for cell in row] for row in arguments(primitive)]
    wide, wider = (max((len(row[k]) for row in rows), default=0) for k in (0, 1))
    also = f" (also {', '.join(primitive.aliases)})" if primitive.aliases else ""
    parts = [f"{primitive.name}{also}", cleandoc(primitive.__doc__ or "")]
    if rows:
        table = (f"{a:{wide}}  {b:{wider}}  {c}".rstrip() for a, b, c in rows)
        parts += ["Arguments, with what they are where left out", indent("\n".join(table), "  ")]
    befores = ["", *(example.before for example in primitive.EXAMPLES)]
    for example, before in zip(primitive.EXAMPLES, befores, strict=False):
        parts += _example(example, before)
    return "\n\n".join(parts)


def _example(example: Example, before: str) -> list[str]:
    """The example after one that starts from the tree `before`."""
    same = example.before == before
    start = "  in the same tree" if same else indent(example.before.strip(), "  ")
    told = [f"Example: {example.title}", start, indent(example.steps.strip(), "  ")]
    if example.refused:
        return [*told, f"is refused: {example.refused}"]
    return [*told, "gives", indent(after(example).strip(), "  ")]


def _intrinsic(name: str) -> str:
    found = intrinsics.lookup(name)
    levels = (f"{feature} on {level}" for level, feature in found.code.features.items())
    pattern = indent(to_text(found.pattern).strip(), "  ")
    title = f"{name}: an instruction of processors with {', '.join(levels)}"
    return "\n\n".join([title, found.promise.strip(), "Its pattern:", pattern])


def _law(name: str) -> str:
    written = (laws.FOLDER / f"{name}.yaml").read_text("utf-8")
    return f"{name}: a law, by which rescale joins reductions\n\n{written.strip()}"


def after(example: Example) -> str:
    """The tree that an example's steps come to. It is not proved here: the tests do that. Raises
    ScheduleError where a step does not apply.
    """
    plain = from_text(example.before)
    start = Scheduled(plain, plain_flow(plain))
    done = recipe.apply(start, recipe.steps_of(example.steps), StepContext(plain, prove=None))
    return to_text(done[-1].kernel)


def afters(primitive: type[Primitive]) -> str:
    """The trees of all examples that apply, under their titles, as the tests keep them."""
    legal = (e for e in primitive.EXAMPLES if not e.refused)
    return "\n".join(f"# {e.title}\n{after(e)}" for e in legal)


def arguments(primitive: type[Primitive]) -> list[tuple[str, str, str]]:
    """Of each argument, its name, what it takes, and its default, in Markdown."""
    hints = get_type_hints(primitive)
    return [_field(f, hints[f.name]) for f in fields(primitive) if f.name not in OF_ANY]


def _field(field: Field[object], hint: object) -> tuple[str, str, str]:
    """The row of an argument; one that may be left out and has no default is optional."""
    match field.default:
        case value if value is MISSING:
            default = ""
        case None | ():
            default = "optional"
        case Enum() as member:
            default = f"`{member.value}`"
        case value:
            default = f"`{value}`"
    inner = [part for part in get_args(hint) if part is not NoneType]
    words = " or ".join(map(_described, inner)) if field.default is None else _described(hint)
    return f"`{field.name.rstrip('_')}`", words, default


def _described(hint: object) -> str:
    """The values that an argument takes, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return " or ".join(map(_described, inner))
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin is tuple:
        return f"[{_described(inner[0])}, ...]"
    if origin is dict:
        return f"{{name: {_described(inner[1])}, ...}}"
    words = {int: "integer", float: "number", bool: "`true` or `false`", str: "name"}
    if isinstance(hint, type):
        if hint is NoneType:
            return "`null`"
        if issubclass(hint, Enum):
            return " or ".join(f"`{member.value}`" for member in hint)
        if hint in words:
            return words[hint]
    raise TypeError(f"an argument of a primitive cannot be {hint}")
