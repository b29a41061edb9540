"""reuse_at: what an iteration computed is still there in the next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import dtype_of, sub
from ...ir.nodes import Block, Delinearize, Kernel, Load, Store
from ...ir.walk import accessed, blocks, replace_stmt, seq, substitute, targets
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit import (
    CannotApply,
    buffer_named,
    containing,
    insert,
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
from ..examples import BLUR
from ..moving import inside_of, kept_iters, used_names
from ..placing import Interval, place, required
from ..windows import View, Window, window


@final
@dataclass(frozen=True)
class ReuseAt(Primitive):
    """Keeps what an iteration computed for the next one, where what both read of a buffer overlaps:
    each iteration computes only what no other did before it.

    The buffer becomes a window of two steps of the loop. A block before the loop computes what the
    first iteration finds there, and one at the end of an iteration moves what is new down for the
    next; `as` names the two. The values must be computed in the loop already, by `compute_at`.
    """

    buffer: str
    loop: str
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
            "Values that are all computed before the loop",
            BLUR,
            "- reuse_at: {buffer: t, loop: y.i}",
            refused="block 't' is not computed in loop 'y.i'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        kernel, root = state.kernel, tree(state.kernel)
        if buffer_named(kernel, self.buffer) not in temporaries(kernel):
            return f"'{self.buffer}' is an argument: all of it is there at all times"
        loop, block = loop_named(kernel, self.loop), self._writer(kernel)
        if not any(loop is x for x in loops_around(root, block)):
            raise CannotApply(
                f"block '{block.name}' is not computed in loop '{self.loop}'",
                f"compute_at: {{block: {block.name}, loop: {self.loop}}} moves it there",
            )
        inside = {b.name for b in blocks(loop)}
        for user in blocks(root):
            if self.buffer in accessed(user) and user.name not in inside:
                return f"block '{user.name}' uses '{self.buffer}' outside loop '{self.loop}'"
        if isinstance(loop.body, Delinearize):
            return f"loop '{self.loop}' is fused: what it reads does not move by a constant"
        for around in loops_around(loop, block):
            if around is not loop and (reason := serial(around)):
                return f"{reason}; reuse first"
        if len(self._names()) != 2:
            return "`as` must give 2 names"
        window(state, block, loop)
        return serial(loop) or taken(kernel, self._names())

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.buffer}_first", f"{self.buffer}_move")

    def _writer(self, kernel: Kernel) -> Block:
        found = [b for b in blocks(kernel.body) if self.buffer in written(b)]
        match found:
            case [Block(body=Store()) as block]:
                return block
            case [block]:
                raise CannotApply(f"block '{block.name}' is a reduction: its values grow in place")
            case _:
                raise CannotApply(f"several blocks write '{self.buffer}'")

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, loop = tree(state.kernel), loop_named(state.kernel, self.loop)
        block = self._writer(state.kernel)
        found = window(state, block, loop)
        first, move = self._names()
        start = local_name(state.kernel, "start", (v.name for b in blocks(root) for v in b.iters))
        view = View(self.buffer, found, start)
        used = used_names(state, block) | {first, move}
        around, at = inside_of(root, loop), found.first
        kept = kept_iters(root, block, loop)
        wanted = self._new_part(block, kept, found)

        computes = view.of(place(block, around, kept, wanted, used), at, around)
        moves = view.of(place(_moving(block, move), around, kept, wanted, used), at, around)
        moves = update_blocks(moves, view.moved_down)
        # What the first iteration finds is what one before it would have left.
        before = {loop.var: sub(loop.lower, 1)}
        earlier = (*around[:-1], replace(loop, lower=before[loop.var]))
        prologue = place(replace(block, name=first), earlier, kept, wanted, used)
        finds = substitute(found.first, {loop.var: loop.lower})
        prologue = view.of(substitute(prologue, before), finds, around[:-1])

        rest = remove(root, block)
        left = loop_named(replace(state.kernel, body=rest), loop.var)
        here = containing(under(left), lambda b: self.buffer in accessed(b))[0]
        body = tuple(view.of(s, at, around) for s in under(left))
        new = with_body(left, (*insert(body, here, computes), moves))
        kernel = rebuild(
            state.kernel,
            replace_stmt(rest, left, seq((prologue, new))),
            tuple(view.shaped(b) for b in temporaries(state.kernel)),
        )
        outer = tuple(x.var for x in loops_around(root, loop))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state.flow, block, outer)))

    def _new_part(
        self, block: Block, kept: frozenset[str], found: Window
    ) -> Mapping[str, Interval]:
        """What the block must cover in an iteration."""
        pairs = zip(block.iters, block.bindings, strict=True)
        known = {v.name: value for v, value in pairs if v.name in kept}
        places = tuple(substitute(i, known) for i in targets(block.body)[0].indices)
        return required(places, found.new, frozenset(v.name for v in block.iters))

    def _flow(self, flow: Flow, block: Block, outer: tuple[str, ...]) -> Flow:
        first, move = self._names()
        result = dict(flow)
        for (reader, number), source in flow.items():
            if reader == block.name:
                result[first, number] = source
            if block.name in source.writers:
                result[reader, number] = Source((block.name, first, move), shared=outer)
        result[move, 0] = Source((block.name,), shared=(*outer, self.loop))
        return result


def _moving(block: Block, name: str) -> Block:
    """A block that stores what is in the places that `block` writes."""
    assert isinstance(block.body, Store)
    target = block.body.target
    copy = Load(target.buffer, target.indices, dtype_of(block.body.value))
    return replace(block, name=name, body=Store(target, copy), origin=None, annotations=())
