"""Local names: values that have a name, written out where the statements after them use it.

Input: the statements of a body. Output: the statements without the definitions of local names, and
their values in place of the names. Invariant: what is written out has the value that it had where
the name was defined, since no statement between writes what it reads; and it is of bounded size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never, final

from ...errors import Span, SpecError, Use
from ..syntax import nodes as syntax
from ..syntax.depth import check_depth

MAX_PARTS = 4096


@final
@dataclass(frozen=True, slots=True)
class _Local:
    """reads: the arrays in its value. size: how many parts that has. written: an array of these
    that is written after the definition, perhaps in an earlier iteration.
    """

    value: syntax.Expr
    span: Span
    reads: frozenset[str]
    size: int
    written: str = ""


_Locals = Mapping[str, _Local]


@final
@dataclass(frozen=True, slots=True)
class _Body:
    """declared: all names that mean something outside of the body. assigned: those on the left of
    statements. used: gets the local names that are used.
    """

    declared: frozenset[str]
    assigned: frozenset[str]
    used: set[str] = field(default_factory=set)


def written_out(
    statements: tuple[syntax.Statement, ...], declared: Iterable[str]
) -> tuple[syntax.Statement, ...]:
    """The statements, with no local names. declared: what the spec names. Raises SpecError."""
    body = _Body(frozenset(declared), _written(statements))
    return _block(statements, frozenset(), {}, body)


def _written(statements: Iterable[syntax.Statement]) -> frozenset[str]:
    """What is on the left in the statements."""
    assigned = (a for statement in statements for a in syntax.assignments(statement))
    return frozenset(target.array for a in assigned for target in a.targets)


def _block(
    statements: tuple[syntax.Statement, ...],
    indices: frozenset[str],
    local: _Locals,
    body: _Body,
) -> tuple[syntax.Statement, ...]:
    """Statements one after another. indices: of the `for`s around them."""
    new: list[syntax.Statement] = []
    own: dict[str, Span] = {}
    for statement in statements:
        match statement:
            case syntax.Assign(target, _, value):
                _check_targets(statement, local)
                value = _expr(value, local, body)
                if _is_local(statement, value, indices, body):
                    local = {**local, target.array: _local(value, target)}
                    own[target.array] = target.span
                    continue
                targets = tuple(_element(t, local, body) for t in statement.targets)
                new.append(replace(statement, target=targets[0], value=value, others=targets[1:]))
            case syntax.For(over, inner):
                within = _after(local, _written(inner))  # in an earlier iteration
                over = _range(over, local, body)
                inner = _block(inner, indices | {over.index}, within, body)
                new.append(replace(statement, over=over, body=inner))
            case syntax.While(over, condition, inner):
                within = _after(local, _written(inner))  # in an earlier iteration
                over = _range(over, local, body)
                condition = _expr(condition, within, body)
                inner = _block(inner, indices | {over.index}, within, body)
                new.append(replace(statement, over=over, condition=condition, body=inner))
            case syntax.If(condition, inner):
                condition = _expr(condition, local, body)
                inner = _block(inner, indices, local, body)
                new.append(replace(statement, condition=condition, body=inner))
            case _:
                assert_never(statement)
        local = _after(local, _written([statement]))
    for name, span in own.items():
        if name not in body.used:
            raise SpecError(f"nothing uses the local name '{name}'", span)
    return tuple(new)


def _is_local(
    statement: syntax.Assign, value: syntax.Expr, indices: frozenset[str], body: _Body
) -> bool:
    """Whether a statement defines a local name, and no array without axes: its value then has an
    index that nothing around it gives a range. A reduction has a block, and so is an array's.
    """
    target = statement.target
    known = body.declared | body.assigned | indices
    return (
        not target.indices
        and not statement.others
        and statement.op is None
        and target.array not in body.declared
        and not syntax.names(value) <= known
        and not any(isinstance(part, syntax.Fold) for part in syntax.descend(value))
    )


def _local(value: syntax.Expr, target: syntax.Element) -> _Local:
    parts = syntax.descend(value)
    reads = {part.array for part in parts if isinstance(part, syntax.Element)}
    return _Local(value, target.span, frozenset(reads | syntax.names(value)), len(parts))


def _after(local: _Locals, written: frozenset[str]) -> _Locals:
    """The local names after statements that write these arrays."""
    return {
        name: replace(each, written=each.written or min(each.reads & written, default=""))
        for name, each in local.items()
    }


def _check_targets(statement: syntax.Assign, local: _Locals) -> None:
    for target in statement.targets:
        if target.array in local:
            line = local[target.array].span.line
            found = f"'{target.array}' is a local name already, in line {line}"
            raise SpecError(found, target.span, "choose another name")


# ---------------------------------------------------------------- uses


def _expr(expr: syntax.Expr, local: _Locals, body: _Body) -> syntax.Expr:
    """The expression of a statement, written out."""
    used = [part for part in syntax.descend(expr) if _names(part) in local]
    if not used:
        return expr
    size = len(syntax.descend(expr)) + sum(local[_names(part)].size for part in used)
    if size > MAX_PARTS:
        found = f"with local names written out, this has more than {MAX_PARTS} parts"
        raise SpecError(found, expr.span, "define a part of it as an array of its own")
    return check_depth(_substituted(expr, local, body))


def _names(part: syntax.Expr) -> str:
    match part:
        case syntax.Name(name) | syntax.Element(name):
            return name
        case _:
            return ""


def _substituted(expr: syntax.Expr, local: _Locals, body: _Body) -> syntax.Expr:
    match expr:
        case syntax.Name(name) if name in local:
            return _use(expr, local[name], body)
        case syntax.Element(name) if name in local:
            found = f"'{name}' is a local name: it has no axes"
            raise SpecError(found, expr.span, f"write {name}")
        case syntax.Fold(_, value, over, condition):
            return replace(
                expr,
                value=_substituted(value, local, body),
                over=tuple(_range(r, local, body) for r in over),
                condition=None if condition is None else _substituted(condition, local, body),
            )
        case _:
            parts = tuple(_substituted(part, local, body) for part in syntax.parts(expr))
            return syntax.with_parts(expr, parts)


def _use(name: syntax.Name, found: _Local, body: _Body) -> syntax.Expr:
    """The value of a local name, whose places know where it is used."""
    if found.written:
        written = f"'{name.name}' reads '{found.written}', which is written after its definition"
        hint = f"define '{name.name}' after that, or as an array with axes, which keeps its values"
        raise SpecError(written, name.span, hint)
    body.used.add(name.name)
    return _placed(found.value, Use("local name", name.name, (), name.span))


def _placed(expr: syntax.Expr, use: Use) -> syntax.Expr:
    parts = tuple(_placed(part, use) for part in syntax.parts(expr))
    return replace(syntax.with_parts(expr, parts), span=expr.span.used_in(use))


def _element(target: syntax.Element, local: _Locals, body: _Body) -> syntax.Element:
    return replace(target, indices=tuple(_expr(i, local, body) for i in target.indices))


def _range(over: syntax.Range, local: _Locals, body: _Body) -> syntax.Range:
    _check_index(over, local)
    lower, upper = (_expr(bound, local, body) for bound in (over.lower, over.upper))
    return replace(over, lower=lower, upper=upper)


def _check_index(over: syntax.Range, local: _Locals) -> None:
    if over.index in local:
        found = f"'{over.index}' already has a meaning here"
        raise SpecError(found, over.span, "give the index a name of its own")
