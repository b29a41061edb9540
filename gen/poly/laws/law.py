"""A law, and the YAML file that it is read from.

A law says that reductions which follow each other, each over terms that use the results of those
before, are one reduction of tuples. Input: a file, and the element type of the reductions. Output:
the law's expressions in the IR. In these, `x` is the term of the first reduction, and a part's name
stands for its result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...errors import Span, SpecError
from ...ir.nodes import Combiner, DefinedCombiner, Expr
from ...ir.types import DType
from ...ir.walk import variables
from ...language import yaml
from ...language.declared.reductions import combiner, read_reduction
from ...language.expressions import Types, typed
from ...language.syntax import grammar
from ...language.values.values import convert

TERM = "x"


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """What a part is, of a set of terms: a reduction of a value of each, over the term and the
    parts before this one.
    """

    combiner: Combiner
    value: Expr

    @property
    def counts(self) -> bool:
        """Whether it is the number of the terms, which no reduction of a spec needs to say."""
        return self.combiner is Combiner.SUM and not variables(self.value)


@final
@dataclass(frozen=True, slots=True)
class Form:
    """What the parts are, and each part of a term alone."""

    meanings: Mapping[str, Meaning]
    terms: Mapping[str, Expr]

    @property
    def reductions(self) -> tuple[str, ...]:
        """The parts that a spec says as reductions, in their order."""
        return tuple(name for name, meaning in self.meanings.items() if not meaning.counts)


@final
@dataclass(frozen=True, slots=True)
class Law:
    """forms: of reductions that it joins. bound: how far from the exact value a part may be, over
    n, the number of terms, eps, largest, the largest of their magnitudes, and exact parts.
    """

    name: str
    doc: str
    source: str
    combiner: DefinedCombiner
    forms: tuple[Form, ...]
    bound: Mapping[str, Expr]


@dataclass(frozen=True, slots=True)
class _Form:
    meaning: dict[str, yaml.Map]
    term: dict[str, yaml.Scalar]
    span: Span


@dataclass(frozen=True, slots=True)
class _LawFile:
    law: yaml.Scalar
    doc: str
    source: str
    forms: tuple[_Form, ...]
    state: yaml.Map
    bound: dict[str, yaml.Scalar]


def read(text: str, path: Path, dtype: DType) -> Law:
    """The law that a file's text says. Raises SpecError."""
    file = yaml.decode(yaml.parse(text, str(path)), _LawFile, "the law")
    join = combiner(read_reduction(file.law, file.state, frozenset("T")), {"T": dtype})
    parts = dict.fromkeys(join.parts, dtype)
    forms = tuple(_form(form, parts, dtype) for form in file.forms)
    given = {"n": dtype, "eps": dtype, "largest": dtype, **parts}
    bound = {name: _value(value, given, dtype) for name, value in file.bound.items()}
    return Law(file.law.text, _line(file.doc), _line(file.source), join, forms, bound)


def _form(form: _Form, parts: Mapping[str, DType], dtype: DType) -> Form:
    if not list(form.meaning) == list(form.term) == list(parts):
        raise SpecError("a form has a meaning and a term for each part, in their order", form.span)
    meanings, known = {}, {TERM: dtype}
    for name, node in form.meaning.items():
        ((key, value),) = node.entries
        if key.text not in grammar.COMBINERS or not isinstance(value, yaml.Scalar):
            raise SpecError(f"'{name}' must be a reduction", node.span)
        meanings[name] = Meaning(grammar.COMBINERS[key.text], _value(value, known, dtype))
        known[name] = dtype
    terms = {name: _value(value, {TERM: dtype}, dtype) for name, value in form.term.items()}
    return Form(meanings, terms)


def _value(text: yaml.Scalar, variables: Mapping[str, DType], dtype: DType) -> Expr:
    value = typed(grammar.expression(text), Types({}, variables, {}))
    return convert(value, dtype, text.span)


def _line(text: str) -> str:
    return " ".join(text.split())
