"""Bounds, positions and conditions that depend on data, said with whole ranges and guards.

Input: the statements of a body. Output: statements in which ranges, the conditions of `if` and of
reductions, and positions on the left are over dims and indices alone, so that the prover knows
all domains exactly; a comparison with what an array holds is a *guard*, under which a value counts.

    for k in range(start[i], start[i + 1]): y[i] += v[k]     all k of v, under two comparisons
    count[x[i]] += 1                                         all places, under x[i] == place
    if x[i] > 0: total[0] += x[i]                            a guard as it stands
    if x[i] > 0: y[i] = x[i]                                 y[i] = x[i] if x[i] > 0 else y[i]

Lowering (`lower.narrowing`) makes the loops as short as the guards say.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce
from typing import assert_never

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir.nodes import BinaryOp
from ..syntax import nodes as syntax
from ..syntax.nodes import (
    AsIndex,
    Assign,
    Binary,
    Conditional,
    Element,
    Expr,
    Fold,
    For,
    If,
    Name,
    Range,
    While,
)
from .scope import Declared, unused

OPAQUE = (BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MOD)
UPDATES = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)


def with_guards(
    statements: tuple[syntax.Statement, ...], declared: Declared
) -> tuple[syntax.Statement, ...]:
    """The statements. Raises SpecError where what depends on data cannot be said so."""
    return tuple(new for s in statements for new in _statement(s, declared))


def _statement(statement: syntax.Statement, declared: Declared) -> Iterator[syntax.Statement]:
    match statement:
        case Assign():
            yield _scattered(replace(statement, value=_folds(statement.value, declared)), declared)
        case For(over, body):
            inner = with_guards(body, declared)
            if not _bounded_by_data(over, declared):
                yield replace(statement, body=inner)
                return
            _check_unchanged(_both(over.lower, over.upper), inner)
            uses = (e for s in inner for a in syntax.assignments(s) for e in (*a.targets, a.value))
            read = tuple(part for e in uses for part in syntax.descend(e))
            whole, tests = _whole(over, read, declared)
            yield For(whole, tuple(_under(s, tests) for s in inner), span=statement.span)
        case If(condition, body):
            domain, guard = _split(condition, declared, {BinaryOp.MUL})
            inner = with_guards(body, declared)
            if guard is not None:
                if not (len(inner) == 1 and isinstance(inner[0], Assign)):
                    _check_unchanged(guard, inner)
                inner = tuple(_under(s, guard) for s in inner)
            yield from inner if domain is None else (If(domain, inner, span=statement.span),)
        case While():
            raise AssertionError("`leaving` has written it out")
        case _:
            assert_never(statement)


def _under(statement: syntax.Statement, tests: Expr) -> syntax.Statement:
    """The statement where the tests hold."""
    match statement:
        case Assign(others=(_, *_)):
            raise SpecError(
                "a statement with several targets stands under a condition on data",
                statement.span,
                "write the condition inside the reduction",
            )
        case Assign(target, op, value):
            if op in UPDATES:
                return replace(statement, guard=_both(tests, statement.guard))
            if op is not None:
                value = Binary(op, target, value, span=statement.span)
            kept = Conditional(tests, value, target, span=statement.span)
            return replace(statement, op=None, value=kept)
        case For() | If():
            return replace(statement, body=tuple(_under(s, tests) for s in statement.body))
        case While():
            raise AssertionError("`leaving` has written it out")
        case _:
            assert_never(statement)


def _scattered(statement: Assign, declared: Declared) -> syntax.Statement:
    """`count[x[i]] += 1` for all places of count, each under a comparison with x[i]."""
    target = statement.target
    found: list[tuple[Name, Expr, ir.Expr]] = []
    indices = list(target.indices)
    for axis, position in enumerate(target.indices):
        if not _reads_data(position, declared):
            continue
        if statement.op not in UPDATES:
            if isinstance(position, Name) and position.name in declared.scalars:
                raise SpecError(
                    f"'{position.name}' is a scalar that is no integer, not an index",
                    position.span,
                    "an index needs a name of its own",
                )
            raise SpecError(
                f"'{target.array}' is assigned at a position that is read from an array",
                position.span,
                "two positions may be the same: only +=, -= and *= say what happens then",
            )
        if any(
            isinstance(e, Element) and e.array == target.array for e in syntax.descend(position)
        ):
            raise SpecError(f"the position depends on '{target.array}' itself", position.span)
        taken = {*syntax.names(target), *syntax.names(statement.value), *declared.arrays}
        name = unused("at", taken | {n.name for n, _, _ in found} | {*declared.dims})
        indices[axis] = Name(name, span=position.span)
        found.append((Name(name, span=position.span), position, _size(target, axis, declared)))
    new: syntax.Statement = replace(statement, target=replace(target, indices=tuple(indices)))
    for place, position, size in reversed(found):
        span = position.span
        here = Binary(BinaryOp.EQ, AsIndex(position, span=span), place, span=span)
        over = Range(place.name, _zero(span), _syntax(size, span), span=span)
        new = For(over, (_under(new, here),), span=statement.span)
    return new


def _folds(expr: Expr, declared: Declared) -> Expr:
    """The expression, its reductions' data in guards."""
    if not isinstance(expr, Fold):
        new = tuple(_folds(part, declared) for part in syntax.parts(expr))
        return syntax.with_parts(expr, new)
    domain, guard = None, None
    if expr.condition is not None:
        domain, guard = _split(expr.condition, declared, OPAQUE)
    value = _folds(expr.value, declared)
    over: tuple[Range, ...] = ()
    for r in expr.over:
        if _bounded_by_data(r, declared):
            r, tests = _whole(r, tuple(syntax.descend(value)), declared)
            guard = _both(tests, guard)
        over = (*over, r)
    return replace(expr, value=value, over=over, condition=domain, guard=guard)


