"""The JSON Schema of specs, for editors: what `tilesmith schema` prints.

Input: the dataclasses by which files are read (in spec/) and the primitives' own fields. Output: a
schema (draft 7, which every editor has). Invariant: what the reader accepts the schema accepts; it
refuses unknown, missing and ill-typed keys, unknown primitives and their arguments. What takes
reading the body (names, ranks, types) is the reader's alone to tell.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import Span
from ..ir.nodes import Contraction
from ..ir.types import DType
from ..language import macros, reader, recipes, yaml
from ..language.declared import drawn, externals, reductions, scalars
from ..schedule.base import OF_ANY, Primitive
from ..schedule.registry import PRIMITIVES
from ..targets.target import Registry

Schema = dict[str, Any]

NAME = r"^[A-Za-z](_?[A-Za-z0-9])*_?$"
_TEXT: Schema = {"type": ["string", "number", "boolean"]}  # `accuracy: 0` is a text, too
_PARAMETER: Schema = {"type": "string", "pattern": r"^\$[A-Za-z_]\w*$"}
_VALUE: Schema = {"type": ["integer", "string"]}


def text(targets: Registry) -> str:
    """The schema as a JSON text."""
    return json.dumps(schema(targets), indent=1) + "\n"


def schema(targets: Registry) -> Schema:
    """The schema of a spec file, with recipes for these targets."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A tilesmith kernel",
        **_record(reader.File, _FILE),
        **_recipes(),
        "definitions": {
            "argument": _record(reader.ArgumentEntry, _argument()),
            "scalar": _record(scalars.ScalarEntry, {"type": _SCALAR}),
            "reduction": _record(reductions.ReductionEntry, _REDUCTION),
            "external": _record(externals.ExternalEntry, _EXTERNAL),
            "recipe": _record(recipes.RecipeEntry, _recipe(targets, "variant")),
            "variant": _record(recipes.VariantEntry, _variant(_ref("step"))),
            "step": _step(_primitive),
            "macro": _record(macros.MacroEntry, _MACRO),
            "recipe_with_macros": _record(
                recipes.RecipeEntry, _recipe(targets, "variant_with_macros")
            ),
            "variant_with_macros": _record(
                recipes.VariantEntry, _variant({"anyOf": [_ref("step"), _ref("use")]})
            ),
            "step_of_a_macro": _step(_in_a_macro),
            "use": _use(),
            "dtype": {"enum": [d.value for d in DType]},
            "parameter": {"description": "a parameter of the recipe", **_PARAMETER},
        },
    }


def _argument() -> dict[str, Schema]:
    words: Schema = {"enum": [*drawn.WORDS]}
    ranges: Schema = {**_record(drawn.DrawnEntry, _DRAWN), "minProperties": 1}
    told = {"description": "how its values are drawn where the kernel is tried"}
    return {"type": {"type": "string"}, "drawn": {"anyOf": [words, ranges], **told}}


def _recipes() -> Schema:
    """What recipes are: with the uses of macros only where the file has some, so that elsewhere an
    unknown primitive is one.
    """

    def of(item: str) -> Schema:
        hint = get_type_hints(reader.File)["recipes"]
        return {"properties": {"recipes": _field(hint, _list(_ref(item)))}}

    return {
        "if": {"required": ["macros"]},
        "then": of("recipe_with_macros"),
        "else": of("recipe"),
    }


def _recipe(targets: Registry, variant: str) -> dict[str, Schema]:
    target = {"enum": list(targets.of_recipes), "description": "a target, or one level of it"}
    by_level = {**_map(_VALUE), "propertyNames": {"enum": list(targets.levels)}}
    params = {**_map({"anyOf": [_VALUE, by_level]}), **_RECIPE["params"]}
    variants = {**_list(_ref(variant)), **_RECIPE["variants"]}
    return {"target": target, "params": params, "variants": variants}


