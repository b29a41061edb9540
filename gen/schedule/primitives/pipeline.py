"""pipeline: a loop's first stage runs one iteration ahead."""

from collections.abc import Mapping
from dataclasses import replace

from ...ir.algebra import add, less
from ...ir.nodes import Barrier, Delinearize, Expr, Loop, Stmt, Var
from ...ir.walk import blocks, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.launches import axes_around, without_needless
from ..edit.moving import new_names, renamed
from ..edit.tree import CannotApply
from ..examples import ROTATED, TWICE


class Pipeline(Primitive):
    """Runs the named blocks of a loop's body one iteration ahead of the rest, so that what they
    fetch is on its way while the rest computes.

    What stands for the first iteration runs before the loop, with names of its own; the last
    iteration runs nothing ahead (`peel` it off for a loop without that guard). What the blocks hand
    to the rest needs the room of two iterations: `double_buffer` it first. Barriers of the loop's
    body are as many as are needed.
    """

    loop: str
    blocks: tuple[str, ...]

    aliases = ("software_pipeline",)

    def apply(self, state: Scheduled) -> Scheduled:
        loop = edit.loop_named(state.kernel, self.loop)
        if not self.blocks:
            raise CannotApply("name the blocks that run ahead")
        if loop.kind.value not in ("serial", "unrolled"):
            raise CannotApply(
                f"loop '{self.loop}' is {loop.kind.value}: its iterations have no order"
            )
        if isinstance(loop.body, Delinearize):
            raise CannotApply(f"loop '{self.loop}' is fused")
        for name in self.blocks:
            block = edit.block_named(state.kernel, name)
            if block not in blocks(loop):
                raise CannotApply(f"loop '{self.loop}' is not around block '{name}'")
            if block.initialises:
                raise CannotApply(f"block '{name}' owns an init: decompose_reduction first")
        for s in edit.under(loop):
            inside = [b.name for b in blocks(s)]
            if set(inside) & set(self.blocks) and not set(inside) <= set(self.blocks):
                other = next(b for b in inside if b not in self.blocks)
                raise CannotApply(
                    f"block '{other}' is in one statement with a block that runs ahead"
                )
        if all(self._ahead(s) or isinstance(s, Barrier) for s in edit.under(loop)):
            raise CannotApply(f"nothing is left in loop '{self.loop}' to run ahead of")
        stage = tuple(s for s in edit.under(loop) if self._ahead(s))
        new = new_names(state.kernel, stage)
        first = seq(tuple(_at(renamed(s, new), loop, loop.lower) for s in stage))
        following = add(Var(loop.var), 1)
        body = tuple(_at(s, loop, following) if self._ahead(s) else s for s in edit.under(loop))
        if axes_around(state.kernel, loop):
            body = (Barrier(), *body)
        steady = edit.with_body(loop, (seq(body),))
        root = replace_stmt(edit.tree(state.kernel), loop, seq((first, steady)))
        kernel = edit.rebuild(state.kernel, root)
        flow = self._flow(state.flow, new)
        return without_needless(Scheduled(kernel, edit.prune_shared(kernel, flow)), self.loop)

    def _ahead(self, s: Stmt) -> bool:
        return any(b.name in self.blocks for b in blocks(s))

    def _flow(self, flow: Flow, new: Mapping[str, str]) -> Flow:
        """What the rest takes from the stage comes from both its places, and from the iteration
        before.
        """
        stage = set(self.blocks)
        found: dict[tuple[str, int], Source] = {}
        for (reader, number), source in flow.items():
            crosses = (reader in stage) != bool(stage & set(source.writers))
            shared = tuple(v for v in source.shared if not crosses or v != self.loop)
            if reader in stage:
                writers = tuple(new.get(w, w) for w in source.writers)
                there = tuple(new.get(v, v) for v in shared)
                found[new[reader], number] = replace(source, writers=writers, shared=there)
                found[reader, number] = replace(source, shared=shared)
                continue
            both = (x for w in source.writers for x in ((new[w], w) if w in stage else (w,)))
            found[reader, number] = replace(source, writers=tuple(both), shared=shared)
        return found

    EXAMPLES = (
        Example(
            "The next row is fetched while this one is written",
            ROTATED,
            "- double_buffer: {buffer: t, loop: y.k}\n- pipeline: {loop: y.k, blocks: [t]}",
        ),
        Example(
            "Two iterations ahead, with room for two",
            ROTATED,
            "- double_buffer: {buffer: t, loop: y.k}\n- pipeline: {loop: y.k, blocks: [t]}\n"
            "- pipeline: {loop: y.k, blocks: [t]}",
            refused="overwrites it in between",
        ),
        Example(
            "All that the loop does",
            TWICE,
            "- pipeline: {loop: y.i, blocks: [y]}",
            refused="nothing is left in loop 'y.i' to run ahead of",
        ),
    )


def _at(s: Stmt, loop: Loop, value: Expr) -> Stmt:
    """A statement of the loop's body for another iteration, where there is one."""
    return edit.guarded(substitute(s, {loop.var: value}), less(value, loop.upper))
