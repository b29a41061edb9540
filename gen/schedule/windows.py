"""The window of a buffer that the iterations of a loop look at, and how it moves.

Input: a hoisted tree, a loop, and the block inside it that computes the buffer. Output: the window,
where it moves along one axis by a constant step an iteration; else the reason why it does not.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar, final

from ..ir.algebra import add, index, sub
from ..ir.nodes import (
    BinaryOp,
    Block,
    Buffer,
    Expr,
    IterVar,
    Load,
    Loop,
    Node,
    Stmt,
    Store,
    Target,
    Var,
)
from ..ir.walk import accessed, map_children, targets, variables
from ..poly.certificate import Scheduled
from .bounds import highest, linear, lowest, normal, sides
from .edit import CannotApply, ranges_of, update_blocks
from .moving import read_region
from .placing import Interval, Region

N = TypeVar("N", bound=Node)


@final
@dataclass(frozen=True, slots=True)
class Window:
    """What one iteration reads: `size` places from `first` on, along `axis`, of which it is the
    first to read the last `step`. first: in the variables of the loops around, the loop's own too.
    """

    axis: int
    first: Expr
    size: int
    step: int
    region: Region

    @property
    def kept(self) -> int:
        """The places that the iteration before reads, too."""
        return self.size - self.step

    @property
    def new(self) -> Region:
        """The places that no iteration before reads."""
        own = Interval(normal(add(self.first, self.kept)), normal(add(self.first, self.size - 1)))
        return tuple(own if k == self.axis else i for k, i in enumerate(self.region))


def window(state: Scheduled, block: Block, loop: Loop) -> Window:
    """The window of the block's buffer. Raises CannotApply where it is none that reuse_at moves."""
    buffer = targets(block.body)[0].buffer
    region = read_region(state, block, loop)
    if any(interval is None for interval in region):
        raise CannotApply(f"what an iteration of loop '{loop.var}' reads of '{buffer}' is no box")
    moving = [
        k
        for k, i in enumerate(region)
        if i is not None and loop.var in variables(i.lower) | variables(i.upper)
    ]
    if not moving:
        raise CannotApply(f"every iteration of loop '{loop.var}' reads the same of '{buffer}'")
    if len(moving) > 1:
        raise CannotApply(f"what loop '{loop.var}' reads of '{buffer}' moves along several axes")
    axis = moving[0]
    interval = region[axis]
    assert interval is not None
    for first in sides(BinaryOp.MAX, normal(interval.lower)):
        for last in sides(BinaryOp.MIN, normal(interval.upper)):
            size = linear(sub(last, first))
            step = linear(first).terms.get(Var(loop.var), 0)
            fixed = linear(first).without(Var(loop.var))
            if not size.terms and step and loop.var not in variables(fixed.expr()):
                return _checked(Window(axis, first, size.const + 1, step, region), buffer, loop)
    raise CannotApply(
        f"what loop '{loop.var}' reads of '{buffer}' does not move by a constant from one "
        "iteration to the next"
    )


def _checked(found: Window, buffer: str, loop: Loop) -> Window:
    moves = f"what loop '{loop.var}' reads of '{buffer}'"
    if found.step < 0:
        raise CannotApply(f"{moves} moves backwards")
    if found.kept <= 0:
        raise CannotApply(f"no two iterations of loop '{loop.var}' read the same of '{buffer}'")
    if found.kept > found.step:
        raise CannotApply(
            f"{moves} moves by {found.step} of {found.size} places: some are read in more than two "
            "iterations",
            "split the loop: its iterations then move further",
        )
    return found


@final
@dataclass(frozen=True, slots=True)
class View:
    """Accesses of a buffer as places of its window, in blocks that know where the window starts:
    `start` is the name of an iteration variable for that.

    The buffer has two steps' room: what is new lies in the second, what is kept at the end of the
    first, so that both are where a vector of a step's length is.
    """

    buffer: str
    window: Window
    start: str

    def shaped(self, buffer: Buffer) -> Buffer:
        if buffer.name != self.buffer:
            return buffer
        return replace(buffer, shape=self._along(buffer.shape, index(2 * self.window.step)))

    def of(self, stmt: Stmt, start: Expr, around: tuple[Stmt, ...]) -> Stmt:
        """A statement below `around`, where the window starts at `start`."""
        ranges = ranges_of(around)
        low, high = lowest(start, ranges), highest(start, ranges)
        if low is None or high is None:
            raise CannotApply(f"nothing bounds where the window of '{self.buffer}' starts")
        known = IterVar(self.start, normal(low), normal(add(high, 1)))

        def go(block: Block) -> Block:
            if self.buffer not in accessed(block):
                return block
            return replace(
                block,
                iters=(*block.iters, known),
                bindings=(*block.bindings, normal(start)),
                body=self._shifted(block.body, sub(self._room, Var(self.start))),
            )

        return update_blocks(stmt, go)

    def moved_down(self, block: Block) -> Block:
        """A copy of the window, a step lower."""
        assert isinstance(block.body, Store)
        target = self._shifted(block.body.target, index(-self.window.step))
        return replace(block, body=replace(block.body, target=target))

    @property
    def _room(self) -> Expr:
        return index(self.window.step - self.window.kept)

    def _shifted(self, node: N, by: Expr) -> N:
        def go(n: Any) -> Any:
            new = map_children(n, go)
            if isinstance(new, Load | Target) and new.buffer == self.buffer:
                place = normal(add(new.indices[self.window.axis], by))
                return replace(new, indices=self._along(new.indices, place))
            return new

        moved: N = go(node)
        return moved

    def _along(self, axes: tuple[Expr, ...], value: Expr) -> tuple[Expr, ...]:
        return tuple(value if k == self.window.axis else e for k, e in enumerate(axes))
