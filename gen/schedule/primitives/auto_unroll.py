"""auto_unroll: short loops written out."""

from dataclasses import replace

from ...ir.nodes import Loop, LoopKind, Stmt
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit.tree import CannotApply, loop_named, tree, update_stmts
from ..edit.unrolling import written_out
from ..examples import SCALE
from .unroll import Unroll


class AutoUnroll(Primitive):
    """Unrolls every serial loop of constant extent that comes to at most `max_step` statements once
    it and all loops inside are written out; a vector statement counts as one.

    With `loop`, only that one and those inside. Stands for an unroll of each, innermost first.
    """

    max_step: int
    loop: str | None = None

    aliases = ("pragma_auto_unroll_max_step", "auto_unroll_max_step")

    def apply(self, state: Scheduled) -> Steps:
        if self.max_step < 1:
            raise CannotApply(f"max_step {self.max_step} is not positive")
        kernel = state.kernel
        root = tree(kernel) if self.loop is None else loop_named(kernel, self.loop)
        found = _short(root, self.max_step)
        if not found:
            inside = "" if self.loop is None else f" in '{self.loop}'"
            raise CannotApply(f"no serial loop{inside} comes to at most {self.max_step} statements")
        return tuple(map(Unroll, found))

    EXAMPLES = (
        Example(
            "Eight statements are not too many, sixteen are",
            SCALE,
            "- tile: {loops: [y.i, y.j], sizes: [2, 8]}\n- auto_unroll: {max_step: 8}",
        ),
        Example(
            "No loop is so short",
            SCALE,
            "- split: {loop: y.j, factors: [null, 32]}\n- auto_unroll: {max_step: 16}",
            refused="no serial loop comes to at most 16 statements",
        ),
        Example(
            "A limit that is none",
            SCALE,
            "- auto_unroll: {max_step: 0}",
            refused="max_step 0 is not positive",
        ),
    )


def _short(root: Stmt, most: int) -> tuple[str, ...]:
    """The serial loops that come to at most so many statements, innermost first."""
    names: list[str] = []

    def go(s: Stmt) -> Stmt:
        if not isinstance(s, Loop) or s.kind is not LoopKind.SERIAL:
            return s
        count = written_out(s)
        if count is None or count > most:
            return s
        names.append(s.var)
        return replace(s, kind=LoopKind.UNROLLED)

    update_stmts(root, go)
    return tuple(names)
