"""bind: a loop's iterations are the blocks, or the threads, of a launch."""

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Literal, get_args

from ...ir.algebra import add, conjunction, index, less, sub
from ...ir.index.bounds import normal
from ...ir.index.linear import same
from ...ir.nodes import Block, Const, Expr, Kernel, Loop, LoopKind, Update, Var
from ...ir.rules.launches import MOST, MOST_THREADS
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import ancestors, blocks, loops, replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.launches import axes_around, constant_extents, launch_of, require_met
from ..edit.nesting_rules import require_fit, require_fixed, require_nesting
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, RUNNING_SUM, SCALE, TWICE, UPPER

Axis = Literal[
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"
]
AXES: tuple[Axis, ...] = get_args(Axis)


class Bind(Primitive):
    """Binds a loop to an axis of a GPU: each iteration is a block of its own, or a thread.

    The outermost bound loop is a launch. In it all loops on one axis have one extent: shorter ones
    of constant extents get a guard. A statement that no loop of some axis is around runs in the
    first thread, or block, of that axis. What threads hand each other needs a barrier
    (`sync_threads`); blocks cannot hand each other anything. Loops that hand each other values of
    their own are bound in one step, by `loops`.
    """

    axis: Axis
    loop: str | None = None
    loops: tuple[str, ...] = ()

    aliases = ("Bind", "thread_bind", "tag_gpu_level")

    def apply(self, state: Scheduled) -> Scheduled:
        if bool(self.loops) == (self.loop is not None):
            raise CannotApply("give either `loop` or `loops`")
        if len(set(self._loops())) < len(self._loops()):
            raise CannotApply("a loop is named twice")
        for name in self._loops():
            loop = edit.loop_named(state.kernel, name)
            require_fit(edit.tree(state.kernel), loop, LoopKind(self.axis))
            self._require_fixed(state.kernel, loop)
            for block in blocks(loop):
                if isinstance(block.body, Update) and name in edit.reduction_loops(block):
                    raise CannotApply(
                        f"loop '{name}' is one of the reduction '{block.name}': its threads would"
                        " add to one place",
                        f"rfactor: {{block: {block.name}, loop: {name}}}; then bind the loop of the"
                        " partials",
                    )
        for name in self._loops():
            loop = edit.loop_named(state.kernel, name)
            if loop.lower != index(0):
                extent = normal(sub(loop.upper, loop.lower))
                state = edit.renumbered(state, loop, index(0), extent, add(Var(name), loop.lower))
        for name in self._loops():
            loop = edit.loop_named(state.kernel, name)
            require_nesting(edit.tree(state.kernel), loop, LoopKind(self.axis))
            state = _with(state, loop, replace(loop, kind=LoopKind(self.axis)))
        for name in self._loops():
            state = self._alike(state, edit.loop_named(state.kernel, name))
        for name in self._loops():
            _require_room(state.kernel, edit.loop_named(state.kernel, name))
        require_met(state)
        return state

    def _loops(self) -> tuple[str, ...]:
        return self.loops or ((self.loop,) if self.loop else ())

    def _require_fixed(self, kernel: Kernel, loop: Loop) -> None:
        """Refuses extents, of it and of axes inside, that are not known when a launch starts."""
        bound = replace(loop, kind=LoopKind(self.axis))
        split = f"split: {{loop: {loop.var}, factors: [null, 32]}}; then bind the inner loop"
        for axis in (loop, *(x for x in loops(loop.body) if x.kind.is_bound)):
            way = (*ancestors(edit.tree(kernel), axis), axis)
            require_fixed(kernel, (bound if x is loop else x for x in way), split)

    def _alike(self, state: Scheduled, loop: Loop) -> Scheduled:
        """The state with one extent for all loops on the axis in the launch of `loop`."""
        launch = launch_of(state.kernel, loop)
        assert launch is not None
        on_axis = [x for x in loops(launch) if x.kind is loop.kind]
        extent = _largest(x.upper for x in on_axis)
        if extent is None:
            other = next(x for x in on_axis if not same(x.upper, loop.upper))
            raise CannotApply(
                f"loop '{loop.var}' has extent `{expr_to_text(loop.upper)}`, and loop"
                f" '{other.var}' on {self.axis} of the same launch"
                f" `{expr_to_text(other.upper)}`",
                "split one of them by the other's extent",
            )
        for x in on_axis:
            state = _with(state, edit.loop_named(state.kernel, x.var), _extended(x, extent))
        return state

    EXAMPLES = (
        Example(
            "Rows are blocks, columns their threads",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n"
            "- bind: {loop: y.i, axis: blockIdx.x}\n"
            "- bind: {loop: y.j_1, axis: threadIdx.x}",
        ),
        Example(
            "A loop of a reduction",
            ROW_SUM,
            "- bind: {loop: y.j, axis: threadIdx.x}",
            refused="loop 'y.j' is one of the reduction 'y': its threads would add to one place",
        ),
        Example(
            "Threads that are more than a block has",
            TWICE,
            "- split: {loop: y.i, factors: [null, 2048]}\n- bind: {loop: y.i_1, axis: threadIdx.x}",
            refused="2048 along threadIdx.x is more than 1024",
        ),
        Example(
            "One axis twice in a nest",
            SCALE,
            "- bind: {loop: y.i, axis: blockIdx.x}\n- bind: {loop: y.j, axis: blockIdx.x}",
            refused="blockIdx.x loop 'y.j' would be in blockIdx.x loop 'y.i': each axis has one"
            " loop in a nest",
        ),
        Example(
            "Around a barrier that some threads reach more often than others",
            RUNNING_SUM,
            "- sync_threads: {block: y}\n- bind: {loop: y.j, axis: threadIdx.x}",
            refused="not all threads of a block reach a barrier: the bounds of loop 'y.k' differ"
            " from thread to thread",
        ),
        Example(
            "An extent that differs from row to row",
            UPPER,
            "- bind: {loop: y.i, axis: blockIdx.x}\n- bind: {loop: y.j, axis: threadIdx.x}",
            refused="the extent `n - y.i` of loop 'y.j' would not be known when the launch starts",
        ),
        Example(
            "Memory of a launch that others use",
            SCALE,
            "- cache_read: {block: y, buffer: x, scope: local}\n"
            "- bind: {loop: y.j, axis: threadIdx.x}",
            refused="'x_cache' is local memory, which ends with the launch of loop 'y.j', and block"
            " 'x_cache' uses it outside",
        ),
    )