def _variant(step: Schema) -> dict[str, Schema]:
    return {**_VARIANT, "steps": {**_list(step), "description": "primitives, in order"}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _map(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _named(value: Schema) -> Schema:
    """A map whose keys are names of the language."""
    return {**_map(value), "propertyNames": {"pattern": NAME}}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


# What the reader's own types leave open: a node that it reads further.
_FORMULAS: Schema = {"anyOf": [_TEXT, _named(_TEXT)]}
_SCALAR: Schema = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 2,
         "maxItems": scalars.MAX_MEMBERS},
    ],
    "description": "a type of numbers, or the words that it may be",
}  # fmt: skip
_FILE: dict[str, Schema] = {
    "tilesmith": {"const": reader.VERSION, "description": "the version of the format"},
    "kernel": {"type": "string", "pattern": NAME, "maxLength": 64,
               "description": "the name, as callers write it"},
    "doc": {"type": "string", "description": "what it does, for its callers"},
    "follows": {"type": "string", "description": "the function that it behaves like"},
    "signature": {"type": "string", "pattern": "->",
                  "description": "the core axes of inputs and outputs, as NumPy's gufuncs have "
                  "them: (n)->()"},
    "dtypes": {**_named({"anyOf": [
        {**_list(_ref("dtype")), "minItems": 1, "uniqueItems": True},
        {"type": "object", "required": ["of"], "additionalProperties": False,
         "properties": {"of": {"type": "string"}, **{d.value: _ref("dtype") for d in DType}}}]}),
        "description": "type variables, each with the element types it stands for, or with the one "
        "that it follows"},
    "arguments": {**_named(_ref("argument")), "description": "the arrays"},
    "scalars": {**_named(_ref("scalar")), "description": "scalar parameters"},
    "sizes": {**_named(_TEXT), "description": "sizes that follow from dims and scalars"},
    "temporaries": {**_named({"type": "string"}),
                    "description": "types, or types and shapes, of arrays that compute defines"},
    "reductions": {**_named(_ref("reduction")),
                   "description": "reductions of the spec's own, over tuples of values"},
    "externals": {**_named(_ref("external")), "description": "C functions that compute calls"},
    "constraints": {**_list({"type": "string"}),
                    "description": "conditions on sizes that hold at every call"},
    "compute": {"type": "string", "description": "the body"},
    "contraction": {"enum": [each.value for each in Contraction],
                    "description": "whether products that are added are fused multiply-adds"},
    "oracle": {**_FORMULAS, "description": "the right result, in NumPy and SciPy"},
    "accuracy": {**_FORMULAS, "description": "the largest absolute error of an element"},
    "example": {"type": "string", "description": "a doctest, with ts and np imported"},
    "macros": {**_named(_ref("macro")),
               "description": "steps with a name, for use in several places of recipes"},
    "recipes": {"type": "array", "description": "how to run it"},
}  # fmt: skip
_DRAWN: dict[str, Schema] = {
    "from": {**_TEXT, "description": "the least value; 0 where it is left out"},
    "below": {**_TEXT, "description": "what all values are less than"},
    "sorted": {"type": "boolean", "description": "in order along the last axis"},
}
_REDUCTION: dict[str, Schema] = {
    "parts": {**_map({"type": "string"}), "minProperties": 1, "maxProperties": reductions.MAX_PARTS,
              "description": "the parts of a tuple, with their types"},
    "identity": {**_map(_TEXT), "description": "the tuple that changes nothing"},
    "combine": {"type": "string", "description": "what each part becomes, of two tuples a and b"},
}  # fmt: skip
_EXTERNAL: dict[str, Schema] = {
    "arguments": {**_map({"type": "string"}), "minProperties": 1, "description": "their types"},
    "result": {"type": "string", "description": "its type"},
    "c": {"anyOf": [{"type": "string"}, _map({"type": "string"})],
          "description": "its name in C, or one for each type of the result"},
    "header": {"type": "string", "description": "the header that declares it"},
    "source": {"type": "string", "description": "static C functions, it among them"},
    "oracle": {**_TEXT, "description": "its value, in NumPy and SciPy"},
}  # fmt: skip
_RECIPE: dict[str, Schema] = {
    "params": {"description": "values of the steps' $names: one, or one a level"},
    "variants": {"description": "tried in order at each call; the last has no when"},
}  # fmt: skip
_VARIANT: dict[str, Schema] = {
    "when": {**_TEXT, "description": "the sizes that it is for"},
}
_PARAMS = r"^[A-Za-z]+(_[A-Za-z]+)*$"
_MACRO: dict[str, Schema] = {
    "params": {**_list({"type": "string", "pattern": _PARAMS}),
               "description": "names of what each use gives: $name in the steps"},
    "steps": {"type": "array", "minItems": 1,
              "items": {"anyOf": [_ref("step_of_a_macro"), _ref("use")]},
              "description": "primitives and uses of other macros, in order"},
}  # fmt: skip

