"""The syntax tree of the spec's small language, untyped: from `language` to `resolve`.

Operators and combiners are the IR's own; everything else stays as written, with its place.
"""

from dataclasses import dataclass, field, replace
from typing import final

from ...errors import Span
from ...ir.nodes import BinaryOp, Combiner, UnaryOp


@dataclass(frozen=True, slots=True)
class Located:
    span: Span = field(kw_only=True, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Name(Located):
    """An index, dim, scalar parameter, named constant or array without axes."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Literal(Located):
    value: bool | int | float | complex


@final
@dataclass(frozen=True, slots=True)
class Element(Located):
    """`array[indices]`."""

    array: str
    indices: tuple["Expr", ...]


@final
@dataclass(frozen=True, slots=True)
class AsIndex(Located):
    """A value that stands where an index does, and so must be an integer."""

    value: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Unary(Located):
    op: UnaryOp
    operand: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Binary(Located):
    op: BinaryOp
    lhs: "Expr"
    rhs: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Power(Located):
    """`base ** exponent`, a product of `exponent` factors."""

    base: "Expr"
    exponent: int


@final
@dataclass(frozen=True, slots=True)
class Conditional(Located):
    condition: "Expr"
    then: "Expr"
    otherwise: "Expr"


@final
@dataclass(frozen=True, slots=True)
class Apply(Located):
    """A function or a cast of the language; min and max of several values are Binary."""

    function: str
    args: tuple["Expr", ...]


@final
@dataclass(frozen=True, slots=True)
class Group(Located):
    """`(value, value, ...)`: the terms of a reduction that the spec defines."""

    values: tuple["Expr", ...]


@final
@dataclass(frozen=True, slots=True)
class Range(Located):
    """`for index in range(lower, upper)`; `whole` where it was written `for index in upper`,
    `reverse` where it runs from the last to the first: `reversed(range(lower, upper))`.
    """

    index: str
    lower: "Expr"
    upper: "Expr"
    whole: bool = False
    reverse: bool = False


@final
@dataclass(frozen=True, slots=True)
class Fold(Located):
    """`combiner(value for ... if condition)`: a reduction. combiner: the name of one that the spec
    defines is text. guard: what of the condition depends on data, once that is told apart.
    """

    combiner: Combiner | str
    value: "Expr"
    over: tuple[Range, ...]
    condition: "Expr | None" = None
    guard: "Expr | None" = None


Expr = (
    Name | Literal | Element | AsIndex | Unary | Binary | Power | Conditional | Apply | Group | Fold
)


@final
@dataclass(frozen=True, slots=True)
class Assign(Located):
    """`target = value`, or `target op= value`, of an update where `guard` holds. others: the
    targets after the first.
    """

    target: Element
    op: BinaryOp | None
    value: Expr
    guard: Expr | None = None
    others: tuple[Element, ...] = ()

    @property
    def targets(self) -> tuple[Element, ...]:
        return (self.target, *self.others)


@final
@dataclass(frozen=True, slots=True)
class For(Located):
    over: Range
    body: tuple["Statement", ...]


@final
@dataclass(frozen=True, slots=True)
class If(Located):
    condition: Expr
    body: tuple["Statement", ...]


@final
@dataclass(frozen=True, slots=True)
class While(Located):
    """`while index in range(...) and condition`: a `for` that ends before the first iteration in
    which the condition does not hold. `body.leaving` says it with the others.
    """

    over: Range
    condition: Expr
    body: tuple["Statement", ...]


Statement = Assign | For | If | While


def assignments(statement: Statement) -> tuple[Assign, ...]:
    """Those in the statement, in textual order."""
    if isinstance(statement, Assign):
        return (statement,)
    return tuple(a for inner in statement.body for a in assignments(inner))


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside, in textual order; a fold's ranges included."""
    match expr:
        case Name() | Literal():
            return ()
        case Element(_, indices):
            return indices
        case Unary(_, operand) | AsIndex(operand):
            return (operand,)
        case Binary(_, lhs, rhs):
            return (lhs, rhs)
        case Power(base, _):
            return (base,)
        case Conditional(condition, then, otherwise):
            return (condition, then, otherwise)
        case Apply(_, args) | Group(args):
            return args
        case Fold(_, value, over, condition, guard):
            bounds = tuple(bound for r in over for bound in (r.lower, r.upper))
            return (value, *bounds, *(e for e in (condition, guard) if e is not None))


def descend(expr: Expr) -> tuple[Expr, ...]:
    """The expression and all inside it, parents first, in textual order."""
    return (expr, *(inner for part in parts(expr) for inner in descend(part)))


def with_parts(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The expression with other parts; of a fold, whose bounds are fixed, only the value is new."""
    match expr:
        case Name() | Literal():
            return expr
        case Element():
            return replace(expr, indices=new)
        case Unary():
            return replace(expr, operand=new[0])
        case AsIndex():
            return replace(expr, value=new[0])
        case Binary():
            return replace(expr, lhs=new[0], rhs=new[1])
        case Power():
            return replace(expr, base=new[0])
        case Conditional():
            return replace(expr, condition=new[0], then=new[1], otherwise=new[2])
        case Apply():
            return replace(expr, args=new)
        case Group():
            return replace(expr, values=new)
        case Fold():
            return replace(expr, value=new[0])


def names(expr: Expr) -> frozenset[str]:
    """Names that occur, other than of arrays with axes."""
    return frozenset(part.name for part in descend(expr) if isinstance(part, Name))
