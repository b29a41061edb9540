"""What expressions are made of: values with their types, and what names are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from . import elements
from .document import Document
from .elements import BOOL, FLOAT64, INT64, UINT64, DType, Type, common, conversion, operator

Env = dict[str, Any]
"""Indices, dims, scalars and arrays by name."""
Eval = Callable[[Env], Any]


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """counts: whether a dim or an index takes part in a number that has no type yet."""

    of: Type
    value: Eval
    counts: bool = False

    def as_(self, target: Type) -> Eval:
        if elements.same(self.of, target):
            return self.value
        turned, value = conversion(self.of, target), self.value
        return lambda env: turned(value(env))


@final
@dataclass
class Scope:
    """What names are. arrays: types as they are stored; numbers: of scalars and of parts; records:
    of tuples that are combined. chosen: the type of each type variable.
    """

    document: Document
    chosen: Mapping[str, str]
    arrays: dict[str, DType] = field(default_factory=dict)
    numbers: dict[str, Type] = field(default_factory=dict)
    records: dict[str, Mapping[str, Type]] = field(default_factory=dict)

    def element(self, text: str) -> DType:
        return elements.dtype(self.document.element(text, self.chosen))

    def is_type(self, name: str) -> bool:
        if name in self.chosen or name in self.document.follows or name == "bfloat16":
            return True
        kind = getattr(np, name, None) if name != "bool" else np.bool_
        return isinstance(kind, type) and issubclass(kind, np.generic)


WHOLE = (*elements.COMPARISONS, "min", "max", "//", "%")
"""What a dim or an index and an integer of an array take part in as int64."""


def binary(symbol: str, a: Typed, b: Typed) -> Typed:
    of, counts = common(a.of, b.of), a.counts or b.counts
    if counts and symbol in WHOLE and elements.is_integer(of) and of not in (int, UINT64):
        of = INT64
    if symbol == "/" and (of is int or elements.is_integer(of) or elements.same(of, BOOL)):
        of = FLOAT64 if isinstance(of, np.dtype) else float
    function, left, right = operator(symbol, of), a.as_(of), b.as_(of)
    result = BOOL if symbol in elements.COMPARISONS else of
    return Typed(result, lambda env: function(left(env), right(env)), counts and result is int)


def select(test: Typed, body: Typed, orelse: Typed) -> Typed:
    of = common(body.of, orelse.of)
    given, this, that = test.value, body.as_(of), orelse.as_(of)
    counts = of is int and (body.counts or orelse.counts)
    return Typed(of, lambda env: this(env) if given(env) else that(env), counts)
