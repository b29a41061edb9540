"""What reuse_at makes of a loop that computes a buffer of which each iteration reads a window.

Input: a hoisted tree, the loop, the block that computes the buffer in it, and the window. Output:
the tree in which an iteration computes only what is new, and its certificate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from ...ir.algebra import add, conjunction, conjuncts, dtype_of, less, sub
from ...ir.index.bounds import at_most, normal
from ...ir.nodes import Binary, BinaryOp, Block, Expr, IterKind, Load, Loop, Stmt, Store, Var
from ...ir.walk import accessed, blocks, loads, replace_stmt, seq, substitute, targets
from ...poly.certificate import Scheduled, Source
from .moving import inside_of, kept_iters, used_names
from .new_loops import Interval, Region, place, required
from .tree import (
    containing,
    guarded,
    insert,
    local_name,
    loop_named,
    loops_around,
    ranges_of,
    rebuild,
    remove,
    temporaries,
    tree,
    under,
    update_blocks,
    with_body,
)
from .windows import Circular, Halves, Window


@final
@dataclass(frozen=True, slots=True)
class Keeping:
    """A loop that is to keep the window `found` of what `block` computes in it."""

    state: Scheduled
    loop: Loop
    block: Block
    found: Window

    def circular(self, first: str) -> Scheduled:
        """Modulo the window's size; block `first` fills the window before the loop."""
        loop, around, used = self.loop, self._around, self._used(first)
        kept = kept_iters(self._root, self.block, loop)
        computes = place(
            self.block, around, kept, _covering(self.block, kept, self.found.new), used
        )
        begin = {loop.var: loop.lower}
        earlier = substitute(replace(self.block, name=first), begin)
        finds = tuple(i and _at(i, begin) for i in self.found.old)
        prologue = place(earlier, around[:-1], kept, _covering(earlier, kept, finds), used)
        prologue = self._if_the_loop_runs(prologue)
        rest, left = self._without_block()
        new = seq((prologue, with_body(left, self._before_readers(left, computes))))
        view = Circular(self._buffer, self.found)
        return self._done(rest, left, view.of(new), view, (first,))

    def circular_inside(self) -> Scheduled:
        """Modulo the window's size, in a loop that begins when there is something to fill it with;
        its other blocks run from where it began before.
        """
        rest, left = self._without_block()
        filling = -(-self.found.kept // abs(self.found.step))
        longer = replace(left, lower=normal(sub(left.lower, filling)))
        kept = kept_iters(self._root, self.block, self.loop)
        wanted = _covering(self.block, kept, self.found.new)
        computes = place(self.block, (*self._around[:-1], longer), kept, wanted, self._used())
        computes = self._if_the_loop_runs(computes)
        body = with_body(longer, tuple(_from(s, left) for s in under(left)))
        new = with_body(body, self._before_readers(body, computes))
        view = Circular(self._buffer, self.found)
        return self._done(rest, left, view.of(new), view, ())

    def halves(self, first: str, move: str) -> Scheduled:
        """In two steps' room; `first` fills the window before the loop, `move` moves it."""
        loop, around, at = self.loop, self._around, self.found.first
        used = self._used(first, move)
        names = (v.name for b in blocks(self._root) for v in b.iters)
        view = Halves(self._buffer, self.found, local_name(self.state.kernel, "start", names))
        kept = kept_iters(self._root, self.block, loop)
        wanted = _covering(self.block, kept, self.found.new)
        computes = place(self.block, around, kept, wanted, used)
        moves = view.of(place(_moving(self.block, move), around, kept, wanted, used), at, around)
        moves = update_blocks(moves, view.moved_down)
        # What the first iteration finds is what one before it would have left.
        before = {loop.var: sub(loop.lower, 1)}
        earlier = (*around[:-1], replace(loop, lower=before[loop.var]))
        prologue = place(replace(self.block, name=first), earlier, kept, wanted, used)
        finds = substitute(at, {loop.var: loop.lower})
        prologue = view.of(substitute(prologue, before), finds, around[:-1])
        prologue = self._if_the_loop_runs(prologue)
        rest, left = self._without_block()
        body = tuple(view.of(s, at, around) for s in self._before_readers(left, computes))
        new = seq((prologue, with_body(left, (*body, moves))))
        return self._done(rest, left, new, view, (first, move))

    @property
    def _root(self) -> Stmt:
        return tree(self.state.kernel)

    @property
    def _buffer(self) -> str:
        return targets(self.block.body)[0].buffer

    @property
    def _around(self) -> tuple[Stmt, ...]:
        """What stands around a statement of the loop; it is not fused."""
        return inside_of(self._root, self.loop)

    def _used(self, *new: str) -> frozenset[str]:
        return used_names(self.state, self.block) | set(new)

    def _if_the_loop_runs(self, stmt: Stmt) -> Stmt:
        """The statement, which fills the window: of a loop that is empty, what it would read of
        other temporaries need not be there.
        """
        number = range(len(loads(self.block.body)))
        computed = any(self.state.flow[self.block.name, n].writers for n in number)
        ranges = ranges_of(self._around[:-1])
        if not computed or at_most(add(self.loop.lower, 1), self.loop.upper, ranges):
            return stmt
        return guarded(stmt, less(self.loop.lower, self.loop.upper))

    def _without_block(self) -> tuple[Stmt, Loop]:
        """The tree and the loop without the block."""
        rest = remove(self._root, self.block)
        return rest, loop_named(replace(self.state.kernel, body=rest), self.loop.var)

    def _before_readers(self, loop: Loop, computes: Stmt) -> tuple[Stmt, ...]:
        """The loop's statements with what computes the new part where it is first wanted."""
        first = containing(under(loop), lambda b: self._buffer in accessed(b))[0]
        return insert(under(loop), first, computes)

    def _done(
        self, rest: Stmt, left: Loop, new: Stmt, view: Circular | Halves, names: tuple[str, ...]
    ) -> Scheduled:
        """The tree with `new` in place of the loop; values come from any iteration of it, and from
        the blocks `names`: the first computes what `block` does, the second moves it.
        """
        kernel = rebuild(
            self.state.kernel,
            replace_stmt(rest, left, new),
            buffers=tuple(view.shaped(b) for b in temporaries(self.state.kernel)),
        )
        outer = tuple(x.var for x in loops_around(self._root, self.loop))
        flow: dict[tuple[str, int], Source] = dict(self.state.flow)
        for (reader, number), source in self.state.flow.items():
            if reader == self.block.name and names:
                flow[names[0], number] = source
            if self.block.name in source.writers:
                flow[reader, number] = Source((self.block.name, *names), shared=outer)
        for move in names[1:]:
            flow[move, 0] = Source((self.block.name,), shared=(*outer, self.loop.var))
        return Scheduled(kernel, flow)


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


def _from(stmt: Stmt, loop: Loop) -> Stmt:
    """The statement, of a loop that will begin earlier, from where it begins now."""

    def known(condition: Expr) -> bool:
        match condition:
            case Binary(BinaryOp.LE, lower, Var(name)) if name == loop.var:
                return at_most(loop.lower, lower)
            case _:
                return False

    def go(block: Block) -> Block:
        if any(map(known, conjuncts(block.predicate))):
            return block
        guard = Binary(BinaryOp.LE, loop.lower, Var(loop.var))
        return replace(block, predicate=conjunction(block.predicate, guard))

    return update_blocks(stmt, go)


def _moving(block: Block, name: str) -> Block:
    """A block that stores what is in the places that `block` writes."""
    assert isinstance(block.body, Store)
    target = block.body.target
    copy = Load(target.buffer, target.indices, dtype_of(block.body.value))
    return replace(block, name=name, body=Store(target, copy), origin=None, annotations=())
