"""prefetch: what a later iteration reads is asked for early."""

from dataclasses import replace
from typing import Literal

from ...ir.index.linear import linear
from ...ir.nodes import Block, Expr, Load, Var
from ...ir.walk import loads, variables
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, block_named, is_argument, nearest, rebuild, tree, update_blocks
from ..examples import SCALE, SHARE


class Prefetch(Primitive):
    """Asks for what an instance of a block further on reads of an argument: the one whose iteration
    variables are larger by `ahead`, whatever loops run it and whether it exists or not.

    It is for reads that the processor does not foresee, such as the row after next while this one
    runs. Where the kernel's arrays fit into the second-level cache it does nothing. `into: l2` asks
    for it there: rows that are a power of two apart share the few places of a set of the first.
    """

    block: str
    buffer: str
    ahead: dict[str, int]
    into: Literal["l1", "l2"] = "l1"

    aliases = ()

    def apply(self, state: Scheduled) -> Scheduled:
        block = block_named(state.kernel, self.block)
        known = [it.name for it in block.iters]
        if unknown := next((name for name in self.ahead if name not in known), None):
            raise CannotApply(
                f"block '{self.block}' has no iteration variable '{unknown}'",
                nearest(unknown, known),
            )
        found = {_steps(read, self.ahead) for read in self._reads(block)}
        if not found:
            raise CannotApply(f"block '{self.block}' does not read '{self.buffer}'")
        if not is_argument(state.kernel, self.buffer):
            raise CannotApply(f"'{self.buffer}' is a temporary, which is in the caches already")
        if None in found:
            raise CannotApply(
                f"the places of '{self.buffer}' that block '{self.block}' reads do not move by"
                " fixed steps"
            )
        if len(found) > 1:
            raise CannotApply(
                f"the reads of '{self.buffer}' in block '{self.block}' move by different steps"
            )
        if found == {(0,) * len(self._reads(block)[0].indices)}:
            raise CannotApply(f"`ahead` leads to the same place of '{self.buffer}'")
        if any(key == self._key() for key, _ in block.annotations):
            raise CannotApply(f"block '{self.block}' has a prefetch of '{self.buffer}' already")
        steps = _steps(self._reads(block)[0], self.ahead) or ()
        note = (self._key(), ", ".join([*map(str, steps), *(["l2"] if self.into == "l2" else [])]))
        new = replace(block, annotations=(*block.annotations, note))
        body = update_blocks(tree(state.kernel), lambda b: new if b.name == self.block else b)
        return replace(state, kernel=rebuild(state.kernel, body))

    def _key(self) -> str:
        return f"prefetch {self.buffer}"

    def _reads(self, block: Block) -> tuple[Load, ...]:
        return tuple(read for read in loads(block.body) if read.buffer == self.buffer)

    EXAMPLES = (
        Example(
            "Two rows ahead; the annotation counts along the axes of the array",
            SCALE,
            "- prefetch: {block: y, buffer: x, ahead: {i: 2}}",
        ),
        Example(
            "Into the second-level cache",
            SCALE,
            "- prefetch: {block: y, buffer: x, ahead: {i: 8}, into: l2}",
        ),
        Example(
            "What the block does not read",
            SHARE,
            "- prefetch: {block: y, buffer: y, ahead: {i: 1}}",
            refused="block 'y' does not read 'y'",
        ),
        Example(
            "No iteration variable of the block",
            SCALE,
            "- prefetch: {block: y, buffer: x, ahead: {k: 1}}",
            refused="block 'y' has no iteration variable 'k'",
        ),
    )


def _steps(read: Load, ahead: dict[str, int]) -> tuple[int, ...] | None:
    """How far the read moves along each axis; None where that is not fixed."""
    steps = tuple(_step(i, ahead) for i in read.indices)
    return None if None in steps else tuple(s for s in steps if s is not None)


def _step(at: Expr, ahead: dict[str, int]) -> int | None:
    terms = linear(at).terms
    if any(variables(atom) & ahead.keys() for atom in terms if not isinstance(atom, Var)):
        return None
    return sum(terms.get(Var(name), 0) * by for name, by in ahead.items())
