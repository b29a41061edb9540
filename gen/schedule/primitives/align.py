"""align: a loop begins where a line of the caches does."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import add, dtype_of, sub
from ...ir.index.linear import linear
from ...ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Combiner,
    Delinearize,
    IterKind,
    Kernel,
    Load,
    Loop,
    Phase,
    Target,
    Update,
    Var,
)
from ...ir.walk import blocks, replace_stmt, substitute, variables, walk
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    buffer_named,
    guarded,
    is_argument,
    loop_named,
    names,
    rebuild,
    serial,
    tree,
)
from ..examples import ROW_SUM, SCALE, TWICE

LINE = 64  # bytes


@final
@dataclass(frozen=True)
class Align(Primitive):
    """Starts a loop so much earlier that its iterations 0, 16, 32, ... (for 16 elements a line of
    the caches) access the first elements of lines of an argument; those before the loop's old start
    do nothing.

    How much earlier, the phase, each call finds out from the argument's address; the schedule is
    right for every phase. What is split off the loop afterwards, vectors above all, begins with
    lines then: in all rows, if their distance is of whole lines, and else in the first. `as` names
    the phase.
    """

    loop: str
    buffer: str
    as_: str | None = None

    name: ClassVar[str] = "align"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Vectors of whole lines of the result",
            SCALE,
            "- align: {loop: y.j, buffer: y}\n- vectorize: {loop: y.j, width: 16}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]], y_phase: Phase[y, 16]):
    for y.i in range(m):
        for y.j_0 in range((n + y_phase + 15) // 16):
            for y.j_1 in vectorized(16):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j_0 * 16 + y.j_1 - y_phase, n),
                    where=0 <= y.j_0 * 16 + y.j_1 - y_phase and y.j_0 * 16 + y.j_1 < n + y_phase,
                ):
                    y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A temporary, which begins with a line anyway",
            TWICE,
            "- align: {loop: t.i, buffer: t}",
            refused="'t' is a temporary: it begins with a line",
        ),
        Example(
            "A loop that adds terms",
            ROW_SUM,
            "- align: {loop: y.j, buffer: x}",
            refused="block 'y' adds over loop 'y.j': where its vectors begin would show in the sum",
        ),
        Example(
            "A loop over rows",
            SCALE,
            "- align: {loop: y.i, buffer: y}",
            refused="loop 'y.i' does not walk the last axis of 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        buffer_named(state.kernel, self.buffer)
        if not is_argument(state.kernel, self.buffer):
            return f"'{self.buffer}' is a temporary: it begins with a line"
        if not any(_walks(block, loop, self.buffer) for block in blocks(loop)):
            return f"loop '{self.loop}' does not walk the last axis of '{self.buffer}'"
        if adding := next((b for b in blocks(loop) if _adds(b, loop)), None):
            return (
                f"block '{adding.name}' adds over loop '{self.loop}': where its vectors begin would"
                " show in the sum"
            )
        if isinstance(loop.body, Delinearize):
            return f"loop '{self.loop}' is of fused ones; align them before"
        if self._phase() in names(state.kernel) and not self._known(state.kernel):
            return f"the name '{self._phase()}' is taken"
        return serial(loop)

    def _phase(self) -> str:
        return self.as_ or f"{self.buffer}_phase"

    def _known(self, kernel: Kernel) -> bool:
        """Whether the buffer's phase is there from another loop."""
        return any(p.name == self._phase() and p.buffer == self.buffer for p in kernel.phases)

    def rewrite(self, state: Scheduled) -> Scheduled:
        kernel, loop = state.kernel, loop_named(state.kernel, self.loop)
        if not self._known(kernel):
            size = LINE // buffer_named(kernel, self.buffer).dtype.bytes
            kernel = replace(
                kernel, phases=(*kernel.phases, Phase(self._phase(), self.buffer, size))
            )
        value = sub(Var(loop.var), Var(self._phase()))
        guard = Binary(BinaryOp.LE, loop.lower, value)
        body = guarded(substitute(loop.body, {loop.var: value}), guard)
        new = replace(loop, upper=add(loop.upper, Var(self._phase())), body=body)
        return replace(state, kernel=rebuild(kernel, replace_stmt(tree(kernel), loop, new)))


def _walks(block: Block, loop: Loop, buffer: str) -> bool:
    """Whether the block goes from element to element of a row of the buffer."""
    values = {it.name: b for it, b in zip(block.iters, block.bindings, strict=True)}
    rows = (
        substitute(n.indices[-1], values)
        for n in walk(block.body)
        if isinstance(n, Load | Target) and n.buffer == buffer and n.indices
    )
    return any(linear(row).coefficient(loop.var) == 1 for row in rows)


def _adds(block: Block, loop: Loop) -> bool:
    """Whether the loop runs over terms of a sum or product of floats, which is rounded in order."""
    match block.body:
        case Update(Combiner.SUM | Combiner.PROD, _, (value, *_)) if not dtype_of(value).is_integer:
            return any(
                it.kind is IterKind.REDUCTION and loop.var in variables(b)
                for it, b in zip(block.iters, block.bindings, strict=True)
            )
        case _:
            return False
