"""A spec file to a KernelSpec.

Input: a path or text. Output: a KernelSpec in which everything is checked: keys, names, ranks,
element types for every choice of dtypes, formulas and recipes' outlines. All errors are SpecErrors
that point into the file.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import Span, SpecError
from ..ir import nodes as ir
from ..ir.types import INDEX, DType
from . import yaml
from .body.leaving import left_early
from .body.local_names import written_out
from .body.program import Program
from .body.resolve import resolve
from .body.scope import Declared
from .body.sizes import Sizes
from .build import build, choices, shape_of
from .declared.drawn import check_drawn, read_drawn
from .declared.externals import read_external
from .declared.reductions import check_laws, read_reduction
from .declared.scalars import in_range, members_of, read_scalar
from .declared.type_variables import check_name, read_type_variables, real_variables
from .formulas import oracle
from .macros import read_macros
from .model import (
    Argument,
    DeclaredTemporary,
    ExternalFunction,
    KernelSpec,
    NamedSize,
    Recipe,
    Reduction,
    Scalar,
    TypeVariable,
    storage_types,
)
from .named_sizes import check_whole, read_sizes
from .recipes import read_recipes
from .shapes import (
    array_type,
    dims_in,
    integers,
    known_sizes,
    not_empty,
    read_constraints,
    read_size,
    temporary_size,
)
from .signature import loop_dim_of, read_signature
from .syntax import grammar
from .syntax import nodes as syntax
from .syntax.grammar import Words
from .used import check_used

VERSION = 1


@dataclass(frozen=True, slots=True)
class File:
    """The file's keys."""

    tilesmith: int
    kernel: yaml.Scalar
    doc: str
    signature: yaml.Scalar
    dtypes: yaml.Map
    arguments: yaml.Map
    compute: yaml.Scalar
    span: Span
    follows: str = ""
    scalars: yaml.Map | None = None
    sizes: yaml.Map | None = None
    temporaries: yaml.Map | None = None
    reductions: yaml.Map | None = None
    externals: yaml.Map | None = None
    constraints: tuple[yaml.Scalar, ...] = ()
    contraction: ir.Contraction = ir.Contraction.FUSED
    oracle: yaml.Scalar | yaml.Map | None = None
    accuracy: yaml.Scalar | yaml.Map | None = None
    example: str = ""
    macros: yaml.Map | None = None
    recipes: yaml.List | None = None


@dataclass(frozen=True, slots=True)
class ArgumentEntry:
    type: yaml.Scalar
    span: Span
    intent: ir.Intent = ir.Intent.IN
    doc: str = ""
    drawn: yaml.Node | None = None


def load(path: str | Path) -> KernelSpec:
    """The spec in a file. Raises SpecError, and OSError where the file cannot be read."""
    path = Path(path)
    start = Span(str(path), 1, 1)
    with path.open("rb") as file:
        data = file.read(yaml.MAX_BYTES + 1)  # whatever the file says of its size: devices say 0
    if len(data) > yaml.MAX_BYTES:
        raise SpecError(f"the file is larger than {yaml.MAX_BYTES} bytes", start)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SpecError("the file is not UTF-8", Span(str(path), line, 1)) from None
    return loads(text, str(path))


def loads(text: str, path: str) -> KernelSpec:
    """The spec in a text; `path` is what errors call it. Raises SpecError."""
    return read(yaml.parse(text, path), path)


