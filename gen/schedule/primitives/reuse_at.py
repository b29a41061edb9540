"""reuse_at: what an iteration read or computed is still there in the next."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from ...ir.nodes import Block, Delinearize, Loop, Store, Update
from ...ir.walk import accessed, blocks, loads, variables
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.moving import kept_iters, read_region, region_of
from ..edit.new_loops import Region
from ..edit.reuse import Keeping
from ..edit.tree import (
    CannotApply,
    buffer_named,
    is_argument,
    loop_named,
    loops_around,
    readers,
    serial,
    taken,
    tree,
    written,
)
from ..edit.windows import Window, window
from ..examples import BLUR, STRIDED, TWICE
from .cache_read import CacheRead


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "reuse_at"
    layer: ClassVar[Layer] = Layer.STORAGE
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Six values an iteration, four of them new",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- compute_at: {block: t, loop: y.i_0}\n"
            "- reuse_at: {buffer: t, loop: y.i_0}",
            after="""\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[8]):
        for t_first.i in range(4):
            with block(
                "t_first",
                i=spatial(-2 + t_first.i, n + 2),
                start=spatial(0, 1),
                where=0 <= -2 + t_first.i and -2 + t_first.i < n + 2,
                origin=t[i],
            ):
                t[i - start + 2] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            for t.i in range(4):
                with block(
                    "t",
                    i=spatial(y.i_0 * 4 + 2 + t.i, n + 2),
                    start=spatial(y.i_0 * 4, (n + 3) // 4 * 4 - 3),
                    where=y.i_0 * 4 + 2 + t.i < n + 2,
                    origin=t[i],
                ):
                    t[i - start + 2] = x[i] * 2.0
            for y.i_1 in range(4):
                with block(
                    "y",
                    i=spatial(y.i_0 * 4 + y.i_1, n),
                    start=spatial(y.i_0 * 4, (n + 3) // 4 * 4 - 3),
                    where=y.i_0 * 4 + y.i_1 < n,
                    origin=y[i],
                ):
                    y[i] = t[i - start + 2] + t[i - start + 3] + t[i - start + 4]
            for t_move.i in range(4):
                with block(
                    "t_move",
                    i=spatial(y.i_0 * 4 + 2 + t_move.i, n + 2),
                    start=spatial(y.i_0 * 4, (n + 3) // 4 * 4 - 3),
                    where=y.i_0 * 4 + 2 + t_move.i < n + 2,
                    origin=None,
                ):
                    t[i - start - 2] = t[i - start + 2]
""",
        ),
        Example(
            "A window of three that is read in three iterations each",
            BLUR,
            "- compute_at: {block: t, loop: y.i}\n- reuse_at: {buffer: t, loop: y.i}",
            after="""\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[3]):
        for t_first.i in range(2):
            with block("t_first", i=spatial(t_first.i, n + 2), origin=t[i]):
                t[i % 3] = x[i] * 2.0
        for y.i in range(n):
            with block("t", i=spatial(y.i + 2, n + 2)):
                t[i % 3] = x[i] * 2.0
            with block("y", i=spatial(y.i)):
                y[i] = t[i % 3] + t[(i + 1) % 3] + t[(i + 2) % 3]
""",
        ),
        Example(
            "Of an argument, two new values an iteration",
            STRIDED,
            "- reuse_at: {buffer: x, loop: y.i, layout: circular}",
            after="""\
def strided(n, x: float32[2 * n + 1], y: Out[float32[n]]):
    with allocate(x_reuse=float32[3]):
        with block("x_reuse_first", d0=spatial(0, 2 * n + 1), origin=None):
            x_reuse[d0 % 3] = x[d0]
        for y.i in range(n):
            for x_reuse.d0 in range(2):
                with block("x_reuse", d0=spatial(y.i * 2 + 1 + x_reuse.d0, 2 * n + 1), origin=None):
                    x_reuse[d0 % 3] = x[d0]
            with block("y", i=spatial(y.i)):
                y[i] = x_reuse[2 * i % 3] + x_reuse[(2 * i + 1) % 3] + x_reuse[(2 * i + 2) % 3]
""",
        ),
        Example(
            "Iterations that read nothing in common",
            TWICE,
            "- reuse_at: {buffer: x, loop: t.i}",
            refused="no two iterations of loop 't.i' read the same of 'x'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        buffer_named(state.kernel, self.buffer)
        loop = loop_named(state.kernel, self.loop)
        if isinstance(loop.body, Delinearize):
            return f"loop '{loop.var}' is fused: what it reads does not move by a constant"
        if reason := serial(loop):
            raise CannotApply(
                f"{reason}: what an iteration keeps for the next has to run before it",
                "split the loop before that, and reuse in the inner one",
            )
        kept = not self._is_copied(loop)
        if kept and (reason := self._refuse_keeping(state, loop)):
            return reason
        if self.layout == "halves" and (reason := self._refuse_halves(state, loop)):
            raise CannotApply(reason, "`layout: circular` has room for that")
        self._window(state, loop)
        if kept and (reason := self._refuse_values(state, loop)):
            return reason
        names = self._names(state, loop)
        wanted = len(replace(self, as_=None)._names(state, loop))
        if len(names) != wanted:
            return f"`as` must give {wanted} name{'s' if wanted > 1 else ''}"
        return taken(state.kernel, names)

    def _is_copied(self, loop: Loop) -> bool:
        """Whether the buffer is none that the loop computes."""
        return not any(self.buffer in written(b) for b in blocks(loop))

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
        return "circular" if self._refuse_halves(state, loop) else "halves"

    def _refuse_halves(self, state: Scheduled, loop: Loop) -> str | None:
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

    # ------------------------------------------------------------ a copy

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        loop = loop_named(state.kernel, self.loop)
        if not self._is_copied(loop):
            return ()
        copy, *others = self._names(state, loop)
        layout = self._layout(state, loop)
        return (
            CacheRead(self._reader(loop).name, self.buffer, self.loop, as_=copy, span=self.span),
            replace(self, buffer=copy, block=None, layout=layout, as_=tuple(others)),
        )

    # ------------------------------------------------------------ what the loop computes

    def _refuse_keeping(self, state: Scheduled, loop: Loop) -> str | None:
        """Why the loop cannot keep values that it computes, however they move."""
        root, block = tree(state.kernel), self._writer(state)
        if is_argument(state.kernel, self.buffer):
            return f"'{self.buffer}' is an argument, which block '{block.name}' writes in the loop"
        inside = {b.name for b in blocks(loop)}
        for user in blocks(root):
            if (used := written(block) & accessed(user)) and user.name not in inside:
                return f"block '{user.name}' uses '{min(used)}' outside loop '{self.loop}'"
        if not readers(state.flow, block.name):
            return f"nothing reads what block '{block.name}' computes"
        if self.block is not None:
            return f"'{self.buffer}' is computed in the loop: all blocks read it, not one of a copy"
        for around in loops_around(loop, block):
            if around is not loop and (reason := serial(around)):
                return f"{reason}; reuse first"
        for number, load in enumerate(loads(block.body)):
            if makers := set(state.flow[block.name, number].writers) & inside:
                raise CannotApply(
                    f"block '{block.name}' reads '{load.buffer}', which block '{min(makers)}'"
                    f" computes in loop '{loop.var}': it is not there for what is kept of an"
                    " iteration before",
                    f"`fill: inside`, and only then move block '{min(makers)}' into the loop",
                )
        return None

    def _refuse_values(self, state: Scheduled, loop: Loop) -> str | None:
        """Why what an iteration computes is of no use to the next."""
        block = self._writer(state)
        kept = kept_iters(tree(state.kernel), block, loop)
        for v, binding in zip(block.iters, block.bindings, strict=True):
            if v.name in kept and loop.var in variables(binding):
                return (
                    f"what block '{block.name}' computes in an iteration of loop '{loop.var}' has"
                    f" '{v.name}' of its own: the next one needs other values"
                )
        return None

    def _writer(self, state: Scheduled) -> Block:
        found = [b for b in blocks(state.kernel.body) if self.buffer in written(b)]
        match found:
            case [block] if isinstance(block.body, Store) or block.initialises:
                return block
            case [block]:
                raise CannotApply(f"block '{block.name}' adds to '{self.buffer}' in place")
            case _:
                some = " and ".join(f"'{b.name}'" for b in found)
                raise CannotApply(f"blocks {some} write '{self.buffer}': only one may")

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        keeping = Keeping(state, loop, self._writer(state), self._window(state, loop))
        match self._layout(state, loop), self._names(state, loop):
            case "circular", ():
                return keeping.circular_inside()
            case "circular", (first,):
                return keeping.circular(first)
            case _, (first, move):
                return keeping.halves(first, move)
            case _, names:
                raise AssertionError(f"checked: {names}")


def _reads(block: Block, buffer: str) -> bool:
    return any(load.buffer == buffer for load in loads(block.body))
