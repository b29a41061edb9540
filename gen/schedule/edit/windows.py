"""The window of a buffer that the iterations of a loop look at, and how it moves.

Input: what an iteration of a loop reads of a buffer. Output: the window, where it moves along one
axis by a constant step an iteration, and the buffer's accesses as places of it; else the reason why
it does not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, final

from ...ir import nodes as ir
from ...ir.algebra import add, index, mod, sub
from ...ir.index.bounds import highest, lowest, normal, sides
from ...ir.index.linear import constant, linear
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import accessed, map_children, variables
from .new_loops import Interval, Region
from .tree import CannotApply, ranges_of, update_blocks

N = TypeVar("N", bound=ir.Node)


@final
@dataclass(frozen=True, slots=True)
class Window:
    """What one iteration reads: `size` places from `first` on, along `axis`, `step` further than
    the iteration before (backwards where that is negative). first: in the variables of the loops
    around, the loop's own too.
    """

    axis: int
    first: ir.Expr
    size: int
    step: int
    region: Region

    @property
    def kept(self) -> int:
        """The places that the iteration before reads, too."""
        return self.size - abs(self.step)

    @property
    def new(self) -> Region:
        """The places that no iteration before reads."""
        return self._part(self.kept if self.step > 0 else 0, abs(self.step))

    @property
    def old(self) -> Region:
        """The places that the iteration before reads, too."""
        return self._part(0 if self.step > 0 else -self.step, self.kept)

    def _part(self, begin: int, count: int) -> Region:
        """`count` places along the axis from the window's `begin`-th on."""
        low, high = add(self.first, begin), add(self.first, begin + count - 1)
        own = Interval(normal(low), normal(high))
        return tuple(own if k == self.axis else i for k, i in enumerate(self.region))


def window(buffer: str, region: Region, loop: ir.Loop) -> Window:
    """The window of a buffer of which an iteration of the loop reads the region. Raises CannotApply
    where it does not move as windows do.
    """
    moves = f"what loop '{loop.var}' reads of '{buffer}'"
    for axis, interval in enumerate(region):
        if interval is None:
            raise CannotApply(
                f"what an iteration of loop '{loop.var}' reads of '{buffer}' is not a box: along"
                f" axis {axis}, an index is not affine or comes from data"
            )
    moving = [
        k
        for k, i in enumerate(region)
        if i is not None and loop.var in variables(i.lower) | variables(i.upper)
    ]
    if not moving:
        raise CannotApply(f"every iteration of loop '{loop.var}' reads the same of '{buffer}'")
    if len(moving) > 1:
        raise CannotApply(
            f"{moves} moves along several axes, {' and '.join(map(str, moving))}: the new part is"
            " not a box"
        )
    axis = moving[0]
    interval = region[axis]
    assert interval is not None
    for first in sides(ir.BinaryOp.MAX, normal(interval.lower)):
        for last in sides(ir.BinaryOp.MIN, normal(interval.upper)):
            length = constant(add(sub(last, first), 1))
            step = linear(first).coefficient(loop.var)
            fixed = linear(first).without(ir.Var(loop.var))
            if length is not None and step and loop.var not in fixed.variables():
                return _overlapping(Window(axis, first, length, step, region), buffer, loop)
    lower, upper = (expr_to_text(normal(e)) for e in (interval.lower, interval.upper))
    raise CannotApply(
        f"{moves} along axis {axis}, {lower} to {upper}, is not of constant size, or does not move"
        " by a constant from one iteration to the next"
    )


def _overlapping(found: Window, buffer: str, loop: ir.Loop) -> Window:
    if found.kept > 0:
        return found
    raise CannotApply(
        f"no two iterations of loop '{loop.var}' read the same of '{buffer}': along axis"
        f" {found.axis}, each reads {found.size} and moves by {found.step}"
    )


@final
@dataclass(frozen=True, slots=True)
class Circular:
    """Accesses of a buffer modulo the size of its window: what is new takes the places of what is
    read no more.
    """

    buffer: str
    window: Window

    def shaped(self, buffer: ir.Buffer) -> ir.Buffer:
        return _shaped(buffer, self.buffer, self.window.axis, self.window.size)

    def of(self, stmt: ir.Stmt) -> ir.Stmt:
        size = self.window.size
        return _at(stmt, self.buffer, self.window.axis, lambda place: mod(place, size))


@final
@dataclass(frozen=True, slots=True)
class Halves:
    """Accesses of a buffer as places of its window, in blocks that know where the window starts:
    `start` is the name of an iteration variable for that.

    The buffer has two steps' room: what is new lies in the second, what is kept at the end of the
    first, so that both are where a vector of a step's length is.
    """

    buffer: str
    window: Window
    start: str

    def shaped(self, buffer: ir.Buffer) -> ir.Buffer:
        return _shaped(buffer, self.buffer, self.window.axis, 2 * self.window.step)

    def of(self, stmt: ir.Stmt, start: ir.Expr, around: tuple[ir.Stmt, ...]) -> ir.Stmt:
        """A statement below `around`, where the window starts at `start`."""
        ranges = ranges_of(around)
        low, high = lowest(start, ranges), highest(start, ranges)
        if low is None or high is None:
            raise CannotApply(f"nothing bounds where the window of '{self.buffer}' starts")
        known = ir.IterVar(self.start, normal(low), normal(add(high, 1)))

        def go(block: ir.Block) -> ir.Block:
            if self.buffer not in accessed(block):
                return block
            return replace(
                block,
                iters=(*block.iters, known),
                bindings=(*block.bindings, normal(start)),
                body=self._shifted(block.body, sub(self._room, ir.Var(self.start))),
            )

        return update_blocks(stmt, go)

    def moved_down(self, block: ir.Block) -> ir.Block:
        """A copy of the window, a step lower."""
        assert isinstance(block.body, ir.Store)
        target = self._shifted(block.body.target, index(-self.window.step))
        return replace(block, body=replace(block.body, target=target))

    @property
    def _room(self) -> ir.Expr:
        return index(self.window.step - self.window.kept)

    def _shifted(self, node: N, by: ir.Expr) -> N:
        return _at(node, self.buffer, self.window.axis, lambda place: normal(add(place, by)))


def _shaped(buffer: ir.Buffer, name: str, axis: int, extent: int) -> ir.Buffer:
    if buffer.name != name:
        return buffer
    return replace(buffer, shape=_along(buffer.shape, axis, index(extent)))


def _at(node: N, buffer: str, axis: int, place: Callable[[ir.Expr], ir.Expr]) -> N:
    """The node with the buffer's accesses at another place along the axis."""

    def go(n: Any) -> Any:
        new = map_children(n, go)
        if isinstance(new, ir.Load | ir.Destination) and new.buffer == buffer:
            return replace(new, indices=_along(new.indices, axis, place(new.indices[axis])))
        return new

    moved: N = go(node)
    return moved


def _along(axes: tuple[ir.Expr, ...], axis: int, value: ir.Expr) -> tuple[ir.Expr, ...]:
    return tuple(value if k == axis else e for k, e in enumerate(axes))
