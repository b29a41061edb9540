"""The scalar parameters of a spec: numbers, and words of a list.

Input: the YAML of `scalars`. Output: Scalars. Raises SpecError.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir.algebra import index
from ...ir.interpret.evaluate import range_of
from ...ir.types import INDEX, DType
from .. import yaml
from ..model import Scalar
from ..syntax.members import Members, one_of
from .type_variables import check_name

MAX_MEMBERS = 64

_SPECIAL = ("inf", "-inf", "nan")
_INTEGERS = frozenset(dtype.value for dtype in DType if dtype.is_integer)


@dataclass(frozen=True, slots=True)
class ScalarEntry:
    type: yaml.Scalar | yaml.List
    span: Span
    default: yaml.Scalar | None = None
    doc: str = ""


def read_scalar(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> Scalar:
    """A scalar. elements: the types that it may have, where it is a number."""
    check_name(key)
    entry = yaml.decode(node, ScalarEntry, f"scalar '{key.text}'")
    if isinstance(entry.type, yaml.List):
        members = _members(key, entry.type)
        default = _member(key, entry.default, members)
        return Scalar(key.text, INDEX.value, default, entry.doc, members, key.span)
    name = entry.type.text
    if name not in elements:
        raise SpecError(f"unknown type '{name}'", entry.type.span, yaml.hint(name, elements))
    return Scalar(key.text, name, _number(key, entry.default, name), entry.doc, span=key.span)


def members_of(scalars: Iterable[Scalar]) -> Members:
    """The words of the scalars that are words."""
    return {s.name: s.members for s in scalars if s.members}


def in_range(scalars: Iterable[Scalar]) -> tuple[ir.Expr, ...]:
    """What a call checks of words, given as numbers: that there are such words."""
    return tuple(
        ir.Binary(op, ir.Var(s.name), index(bound), span=s.span)
        for s in scalars
        if s.members
        for op, bound in ((ir.BinaryOp.GE, 0), (ir.BinaryOp.LT, len(s.members)))
    )


def _members(key: yaml.Scalar, node: yaml.List) -> tuple[str, ...]:
    words = tuple(_word(item) for item in node.items)
    for item, word in zip(node.items, words, strict=True):
        if words.count(word) > 1:
            raise SpecError(f"'{key.text}' has the word '{word}' twice", item.span)
    if not 2 <= len(words) <= MAX_MEMBERS:
        raise SpecError(f"'{key.text}' must have 2 to {MAX_MEMBERS} words", node.span)
    return words


def _word(node: yaml.Node) -> str:
    match node:
        case yaml.Scalar(str(word)) if re.fullmatch(r"[A-Za-z]\w*", word, re.ASCII):
            return word
        case yaml.Scalar(str()):
            message = "a word begins with an ASCII letter, and has letters, digits and underscores"
            raise SpecError(message, node.span)
        case _:
            hint = "quote what YAML reads as a number, true, false or null"
            raise SpecError("this is not a word", node.span, hint)


def _member(key: yaml.Scalar, default: yaml.Scalar | None, members: tuple[str, ...]) -> int | None:
    match default:
        case None | yaml.Scalar(None):
            return None
        case yaml.Scalar(str(word)) if word in members:
            return members.index(word)
        case yaml.Scalar(value):
            message = f"the default of '{key.text}' must be {one_of(members)}"
            hint = yaml.hint(value, members) if isinstance(value, str) else None
            raise SpecError(message, default.span, hint)


def _number(
    key: yaml.Scalar, default: yaml.Scalar | None, element: str
) -> bool | int | float | None:
    if default is None or default.value is None:
        return None
    value, whose = default.value, f"the default of '{key.text}' must"
    if isinstance(value, str) or (element == DType.BOOL.value) != isinstance(value, bool):
        kind = "a bool" if element == DType.BOOL.value else "a number"
        hint = "YAML writes infinity and no number as .inf and .nan" if value in _SPECIAL else None
        raise SpecError(f"{whose} be {kind}", default.span, hint)
    if isinstance(value, float) and element in _INTEGERS:
        raise SpecError(f"{whose} be an integer", default.span)
    if isinstance(value, float) and math.isinf(value) and "inf" not in default.text.lower():
        raise SpecError("the number is too large", default.span, "YAML writes infinity as .inf")
    if element in _INTEGERS:
        least, most = range_of(DType(element))
        if not least <= value <= most:
            raise SpecError(f"{whose} fit {element}", default.span)
    return value
