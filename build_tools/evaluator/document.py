"""A spec as the page on the language describes it, read from YAML.

Input: the text of a spec. Output: its parts, expressions as Python's `ast`.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ruamel.yaml import YAML

from .local_names import written_out

_TYPE = re.compile(r"\s*(?P<element>\w+(?:\(\w+\))?)\s*(?:\[(?P<axes>.*)\])?\s*$", re.DOTALL)
_REAL = {"complex64": "float32", "complex128": "float64"}


@final
@dataclass(frozen=True, slots=True)
class Array:
    """An argument or a temporary. element: the text of its type; axes: None where it is found."""

    element: str
    axes: tuple[ast.expr, ...] | None
    intent: str  # in, out, inout or temporary


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """words: what it may be, where that is no number; it is the number of one then."""

    element: str
    default: Any
    words: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Reduction:
    """One that the spec defines. parts: types by name; combine: assignments to parts."""

    parts: Mapping[str, str]
    identity: Mapping[str, ast.expr]
    combine: tuple[ast.stmt, ...]


@final
@dataclass(frozen=True, slots=True)
class External:
    arguments: Mapping[str, str]
    result: str
    oracle: str


@final
@dataclass(frozen=True, slots=True)
class Document:
    """A spec. dtypes: the choices of each type variable; follows: variables that follow one."""

    kernel: str
    dtypes: Mapping[str, tuple[str, ...]]
    follows: Mapping[str, Mapping[str, str]]
    arrays: Mapping[str, Array]
    scalars: Mapping[str, Scalar]
    sizes: Mapping[str, ast.expr]
    reductions: Mapping[str, Reduction]
    externals: Mapping[str, External]
    constraints: tuple[ast.expr, ...]
    body: tuple[ast.stmt, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """The names in shapes of arguments that are no scalars and no named sizes."""
        given = (a for a in self.arrays.values() if a.intent != "temporary")
        trees = (axis for a in given for axis in a.axes or ())
        found = dict.fromkeys(n.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Name))
        known = {*self.scalars, *self.sizes, "min", "max"}
        return tuple(name for name in found if name not in known)

    def element(self, text: str, chosen: Mapping[str, str]) -> str:
        """The element type that a type's text names. chosen: the type of each free variable."""
        if inner := re.fullmatch(r"real\((\w+)\)", text):
            found = self.element(inner[1], chosen)
            return _REAL.get(found, found)
        if text in self.follows:
            rules = self.follows[text]
            of = self.element(rules["of"], chosen)
            return rules.get(of, of)
        return chosen.get(text, text)


def read(text: str) -> Document:
    file = YAML(typ="safe", pure=True).load(text)
    variables = file.get("dtypes") or {}
    arrays = {
        name: _array(entry["type"], entry.get("intent", "in"))
        for name, entry in (file.get("arguments") or {}).items()
    }
    for name, entry in (file.get("temporaries") or {}).items():
        arrays[name] = _array(entry, "temporary")
    document = Document(
        kernel=str(file["kernel"]),
        dtypes={v: tuple(c) for v, c in variables.items() if not isinstance(c, dict)},
        follows={v: dict(c) for v, c in variables.items() if isinstance(c, dict)},
        arrays=arrays,
        scalars={
            name: _scalar(entry["type"], entry.get("default"))
            for name, entry in (file.get("scalars") or {}).items()
        },
        sizes={name: _value(e) for name, e in (file.get("sizes") or {}).items()},
        reductions={n: _reduction(e) for n, e in (file.get("reductions") or {}).items()},
        externals={
            name: External(dict(e["arguments"]), e["result"], e["oracle"])
            for name, e in (file.get("externals") or {}).items()
        },
        constraints=tuple(_value(c) for c in file.get("constraints") or ()),
        body=tuple(ast.parse(file["compute"]).body),
    )
    declared = (*document.arrays, *document.dims, *document.scalars, *document.sizes)
    return replace(document, body=written_out(document.body, declared))


def _scalar(kind: object, default: Any) -> Scalar:
    if isinstance(kind, list):
        words = tuple(map(str, kind))
        return Scalar("int64", None if default is None else words.index(default), words)
    return Scalar(str(kind).replace(" ", ""), default)


def _array(text: object, intent: str) -> Array:
    found = _TYPE.match(str(text))
    if found is None:
        raise ValueError(f"no type: {text}")
    axes = found["axes"]
    if axes is None:
        return Array(found["element"], None, intent)
    parsed = ast.parse(f"({axes},)" if axes.strip() else "()", mode="eval").body
    assert isinstance(parsed, ast.Tuple)
    return Array(found["element"], tuple(parsed.elts), intent)


def _reduction(entry: Mapping[str, Any]) -> Reduction:
    return Reduction(
        {part: str(element) for part, element in entry["parts"].items()},
        {part: _value(none) for part, none in entry["identity"].items()},
        tuple(ast.parse(entry["combine"]).body),
    )


def _value(text: object) -> ast.expr:
    """An expression; YAML has read some numbers and truth values already."""
    words = {float("inf"): "inf", float("-inf"): "-inf"}
    known = words.get(text, text) if isinstance(text, float) else text
    return ast.parse(f"({known})", mode="eval").body
