"""reuse_at: what an iteration read or computed is still there in the next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from ...ir.algebra import dtype_of, sub
from ...ir.nodes import Block, Delinearize, Expr, IterKind, Load, Loop, Stmt, Store, Update
from ...ir.walk import accessed, blocks, loads, replace_stmt, seq, substitute, targets, variables
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..bounds import normal
from ..edit import (
    CannotApply,
    buffer_named,
    containing,
    insert,
    is_argument,
    local_name,
    loop_named,
    loops_around,
    prune_shared,
    rebuild,
    remove,
    serial,
    taken,
    temporaries,
    tree,
    under,
    update_blocks,
    with_body,
    written,
)
from ..examples import BLUR, STRIDED, TWICE
from ..moving import inside_of, kept_iters, read_region, region_of, used_names
from ..placing import Interval, Region, place, required
from ..windows import Circular, Halves, Window, window
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
    and may be registers. `halves`: in two steps' room, and what is new moves from the second half
    to the first at the end of an iteration, so that places are constants and those of a vector lie
    side by side; no place may be read in more than two iterations. The default is halves where that
    holds. What the first iteration finds is made before the loop.

    `as` names what is created: the copy if there is one, the block before the loop, and the one
    that moves halves. From HeteroCL, whose buffers all shift element by element, as hardware does
    in one cycle. Its `buffer_at` is `cache_write`; its `partition` of an array over banks that are
    read in one cycle is not here, since a processor has one memory.
    """

    buffer: str
    loop: str
    block: str | None = None
    layout: Literal["auto", "circular", "halves"] = "auto"
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
        kept = not self._is_copied(state, loop)
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

    def _is_copied(self, state: Scheduled, loop: Loop) -> bool:
        """Whether the buffer is none that the loop computes."""
        return not any(self.buffer in written(b) for b in blocks(loop))

    def _names(self, state: Scheduled, loop: Loop) -> tuple[str, ...]:
        copied = self._is_copied(state, loop)
        base = f"{self.buffer}_reuse" if copied else self.buffer
        halved = self._layout(state, loop) == "halves"
        own = ((base,) if copied else (), (f"{base}_first",), (f"{base}_move",) if halved else ())
        return self.as_ or tuple(name for part in own for name in part)

    def _layout(self, state: Scheduled, loop: Loop) -> Literal["circular", "halves"]:
        if self.layout != "auto":
            return self.layout
        return "circular" if self._refuse_halves(state, loop) else "halves"

    def _refuse_halves(self, state: Scheduled, loop: Loop) -> str | None:
        """Why the window cannot lie in two halves."""
        found, moves = self._window(state, loop), f"what loop '{loop.var}' reads of '{self.buffer}'"
        if found.step < 0:
            return f"{moves} moves backwards"
        if found.kept > found.step:
            return (
                f"{moves} moves by {found.step} of {found.size} places: some are read in more than"
                " two iterations"
            )
        if not self._is_copied(state, loop) and isinstance(self._writer(state).body, Update):
            return f"block '{self._writer(state).name}' is a reduction: its values grow in place"
        return None

    def _window(self, state: Scheduled, loop: Loop) -> Window:
        return window(self.buffer, self._region(state, loop), loop)

    def _region(self, state: Scheduled, loop: Loop) -> Region:
        if self._is_copied(state, loop):
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
        if not self._is_copied(state, loop):
            return ()
        copy, *others = self._names(state, loop)
        layout = self._layout(state, loop)
        return (
            CacheRead(self._reader(loop).name, self.buffer, self.loop, as_=copy, span=self.span),
            ReuseAt(copy, self.loop, layout=layout, as_=tuple(others), span=self.span),
        )

    # ------------------------------------------------------------ what the loop computes

    def _refuse_keeping(self, state: Scheduled, loop: Loop) -> str | None:
        """Why the loop cannot keep values that it computes, however they move."""
        root, block = tree(state.kernel), self._writer(state)
        if is_argument(state.kernel, self.buffer):
            return f"'{self.buffer}' is an argument, which block '{block.name}' writes in the loop"
        inside = {b.name for b in blocks(loop)}
        for user in blocks(root):
            if self.buffer in accessed(user) and user.name not in inside:
                return f"block '{user.name}' uses '{self.buffer}' outside loop '{self.loop}'"
        if self.block is not None:
            return f"'{self.buffer}' is computed in the loop: all blocks read it, not one of a copy"
        for around in loops_around(loop, block):
            if around is not loop and (reason := serial(around)):
                return f"{reason}; reuse first"
        for number, load in enumerate(loads(block.body)):
            if makers := set(state.flow[block.name, number].writers) & inside:
                raise CannotApply(
                    f"block '{block.name}' reads '{load.buffer}', which block '{min(makers)}'"
                    f" computes in loop '{loop.var}': before the loop it is not there",
                    f"compute '{load.buffer}' before the loop, or let an outer one reuse it",
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
        if self._layout(state, loop) == "circular":
            return self._circular(state, loop)
        return self._halves(state, loop)

    def _circular(self, state: Scheduled, loop: Loop) -> Scheduled:
        root, block = tree(state.kernel), self._writer(state)
        (first,) = self._names(state, loop)
        found, around = self._window(state, loop), inside_of(root, loop)
        used = used_names(state, block) | {first}
        kept = kept_iters(root, block, loop)
        computes = place(block, around, kept, _covering(block, kept, found.new), used)
        begin = {loop.var: loop.lower}
        earlier = substitute(replace(block, name=first), begin)
        finds = tuple(i and _at(i, begin) for i in found.old)
        prologue = place(earlier, around[:-1], kept, _covering(earlier, kept, finds), used)

        view = Circular(self.buffer, found)
        rest = remove(root, block)
        left = loop_named(replace(state.kernel, body=rest), loop.var)
        body = seq((prologue, with_body(left, self._before_readers(left, computes))))
        kernel = rebuild(
            state.kernel,
            replace_stmt(rest, left, view.of(body)),
            tuple(view.shaped(b) for b in temporaries(state.kernel)),
        )
        return Scheduled(kernel, prune_shared(kernel, self._flow(state, block, loop, (first,))))

    def _halves(self, state: Scheduled, loop: Loop) -> Scheduled:
        root, block = tree(state.kernel), self._writer(state)
        first, move = self._names(state, loop)
        found, around = self._window(state, loop), inside_of(root, loop)
        start = local_name(state.kernel, "start", (v.name for b in blocks(root) for v in b.iters))
        view, at = Halves(self.buffer, found, start), found.first
        used = used_names(state, block) | {first, move}
        kept = kept_iters(root, block, loop)
        wanted = _covering(block, kept, found.new)
        computes = place(block, around, kept, wanted, used)
        moves = view.of(place(_moving(block, move), around, kept, wanted, used), at, around)
        moves = update_blocks(moves, view.moved_down)
        # What the first iteration finds is what one before it would have left.
        before = {loop.var: sub(loop.lower, 1)}
        earlier = (*around[:-1], replace(loop, lower=before[loop.var]))
        prologue = place(replace(block, name=first), earlier, kept, wanted, used)
        finds = substitute(at, {loop.var: loop.lower})
        prologue = view.of(substitute(prologue, before), finds, around[:-1])

        rest = remove(root, block)
        left = loop_named(replace(state.kernel, body=rest), loop.var)
        body = tuple(view.of(s, at, around) for s in self._before_readers(left, computes))
        kernel = rebuild(
            state.kernel,
            replace_stmt(rest, left, seq((prologue, with_body(left, (*body, moves))))),
            tuple(view.shaped(b) for b in temporaries(state.kernel)),
        )
        flow = dict(self._flow(state, block, loop, (first, move)))
        outer = tuple(x.var for x in loops_around(root, loop))
        flow[move, 0] = Source((block.name,), shared=(*outer, self.loop))
        return Scheduled(kernel, prune_shared(kernel, flow))

    def _before_readers(self, loop: Loop, computes: Stmt) -> tuple[Stmt, ...]:
        """The loop's statements with what computes the new part where it is first wanted."""
        first = containing(under(loop), lambda b: self.buffer in accessed(b))[0]
        return insert(under(loop), first, computes)

    def _flow(self, state: Scheduled, block: Block, loop: Loop, new: tuple[str, ...]) -> Flow:
        """Values are taken from any iteration of the loop, and from the new blocks, of which the
        first computes what `block` does.
        """
        outer = tuple(x.var for x in loops_around(tree(state.kernel), loop))
        result = dict(state.flow)
        for (reader, number), source in state.flow.items():
            if reader == block.name:
                result[new[0], number] = source
            if block.name in source.writers:
                result[reader, number] = Source((block.name, *new), shared=outer)
        return result


def _reads(block: Block, buffer: str) -> bool:
    return any(load.buffer == buffer for load in loads(block.body))


def _at(interval: Interval, values: Mapping[str, Expr]) -> Interval:
    lower, upper = (normal(substitute(e, values)) for e in (interval.lower, interval.upper))
    return Interval(lower, upper)


def _covering(block: Block, kept: frozenset[str], region: Region) -> Mapping[str, Interval]:
    """What the block must run over to fill a region of its buffer."""
    pairs = zip(block.iters, block.bindings, strict=True)
    known = {v.name: value for v, value in pairs if v.name in kept}
    places = tuple(substitute(i, known) for i in targets(block.body)[0].indices)
    spatial = frozenset(v.name for v in block.iters if v.kind is IterKind.SPATIAL)
    return required(places, region, spatial)


def _moving(block: Block, name: str) -> Block:
    """A block that stores what is in the places that `block` writes."""
    assert isinstance(block.body, Store)
    target = block.body.target
    copy = Load(target.buffer, target.indices, dtype_of(block.body.value))
    return replace(block, name=name, body=Store(target, copy), origin=None, annotations=())
