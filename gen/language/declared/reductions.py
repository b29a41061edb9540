"""Reductions that a spec defines, over one value or a tuple of several.

Input: the entries of `reductions`. Output: for a choice of dtypes, combiners of the IR. A reduction
may be taken apart and put together again in any order, so combining has to be associative and
commutative and the identity neutral: that is tried on terms of the kind that the body gives, and
where it does not hold, a SpecError has the values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest
from random import Random
from typing import Any, assert_never, cast

import numpy as np

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir.interpret.evaluate import scalar
from ...ir.interpret.machine import Machine, defined, expression
from ...ir.nodes import Node
from ...ir.types import DType, Kind
from ...ir.walk import blocks, map_children
from .. import yaml
from ..expressions import Types, typed
from ..model import Reduction, TuplePart
from ..syntax import grammar
from ..syntax import nodes as syntax
from ..syntax.grammar import CONSTANTS, Words
from ..values.types import concrete, holds
from ..values.values import convert

MAX_PARTS = 8
TRIALS = 40

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ReductionEntry:
    parts: yaml.Map
    identity: yaml.Map
    combine: yaml.Scalar
    span: Span
    doc: str = ""


def read_reduction(name: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> Reduction:
    """One entry. elements: names of types. Raises SpecError."""
    entry = yaml.decode(node, ReductionEntry, f"reduction '{name.text}'")
    types = {key.text: _type(key, value, elements) for key, value in entry.parts.entries}
    if not 1 <= len(types) <= MAX_PARTS:
        raise SpecError(f"a reduction has from 1 to {MAX_PARTS} parts", entry.parts.span)
    identity = {}
    for key, value in entry.identity.entries:
        _check_part(key.text, key.span, types)
        if not isinstance(value, yaml.Scalar):
            raise SpecError(f"the identity of '{key.text}' must be a number", value.span)
        identity[key.text] = _known(grammar.expression(value), frozenset())
    if missing := types.keys() - identity.keys():
        raise SpecError(f"the identity lacks '{min(missing)}'", entry.identity.span)
    combined = _combined(entry.combine, types, elements)
    parts = (TuplePart(p, types[p], identity[p], combined[p]) for p in types)
    return Reduction(name.text, entry.doc.strip(), tuple(parts), name.span)


def _type(key: yaml.Scalar, node: yaml.Node, elements: frozenset[str]) -> str:
    if not key.text.isidentifier() or "__" in key.text:
        raise SpecError(f"'{key.text[:64]}' is not a name", key.span)
    if not isinstance(node, yaml.Scalar) or node.text not in elements:
        raise SpecError(f"'{key.text}' must be a type", node.span)
    return node.text


def _check_part(name: str, span: Span, parts: Mapping[str, str]) -> None:
    if name not in parts:
        raise SpecError(f"'{name[:64]}' is not a part", span, yaml.hint(name, parts))


def _combined(
    text: yaml.Scalar, parts: Mapping[str, str], elements: frozenset[str]
) -> dict[str, syntax.Expr]:
    """What each part becomes, over `a.part`, `b.part`, and the parts before it."""
    operands = frozenset(f"{owner}.{part}" for owner in "ab" for part in parts)
    found: dict[str, syntax.Expr] = {}
    statements = grammar.statements(text, Words(elements, operands=operands))
    for statement, part in zip_longest(statements, parts):
        match statement:
            case syntax.Assign(syntax.Element(name, ()), None, value, None, ()) if name == part:
                found[part] = _with(_known(value, operands | found.keys()), frozenset(found))
            case None:
                raise SpecError(f"'{part}' is not combined", text.span)
            case _ if part is None:
                raise SpecError("there is no further part", statement.span)
            case _:
                hint = "a line for each part, in the order of 'parts'"
                raise SpecError(f"expected '{part} = ...'", statement.span, hint)
    return found


def _known(value: syntax.Expr, names: frozenset[str] | set[str]) -> syntax.Expr:
    """The value. Refuses what is not computed from `names` and numbers."""
    for e in syntax.descend(value):
        match e:
            case syntax.Name(name) if name not in names and name not in CONSTANTS:
                raise SpecError(f"unknown name '{name}'", e.span, yaml.hint(name, names))
            case syntax.Element() | syntax.Fold():
                raise SpecError("a combination has no arrays and no reductions", e.span)
    return value


def _with(expr: syntax.Expr, before: frozenset[str]) -> syntax.Expr:
    """The expression, in which the parts before are those of the result `c`."""
    if isinstance(expr, syntax.Name):
        return replace(expr, name=f"c.{expr.name}") if expr.name in before else expr
    return syntax.with_parts(expr, tuple(_with(part, before) for part in syntax.parts(expr)))


# ---------------------------------------------------------------- a choice of dtypes


def combiner(reduction: Reduction, casts: Mapping[str, DType]) -> ir.DefinedCombiner:
    """The combiner. Raises SpecError where a value does not fit its part's type."""
    dtypes = {part.name: casts[part.element] for part in reduction.parts}
    variables = {f"{owner}.{name}": dtype for owner in "abc" for name, dtype in dtypes.items()}
    types = Types({}, variables, casts)
    identity, combined = [], []
    for part in reduction.parts:
        dtype = dtypes[part.name]
        none = expression(_of(part.identity, dtype, part.name, types), _nothing())()
        number = none.item() if isinstance(none, np.generic) else none
        identity.append(ir.Const(number, dtype, span=part.identity.span))
        combined.append(_of(part.combined, dtype, part.name, types))
    return ir.DefinedCombiner(reduction.name, tuple(dtypes), tuple(identity), tuple(combined))


