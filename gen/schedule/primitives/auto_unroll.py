"""auto_unroll: short loops written out."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.nodes import Loop, LoopKind, Stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, tree, update_stmts
from ..edit.unrolling import written_out
from ..examples import SCALE
from .unroll import Unroll


@final
@dataclass(frozen=True)
class AutoUnroll(Primitive):
    """Unrolls every serial loop of constant extent that comes to at most `max_step` statements once
    it and all loops inside are written out; a vector statement counts as one.

    With `loop`, only that one and those inside. Stands for an unroll of each, innermost first.
    """

    max_step: int
    loop: str | None = None

    name: ClassVar[str] = "auto_unroll"
    aliases: ClassVar[tuple[str, ...]] = ("pragma_auto_unroll_max_step", "auto_unroll_max_step")
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Eight statements are not too many, sixteen are",
            SCALE,
            "- tile: {loops: [y.i, y.j], sizes: [2, 8]}\n- auto_unroll: {max_step: 8}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i_0 in range((m + 1) // 2):
        for y.j_0 in range((n + 7) // 8):
            for y.i_1 in range(2):
                for y.j_1 in unrolled(8):
                    with block(
                        "y",
                        i=spatial(y.i_0 * 2 + y.i_1, m),
                        j=spatial(y.j_0 * 8 + y.j_1, n),
                        where=y.i_0 * 2 + y.i_1 < m and y.j_0 * 8 + y.j_1 < n,
                    ):
                        y[i, j] = x[i, j] * 2.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        if self.max_step < 1:
            return f"max_step {self.max_step} is not positive"
        if self.expand(state):
            return None
        inside = "" if self.loop is None else f" in '{self.loop}'"
        return f"no serial loop{inside} comes to at most {self.max_step} statements"

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        kernel = state.kernel
        root = tree(kernel) if self.loop is None else loop_named(kernel, self.loop)
        return tuple(Unroll(name, span=self.span) for name in _short(root, self.max_step))


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
