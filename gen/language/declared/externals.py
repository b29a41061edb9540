"""C functions that a spec declares: of numbers, to one number, with no effect besides.

Input: the entries of `externals`. Output: for a choice of dtypes, functions of the IR; and what the
interpreter calls in their place, which is the formula that the spec gives.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir.types import DType
from .. import yaml
from ..formulas import formula
from ..model import ExternalFunction, KernelSpec

MAX_SOURCE = 20_000


@dataclass(frozen=True, slots=True)
class ExternalEntry:
    arguments: yaml.Map
    result: yaml.Scalar
    oracle: yaml.Scalar
    span: Span
    c: yaml.Scalar | yaml.Map | None = None
    header: yaml.Scalar | None = None
    source: yaml.Scalar | None = None
    doc: str = ""


def read_external(name: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> ExternalFunction:
    """One entry. elements: names of types. Raises SpecError."""
    entry = yaml.decode(node, ExternalEntry, f"external function '{name.text}'")
    arguments = tuple((key.text, _type(value, elements)) for key, value in entry.arguments.entries)
    if not arguments:
        raise SpecError(f"'{name.text}' has no arguments", entry.arguments.span)
    formula.check(entry.oracle, [argument for argument, _ in arguments], ())
    header = entry.header.text if entry.header else ""
    if entry.header and not re.fullmatch(r"[\w./+-]+", header):
        raise SpecError("this is not the name of a header", entry.header.span, "as in math.h")
    source = entry.source.text if entry.source else ""
    if entry.source and len(source) > MAX_SOURCE:
        raise SpecError(f"the source is longer than {MAX_SOURCE} characters", entry.source.span)
    if not header and not source:
        raise SpecError(
            f"nothing says where '{name.text}' comes from",
            name.span,
            "give the 'header' that declares it, or its 'source' as static C functions",
        )
    return ExternalFunction(
        name.text,
        arguments,
        _type(entry.result, elements),
        _symbols(name, entry.c),
        header,
        source,
        entry.oracle,
        entry.doc.strip(),
        name.span,
    )


def _type(node: yaml.Node, elements: frozenset[str]) -> str:
    if not isinstance(node, yaml.Scalar):
        raise SpecError("expected a type", node.span)
    if node.text not in elements:
        raise SpecError(
            f"unknown type '{node.text[:64]}'", node.span, yaml.hint(node.text, elements)
        )
    return node.text


def _symbols(name: yaml.Scalar, node: yaml.Scalar | yaml.Map | None) -> tuple[tuple[str, str], ...]:
    """C names by the result's type; one for all has the type ""."""
    match node:
        case None:
            return (("", name.text),)
        case yaml.Scalar():
            return (("", _symbol(node)),)
        case yaml.Map():
            known = frozenset(dtype.value for dtype in DType)
            return tuple((_type(key, known), _symbol(value)) for key, value in node.entries)


def _symbol(node: yaml.Node) -> str:
    if not isinstance(node, yaml.Scalar) or not re.fullmatch(r"[A-Za-z_]\w*", node.text):
        raise SpecError("this is not the name of a C function", node.span)
    return node.text


def external(declared: ExternalFunction, casts: Mapping[str, DType]) -> ir.External:
    """The function for a choice of dtypes. Raises SpecError where it has no C name for them."""
    result = casts[declared.result]
    symbols = dict(declared.symbols)
    symbol = symbols.get("", symbols.get(result.value))
    if symbol is None:
        raise SpecError(
            f"'{declared.name}' has no C name for {result.value}",
            declared.span,
            f"add {result.value} to its 'c'",
        )
    parameters = tuple(casts[element] for _, element in declared.arguments)
    for dtype in (result, *parameters):
        if dtype.is_complex:
            raise SpecError(
                f"'{declared.name}' has a {dtype.value}, which C functions do not share a form of",
                declared.span,
                "give and take the parts, real(...) and imag(...)",
            )
    return ir.External(declared.name, symbol, parameters, result, declared.header, declared.source)


def python_functions(spec: KernelSpec) -> dict[str, Callable[..., Any]]:
    """What the interpreter calls for the external functions: their formulas."""
    return {e.name: _python(e) for e in spec.externals}


def _python(declared: ExternalFunction) -> Callable[..., Any]:
    names = [name for name, _ in declared.arguments]

    def call(*values: Any) -> Any:
        return formula.evaluate(declared.oracle, dict(zip(names, values, strict=True)), {})

    return call
