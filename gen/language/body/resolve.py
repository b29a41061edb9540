"""Statements with every name, range and shape found: the program that `build` gives types to.

Input: the syntax tree and what the spec declares. Output: a Program. Invariant: what this accepts,
`build` refuses only for its element types.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from ...errors import SpecError
from ...ir import algebra
from ...ir import nodes as ir
from ...ir.index.linear import constant
from ...ir.nodes import BinaryOp, Combiner, UnaryOp
from .. import yaml
from ..syntax import hints
from ..syntax import nodes as syntax
from ..syntax.grammar import CONSTANTS, RESERVED
from .guards import with_guards
from .hoist import check_combines, check_targets, fold_definition, hoist
from .indices import condition_expr, cover, extent, index_expr
from .program import Definition, For, Part, Program, Range, Temporary
from .scope import Declared, Known, check_agrees, check_indices, enter, range_of, unused

_UPDATES = {
    BinaryOp.ADD: Combiner.SUM,
    BinaryOp.SUB: Combiner.SUM,
    BinaryOp.MUL: Combiner.PROD,
}
_OF_AT_LEAST_ONE = frozenset({Combiner.MIN, Combiner.MAX, Combiner.ARGMIN, Combiner.ARGMAX})


def resolve(statements: tuple[syntax.Statement, ...], declared: Declared) -> Program:
    """The program of a body. Raises SpecError."""
    readable = frozenset(a for a, i in declared.intents.items() if i is not ir.Intent.OUT)
    start = Known(declared, declared.shapes, readable)
    parts, end = _statements(with_guards(statements, declared), start)
    defined = {
        element.array: d.span
        for d in reversed(list(definitions(parts)))
        for element in d.targets
        if element.array not in declared.intents
    }
    temporaries = tuple(
        Temporary(name, end.shapes[name], span) for name, span in reversed(list(defined.items()))
    )
    return Program(parts, temporaries, _requires(parts, declared.dims))


def definitions(parts: tuple[Part, ...]) -> Iterator[Definition]:
    """The definitions inside, in order."""
    for part in parts:
        match part:
            case Definition():
                yield part
            case For(_, body):
                yield from definitions(body)
            case _:
                assert_never(part)


def _requires(parts: tuple[Part, ...], dims: tuple[str, ...]) -> tuple[str, ...]:
    """Dims over all of which a reduction without an identity runs."""
    found = {
        over.upper.name
        for d in definitions(parts)
        if d.combiner in _OF_AT_LEAST_ONE
        for over in d.loops
        if over.index in d.reduction and over.lower == algebra.index(0)
        if isinstance(over.upper, ir.Var)
    }
    return tuple(dim for dim in dims if dim in found)


# ---------------------------------------------------------------- statements


def _statements(
    statements: tuple[syntax.Statement, ...], scope: Known
) -> tuple[tuple[Part, ...], Known]:
    """The parts, and the scope after them (of the same indices and conditions)."""
    parts: tuple[Part, ...] = ()
    for statement in statements:
        match statement:
            case syntax.Assign():
                new, scope = _assign(statement, scope)
                parts += new
            case syntax.For(over, body):
                new, inner = _statements(body, _within(statement, scope))
                parts += (For(range_of(over, scope), new),)
                scope = replace(
                    scope, shapes=inner.shapes, readable=inner.readable, blocks=inner.blocks
                )
            case syntax.If(condition, body):
                test = condition_expr(condition, scope.integers())
                new, inner = _statements(body, replace(scope, conditions=(*scope.conditions, test)))
                scope = replace(inner, conditions=scope.conditions)
                parts += new
            case syntax.While():
                raise AssertionError("`leaving` has written it out")
            case _:
                assert_never(statement)
    return parts, scope


def _within(statement: syntax.For, scope: Known) -> Known:
    """The scope inside a `for`."""
    inside = syntax.assignments(statement)
    written = frozenset(target.array for a in inside for target in a.targets)
    used = Counter(array for a in inside for array in _used(a))
    kept = {**scope.kept, statement.over.index: frozenset(a for a in written if used[a] > 1)}
    return replace(enter(statement.over, scope), assigned=scope.assigned | written, kept=kept)


def _used(statement: syntax.Assign) -> frozenset[str]:
    """Names of all that the statement reads or writes."""
    exprs = (*statement.targets, statement.value, statement.guard)
    parts = [part for e in exprs if e is not None for part in syntax.descend(e)]
    elements = frozenset(part.array for part in parts if isinstance(part, syntax.Element))
    return elements.union(part.name for part in parts if isinstance(part, syntax.Name))


def _assign(statement: syntax.Assign, scope: Known) -> tuple[tuple[Part, ...], Known]:
    target, array = statement.target, statement.target.array
    for each in statement.targets:
        _check_target(each, scope)
    _check_others(statement)
    _check_kept(statement, scope)
    values = [e for e in (statement.value, statement.guard) if e is not None]
    read = [p for v in values for p in syntax.descend(v) if isinstance(p, syntax.Element)]
    targets = scope.assigned.intersection(each.array for each in statement.targets)
    own = [part for part in read if part.array in targets]
    for part in read:
        if part not in own:
            _check_readable(part.array, part, scope, statement.targets)
            _check_rank(part, scope.shapes[part.array])
    implicit = _implicit(statement, scope)
    inner = replace(scope, indices=(*scope.indices, *implicit))
    indices = tuple(index_expr(index, inner.integers()) for index in target.indices)
    for each in statement.targets:
        scope = _declare(each, indices, inner, scope)
    for part in own:
        _check_rank(part, scope.shapes[part.array])
    check_indices(target, values, inner)
    for value in values:
        _check_value(value, replace(inner, shapes=scope.shapes))
    if statement.op is not None and array not in scope.readable:
        raise SpecError(f"'{array}' is updated before it is defined", target.span)
    _check_order(statement, implicit, scope)
    value, before, scope = hoist(statement, implicit, scope)
    defined, scope = _definition(statement, value, implicit, scope)
    return (*before, defined), scope.defines(defined)


def _check_target(target: syntax.Element, scope: Known) -> None:
    array, declared = target.array, scope.declared
    if array in declared.dims or array in declared.scalars or array in RESERVED:
        raise SpecError(f"'{array}' is not an array", target.span, "choose another name")
    if declared.intents.get(array) is ir.Intent.IN:
        raise SpecError(
            f"'{array}' is an input and cannot be written",
            target.span,
            "declare it with intent: out or inout",
        )
    if array in scope.shapes:
        _check_rank(target, scope.shapes[array])


def _check_others(statement: syntax.Assign) -> None:
    """Several targets are elements at one place of different arrays."""
    seen = {statement.target.array}
    for other in statement.others:
        if other.array in seen:
            raise SpecError(f"'{other.array}' is a target twice", other.span)
        seen.add(other.array)
        if other.indices != statement.target.indices:
            raise SpecError(
                f"'{other.array}' has other indices than '{statement.target.array}'",
                other.span,
                "the targets of one reduction have the same indices",
            )


def _check_kept(statement: syntax.Assign, scope: Known) -> None:
    match statement.value:
        case syntax.Conditional(_, _, syntax.Element() as kept) if kept == statement.target:
            if kept.array not in scope.readable:
                raise SpecError(
                    f"'{kept.array}' keeps what it held where the condition does not hold, and"
                    " holds nothing yet",
                    statement.target.span,
                    "define it first, or declare it with intent: inout",
                )


def _check_rank(element: syntax.Element, shape: tuple[ir.Expr, ...]) -> None:
    if len(element.indices) != len(shape):
        axes = f"{len(shape)} ax{'is' if len(shape) == 1 else 'es'}"
        got = f"{len(element.indices)} ind{'ex' if len(element.indices) == 1 else 'ices'}"
        raise SpecError(f"'{element.array}' has {axes} and is given {got}", element.span)


def _check_value(expr: syntax.Expr, scope: Known) -> None:
    """Every name known, and indices of whole dims on axes of that size."""
    match expr:
        case syntax.Name(name):
            known = {*scope.integers(), *scope.declared.scalars, *CONSTANTS}
            if name not in known and not _is_scalar_array(name, expr, scope):
                array_like = {n for n in scope.readable if not scope.shapes.get(n)}
                raise SpecError(
                    f"unknown name '{name}'",
                    expr.span,
                    yaml.hint(name, known | array_like)
                    or "an index must be on the left, in a 'for' or in a reduction",
                )
        case syntax.Element(_, indices):
            _check_whole(expr, scope)
            for index in indices:
                _check_value(index, scope)
        case syntax.Fold(_, value, over, condition, guard):
            inner = scope
            for r in over:
                inner = enter(r, inner)
            for part in (value, guard):
                if part is not None:
                    _check_value(part, inner)
            if condition is not None:
                condition_expr(condition, inner.integers())
        case _:
            for part in syntax.parts(expr):
                _check_value(part, scope)


def _is_scalar_array(name: str, expr: syntax.Name, scope: Known) -> bool:
    if name not in scope.shapes:
        return False
    _check_readable(name, expr, scope)
    _check_rank(syntax.Element(name, (), span=expr.span), scope.shapes[name])
    return True


def _check_readable(
    array: str, expr: syntax.Expr, scope: Known, targets: tuple[syntax.Element, ...] = ()
) -> None:
    if array in scope.readable or (array in scope.assigned and array in scope.shapes):
        return  # of an array that a `for` around it defines, the prover knows which iteration did
    if array in scope.declared.arrays:
        shape = "give its shape under 'temporaries'" if array in scope.assigned else None
        hint = shape or hints.undefined(targets, expr)
        raise SpecError(f"'{array}' is read before it is defined", expr.span, hint)
    raise SpecError(f"unknown array '{array}'", expr.span, yaml.hint(array, scope.declared.arrays))


def _check_whole(element: syntax.Element, scope: Known) -> None:
    """`for j in n` says that j indexes axes of size n."""
    ranges = {r.index: r.upper for r in scope.indices if r.index in scope.whole}
    for axis, index in enumerate(element.indices):
        if isinstance(index, syntax.Name) and index.name in ranges:
            size = scope.shapes[element.array][axis]
            check_agrees(index, ranges[index.name], size, element.array, axis, scope)


# ---------------------------------------------------------------- implicit indices


def _implicit(statement: syntax.Assign, scope: Known) -> tuple[Range, ...]:
    """The ranges of the indices that only the left side introduces, in their order there."""
    known = {*scope.integers(), *scope.declared.scalars, *scope.declared.arrays, *RESERVED}
    names = {
        part.name: part
        for index in statement.target.indices
        for part in syntax.descend(index)
        if isinstance(part, syntax.Name) and part.name not in known
    }
    return tuple(_implicit_range(name, statement, scope) for name in names.values())


def _implicit_range(name: syntax.Name, statement: syntax.Assign, scope: Known) -> Range:
    elements = [
        e
        for e in (*statement.targets, *syntax.descend(statement.value))
        if isinstance(e, syntax.Element) and e.array in scope.shapes
    ]
    uses = [
        (index, scope.shapes[e.array][axis], e.array, axis)
        for e in elements
        for axis, index in enumerate(e.indices)
        if axis < len(scope.shapes[e.array]) and index == name and isinstance(index, syntax.Name)
    ]
    if not uses:
        raise SpecError(
            f"cannot tell what index '{name.name}' runs over",
            name.span,
            f"write 'for {name.name} in range(...):' around the statement",
        )
    size = uses[0][1]
    for use in uses[1:]:
        check_agrees(use[0], size, *use[1:], scope)
    return Range(name.name, algebra.index(0), size, name.span)


def _check_order(statement: syntax.Assign, implicit: tuple[Range, ...], scope: Known) -> None:
    """Implicit indices have no order: a read of another point must be of another explicit part."""
    unordered = {r.index for r in implicit}
    defined = {target.array for target in statement.targets}
    names = scope.integers()
    for element in syntax.descend(statement.value):
        if not isinstance(element, syntax.Element) or element.array not in defined:
            continue
        pairs = list(zip(statement.target.indices, element.indices, strict=True))
        itself = all(a == b for a, b in pairs if syntax.names(a) & unordered)
        apart = any(
            constant(algebra.sub(index_expr(a, names), index_expr(b, names))) not in (None, 0)
            for a, b in pairs
            if (syntax.names(a) | syntax.names(b)) <= names and _is_plain(b)
        )
        if unordered and not itself and not apart:
            index = min(unordered)
            raise SpecError(
                f"'{element.array}' is read at another point than the one defined, and index"
                f" '{index}' has no order",
                element.span,
                f"write 'for {index} in range(...):' around the statement",
            )


def _is_plain(expr: syntax.Expr) -> bool:
    return all(
        isinstance(part, syntax.Name | syntax.Literal | syntax.Binary)
        for part in syntax.descend(expr)
    )


# ---------------------------------------------------------------- definitions


def _declare(
    target: syntax.Element, indices: tuple[ir.Expr, ...], inner: Known, scope: Known
) -> Known:
    """The scope with the shape that its definition gives a temporary, unless it is declared."""
    array = target.array
    if array in scope.declared.shapes:
        return scope
    ranges = {r.index: r for r in inner.indices}
    sizes = scope.declared.sizes
    shape: list[ir.Expr] = []
    for axis, index in enumerate(indices):
        size = extent(index, ranges, sizes)
        if size is None:
            raise _unsized(f"axis {axis} of '{array}' from this index", target.indices[axis])
        known = scope.shapes[array][axis] if array in scope.shapes else size
        covering = cover(known, size, sizes)
        if covering is None:
            what = f"axis {axis} of '{array}': too many sizes may be the largest"
            raise _unsized(what, target.indices[axis])
        shape.append(covering)
    return replace(scope, shapes={**scope.shapes, array: tuple(shape)})


def _unsized(what: str, index: syntax.Expr) -> SpecError:
    hint = "give its shape under 'temporaries'"
    return SpecError(f"cannot tell the size of {what}", index.span, hint)


def _definition(
    statement: syntax.Assign, value: syntax.Expr, implicit: tuple[Range, ...], scope: Known
) -> tuple[Definition, Known]:
    target, array = statement.target, statement.target.array
    block = unused(array, (scope.names() - {array}) | scope.blocks)
    if isinstance(value, syntax.Fold):
        return fold_definition(block, target, value, implicit, scope, statement.others)
    check_targets(1, len(statement.targets), value.span)
    on_the_left = {name for index in target.indices for name in syntax.names(index)}
    indices = {r.index for r in (*scope.indices, *implicit)}
    indices -= {index for index, arrays in scope.kept.items() if array in arrays}
    combined = frozenset(indices - on_the_left)
    updates = statement.op in _UPDATES
    if updates and (combined or statement.guard is not None):
        check_combines((target,), scope)
    if statement.op is not None and updates and array not in scope.declared.storage:
        if statement.op is BinaryOp.SUB:
            value = syntax.Unary(UnaryOp.NEG, value, span=value.span)
        definition = Definition(
            block, target, value, implicit, combined,
            _UPDATES[statement.op], conditions=scope.conditions, guard=statement.guard,
            span=statement.span,
        )  # fmt: skip
        return definition, scope
    if statement.op is not None:
        value = syntax.Binary(statement.op, target, value, span=statement.span)
    definition = Definition(
        block, target, value, implicit, frozenset(), conditions=scope.conditions,
        span=statement.span,
    )  # fmt: skip
    return definition, scope
