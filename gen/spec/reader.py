"""A spec file to a KernelSpec.

Input: a path or text. Output: a KernelSpec in which everything is checked: keys, names, ranks,
element types for every choice of dtypes, formulas and recipes' outlines. All errors are SpecErrors
that point into the file.
"""

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import Span, SpecError
from ..ir import nodes as ir
from ..ir.types import INDEX, DType
from . import language, oracle, syntax, yaml
from .build import build, choices, shape_of
from .indices import condition_expr, index_expr, size
from .model import (
    Argument,
    Formula,
    KernelSpec,
    Scalar,
    Temporary,
    TypeVariable,
)
from .program import Program
from .recipes import read_recipes
from .resolve import definitions, resolve
from .scope import Declared
from .signature import loop_dim_of, read_signature, sizes

VERSION = 1
MAX_CHOICES = 64

# Names that C gives a meaning; Python's keywords are refused besides.
_C_WORDS = """auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while bool true false NULL main"""


_INTEGERS = frozenset(dtype.value for dtype in DType if dtype.is_integer)


@dataclass(frozen=True, slots=True)
class _File:
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
    temporaries: yaml.Map | None = None
    constraints: tuple[yaml.Scalar, ...] = ()
    oracle: yaml.Scalar | yaml.Map | None = None
    accuracy: yaml.Scalar | yaml.Map | None = None
    example: str = ""
    recipes: yaml.List | None = None


@dataclass(frozen=True, slots=True)
class _ArgumentEntry:
    type: yaml.Scalar
    span: Span
    intent: ir.Intent = ir.Intent.IN
    doc: str = ""


@dataclass(frozen=True, slots=True)
class _ScalarEntry:
    type: yaml.Scalar
    span: Span
    default: bool | int | float | None = None
    doc: str = ""


def load(path: str | Path) -> KernelSpec:
    """The spec in a file. Raises SpecError, and OSError where the file cannot be read."""
    path = Path(path)
    start = Span(str(path), 1, 1)
    if path.stat().st_size > yaml.MAX_BYTES:
        raise SpecError(f"the file is larger than {yaml.MAX_BYTES} bytes", start)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SpecError("the file is not UTF-8", Span(str(path), line, 1)) from None
    return loads(text, str(path))


def loads(text: str, path: str) -> KernelSpec:
    """The spec in a text; `path` is what errors call it. Raises SpecError."""
    root = yaml.parse(text, path)
    file = yaml.decode(root, _File, "the spec")
    if file.tilesmith != VERSION:
        raise SpecError(f"'tilesmith' must be {VERSION}, not {file.tilesmith}", file.span)
    _check_name(file.kernel)
    variables = _type_variables(file.dtypes)
    elements = frozenset([v.name for v in variables] + [dtype.value for dtype in DType])
    arguments = tuple(_argument(k, v, elements) for k, v in file.arguments.entries)
    signature = read_signature(file.signature)
    dims = tuple(dict.fromkeys(s for a in arguments for s in a.shape if isinstance(s, str)))
    scalars = tuple(_scalar(k, v, elements) for k, v in _entries(file.scalars))
    temporaries = tuple(_temporary(k, v, elements, dims) for k, v in _entries(file.temporaries))
    _check_distinct(variables, dims, arguments, scalars, temporaries, file)
    loop_dim = loop_dim_of(signature, arguments, file.signature.span)
    program = _program(file.compute, variables, dims, arguments, scalars, temporaries)
    spec = KernelSpec(
        path=path,
        name=file.kernel.text,
        doc=file.doc.strip(),
        follows=file.follows.strip(),
        signature=signature,
        dtypes=variables,
        dims=dims,
        loop_dim=loop_dim,
        arguments=arguments,
        scalars=scalars,
        temporaries=temporaries,
        constraints=tuple(_condition(c, dims) for c in file.constraints),
        requires=program.requires,
        program=program,
        oracle=_formulas(file.oracle, arguments),
        accuracy=_formulas(file.accuracy, arguments),
        example=file.example,
        recipes=read_recipes(file.recipes, dims),
        span=file.kernel.span,
    )
    _check(spec)
    return spec


def _entries(node: yaml.Map | None) -> tuple[tuple[yaml.Scalar, yaml.Node], ...]:
    return node.entries if node else ()


# ---------------------------------------------------------------- declarations


def _check_name(name: yaml.Scalar) -> None:
    text = name.text
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) or "__" in text or len(text) > 64:
        raise SpecError(
            f"'{text[:64]}' is not a name",
            name.span,
            "a name is letters, digits and single underscores",
        )
    if keyword.iskeyword(text) or text in _C_WORDS.split():
        raise SpecError(f"'{text}' is a word of Python or C", name.span, "choose another name")