def read(node: yaml.Node, path: str) -> KernelSpec:
    """The spec that a part of the file `path` is. Raises SpecError."""
    file = _file(node)
    variables = read_type_variables(file.dtypes)
    parts = [f"real({v.name})" for v in variables]
    elements = frozenset([v.name for v in variables] + parts + [dtype.value for dtype in DType])
    scalars = tuple(read_scalar(k, v, elements) for k, v in _entries(file.scalars))
    types = {s.name: s.element for s in scalars if not s.members}
    arguments = tuple(_argument(k, v, elements, types) for k, v in file.arguments.entries)
    used = {*(a.element for a in arguments), *types.values()}
    signature = read_signature(file.signature, types)
    dims = dims_in(arguments, {*types, *(key.text for key, _ in _entries(file.sizes))})
    sizes = _sizes(file.sizes, dims, types)
    all_dims = (*dims, *(s.name for s in sizes))
    loop_dim = loop_dim_of(signature, arguments, file.signature.span)
    check_whole(sizes, loop_dim, file.signature.span)
    constraints = read_constraints(file.constraints, all_dims, loop_dim, types)
    known = known_sizes(dims, types, sizes, arguments, constraints)
    shaped = partial(temporary_size, scalars=types, sizes=known)
    temporaries = tuple(_temporary(k, v, elements, shaped) for k, v in _entries(file.temporaries))
    reductions = tuple(_reduction(k, v, elements) for k, v in _entries(file.reductions))
    externals = tuple(_external(k, v, elements) for k, v in _entries(file.externals))
    declared: tuple[_Named, ...] = (
        *sizes, *arguments, *scalars, *temporaries, *reductions, *externals
    )  # fmt: skip
    _check_distinct(variables, dims, declared, file)
    words = _words(elements, scalars, reductions, externals)
    program = _program(
        file.compute, words, known, arguments, scalars, temporaries, storage_types(variables)
    )
    spec = KernelSpec(
        path=path,
        name=file.kernel.text,
        doc=file.doc.strip(),
        follows=file.follows.strip(),
        signature=signature,
        dtypes=variables + real_variables(variables, used),
        dims=dims,
        sizes=sizes,
        loop_dim=loop_dim,
        arguments=arguments,
        scalars=scalars,
        temporaries=temporaries,
        reductions=reductions,
        externals=externals,
        constraints=(*constraints, *not_empty(sizes, program.requires), *in_range(scalars)),
        requires=tuple(dim for dim in program.requires if dim in dims),
        program=program,
        contraction=file.contraction,
        oracle=oracle.read(file.oracle, arguments),
        accuracy=oracle.read(file.accuracy, arguments),
        example=file.example,
        recipes=_recipes(file, (*all_dims, *integers(types)), words),
        span=file.kernel.span,
    )
    _check(spec)
    return spec


def _words(
    elements: frozenset[str],
    scalars: tuple[Scalar, ...],
    reductions: tuple[Reduction, ...],
    externals: tuple[ExternalFunction, ...],
) -> Words:
    return Words(
        elements,
        {r.name: len(r.parts) for r in reductions},
        functions={e.name: len(e.arguments) for e in externals},
        members=members_of(scalars),
    )


def _file(node: yaml.Node) -> File:
    file = yaml.decode(node, File, "the spec")
    if file.tilesmith != VERSION:
        raise SpecError(f"'tilesmith' must be {VERSION}, not {file.tilesmith}", file.span)
    check_name(file.kernel)
    return file


def _sizes(
    node: yaml.Map | None, dims: tuple[str, ...], scalars: Mapping[str, str]
) -> tuple[NamedSize, ...]:
    for key, _ in _entries(node):
        check_name(key)
    return read_sizes(_entries(node), dims, scalars)


def _entries(node: yaml.Map | None) -> tuple[tuple[yaml.Scalar, yaml.Node], ...]:
    return node.entries if node else ()


# ---------------------------------------------------------------- declarations


_Named = NamedSize | Argument | Scalar | DeclaredTemporary | Reduction | ExternalFunction
_KINDS: dict[type[_Named], str] = {
    NamedSize: "a size",
    Argument: "an argument",
    Scalar: "a scalar",
    DeclaredTemporary: "a temporary",
    Reduction: "a reduction",
    ExternalFunction: "an external function",
}


def _check_distinct(
    variables: tuple[TypeVariable, ...],
    dims: tuple[str, ...],
    declared: tuple[_Named, ...],
    file: File,
) -> None:
    """One namespace holds all that a spec names."""
    seen = {v.name: "a type variable" for v in variables}
    seen |= dict.fromkeys(grammar.RESERVED, "a word of the language")
    seen |= dict.fromkeys(dims, "a dim")
    for thing in declared:
        if thing.name in seen:
            raise SpecError(f"'{thing.name}' is {seen[thing.name]} already", thing.span)
        seen[thing.name] = _KINDS[type(thing)]
    for dim in dims:
        if dim in grammar.RESERVED or any(dim == v.name for v in variables):
            raise SpecError(
                f"the dim '{dim}' has another meaning in the language", file.arguments.span
            )


