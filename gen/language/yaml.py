"""YAML text to a small immutable tree whose every node knows its place, and its decoder.

Input: a file's text. Output: Map, List and Scalar nodes; `decode` turns a node into a dataclass by
its type hints. Invariant: limits on size, depth and length are checked on the raw text before any
parser sees it, so a hostile file costs bounded time and memory; duplicate keys, anchors, aliases
and tags of their own are refused.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Literal,
    TypeVar,
    Union,
    assert_never,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as ParsedNode

from ..errors import Span, SpecError

T = TypeVar("T")

MAX_BYTES = 64 * 1024
MAX_LINES = 4000
MAX_LINE = 2000
MAX_INDENT = 120
MAX_BRACKETS = 64
MAX_MARKERS = 8  # `- - - x` on one line
MAX_DIGITS = 20


@final
@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's path and lines."""

    path: str
    lines: tuple[str, ...]

    def span(self, line: int, column: int, length: int = 1) -> Span:
        """The place at `line`, `column`, both counted from 1."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Span(self.path, line, column, length, text)


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `value` is what the text means under YAML 1.2; quoted and block text is a string."""

    value: bool | int | float | str | None
    text: str
    span: Span = field(compare=False, repr=False)
    source: SourceText = field(compare=False, repr=False)

    def positions(self) -> tuple[tuple[int, int], ...]:
        """Line and column in the file of each character of `text`, and of its end.

        Whatever the scalar's style, its characters stand in the file in their order, with only
        white space, quotes and a block's header between: so they are found one after another.
        """
        line, column = self.span.line, self.span.column
        lines = self.source.lines
        if lines[line - 1][column - 1 : column] in ("|", ">"):
            line, column = line + 1, 1
        found: list[tuple[int, int]] = []
        for character in self.text:
            if not character.isspace():
                at = lines[line - 1].find(character, column - 1)
                while at < 0 and line < len(lines):
                    line, column = line + 1, 1
                    at = lines[line - 1].find(character)
                column = max(at, 0) + 1
            found.append((line, column))
            column += not character.isspace()
        return (*found, (line, column))


@final
@dataclass(frozen=True, slots=True)
class List:
    items: tuple["Node", ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Map:
    """Entries in the file's order; keys are strings and differ."""

    entries: tuple[tuple[Scalar, "Node"], ...]
    span: Span = field(compare=False, repr=False)


Node = Scalar | List | Map


def hint(name: str, known: Iterable[str]) -> str | None:
    """`did you mean ...?` where a known name is close: the same but for case, before all else."""
    known = list(known)
    close = [k for k in known if k.lower() == name.lower()]
    close = close or difflib.get_close_matches(name[:64], known, n=1)
    return f"did you mean '{close[0]}'?" if close else None


def texts(node: Node) -> Iterator[str]:
    """The texts of a node's scalars, keys aside."""
    match node:
        case Scalar(_, text):
            yield text
        case List(items):
            for item in items:
                yield from texts(item)
        case Map(entries):
            for _, value in entries:
                yield from texts(value)
        case _:
            assert_never(node)


# ---------------------------------------------------------------- reading


def parse(text: str, path: str) -> Node:
    """The tree of a YAML text. Raises SpecError with the place of what is wrong."""
    check_limits(text, path)
    source = SourceText(path, tuple(_lines(text)))
    reader = YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = True  # refused below, with both places
    try:
        root = reader.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = source.span(mark.line + 1, mark.column + 1) if mark else Span(path, 1, 1)
        raise SpecError(
            f"not YAML: {error.problem or error.context}", span, _quoted(span.text)
        ) from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise SpecError(f"not YAML: {str(error).splitlines()[0]}", Span(path, 1, 1)) from None
    if root is None:
        raise SpecError("the file is empty", Span(path, 1, 1))
    return _convert(root, source)


def _quoted(line: str) -> str | None:
    """What to quote in a line that is not YAML: in braces, a type's brackets begin a list."""
    found = re.search(r"[{,]\s*\w+:\s+(\w+(?:\(\w+\))?\[[^\]\"']*\])", line)
    return f'quote it: "{found[1]}"' if found else None


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def check_limits(text: str, path: str) -> None:
    """Refuses what a parser should not see. One pass, no recursion."""
    if len(text) > MAX_BYTES:
        raise SpecError(f"the file is larger than {MAX_BYTES} bytes", Span(path, 1, 1))
    lines = _lines(text)
    if len(lines) > MAX_LINES:
        raise SpecError(f"the file has more than {MAX_LINES} lines", Span(path, MAX_LINES, 1))
    depth = 0
    for number, line in enumerate(lines, 1):
        _check_line(line, Span(path, number, 1, 1, line[:MAX_LINE]))
        for column, character in enumerate(line, 1):
            if character in "[{":
                depth += 1
                if depth > MAX_BRACKETS:
                    place = Span(path, number, column, 1, line)
                    raise SpecError(f"brackets nest deeper than {MAX_BRACKETS}", place)
            elif character in "]}":
                depth = max(0, depth - 1)


def _check_line(line: str, span: Span) -> None:
    if len(line) > MAX_LINE:
        where = Span(span.path, span.line, 1)
        raise SpecError(f"the line is longer than {MAX_LINE} characters", where)
    for column, character in enumerate(line, 1):
        if not character.isprintable():
            place = Span(span.path, span.line, column, 1, line if character == "\t" else "")
            if character == "\t":
                raise SpecError("a tab is not allowed", place, "indent with spaces")
            name = f"the character U+{ord(character):04X}"
            raise SpecError(f"{name} is not allowed", place, "it cannot be seen: take it out")
    stripped = line.lstrip(" ")
    if len(line) - len(stripped) > MAX_INDENT:
        raise SpecError(f"the line is indented deeper than {MAX_INDENT} columns", span)
    if re.match(rf"(?:[-?:] +){{{MAX_MARKERS + 1}}}", stripped):
        raise SpecError(f"more than {MAX_MARKERS} list markers open on one line", span)


_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
)


