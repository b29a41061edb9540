"""What the resolver knows at a place of a body. Immutable: every step returns a new Scope."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import final

from ...errors import SpecError
from ...ir import nodes as ir
from ...ir.nodes import BinaryOp
from ..syntax import hints
from ..syntax import nodes as syntax
from ..syntax.grammar import CONSTANTS, RESERVED
from .indices import index_expr
from .program import Definition, Range
from .sizes import Sizes


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """What the spec says outside its body.

    shapes: of the arguments, and of those temporaries that are declared with one. intents: of the
    arguments. scalars: whether each is an integer. arrays: every array that the spec names,
    temporaries included. sizes: what is known of them. storage: those whose element type only
    stores, for a choice of dtypes.
    """

    dims: tuple[str, ...]
    shapes: Mapping[str, tuple[ir.Expr, ...]]
    intents: Mapping[str, ir.Intent]
    scalars: Mapping[str, bool]
    arrays: frozenset[str]
    sizes: Sizes
    storage: frozenset[str] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class Known:
    """shapes: of all arrays declared or defined so far. readable: arrays that hold values.

    indices: ranges around this place, outermost first; whole: those of them that were written
    `for j in n`. conditions: of the `if`s around it. blocks: names taken. assigned: arrays that the
    `for`s around it define, perhaps in an earlier iteration. kept: for an index, the arrays that
    its `for` updates and uses elsewhere, too, so that its updates keep their order.
    """

    declared: Declared
    shapes: Mapping[str, tuple[ir.Expr, ...]]
    readable: frozenset[str]
    indices: tuple[Range, ...] = ()
    whole: frozenset[str] = frozenset()
    conditions: tuple[ir.Expr, ...] = ()
    blocks: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    kept: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def integers(self) -> frozenset[str]:
        """Names that an index expression may use."""
        scalars = (name for name, integer in self.declared.scalars.items() if integer)
        return frozenset((*self.declared.dims, *scalars, *(r.index for r in self.indices)))

    def names(self) -> frozenset[str]:
        """Names of everything but indices."""
        declared = self.declared
        return frozenset((*declared.dims, *declared.scalars, *declared.arrays, *self.shapes))

    def defines(self, definition: Definition) -> "Known":
        """The scope after a definition; a new array's shape must be known already."""
        written = {target.array for target in definition.targets}
        return replace(
            self, readable=self.readable | written, blocks=self.blocks | {definition.block}
        )

    def with_shape(self, array: str, shape: tuple[ir.Expr, ...]) -> "Known":
        return replace(self, shapes={**self.shapes, array: shape})


def range_of(over: syntax.Range, scope: Known) -> Range:
    """The range that an index runs over. Raises SpecError where its name is taken."""
    taken = scope.names() | RESERVED | {r.index for r in scope.indices}
    if over.index in taken:
        raise SpecError(
            f"'{over.index}' already has a meaning here",
            over.span,
            "give the index a name of its own",
        )
    names = scope.integers()
    return Range(
        over.index,
        index_expr(over.lower, names),
        index_expr(over.upper, names),
        over.span,
        over.reverse,
    )


def enter(over: syntax.Range, scope: Known) -> Known:
    """The scope inside a `for`."""
    return replace(
        scope,
        indices=(*scope.indices, range_of(over, scope)),
        whole=scope.whole | ({over.index} if over.whole else set()),
    )


def unused(name: str, taken: Collection[str]) -> str:
    """`name`, or the first of `name_1`, `name_2`, ... that is not taken."""
    if name not in taken:
        return name
    return next(other for k in count(1) if (other := f"{name}_{k}") not in taken)


def check_indices(target: syntax.Element, values: Collection[syntax.Expr], scope: Known) -> None:
    """Every name in an index known. Raises SpecError."""
    parts = [part for value in values for part in syntax.descend(value)]
    bound = {r.index for part in parts if isinstance(part, syntax.Fold) for r in part.over}
    declared = scope.declared
    known = {*scope.integers(), *declared.scalars, *declared.arrays, *bound}
    for element in parts:
        for index in element.indices if isinstance(element, syntax.Element) else ():
            for part in syntax.descend(index):
                if isinstance(part, syntax.Name) and part.name not in {*known, *CONSTANTS}:
                    hint = hints.unknown_index(target, part.name, known)
                    raise SpecError(f"unknown name '{part.name}'", part.span, hint)


def check_agrees(
    index: syntax.Name, over: ir.Expr, size: ir.Expr, array: str, axis: int, scope: Known
) -> None:
    """Refuses an index that runs over another size than that of an axis that it indexes."""
    if not scope.declared.sizes.same(over, size):
        raise SpecError(
            f"index '{index.name}' runs over {_show(over)} but axis {axis} of '{array}' has"
            f" size {_show(size)}",
            index.span,
            f"write 'for {index.name} in range(...):' if that is meant",
        )


def _show(expr: ir.Expr) -> str:
    match expr:
        case ir.Var(name):
            return name
        case ir.Const(value):
            return str(value)
        case ir.Binary(BinaryOp.MIN | BinaryOp.MAX as op, lhs, rhs):
            return f"{op.value}({_show(lhs)}, {_show(rhs)})"
        case ir.Binary(op, lhs, rhs):
            return f"{_show(lhs)} {op.value} {_show(rhs)}"
        case _:
            return "an expression"