def _element(name: str, span: Span, elements: frozenset[str]) -> str:
    if name not in elements:
        raise SpecError(f"unknown type '{name}'", span, yaml.hint(name, elements))
    return name


def _argument(
    key: yaml.Scalar, node: yaml.Node, elements: frozenset[str], scalars: Mapping[str, str]
) -> Argument:
    check_name(key)
    entry = yaml.decode(node, ArgumentEntry, f"argument '{key.text}'")
    found = array_type(entry.type)
    if found is None:
        raise SpecError(
            f"'{entry.type.text[:64]}' is not the type of an array",
            entry.type.span,
            'write "T[m, n]", or "T[]" for an array without axes',
        )
    element = _element(found[0], entry.type.span, elements)
    shape = tuple(read_size(axis, scalars) for axis in found[1])
    drawn = read_drawn(key.text, entry.drawn)
    return Argument(key.text, element, shape, entry.intent, entry.doc, drawn, key.span)


def _temporary(
    key: yaml.Scalar,
    node: yaml.Node,
    elements: frozenset[str],
    shaped: Callable[[syntax.Expr], ir.Expr],
) -> DeclaredTemporary:
    check_name(key)
    hint = 'write "T", or "T[m, n + 2]" to give its shape'
    if not isinstance(node, yaml.Scalar):
        raise SpecError(f"'{key.text}' must be a type", node.span, hint)
    if re.fullmatch(r"real\(\w+\)|\w+", node.text):
        return DeclaredTemporary(key.text, _element(node.text, node.span, elements), None, key.span)
    found = array_type(node)
    if found is None:
        raise SpecError(f"'{key.text}' must be a type", node.span, hint)
    shape = tuple(map(shaped, found[1]))
    return DeclaredTemporary(key.text, _element(found[0], node.span, elements), shape, key.span)


def _reduction(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> Reduction:
    check_name(key)
    return read_reduction(key, node, elements)


def _external(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> ExternalFunction:
    check_name(key)
    return read_external(key, node, elements)


# ---------------------------------------------------------------- the body and formulas


def _program(
    compute: yaml.Scalar,
    words: Words,
    sizes: Sizes,
    arguments: tuple[Argument, ...],
    scalars: tuple[Scalar, ...],
    temporaries: tuple[DeclaredTemporary, ...],
    storage: frozenset[str],
) -> Program:
    named: tuple[_Named, ...] = (*arguments, *scalars, *temporaries)
    own = (*sizes.dims, *(each.name for each in named), *words.reductions, *words.functions)
    known = (*own, *words.casts, *grammar.RESERVED)
    intents = {a.name: a.intent for a in arguments}
    body = left_early(written_out(grammar.statements(compute, words), known), intents, known)
    if not body:
        raise SpecError("the body has no statement", compute.span)
    declared = Declared(
        sizes.dims,
        {a.name: shape_of(a.shape) for a in arguments}
        | {t.name: tuple(map(sizes.shared, t.shape)) for t in temporaries if t.shape is not None},
        intents,
        {s.name: s.element == INDEX.value for s in scalars},
        frozenset([*_assigned(body), *(a.name for a in arguments), *(t.name for t in temporaries)]),
        sizes,
        frozenset(a.name for a in arguments if a.element in storage)
        | frozenset(t.name for t in temporaries if t.element in storage),
    )
    return resolve(body, declared)


def _recipes(file: File, names: tuple[str, ...], words: Words) -> tuple[Recipe, ...]:
    """names: what a `when` may name."""
    macros = read_macros(_entries(file.macros))
    return read_recipes(file.recipes, names, words.members, macros)


def _assigned(body: tuple[syntax.Statement, ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case syntax.Assign():
                found |= {target.array for target in statement.targets}
            case syntax.For(body=inner) | syntax.If(body=inner) | syntax.While(body=inner):
                found |= _assigned(inner)
    return found


# ---------------------------------------------------------------- the whole


def _check(spec: KernelSpec) -> None:
    check_used(spec)
    check_drawn(spec)
    for dtypes in choices(spec):
        check_laws(build(spec, dtypes))
    oracle.check(spec)