def _of(value: syntax.Expr, dtype: DType, part: str, types: Types) -> ir.Expr:
    found = typed(value, types)
    if not holds(dtype, found.type):
        raise SpecError(
            f"the value is {concrete(found.type).value} but '{part}' is {dtype.value}",
            value.span,
            f"write {dtype.value}(...) if that is meant",
        )
    return convert(found, dtype, value.span)


def _nothing() -> Machine:
    return Machine({}, {}, {}, None, check=False)


# ---------------------------------------------------------------- laws


def check_laws(kernel: ir.Kernel) -> None:
    """Raises SpecError where the order in which terms are combined changes a result: tried on terms
    of the kernel's blocks, with numbers drawn for what they read.
    """
    for block in blocks(kernel):
        match block.body:
            case ir.Update(ir.DefinedCombiner() as own, _, values):
                with np.errstate(all="ignore"):
                    _check(own, values, block.span)


def _check(own: ir.DefinedCombiner, values: tuple[ir.Expr, ...], at: Span | None) -> None:
    join, random = defined(own, _nothing()), Random(0)
    none = tuple(scalar(c.value, c.dtype) for c in own.identity)

    def term() -> Values:
        return tuple(expression(_drawn(v, random), _nothing())() for v in values)

    for _ in range(TRIALS):
        x, y, z = (reduce(join, [term() for _ in range(random.randint(1, 3))]) for _ in range(3))
        _require(own, "has no neutral identity", (none, x), x, join(none, x), at)
        _require(own, "does not commute", (x, y), join(x, y), join(y, x), at)
        both = join(join(x, y), z), join(x, join(y, z))
        _require(own, "is not associative", (x, y, z), *both, at)


def _drawn(expr: ir.Expr, random: Random) -> ir.Expr:
    """The expression, with a number for each variable, element and call of an external."""

    def go(node: Node) -> Node:
        match node:
            case ir.Var(dtype=DType.INT64):  # an index or a size
                return ir.Const(random.randrange(6), DType.INT64)
            case ir.Var(dtype=dtype) | ir.Load(dtype=dtype):
                return ir.Const(_number(dtype, random), dtype)
            case ir.Call(ir.External(result=dtype)):
                return ir.Const(_number(dtype, random), dtype)
            case _:
                return map_children(node, go)

    return cast(ir.Expr, go(expr))


def _number(dtype: DType, random: Random) -> bool | int | float | complex:
    match dtype.kind:
        case Kind.BOOL:
            return random.random() < 0.5
        case Kind.UNSIGNED:
            return random.randrange(6)
        case Kind.SIGNED:
            return random.randrange(-3, 6)
        case Kind.FLOAT:
            return random.choice((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 3.0))
        case Kind.COMPLEX:
            return complex(random.randrange(-2, 3), random.randrange(-2, 3))
        case kind:
            assert_never(kind)


def _require(
    own: ir.DefinedCombiner,
    fault: str,
    given: tuple[Values, ...],
    one: Values,
    other: Values,
    span: Span | None,
) -> None:
    if all(_same(a, b, dtype) for a, b, dtype in zip(one, other, own.dtypes, strict=True)):
        return
    raise SpecError(
        f"'{own.name}' {fault}: {' and '.join(_text(own, v) for v in given)} give"
        f" {_text(own, one)} in one order, {_text(own, other)} in another",
        span,
        "a reduction is taken apart; where order matters, write a 'for'",
    )


def _same(a: Any, b: Any, dtype: DType) -> bool:
    if dtype.kind not in (Kind.FLOAT, Kind.COMPLEX):
        return bool(a == b)
    near = 2.0**-8 if dtype.bits == 16 else 1e-4 if dtype.bits == 32 else 1e-9
    return bool(np.isclose(a, b, rtol=near, atol=near, equal_nan=True))


def _text(own: ir.DefinedCombiner, values: Values) -> str:
    pairs = zip(own.parts, values, strict=True)
    return f"({', '.join(f'{part}={value:g}' for part, value in pairs)})"
