"""reuse_at: what an iteration read or computed is still there in the next."""

from dataclasses import replace
from typing import Literal

from ...ir.nodes import Block, Delinearize, Loop, Store, Update
from ...ir.walk import accessed, blocks, loads, variables
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.moving import kept_iters, read_region, region_of
from ..edit.new_loops import Region
from ..edit.reuse import Keeping
from ..edit.tree import CannotApply
from ..edit.windows import Window, window
from ..examples import BLUR, STRIDED, TWICE
from .cache_read import CacheRead


class ReuseAt(Primitive):
    """Keeps what an iteration read or computed for the next one, where what both read of a buffer
    overlaps: each iteration fetches or computes only what no other did before it.

    A temporary that is computed in the loop, by `compute_at`, is kept itself. Of any other buffer
    the block that reads it (`block`, where there are several) reads from a copy of its window, made
    by `cache_read`: rows of an image, or a stretch of a row. A copy may have a copy: rows, then a
    window of those rows.

    `layout` says where the window lies. `circular`: place k of the buffer at k modulo the window's
    size, so that nothing moves; where the loop is unrolled by that size, all places are constants
    and may be registers, and elsewhere each access takes a remainder, which is little for a line
    and much for an element. `halves`: in two steps' room, and what is new moves from the second
    half to the first at the end of an iteration, so that places are constants and those of a vector
    lie side by side; no place may be read in more than two iterations. The default is halves where
    that holds.

    `fill` says where the window is filled that the first iteration finds. `before`: by a block of
    its own before the loop. `inside`: the loop begins earlier, by as many iterations as fill a
    circular window and do nothing else; so what these values are computed from may be moved into
    the loop in turn and kept there, stage after stage, as Halide's sliding windows are.

    `as` names what is created: the copy if there is one, the block before the loop if there is one,
    and the one that moves halves. From HeteroCL, whose buffers all shift element by element, as
    hardware does in one cycle. Its `buffer_at` is `cache_write`; its `partition` of an array over
    banks that are read in one cycle is not here, since a processor has one memory.
    """

    buffer: str
    loop: str
    block: str | None = None
    layout: Literal["auto", "circular", "halves"] = "auto"
    fill: Literal["before", "inside"] = "before"
    as_: tuple[str, ...] | None = None

    def apply(self, state: Scheduled) -> Scheduled | Steps:
        edit.buffer_named(state.kernel, self.buffer)
        loop = edit.loop_named(state.kernel, self.loop)
        if isinstance(loop.body, Delinearize):
            reason = f"loop '{loop.var}' is fused: what it reads does not move by a constant"
            raise CannotApply(reason)
        edit.require_serial(
            loop,
            ": what an iteration keeps for the next has to run before it",
            "split the loop before that, and reuse in the inner one",
        )
        copied = self._is_copied(loop)
        if not copied:
            self._require_kept(state, loop)
        if self.layout == "halves" and (reason_ := self._not_halves(state, loop)):
            raise CannotApply(reason_, "`layout: circular` has room for that")
        found = self._window(state, loop)
        if not copied:
            self._require_of_use(state, loop)
        layout, names = self._layout(state, loop), self._names(state, loop)
        wanted = len(replace(self, as_=None)._names(state, loop))
        if len(names) != wanted:
            raise CannotApply(f"`as` must give {wanted} name{'s' if wanted > 1 else ''}")
        edit.require_free(state.kernel, names)
        if copied:
            copy, *others = names
            block = self._reader(loop).name
            kept = replace(self, buffer=copy, block=None, layout=layout, as_=tuple(others))
            return CacheRead(block, self.buffer, self.loop, as_=copy), kept
        keeping = Keeping(state, loop, self._writer(state), found)
        match layout, names:
            case "circular", ():
                return keeping.circular_inside()
            case "circular", (first,):
                return keeping.circular(first)
            case _, (first, move):
                return keeping.halves(first, move)
            case _, _:
                raise AssertionError(f"checked: {names}")

    def _is_copied(self, loop: Loop) -> bool:
        """Whether the buffer is none that the loop computes."""
        return not any(self.buffer in edit.written(b) for b in blocks(loop))

    def _names(self, state: Scheduled, loop: Loop) -> tuple[str, ...]:
        copied = self._is_copied(loop)
        base = f"{self.buffer}_reuse" if copied else self.buffer
        halved = self._layout(state, loop) == "halves"
        copy = (base,) if copied else ()
        first = (f"{base}_first",) if self.fill == "before" else ()
        move = (f"{base}_move",) if halved else ()
        return (*copy, *first, *move) if self.as_ is None else self.as_

    def _layout(self, state: Scheduled, loop: Loop) -> Literal["circular", "halves"]:
        if self.layout != "auto":
            return self.layout
        return "circular" if self._not_halves(state, loop) else "halves"

    def _not_halves(self, state: Scheduled, loop: Loop) -> str | None:
        """Why the window cannot lie in two halves."""
        found, moves = self._window(state, loop), f"what loop '{loop.var}' reads of '{self.buffer}'"
        if self.fill == "inside":
            return "the loop fills a window of which every place has one iteration: a circular one"
        if found.step < 0:
            return f"{moves} moves backwards"
        if found.kept > found.step:
            return (
                f"{moves} moves by {found.step} of {found.size} places: some are read in more than"
                " two iterations"
            )
        if not self._is_copied(loop) and isinstance(self._writer(state).body, Update):
            return f"block '{self._writer(state).name}' is a reduction: its values grow in place"
        return None

    def _window(self, state: Scheduled, loop: Loop) -> Window:
        return window(self.buffer, self._region(state, loop), loop)

    def _region(self, state: Scheduled, loop: Loop) -> Region:
        if self._is_copied(loop):
            return region_of(state, self._reader(loop), self.buffer, loop)
        return read_region(state, self._writer(state), loop)

    def _reader(self, loop: Loop) -> Block:
        """The block that is to read from the copy."""
        found = {b.name: b for b in blocks(loop) if _reads(b, self.buffer)}
        if self.block is not None:
            if self.block not in found:
                raise CannotApply(
                    f"block '{self.block}' does not read '{self.buffer}' in loop '{loop.var}'"
                )
            return found[self.block]
        match tuple(found.values()):
            case ():
                raise CannotApply(f"no block in loop '{loop.var}' reads '{self.buffer}'")
            case (block,):
                return block
            case _:
                some = " and ".join(f"'{name}'" for name in found)
                raise CannotApply(
                    f"blocks {some} read '{self.buffer}' in loop '{loop.var}'",
                    "name one by `block`",
                )

    # ------------------------------------------------------------ what the loop computes

    def _require_kept(self, state: Scheduled, loop: Loop) -> None:
        """Refuses a loop that cannot keep values that it computes, however they move."""
        root, block = edit.tree(state.kernel), self._writer(state)
        if edit.is_argument(state.kernel, self.buffer):
            raise CannotApply(
                f"'{self.buffer}' is an argument, which block '{block.name}' writes in the loop"
            )
        inside = {b.name for b in blocks(loop)}
        for user in blocks(root):
            if (used := edit.written(block) & accessed(user)) and user.name not in inside:
                raise CannotApply(
                    f"block '{user.name}' uses '{min(used)}' outside loop '{self.loop}'"
                )
        if not edit.readers(state.flow, block.name):
            raise CannotApply(f"nothing reads what block '{block.name}' computes")
        if self.block is not None:
            raise CannotApply(
                f"'{self.buffer}' is computed in the loop: all blocks read it, not one of a copy"
            )
        for around in edit.loops_around(loop, block):
            if around is not loop:
                edit.require_serial(around, "; reuse first")
        for number, load in enumerate(loads(block.body)):
            if makers := set(state.flow[block.name, number].writers) & inside:
                raise CannotApply(
                    f"block '{block.name}' reads '{load.buffer}', which block '{min(makers)}'"
                    f" computes in loop '{loop.var}': it is not there for what is kept of an"
                    " iteration before",
                    f"`fill: inside`, and only then move block '{min(makers)}' into the loop",
                )

    def _require_of_use(self, state: Scheduled, loop: Loop) -> None:
        """Refuses what an iteration computes where it is of no use to the next."""
        block = self._writer(state)
        kept = kept_iters(edit.tree(state.kernel), block, loop)
        for v, binding in zip(block.iters, block.bindings, strict=True):
            if v.name in kept and loop.var in variables(binding):
                raise CannotApply(
                    f"what block '{block.name}' computes in an iteration of loop '{loop.var}' has"
                    f" '{v.name}' of its own: the next one needs other values"
                )

    def _writer(self, state: Scheduled) -> Block:
        found = [b for b in blocks(state.kernel.body) if self.buffer in edit.written(b)]
        match found:
            case [block] if isinstance(block.body, Store) or block.initialises:
                return block
            case [block]:
                raise CannotApply(f"block '{block.name}' adds to '{self.buffer}' in place")
            case _:
                some = " and ".join(f"'{b.name}'" for b in found)
                raise CannotApply(f"blocks {some} write '{self.buffer}': only one may")

    EXAMPLES = (
        Example(
            "Six values an iteration, four of them new",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- compute_at: {block: t, loop: y.i_0}\n"
            "- reuse_at: {buffer: t, loop: y.i_0}",
        ),
        Example(
            "A window of three that is read in three iterations each",
            BLUR,
            "- compute_at: {block: t, loop: y.i}\n- reuse_at: {buffer: t, loop: y.i}",
        ),
        Example(
            "Of an argument, two new values an iteration",
            STRIDED,
            "- reuse_at: {buffer: x, loop: y.i, layout: circular}",
        ),
        Example(
            "Iterations that read nothing in common",
            TWICE,
            "- reuse_at: {buffer: x, loop: t.i}",
            refused="no two iterations of loop 't.i' read the same of 'x'",
        ),
    )


def _reads(block: Block, buffer: str) -> bool:
    return any(load.buffer == buffer for load in loads(block.body))
