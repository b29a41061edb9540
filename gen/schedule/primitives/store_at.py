"""store_at: a temporary that lives longer."""

from dataclasses import replace

from ...ir.walk import accessed, blocks, loads
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.allocation import home
from ..edit.tree import CannotApply
from ..examples import STENCIL, TWICE


class StoreAt(Primitive):
    """Allocates a temporary further out than it need be: once in each iteration of `loop`; without,
    once in the kernel.

    Temporaries live in the innermost loop that they can otherwise. This one keeps its elements
    while the loops further in go on; where they write some of them twice, those cannot be parallel
    any more. Moving the blocks that use it decides anew.
    """

    buffer: str
    loop: str | None = None

    aliases = ("allocate_at", "hoist_storage", "store_root", "lift_alloc")

    def apply(self, state: Scheduled) -> Scheduled:
        root, loops = edit.tree(state.kernel), self._outer(state)
        edit.buffer_named(state.kernel, self.buffer)
        if edit.is_argument(state.kernel, self.buffer):
            raise CannotApply(f"'{self.buffer}' is an argument: it is not allocated here")
        for block in blocks(root):
            around = {x.var for x in edit.loops_around(root, block)}
            if self.buffer in accessed(block) and self.loop and self.loop not in around:
                raise CannotApply(
                    f"loop '{self.loop}' is not around block '{block.name}', which uses "
                    + (f"'{self.buffer}'")
                )
        now = home(state, self.buffer)
        if now is None:
            raise CannotApply(f"'{self.buffer}' is allocated once in the kernel already")
        if now in loops:
            raise CannotApply(
                f"'{self.buffer}' is allocated in loop '{now}' already, which is not further in"
            )
        outer, flow = self._outer(state), dict(state.flow)
        for (reader, number), source in state.flow.items():
            load = loads(edit.block_named(state.kernel, reader).body)[number]
            if load.buffer == self.buffer:
                kept = tuple(v for v in source.shared if v in outer)
                flow[reader, number] = replace(source, shared=kept)
        return Scheduled(state.kernel, flow)

    def _outer(self, state: Scheduled) -> frozenset[str]:
        """The loops down to where it shall live."""
        if self.loop is None:
            return frozenset()
        loop = edit.loop_named(state.kernel, self.loop)
        return frozenset(x.var for x in (*edit.loops_around(edit.tree(state.kernel), loop), loop))

    EXAMPLES = (
        Example(
            "One array for all iterations",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}\n- store_at: {buffer: t}",
        ),
        Example(
            "One for the iterations of a tile",
            TWICE,
            "- merge: {loops: [t.i, y.i], as: [y.i]}\n"
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- store_at: {buffer: t, loop: y.i_0}",
        ),
        Example(
            "Iterations that would write the same elements at once",
            STENCIL,
            "- compute_at: {block: t, loop: y.i}\n- parallel: {loop: y.i}\n- store_at: {buffer: t}",
            refused="the proof was refused",
        ),
        Example(
            "It lives there already",
            TWICE,
            "- store_at: {buffer: t}",
            refused="'t' is allocated once in the kernel already",
        ),
        Example(
            "A loop that is not around all that use it",
            TWICE,
            "- store_at: {buffer: t, loop: y.i}",
            refused="loop 'y.i' is not around block 't', which uses 't'",
        ),
    )
