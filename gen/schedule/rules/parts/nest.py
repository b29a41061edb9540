"""What rules ask of a block: which loops run it, and along which of them memory is walked.

Input: a tree and a block's name. Output: its `Nest`. Only what is written there is looked at: what
a rule makes of it is proved like any recipe.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from ....ir.algebra import conjuncts
from ....ir.index.linear import constant, linear
from ....ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Destination,
    Expr,
    IterKind,
    Kernel,
    Load,
    Loop,
    Node,
    Store,
    Update,
    Var,
)
from ....ir.walk import ancestors, blocks, children, loads, targets, variables
from ....poly.rewrites.narrowed import condition_of
from ...edit.tree import block_named, buffer_named

FEW = 4  # values that are no line


@final
@dataclass(frozen=True, slots=True)
class ArrayAccess:
    """A read or a write of an array. indices: over the block's iteration variables."""

    buffer: str
    indices: tuple[Expr, ...]

    @property
    def variables(self) -> frozenset[str]:
        return frozenset[str]().union(*map(variables, self.indices))

    @property
    def by_data(self) -> frozenset[str]:
        """The variables of which data alone says where they lead."""
        found = (load for index in self.indices for load in loads(index))
        return frozenset[str]().union(*map(variables, found))

    def stride(self, var: str) -> int | None:
        """How many elements further the next value of a variable is, rows being dense: 0, 1, or
        None for any other distance.
        """
        if var not in self.variables:
            return 0
        return 1 if self.step(var) == 1 else None

    def step(self, var: str) -> int | None:
        """The same, whatever the distance; None where it is not along a row, or not even."""
        if var not in self.variables:
            return 0
        *outer, last = self.indices
        return None if any(var in variables(index) for index in outer) else _slope(last, var)

    def apart(self, var: str, row: int) -> int | None:
        """The same from row to row, these being of this length."""
        *outer, last = self.indices
        if not outer or var in variables(last):
            return None
        rows = ArrayAccess(self.buffer, tuple(outer)).step(var)
        return None if rows is None else rows * row


def _outside_of_loads(node: Node) -> frozenset[str]:
    match node:
        case Load():
            return frozenset()
        case Var(name):
            return frozenset({name})
        case _:
            return frozenset[str]().union(*map(_outside_of_loads, children(node)))


def _slope(index: Expr, var: str) -> int | None:
    """How an index grows with a variable, but for where it is held at a bound; None: unevenly."""
    total = 0
    for atom, factor in linear(index).terms.items():
        match atom:
            case Var(name):
                own: int | None = int(name == var)
            case Binary(BinaryOp.MIN | BinaryOp.MAX, lhs, rhs):
                sides = {_slope(lhs, var), _slope(rhs, var)} - {0}
                own = sides.pop() if len(sides) == 1 else None if sides else 0
            case _:
                own = None if var in variables(atom) else 0
        if own is None:
            return None
        total += factor * own
    return total


@final
@dataclass(frozen=True, slots=True)
class Nest:
    """A block and the loops around it, outermost first.

    loop_of: the loop of each iteration variable that has one to itself. shared: the loops that run
    other blocks, too. row: how long the last axis of what it writes is, where that is a number.
    dominant: the read of most variables, of arrays of the most axes.
    """

    block: Block
    loops: tuple[Loop, ...]
    shared: frozenset[str]
    row: int | None = None

    @property
    def name(self) -> str:
        return self.block.name

    @property
    def loop_of(self) -> dict[str, str]:
        pairs = zip(self.block.iters, self.block.bindings, strict=True)
        return {it.name: bound.name for it, bound in pairs if isinstance(bound, Var)}

    def _of_kind(self, kind: IterKind) -> tuple[str, ...]:
        loops = {loop: var for var, loop in self.loop_of.items()}
        kinds = {it.name: it.kind for it in self.block.iters}
        order = [loops[loop.var] for loop in self.loops if loop.var in loops]
        return tuple(var for var in order if kinds[var] is kind)

    @property
    def spatial(self) -> tuple[str, ...]:
        """The iteration variables that are no reduction's, in the order of their loops."""
        return self._of_kind(IterKind.SPATIAL)

    @property
    def reduction(self) -> tuple[str, ...]:
        return self._of_kind(IterKind.REDUCTION)

    @property
    def compared(self) -> frozenset[str]:
        """The variables over which it runs as far as data says: `count[x[i]] += 1` is an update for
        all places, and runs for one.
        """
        return frozenset[str]().union(*map(_outside_of_loads, self._data))

    @property
    def of_data(self) -> frozenset[str]:
        """The variables of what data says: those over which it runs, and those that it is for."""
        return frozenset[str]().union(*map(variables, self._data))

    @property
    def _data(self) -> tuple[Expr, ...]:
        condition = condition_of(self.block)
        return tuple(part for part in conjuncts(condition) if loads(part)) if condition else ()

    @property
    def own(self) -> tuple[Loop, ...]:
        """The loops that run this block alone."""
        return tuple(loop for loop in self.loops if loop.var not in self.shared)

    def size(self, var: str) -> Expr | None:
        """How many values a variable has; None where no call knows: where another loop says it, as
        in triangles, or data.
        """
        loop = next(loop for loop in self.loops if loop.var == self.loop_of[var])
        of_loops = variables(loop.upper) & {other.var for other in self.loops}
        known = constant(loop.lower) == 0 and not of_loops and not loads(loop.upper)
        return loop.upper if known else None

    def few(self, var: str) -> int | None:
        """How many values a variable has, where these are too few for a line."""
        size = self.size(var)
        count = constant(size) if size is not None else None
        return count if count is not None and 1 < count <= FEW else None

    @property
    def writes(self) -> tuple[ArrayAccess, ...]:
        return tuple(map(_access, targets(self.block.body)))

    @property
    def reads(self) -> tuple[ArrayAccess, ...]:
        """What it reads of arrays, each access once, a reduction's own value left out."""
        match self.block.body:
            case Store(_, value):
                found: Iterable[Load] = loads(value)
            case Update(_, _, values):
                found = (load for value in values for load in loads(value))
            case _:
                found = ()
        return tuple(dict.fromkeys(map(_access, found)))

    @property
    def dominant(self) -> ArrayAccess | None:
        return max(self.reads, key=lambda read: len(read.variables), default=None)

    @property
    def inner(self) -> str | None:
        """The spatial variable along which what it writes lies side by side; where that has a few
        values alone, as the parts of `2 * j + p`, the one that goes on where they end; where none
        is, as in `y[2 * j] = ...` or `y[j, 0] = ...`, one along which it lies a few elements apart.
        """
        steps = {var: self.writes[0].step(var) for var in reversed(self.spatial)}
        line = next((var for var, step in steps.items() if step == 1), None)
        if line is None:
            if self.row is not None:
                steps = {v: step or self.writes[0].apart(v, self.row) for v, step in steps.items()}
            return next((var for var, step in steps.items() if 1 < (step or 0) <= FEW), None)
        few = self.few(line)
        return next((var for var, step in steps.items() if few and step == few), line)


def nest_of(kernel: Kernel, name: str) -> Nest:
    """Raises CannotApply where there is no such block."""
    block = block_named(kernel, name)
    around = tuple(n for n in ancestors(kernel.body, block) if isinstance(n, Loop))
    shared = frozenset(loop.var for loop in around if len(blocks(loop)) > 1)
    last = buffer_named(kernel, targets(block.body)[0].buffer).shape[-1:]
    return Nest(block, around, shared, constant(last[0]) if last else None)


def _access(node: Load | Destination) -> ArrayAccess:
    return ArrayAccess(node.buffer, node.indices)