def _convert(node: ParsedNode, source: SourceText) -> Node:
    mark = node.start_mark
    span = source.span(mark.line + 1, mark.column + 1)
    if node.anchor is not None:
        raise SpecError("anchors and aliases are not allowed", span)
    if str(node.tag) not in _TAGS:
        raise SpecError(f"the tag '{str(node.tag)[:64]}' is not allowed", span)
    match node:
        case ScalarNode():
            return _scalar(node, span, source)
        case SequenceNode():
            items = tuple(_convert(item, source) for item in node.value)
            _check_whole(node, items)
            return List(items, span)
        case MappingNode():
            return Map(_entries(node, source), span)
        case _:
            raise SpecError("this is neither a map, a list nor a scalar", span)


def _entries(node: MappingNode, source: SourceText) -> tuple[tuple[Scalar, Node], ...]:
    entries: dict[str, tuple[Scalar, Node]] = {}
    for key_node, value in node.value:
        key = _convert(key_node, source)
        if not isinstance(key, Scalar):
            raise SpecError("a key must be a name", key.span)
        if key.text in entries:
            first = entries[key.text][0].span
            raise SpecError(
                f"the key '{key.text}' is given twice, first in line {first.line}", key.span
            )
        entries[key.text] = (key, _convert(value, source))
    _check_whole(node, [value for _, value in entries.values()])
    return tuple(entries.values())


_TO_COMMA = re.compile(r"(?:[^(),\]}]|\((?:[^()]|\([^()]*\))*\))+")  # outside of parentheses


def _check_whole(node: MappingNode | SequenceNode, values: Sequence[Node]) -> None:
    """Refuses values in braces or brackets that a comma between parentheses has cut short."""
    for value in (v for v in values if isinstance(v, Scalar) and node.flow_style):
        rest = value.span.text[value.span.column - 1 :]
        if value.text.count("(") > value.text.count(")") and rest.startswith(f"{value.text},"):
            whole = _TO_COMMA.match(rest)
            hint = f'quote it: "{whole[0]}"' if whole and value.text in whole[0] else None
            what = f"'{value.text}' ends at a comma: in braces and brackets that ends a value"
            raise SpecError(what, value.span, hint)


_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


def _scalar(node: ScalarNode, span: Span, source: SourceText) -> Scalar:
    text = str(node.value)
    length = max(1, len(text)) if node.end_mark.line == node.start_mark.line else 1
    if length > 1 and node.style in ("'", '"'):
        length = node.end_mark.column - node.start_mark.column
    span = source.span(span.line, span.column, length)
    value = text if node.style else plain(text, span)
    return Scalar(value, text, span, source)