def _check_distinct(
    variables: tuple[TypeVariable, ...],
    dims: tuple[str, ...],
    arguments: tuple[Argument, ...],
    scalars: tuple[Scalar, ...],
    temporaries: tuple[Temporary, ...],
    file: _File,
) -> None:
    """One namespace holds type variables, dims, arguments, scalars and temporaries."""
    seen = {v.name: "a type variable" for v in variables}
    seen |= dict.fromkeys(language.RESERVED, "a word of the language")
    seen |= dict.fromkeys(dims, "a dim")
    for kind, things in (
        ("an argument", arguments), ("a scalar", scalars), ("a temporary", temporaries)
    ):  # fmt: skip
        for thing in things:
            if thing.name in seen:
                raise SpecError(f"'{thing.name}' is {seen[thing.name]} already", thing.span)
            seen[thing.name] = kind
    for dim in dims:
        if dim in language.RESERVED or any(dim == v.name for v in variables):
            raise SpecError(
                f"the dim '{dim}' has another meaning in the language", file.arguments.span
            )


def _type_variables(node: yaml.Map) -> tuple[TypeVariable, ...]:
    variables: list[TypeVariable] = []
    total = 1
    for key, value in node.entries:
        _check_name(key)
        if key.text in language.RESERVED:
            raise SpecError(f"'{key.text}' is a word of the language", key.span)
        if not isinstance(value, yaml.List) or not value.items:
            raise SpecError(f"'{key.text}' must be a list of dtypes", value.span)
        chosen = tuple(yaml.decode(item, DType, "a dtype") for item in value.items)
        if len(set(chosen)) < len(chosen):
            raise SpecError(f"a dtype is given twice for '{key.text}'", value.span)
        total *= len(chosen)
        variables.append(TypeVariable(key.text, chosen))
    if total > MAX_CHOICES:
        raise SpecError(f"more than {MAX_CHOICES} choices of dtypes", node.span)
    return tuple(variables)


def _element(name: str, span: Span, elements: frozenset[str]) -> str:
    if name not in elements:
        raise SpecError(f"unknown type '{name}'", span, yaml.hint(name, elements))
    return name