_TESTED: Schema = {
    "type": "boolean",
    "description": "compare by the interpreter where data hides from the proof what is read",
}


def _record(record: type, given: dict[str, Schema]) -> Schema:
    """An object with the record's fields as keys; `given` describes those that it says more of."""
    hints = get_type_hints(record)
    known = {f.name.rstrip("_"): f for f in fields(record) if hints[f.name] is not Span}
    if strange := given.keys() - known.keys():
        raise ValueError(f"{record.__name__} has no {min(strange)}")
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [
            key for key, f in known.items() if f.default is MISSING and f.default_factory is MISSING
        ],
        "properties": {
            key: _field(hints[known[key].name], given.get(key)) for key in {**given, **known}
        },
    }


def _field(hint: object, given: Schema | None) -> Schema:
    """What a key takes: what is said of it, and nothing (`key:`) where its type allows that."""
    if given is None:
        return _of(hint)
    if NoneType not in get_args(hint):
        return given
    words = {key: value for key, value in given.items() if key == "description"}
    return {**words, "anyOf": [{k: v for k, v in given.items() if k not in words}, _of(NoneType)]}


def _step(primitive: Callable[[type[Primitive]], Schema]) -> Schema:
    """A map of one primitive, or the bare name of one that needs no argument. primitive: the schema
    of one's arguments.
    """
    named = {name: p for p in PRIMITIVES for name in (p.name, *p.aliases)}
    steps = {name: primitive(p) for name, p in named.items()}
    bare = [name for name, step in steps.items() if not step["required"]]
    step = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": steps,
    }
    return {"anyOf": [step, {"enum": bare}]} if bare else step


def _primitive(primitive: type[Primitive]) -> Schema:
    arguments = _record(primitive, {})
    named = {k: part for k, part in arguments["properties"].items() if k not in OF_ANY}
    parts = {key: _or_parameter(part) for key, part in named.items()} | {"tested": _TESTED}
    return {"description": primitive.summary(), **arguments, "properties": parts}


def _in_a_macro(primitive: type[Primitive]) -> Schema:
    """As outside, but any argument may be a parameter, lists too."""
    arguments = _primitive(primitive)
    parts = {k: {"anyOf": [part, _ref("parameter")]} for k, part in arguments["properties"].items()}
    return {**arguments, "properties": parts}


def _use() -> Schema:
    """A map of one macro with its parameters, or the bare name of one without."""
    known = [name for p in PRIMITIVES for name in (p.name, *p.aliases)]
    name = {"pattern": NAME, "not": {"enum": known}}
    value = {"type": ["string", "number", "boolean", "null"]}
    given = {**_map({"anyOf": [value, _list(value)]}), "propertyNames": {"pattern": _PARAMS}}
    use = {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": name}
    use |= {"additionalProperties": given, "description": "the use of a macro"}
    return {"anyOf": [use, {"type": "string", **name}]}


def _or_parameter(part: Schema) -> Schema:
    """The argument, in which any value may be a parameter's name."""
    match part:
        case {"type": "array", "items": item}:
            return {**part, "items": _or_parameter(item)}
        case {"type": "object", "additionalProperties": dict(item)}:
            return {**part, "additionalProperties": _or_parameter(item)}
        case {"type": "string"}:
            return part
        case {"anyOf": members}:
            inner = [m if _is_leaf(m) else _or_parameter(m) for m in members]
            return {"anyOf": [*inner, _ref("parameter")]}
        case _:
            return {"anyOf": [part, _ref("parameter")]}


def _is_leaf(part: Schema) -> bool:
    return part.get("type") not in ("array", "object")


def _of(hint: object) -> Schema:
    """What `yaml.decode` takes for a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return {"anyOf": [_of(member) for member in inner]}
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is tuple:
        return _list(_of(inner[0]))
    if origin is dict:
        return _map(_of(inner[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    simple: Mapping[object, Schema] = {
        bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"},
        str: {"type": "string"}, NoneType: {"type": "null"}, yaml.Scalar: _TEXT,
        yaml.Map: {"type": "object"}, yaml.List: {"type": "array"},
    }  # fmt: skip
    return simple[hint]
