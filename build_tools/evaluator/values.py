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
    """counts: whether dims or indices are in it, and nothing that has a type."""

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


WHOLE = ("//", "%")
"""What a dim or an index and an integer of an array, but a uint64, take part in as int64."""


def binary(symbol: str, a: Typed, b: Typed) -> Typed:
    if elements.is_integer(a.of) and elements.is_integer(b.of):
        if symbol in elements.COMPARISONS:
            return _as_numbers(symbol, a, b, BOOL)
        if symbol in ("min", "max") and a.counts != b.counts:
            of = common(a.of, b.of)
            if isinstance(of, np.dtype):
                largest = symbol == "max" and of == UINT64
                return _as_numbers(symbol, a, b, UINT64 if largest else INT64)
    of = common(a.of, b.of)
    if symbol in WHOLE and (a.counts or b.counts) and elements.is_integer(of):
        of = of if of in (int, UINT64) else INT64
    if symbol == "/" and (of is int or elements.is_integer(of) or elements.same(of, BOOL)):
        of = FLOAT64 if isinstance(of, np.dtype) else float
    function, left, right = operator(symbol, of), a.as_(of), b.as_(of)
    result = BOOL if symbol in elements.COMPARISONS else of
    counts = of is int and (a.counts or b.counts)
    return Typed(result, lambda env: function(left(env), right(env)), counts)


def _as_numbers(symbol: str, a: Typed, b: Typed, of: DType) -> Typed:
    """Of integers of any types, exactly."""
    function, left, right = operator(symbol, int), a.value, b.value
    return Typed(of, lambda env: of.type(function(int(left(env)), int(right(env)))))


def select(test: Typed, body: Typed, orelse: Typed) -> Typed:
    of = common(body.of, orelse.of)
    given, this, that = test.value, body.as_(of), orelse.as_(of)
    counts = of is int  # not a number by itself, whatever it chooses from
    return Typed(of, lambda env: this(env) if given(env) else that(env), counts)
