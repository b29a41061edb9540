"""auto_unroll: short loops written out."""

from dataclasses import dataclass
from typing import ClassVar, assert_never, final

from ...ir.algebra import sub
from ...ir.linear import constant
from ...ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Delinearize,
    If,
    Loop,
    LoopKind,
    Seq,
    Stmt,
    Transfer,
)
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit import loop_named, tree
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
        return tuple(Unroll(name, span=self.span) for name in _short(root, self.max_step)[1])


def _short(stmt: Stmt, most: int) -> tuple[int | None, tuple[str, ...]]:
    """How many statements it comes to, None where loops stay in it; and the serial loops in it
    that come to at most so many, innermost first.
    """
    match stmt:
        case Block() | Barrier() | Transfer():
            return 1, ()
        case Seq(body):
            parts = [_short(s, most) for s in body]
            counts = [count for count, _ in parts if count is not None]
            names = tuple(name for _, found in parts for name in found)
            return (sum(counts) if len(counts) == len(parts) else None), names
        case Delinearize() | If() | Allocate():
            return _short(stmt.body, most)
        case Loop(var, lower, upper, kind):
            count, names = _short(stmt.body, most)
            extent = constant(sub(upper, lower))
            if count is None or extent is None or kind is LoopKind.PARALLEL or kind.is_bound:
                return None, names
            if kind is LoopKind.VECTORIZED:
                return count, names
            count *= max(extent, 0)
            if kind is LoopKind.UNROLLED:
                return count, names
            return (count, (*names, var)) if count <= most else (None, names)
        case _:
            assert_never(stmt)
