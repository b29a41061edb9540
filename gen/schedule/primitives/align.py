"""align: a loop begins where a line of the caches does."""

from dataclasses import replace

from ...ir import nodes as ir
from ...ir.algebra import add, dtype_of, sub
from ...ir.index.linear import linear
from ...ir.walk import blocks, replace_stmt, substitute, variables, walk
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, SCALE, TWICE


class Align(Primitive):
    """Starts a loop so much earlier that its iterations 0, 16, 32, ... (for 16 elements a line of
    the caches) access the first elements of lines of an argument; those before the loop's old start
    do nothing. `line` is the bytes of a line, by default the target's.

    How much earlier, the phase, each call finds out from the argument's address; the schedule is
    right for every phase. What is split off the loop afterwards, vectors above all, begins with
    lines then: in all rows, if their distance is of whole lines, and else in the first. `as` names
    the phase.
    """

    loop: str
    buffer: str
    as_: str | None = None
    line: int | str = "$line_bytes"

    def apply(self, state: Scheduled) -> Scheduled:
        loop = edit.loop_named(state.kernel, self.loop)
        if not self._elements(state.kernel):
            raise CannotApply(f"a line of {self.line} bytes has no element of '{self.buffer}'")
        if not edit.is_argument(state.kernel, self.buffer):
            raise CannotApply(f"'{self.buffer}' is a temporary: it begins with a line")
        if not any(_walks(block, loop, self.buffer) for block in blocks(loop)):
            raise CannotApply(f"loop '{self.loop}' does not walk the last axis of '{self.buffer}'")
        if adding := next((b for b in blocks(loop) if _adds(b, loop)), None):
            raise CannotApply(
                f"block '{adding.name}' adds over loop '{self.loop}': where its vectors begin would"
                " show in the sum"
            )
        if isinstance(loop.body, ir.Delinearize):
            raise CannotApply(f"loop '{self.loop}' is of fused ones; align them before")
        if self._phase() in edit.names(state.kernel) and not self._known(state.kernel):
            raise CannotApply(f"the name '{self._phase()}' is taken")
        edit.require_serial(loop)
        kernel = state.kernel
        if not self._known(kernel):
            size = self._elements(kernel)
            kernel = replace(
                kernel, phases=(*kernel.phases, ir.Phase(self._phase(), self.buffer, size))
            )
        value = sub(ir.Var(loop.var), ir.Var(self._phase()))
        guard = ir.Binary(ir.BinaryOp.LE, loop.lower, value)
        body = edit.guarded(substitute(loop.body, {loop.var: value}), guard)
        new = replace(loop, upper=add(loop.upper, ir.Var(self._phase())), body=body)
        return replace(
            state, kernel=edit.rebuild(kernel, replace_stmt(edit.tree(kernel), loop, new))
        )

    def _elements(self, kernel: ir.Kernel) -> int:
        """Of a line. Where the bytes are no number, no target has said how many they are."""
        bytes_ = self.line if isinstance(self.line, int) else 0
        return bytes_ // edit.buffer_named(kernel, self.buffer).dtype.bytes

    def _phase(self) -> str:
        return self.as_ or f"{self.buffer}_phase"

    def _known(self, kernel: ir.Kernel) -> bool:
        """Whether the buffer's phase is there from another loop."""
        return any(p.name == self._phase() and p.buffer == self.buffer for p in kernel.phases)

    EXAMPLES = (
        Example(
            "Vectors of whole lines of the result",
            SCALE,
            "- align: {loop: y.j, buffer: y, line: 64}\n- vectorize: {loop: y.j, width: 16}",
        ),
        Example(
            "A temporary, which begins with a line anyway",
            TWICE,
            "- align: {loop: t.i, buffer: t, line: 64}",
            refused="'t' is a temporary: it begins with a line",
        ),
        Example(
            "A loop that adds terms",
            ROW_SUM,
            "- align: {loop: y.j, buffer: x, line: 64}",
            refused="block 'y' adds over loop 'y.j': where its vectors begin would show in the sum",
        ),
        Example(
            "A loop over rows",
            SCALE,
            "- align: {loop: y.i, buffer: y, line: 64}",
            refused="loop 'y.i' does not walk the last axis of 'y'",
        ),
    )


def _walks(block: ir.Block, loop: ir.Loop, buffer: str) -> bool:
    """Whether the block goes from element to element of a row of the buffer."""
    values = {it.name: b for it, b in zip(block.iters, block.bindings, strict=True)}
    rows = (
        substitute(n.indices[-1], values)
        for n in walk(block.body)
        if isinstance(n, ir.Load | ir.Destination) and n.buffer == buffer and n.indices
    )
    return any(linear(row).coefficient(loop.var) == 1 for row in rows)


def _adds(block: ir.Block, loop: ir.Loop) -> bool:
    """Whether the loop runs over terms of a sum or product of floats, which is rounded in order."""
    match block.body:
        case ir.Update(ir.Combiner.SUM | ir.Combiner.PROD, _, (value, *_)) if not dtype_of(
            value
        ).is_integer:
            return any(
                it.kind is ir.IterKind.REDUCTION and loop.var in variables(b)
                for it, b in zip(block.iters, block.bindings, strict=True)
            )
        case _:
            return False
