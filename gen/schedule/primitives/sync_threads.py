"""sync_threads: the threads of a block wait for each other."""

from dataclasses import replace
from typing import Literal

from ...ir.nodes import Barrier, Seq, Stmt
from ...ir.walk import ancestors, replace_stmt, seq
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.launches import require_met
from ..edit.tree import CannotApply, block_named, loop_named, rebuild, tree
from ..examples import REVERSED, RUNNING_SUM, TWICE


class SyncThreads(Primitive):
    """Puts a barrier before or after a loop or a block: no thread of a GPU's block goes on before
    all of them are there.

    All threads have to come by: a barrier where only some do, or some more often than others, is
    refused. It may be put there before the loops are bound, and orders nothing until they are.
    """

    loop: str | None = None
    block: str | None = None
    where: Literal["before", "after"] = "before"

    aliases = ("SyncThreads", "syncthreads", "storage_sync")

    def apply(self, state: Scheduled) -> Scheduled:
        if (self.loop is None) == (self.block is None):
            raise CannotApply("give either `loop` or `block`")
        around = ancestors(tree(state.kernel), self._node(state))
        if around and isinstance(around[-1], Seq):
            beside = around[-1].body
            k = next(k for k, s in enumerate(beside) if s is self._node(state))
            near = beside[k - 1 : k] if self.where == "before" else beside[k + 1 : k + 2]
            if any(isinstance(s, Barrier) for s in near):
                raise CannotApply("there is a barrier already")
        node = self._node(state)
        both = (Barrier(), node) if self.where == "before" else (node, Barrier())
        body = replace_stmt(tree(state.kernel), node, seq(both))
        after = replace(state, kernel=rebuild(state.kernel, body))
        require_met(after)
        return after

    def _node(self, state: Scheduled) -> Stmt:
        if self.loop is not None:
            return loop_named(state.kernel, self.loop)
        assert self.block is not None
        return block_named(state.kernel, self.block)

    EXAMPLES = (
        Example(
            "What one thread writes, another one reads",
            REVERSED,
            "- set_scope: {buffer: t, scope: shared}\n"
            "- sync_threads: {loop: y.j}\n"
            "- bind: {loop: y.i, axis: blockIdx.x}\n"
            "- bind: {loop: t.j, axis: threadIdx.x}\n"
            "- bind: {loop: y.j, axis: threadIdx.x}",
        ),
        Example(
            "A second barrier at one place",
            REVERSED,
            "- sync_threads: {loop: y.j}\n- sync_threads: {loop: t.j, where: after}",
            refused="there is a barrier already",
        ),
        Example(
            "Neither a loop nor a block",
            TWICE,
            "- sync_threads: {where: after}",
            refused="give either `loop` or `block`",
        ),
        Example(
            "Where some threads come by more often than others",
            RUNNING_SUM,
            "- bind: {loop: y.j, axis: threadIdx.x}\n- sync_threads: {block: y}",
            refused="not all threads of a block reach a barrier: the bounds of loop 'y.k' differ"
            " from thread to thread",
        ),
    )