def _require_room(kernel: Kernel, loop: Loop) -> None:
    """Refuses more blocks, or threads, than a GPU has."""
    known = constant_extents(axes_around(kernel, loop))
    axis, most = loop.kind.value, MOST[loop.kind]
    threads = prod(n for name, n in known.items() if LoopKind(name).is_thread)
    split = f"split: {{loop: {loop.var}, factors: [null, 32]}}; then bind the inner loop"
    if known.get(axis, 0) > most:
        raise CannotApply(f"{known[axis]} along {axis} is more than {most}", split)
    if threads > MOST_THREADS:
        raise CannotApply(f"{threads} threads of a block are more than {MOST_THREADS}", split)


def _largest(extents: Iterable[Expr]) -> Expr | None:
    """The largest of the extents; None where that cannot be said."""
    first, *rest = extents
    for extent in rest:
        if same(extent, first):
            continue
        if not (isinstance(extent, Const) and isinstance(first, Const)):
            return None
        first = max(first, extent, key=lambda c: int(c.value.real))
    return first


def _extended(loop: Loop, extent: Expr) -> Loop:
    """The loop over a larger extent, with a guard."""
    if same(loop.upper, extent):
        return replace(loop, upper=extent)
    guard = less(Var(loop.var), loop.upper)

    def guarded(block: Block) -> Block:
        return replace(block, predicate=conjunction(block.predicate, guard))

    return replace(loop, upper=extent, body=edit.update_blocks(loop.body, guarded))


def _with(state: Scheduled, old: Loop, new: Loop) -> Scheduled:
    kernel: Kernel = edit.rebuild(state.kernel, replace_stmt(edit.tree(state.kernel), old, new))
    return replace(state, kernel=kernel)