def _argument(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> Argument:
    _check_name(key)
    entry = yaml.decode(node, _ArgumentEntry, f"argument '{key.text}'")
    match = re.fullmatch(r"(\w+)\s*\[([^\[\]]*)\]", entry.type.text)
    if not match:
        raise SpecError(
            f"'{entry.type.text[:64]}' is not the type of an array",
            entry.type.span,
            'write "T[m, n]", or "T[]" for an array without axes',
        )
    element = _element(match[1], entry.type.span, elements)
    shape = sizes(match[2], entry.type.span)
    return Argument(key.text, element, shape, entry.intent, entry.doc, key.span)


def _scalar(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> Scalar:
    _check_name(key)
    entry = yaml.decode(node, _ScalarEntry, f"scalar '{key.text}'")
    element = _element(entry.type.text, entry.type.span, elements)
    _check_default(key, entry.default, element)
    return Scalar(key.text, element, entry.default, entry.doc, key.span)


def _check_default(key: yaml.Scalar, default: bool | int | float | None, element: str) -> None:
    if default is None:
        return
    if (element == DType.BOOL.value) != isinstance(default, bool):
        kind = "a bool" if element == DType.BOOL.value else "a number"
        raise SpecError(f"the default of '{key.text}' must be {kind}", key.span)
    if isinstance(default, float) and element in _INTEGERS:
        raise SpecError(f"the default of '{key.text}' must be an integer", key.span)


def _temporary(
    key: yaml.Scalar, node: yaml.Node, elements: frozenset[str], dims: tuple[str, ...]
) -> Temporary:
    _check_name(key)
    hint = 'write "T", or "T[m, n + 2]" to give its shape'
    if not isinstance(node, yaml.Scalar):
        raise SpecError(f"'{key.text}' must be a type", node.span, hint)
    if re.fullmatch(r"\w+(\s*\[\s*\])?", node.text):
        name, bracket, _ = node.text.partition("[")
        element = _element(name.strip(), node.span, elements)
        return Temporary(key.text, element, () if bracket else None, key.span)
    match language.expression(node, frozenset()):
        case syntax.Element(element, indices):
            shape = tuple(_size(index, dims) for index in indices)
            return Temporary(key.text, _element(element, node.span, elements), shape, key.span)
        case _:
            raise SpecError(f"'{key.text}' must be a type", node.span, hint)


def _size(expr: syntax.Expr, dims: tuple[str, ...]) -> ir.Expr:
    """One axis of a temporary; 0 where the expression is negative."""
    for part in syntax.descend(expr):
        if isinstance(part, syntax.Name) and part.name not in dims:
            raise SpecError(f"'{part.name}' is not a dim", part.span, yaml.hint(part.name, dims))
    return size(index_expr(expr, dims), dims)


# ---------------------------------------------------------------- the body and formulas


def _program(
    compute: yaml.Scalar,
    variables: tuple[TypeVariable, ...],
    dims: tuple[str, ...],
    arguments: tuple[Argument, ...],
    scalars: tuple[Scalar, ...],
    temporaries: tuple[Temporary, ...],
) -> Program:
    casts = frozenset([v.name for v in variables] + [dtype.value for dtype in DType])
    body = language.statements(compute, casts)
    if not body:
        raise SpecError("the body has no statement", compute.span)
    declared = Declared(
        dims,
        {a.name: shape_of(a.shape) for a in arguments}
        | {t.name: t.shape for t in temporaries if t.shape is not None},
        {a.name: a.intent for a in arguments},
        {s.name: s.element == INDEX.value for s in scalars},
        frozenset([*_assigned(body), *(a.name for a in arguments), *(t.name for t in temporaries)]),
    )
    return resolve(body, declared)


def _assigned(body: tuple[syntax.Statement, ...]) -> set[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case syntax.Assign(target):
                found.add(target.array)
            case syntax.For(_, inner) | syntax.If(_, inner):
                found |= _assigned(inner)
    return found


def _condition(scalar: yaml.Scalar, dims: tuple[str, ...]) -> ir.Expr:
    """A condition that every call is checked for, so of the one form that the binding checks."""
    condition = condition_expr(language.expression(scalar, frozenset()), frozenset(dims))
    match condition:
        case ir.Binary(ir.BinaryOp.GE | ir.BinaryOp.GT, ir.Var(), ir.Const()):
            return condition
        case _:
            raise SpecError(
                "a constraint must be of the form 'dim >= number'",
                scalar.span,
                "what depends on more belongs into a variant's 'when'",
            )


def least_sizes(spec: KernelSpec) -> dict[str, int]:
    """The least size of each dim where that is not 0: constraints, and dims of a max or min."""
    least = dict.fromkeys(spec.requires, 1)
    for constraint in spec.constraints:
        match constraint:
            case ir.Binary(op, ir.Var(dim), ir.Const(int() as bound)):
                size = bound + (op is ir.BinaryOp.GT)
                least[dim] = max(least.get(dim, 0), size)
            case _:
                raise AssertionError("the reader lets no other form pass")
    return least


def _formulas(
    node: yaml.Scalar | yaml.Map | None, arguments: tuple[Argument, ...]
) -> tuple[Formula, ...]:
    outputs = [a.name for a in arguments if a.intent is not ir.Intent.IN]
    if node is None:
        return ()
    if isinstance(node, yaml.Scalar):
        if len(outputs) != 1:
            raise SpecError("there are several outputs", node.span, "give a map, one key an output")
        return (Formula(outputs[0], node),)
    formulas: list[Formula] = []
    for key, value in node.entries:
        if key.text not in outputs:
            raise SpecError(
                f"'{key.text}' is not an output", key.span, yaml.hint(key.text, outputs)
            )
        if not isinstance(value, yaml.Scalar):
            raise SpecError("a formula must be a text", value.span)
        formulas.append(Formula(key.text, value))
    return tuple(formulas)


# ---------------------------------------------------------------- the whole


def _check(spec: KernelSpec) -> None:
    _check_used(spec)
    for dtypes in choices(spec):
        build(spec, dtypes)
    oracle.check(spec)


def _check_used(spec: KernelSpec) -> None:
    """Everything declared is used, and every output is written."""
    all_definitions = list(definitions(spec.program.body))
    written = {d.target.array for d in all_definitions}
    arrays_read, names_read = set[str](), set[str]()
    for d in all_definitions:
        for expr in (d.value, *d.target.indices):
            for part in syntax.descend(expr):
                if isinstance(part, syntax.Element):
                    arrays_read.add(part.array)
                elif isinstance(part, syntax.Name):
                    names_read.add(part.name)
    for a in spec.arguments:
        if a.intent is not ir.Intent.IN and a.name not in written:
            raise SpecError(f"the output '{a.name}' is never written", a.span)
        if a.intent is ir.Intent.IN and a.name not in arrays_read | names_read:
            raise SpecError(f"the argument '{a.name}' is not used", a.span)
    for t in spec.program.temporaries:
        if t.name in written and t.name not in arrays_read | names_read:
            raise SpecError(f"the temporary '{t.name}' is never read", t.span)
    _check_declared(spec, written, names_read)


def _check_declared(spec: KernelSpec, written: set[str], names_read: set[str]) -> None:
    for temporary in spec.temporaries:
        if temporary.name not in written:
            raise SpecError(f"the temporary '{temporary.name}' is never defined", temporary.span)
    in_bounds = spec.program.names_in_bounds()
    for scalar in spec.scalars:
        if scalar.name not in names_read | in_bounds:
            raise SpecError(f"the scalar '{scalar.name}' is not used", scalar.span)