def plain(text: str, span: Span) -> bool | int | float | str | None:
    """The meaning of an unquoted scalar in YAML 1.2's core schema, decimal numbers only."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text) > MAX_DIGITS or not -(2**63) <= int(text) < 2**64:
            raise SpecError("the integer does not fit in 64 bits", span)
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text):
        return float(text.replace(".", ""))
    return text


# ---------------------------------------------------------------- decoding


def decode(node: Node, expected: type[T], what: str | None = None) -> T:
    """`node` as the dataclass `expected`, field by field.

    Fields may be bool, int, float, str, None, enums, Literals, dataclasses, `tuple[X, ...]`,
    `dict[str, X]`, unions of these, and nodes of this module, which are passed on as they are. A
    field's key is its name less a trailing underscore; a field `span: Span` gets the node's place.
    `what` names the thing in errors. Raises SpecError for unknown, missing and ill-typed keys.
    """
    return cast(T, _decode(node, expected, what or expected.__name__))


def _decode(node: Node, expected: object, what: str) -> object:
    if expected in (Scalar, List, Map) or expected == Node:
        if expected != Node and not isinstance(node, cast(type, expected)):
            raise _mismatch(node, expected, what)
        return node
    origin = get_origin(expected)
    if origin in (Union, UnionType):
        return _decode(node, _member(node, get_args(expected), expected, what), what)
    if origin is tuple and isinstance(node, List):
        return tuple(_decode(item, get_args(expected)[0], what) for item in node.items)
    if origin is dict and isinstance(node, Map):
        item = get_args(expected)[1]
        return {k.text: _decode(v, item, f"'{k.text}'") for k, v in node.entries}
    if is_dataclass(expected) and isinstance(expected, type) and isinstance(node, Map):
        return _decode_fields(node, expected, what)
    if isinstance(node, Scalar) and _accepts(expected, node):
        if isinstance(expected, type) and issubclass(expected, Enum):
            return expected(node.value)
        return float(cast(int, node.value)) if expected is float else node.value
    raise _mismatch(node, expected, what)


def _member(node: Node, members: tuple[object, ...], union: object, what: str) -> object:
    """The member of a union that a node can only mean."""
    for member in members:
        match node:
            case Scalar() if member is Scalar or _accepts(member, node):
                return member
            case List() if member is List or get_origin(member) is tuple:
                return member
            case Map() if member is Map or get_origin(member) is dict or _is_record(member):
                return member
    raise _mismatch(node, union, what)


def _is_record(expected: object) -> bool:
    return is_dataclass(expected) and expected not in (Scalar, List, Map)


def _accepts(expected: object, node: Scalar) -> bool:
    value = node.value
    if get_origin(expected) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(expected))
    if expected is NoneType or expected is None:
        return value is None
    if not isinstance(expected, type):
        return False
    if issubclass(expected, Enum):
        return any(value == choice.value for choice in expected)
    if expected is float:
        return type(value) in (int, float)
    return expected in (bool, int, str) and type(value) is expected


def _decode_fields(node: Map, expected: type, what: str) -> object:
    hints = get_type_hints(expected)
    known = {f.name.rstrip("_"): f for f in fields(expected) if hints[f.name] is not Span}
    values: dict[str, object] = {
        f.name: node.span for f in fields(expected) if hints[f.name] is Span
    }
    for key, value in node.entries:
        if key.text not in known:
            listed = ", ".join(sorted(known, key=lambda k: bool(known[k].kw_only)))
            there = hint(key.text, known) or f"its keys are {listed}"
            raise SpecError(f"unknown key '{key.text}' in {what}", key.span, there)
        name = known[key.text].name
        values[name] = _decode(value, hints[name], f"'{key.text}' of {what}")
    for key_name, f in known.items():
        missing = f.default is MISSING and f.default_factory is MISSING
        if missing and f.name not in values:
            raise SpecError(f"{what} needs the key '{key_name}'", node.span)
    return expected(**values)


def _mismatch(node: Node, expected: object, what: str) -> SpecError:
    match node:
        case Scalar(value, text):
            got = "nothing" if value is None else f"'{text[:64]}'"
        case List():
            got = "a list"
        case Map():
            got = "a map"
    choices = _choices(expected)
    suggestion = hint(node.text, choices) if isinstance(node, Scalar) else None
    return SpecError(f"{what} must be {_describe(expected)}, not {got}", node.span, suggestion)


def _choices(expected: object) -> list[str]:
    if get_origin(expected) is Literal:
        return [str(choice) for choice in get_args(expected)]
    if isinstance(expected, type) and issubclass(expected, Enum):
        return [str(choice.value) for choice in expected]
    return []


_NAMES: dict[object, str] = {
    bool: "true or false", int: "an integer", float: "a number", str: "a string",
    NoneType: "nothing", Scalar: "a scalar", List: "a list", Map: "a map",
}  # fmt: skip


def _describe(expected: object) -> str:
    if expected in _NAMES:
        return _NAMES[expected]
    origin = get_origin(expected)
    if origin in (Union, UnionType):
        return " or ".join(_describe(member) for member in get_args(expected))
    if choices := _choices(expected):
        return "one of " + ", ".join(choices)
    return "a list" if origin is tuple else "a map"
