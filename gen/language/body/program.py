"""The body of a spec, resolved: what each statement defines, over which ranges, in which order.

Every index has a range, every reduction is a definition of its own, and every temporary has a
shape; only the element types are left open, which `build` fills in for a choice of dtypes. Bounds
and shapes are INDEX expressions of the IR over dims, scalar parameters and indices, which are
plain variables (`Var("i")`).
"""

from dataclasses import dataclass, field
from typing import assert_never, final

from ...errors import Span
from ...ir import nodes as ir
from ...ir.walk import variables
from ..syntax import nodes as syntax


@final
@dataclass(frozen=True, slots=True)
class Range:
    """lower <= index < upper; from the last to the first where `reverse`."""

    index: str
    lower: ir.Expr
    upper: ir.Expr
    span: Span = field(compare=False, repr=False)
    reverse: bool = False

    def names(self) -> frozenset[str]:
        """The variables of its bounds."""
        return variables(self.lower) | variables(self.upper)


@final
@dataclass(frozen=True, slots=True)
class Definition:
    """One block: `target = value`, or `targets = combine(targets, value)`.

    loops: its own ranges, outermost first, inside those of the `For`s around it.
    reduction: the indices among all of them that are not spatial.
    initialises: whether a combination starts from the identity.
    conditions: over indices and dims; all must hold.
    guard: on data; where it does not hold, the identity is combined.
    others: the targets after the first; of argmin and argmax the extreme value.
    combiner: text names one that the spec defines.
    """

    block: str
    target: syntax.Element
    value: syntax.Expr
    loops: tuple[Range, ...]
    reduction: frozenset[str]
    combiner: ir.Combiner | str | None = None
    initialises: bool = False
    others: tuple[syntax.Element, ...] = ()
    conditions: tuple[ir.Expr, ...] = ()
    guard: syntax.Expr | None = None
    span: Span = field(kw_only=True, compare=False, repr=False)

    @property
    def targets(self) -> tuple[syntax.Element, ...]:
        return (self.target, *self.others)


@final
@dataclass(frozen=True, slots=True)
class For:
    """A loop that the spec writes out, around one or several definitions."""

    over: Range
    body: tuple["Part", ...]


Part = Definition | For


@final
@dataclass(frozen=True, slots=True)
class Temporary:
    name: str
    shape: tuple[ir.Expr, ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Program:
    """temporaries: in order of definition. requires: dims that a max or min runs over."""

    body: tuple[Part, ...]
    temporaries: tuple[Temporary, ...]
    requires: tuple[str, ...]

    def names_in_bounds(self) -> frozenset[str]:
        """Variables in ranges, conditions and shapes."""
        found = {name for t in self.temporaries for size in t.shape for name in variables(size)}
        return frozenset(found).union(*(_bounds(part) for part in self.body))


def _bounds(part: Part) -> frozenset[str]:
    match part:
        case Definition():
            ranges = frozenset[str]().union(*(r.names() for r in part.loops))
            return ranges.union(*(variables(c) for c in part.conditions))
        case For(over, body):
            return over.names().union(*(_bounds(p) for p in body))
        case _:
            assert_never(part)
