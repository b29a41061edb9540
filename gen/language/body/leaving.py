"""Loops that end early, said as loops whose iterations change nothing once they are to end.

Input: the statements of a body. Output: statements without `while`. Of

    while t in range(limit) and change > tolerance: body

this makes a flag that stays 0 once it is, and a `for` of which what it does is under the flag:

    going = int32(1)
    for t in range(limit):
        going = int32(going != 0 and change > tolerance)
        if going != 0: body

So the loop means what other loops on data do, and nothing after this knows that it may end early,
but for what writes its code (`lower.leaving`). The flag has an axis for each index of the `for`s
around that the condition names. What only the iterations use, and no iteration needs from the one
before, is not under it: temporaries that all stand inside the `while`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never, final

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir.nodes import BinaryOp
from ..syntax import nodes as syntax
from .scope import unused

FLAG = "going"


@final
@dataclass(frozen=True, slots=True)
class _Within:
    """Where a statement stands. indices: of the `for`s around, outermost first. held: arrays that
    hold values there. flag: that of the `while` around, and which arrays it leaves alone.
    """

    indices: tuple[str, ...]
    held: frozenset[str]
    flag: syntax.Element | None = None
    alone: frozenset[str] = frozenset()


@final
@dataclass(slots=True)
class _Flags:
    """arguments: their names. taken: the names of all that there is; those of flags are added.
    uses: of each array, how often the body has it.
    """

    arguments: Collection[str]
    taken: set[str]
    uses: Mapping[str, int]


def left_early(
    statements: tuple[syntax.Statement, ...],
    intents: Mapping[str, ir.Intent],
    declared: Collection[str],
) -> tuple[syntax.Statement, ...]:
    """The statements. intents: of the arguments; declared: what the spec names. Raises SpecError
    where an array may be left without a value.
    """
    uses = _uses(statements)
    held = frozenset(a for a, intent in intents.items() if intent is not ir.Intent.OUT)
    names = _Flags(intents, {*declared, *uses, *_indices(statements)}, uses)
    return tuple(_all(statements, _Within((), held), names))


def _all(
    statements: tuple[syntax.Statement, ...], place: _Within, names: _Flags
) -> Iterator[syntax.Statement]:
    for statement in statements:
        yield from _statement(statement, place, names)
        place = replace(place, held=place.held | _written((statement,)))


def _statement(
    statement: syntax.Statement, place: _Within, names: _Flags
) -> Iterator[syntax.Statement]:
    match statement:
        case syntax.Assign():
            yield _masked(statement, place)
        case syntax.For(over, body):
            inner = replace(place, indices=(*place.indices, over.index))
            yield replace(statement, body=tuple(_all(body, inner, names)))
        case syntax.If(_, body):
            yield replace(statement, body=tuple(_all(body, place, names)))
        case syntax.While():
            yield from _while(statement, place, names)
        case _:
            assert_never(statement)


def _while(statement: syntax.While, place: _Within, names: _Flags) -> Iterator[syntax.Statement]:
    over, condition, span = statement.over, statement.condition, statement.condition.span
    name = unused(FLAG, names.taken)
    names.taken.add(name)
    named = syntax.names(condition)
    axes = tuple(syntax.Name(i, span=span) for i in place.indices if i in named)
    flag = syntax.Element(name, axes, span=span)
    start: syntax.Expr = syntax.Literal(1, span=span) if place.flag is None else place.flag
    yield syntax.Assign(flag, None, _integer(start, span), span=span)
    goes_on = syntax.Binary(BinaryOp.AND, _on(flag), condition, span=span)
    test = syntax.Assign(flag, None, _integer(goes_on, span), span=span)
    inside = _uses((statement,))
    alone = {a for a, k in inside.items() if k == names.uses[a] and a not in names.arguments}
    own = replace(
        place,
        indices=(*place.indices, over.index),
        flag=flag,
        alone=frozenset(alone),
    )
    body = (test, *_all(statement.body, own, names))
    yield syntax.For(over, body, span=statement.span)


def _masked(statement: syntax.Assign, place: _Within) -> syntax.Statement:
    """The statement where the `while` around it goes on."""
    if place.flag is None or all(t.array in place.alone for t in statement.targets):
        return statement
    if statement.others:
        raise SpecError(
            "a statement with several targets changes what is used outside of its 'while'",
            statement.span,
            "give its values to temporaries, and these to the arrays, one by one",
        )
    target = statement.target
    if target.array not in place.held:
        raise SpecError(
            f"'{target.array}' holds nothing before this 'while', which may end at once",
            target.span,
            "define it before the loop, or declare it with intent: inout",
        )
    return syntax.If(_on(place.flag), (statement,), span=statement.span)


def _on(flag: syntax.Element) -> syntax.Expr:
    zero = syntax.Literal(0, span=flag.span)
    return syntax.Binary(BinaryOp.NE, flag, zero, span=flag.span)


def _integer(value: syntax.Expr, span: Span) -> syntax.Expr:
    return syntax.Apply("int32", (value,), span=span)


# ---------------------------------------------------------------- names


def _written(statements: tuple[syntax.Statement, ...]) -> frozenset[str]:
    assigned = (a for statement in statements for a in syntax.assignments(statement))
    return frozenset(target.array for a in assigned for target in a.targets)


def _uses(statements: tuple[syntax.Statement, ...]) -> dict[str, int]:
    """How often each name stands in the statements."""
    found: dict[str, int] = {}
    for expr in _expressions(statements):
        for part in syntax.descend(expr):
            match part:
                case syntax.Name(name) | syntax.Element(name):
                    found[name] = found.get(name, 0) + 1
                case _:
                    pass
    return found


def _expressions(statements: tuple[syntax.Statement, ...]) -> Iterator[syntax.Expr]:
    for statement in statements:
        match statement:
            case syntax.Assign():
                yield from (*statement.targets, statement.value)
                yield from () if statement.guard is None else (statement.guard,)
            case syntax.For(over, body):
                yield from (over.lower, over.upper, *_expressions(body))
            case syntax.If(condition, body):
                yield from (condition, *_expressions(body))
            case syntax.While(over, condition, body):
                yield from (over.lower, over.upper, condition, *_expressions(body))
            case _:
                assert_never(statement)


def _indices(statements: tuple[syntax.Statement, ...]) -> frozenset[str]:
    """The indices that the statements introduce."""
    found: frozenset[str] = frozenset()
    for statement in statements:
        if isinstance(statement, syntax.For | syntax.While):
            found |= {statement.over.index}
        if not isinstance(statement, syntax.Assign):
            found |= _indices(statement.body)
    return found