# ---------------------------------------------------------------- ranges


def _bounded_by_data(over: Range, declared: Declared) -> bool:
    return _reads_data(over.lower, declared) or _reads_data(over.upper, declared)


def _whole(over: Range, uses: tuple[Expr, ...], declared: Declared) -> tuple[Range, Expr]:
    """The range of all that the index may be, from the axes that it indexes, and the tests that
    the bounds are.
    """
    for e in uses:
        if isinstance(e, Element) and e.array in declared.shapes:
            for axis, position in enumerate(e.indices):
                if isinstance(position, Name) and position.name == over.index:
                    size = _syntax(_size(e, axis, declared), over.span)
                    break
            else:
                continue
            break
    else:
        raise SpecError(
            f"cannot tell how large index '{over.index}' may become",
            over.span,
            f"write 'for {over.index} in n', over a dim, and the bounds as conditions",
        )
    name = Name(over.index, span=over.span)
    lower = _compared(BinaryOp.LE, over.lower, name, declared)
    upper = _compared(BinaryOp.LT, name, over.upper, declared)
    return replace(over, lower=_zero(over.span), upper=size), _both(lower, upper)


def _compared(op: BinaryOp, a: Expr, b: Expr, declared: Declared) -> Expr:
    lhs, rhs = (AsIndex(e, span=e.span) if _reads_data(e, declared) else e for e in (a, b))
    return Binary(op, lhs, rhs, span=a.span)


def _size(element: Element, axis: int, declared: Declared) -> ir.Expr:
    shape = declared.shapes.get(element.array)
    if shape is None:
        raise SpecError(
            f"cannot tell the size of axis {axis} of '{element.array}'",
            element.span,
            "give its shape under 'temporaries'",
        )
    if axis >= len(shape):
        raise SpecError(f"'{element.array}' has no axis {axis}", element.span)
    return shape[axis]


def _syntax(size: ir.Expr, span: Span) -> Expr:
    """A size as the body would write it."""
    match size:
        case ir.Var(name):
            return Name(name, span=span)
        case ir.Const(int(value)):
            return syntax.Literal(int(value), span=span)
        case ir.Binary(op, lhs, rhs):
            return Binary(op, _syntax(lhs, span), _syntax(rhs, span), span=span)
        case _:
            raise AssertionError("sizes are sums, products, minima and maxima")


def _zero(span: Span) -> Expr:
    return syntax.Literal(0, span=span)


# ---------------------------------------------------------------- conditions


def _reads_data(expr: Expr, declared: Declared) -> bool:
    """Whether it depends on more than dims, indices and integer parameters."""
    data = declared.arrays | {name for name, integer in declared.scalars.items() if not integer}
    return any(
        isinstance(e, Element) or (isinstance(e, Name) and e.name in data)
        for e in syntax.descend(expr)
    )


def _is_opaque(expr: Expr, declared: Declared, of: Collection[BinaryOp]) -> bool:
    """Whether the prover cannot know where a condition on indices holds: it has a product of what
    are no numbers in it, or a quotient or remainder by an integer parameter, which calls give.
    """
    for e in syntax.descend(expr):
        match e:
            case Binary(BinaryOp.MUL as op, lhs, rhs) if op in of:
                if [*syntax.names(lhs)] and [*syntax.names(rhs)]:
                    return True
            case Binary(op, _, rhs) if op in of:
                if not declared.scalars.keys().isdisjoint(syntax.names(rhs)):
                    return True
            case _:
                pass
    return False


def _split(
    condition: Expr, declared: Declared, opaque: Collection[BinaryOp]
) -> tuple[Expr | None, Expr | None]:
    """The conjuncts over dims and indices, and those on data, or by one of the operators on what
    the prover does not know.
    """
    domain: Expr | None = None
    data: Expr | None = None
    for part in _conjuncts(condition):
        if _reads_data(part, declared) or _is_opaque(part, declared, opaque):
            data = _both(data, part)
        else:
            domain = _both(domain, part)
    return domain, data


def _conjuncts(condition: Expr) -> tuple[Expr, ...]:
    match condition:
        case Binary(BinaryOp.AND, lhs, rhs):
            return (*_conjuncts(lhs), *_conjuncts(rhs))
        case _:
            return (condition,)


def _both(a: Expr | None, b: Expr | None) -> Expr:
    parts = [e for e in (a, b) if e is not None]
    return reduce(lambda x, y: Binary(BinaryOp.AND, x, y, span=x.span), parts)


def _check_unchanged(tests: Expr, body: tuple[syntax.Statement, ...]) -> None:
    """What decides whether statements run must hold while they do."""
    read = {
        e.array if isinstance(e, Element) else e.name
        for e in syntax.descend(tests)
        if isinstance(e, Element | Name)
    }
    for statement in body:
        for target in (t for a in syntax.assignments(statement) for t in a.targets):
            if target.array in read:
                raise SpecError(
                    f"'{target.array}' decides whether this runs, and is changed by it",
                    target.span,
                    "keep what decides in an array of its own",
                )
