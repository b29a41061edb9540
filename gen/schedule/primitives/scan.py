"""scan: running reductions in one pass."""

from dataclasses import replace

from ...ir.algebra import add, ceildiv, conjunction, index, less, mul, sub
from ...ir.nodes import Binary, Block, Buffer, Combiner, Expr, IterKind, IterVar, Load, Stmt, Var
from ...ir.walk import replace_stmt, seq
from ...poly.certificate import Flow, Scheduled, Source
from ...poly.values.roles import COMBINING
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.running_reductions import Running, running
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, RUNNING_SUM

OPERATORS = {combiner: op for op, combiner in COMBINING.items()}


BEFORE = RUNNING_SUM.replace("range(y.j + 1)", "range(y.j)").replace("k, j + 1)", "k, j)")
FROM_ON = RUNNING_SUM.replace("range(y.j + 1)", "range(y.j, n)").replace("k, j + 1)", "k, j, n)")


class Scan(Primitive):
    """Computes running reductions, `y[j] = sum(x[k] for k in range(j + 1))`, in one pass: what is
    carried from one result to the next holds the terms so far.

    The terms of a result may end before its place, `range(j)`, and may be those from it on,
    `range(j, n)` or `range(j + 1, n)`; then the results are taken from the last to the first. The
    first result that is taken has one term or none: no term gives the identity.

    With a `width`, the results are taken that many at a time: running reductions that start anew
    in each chunk, and so need not wait for each other, are combined with the carry, which is kept
    once for each place in a chunk, so that it can be a vector. `as` names the block and buffer of
    those (with a width only), and those of the carry. A result without terms is stored by a block
    of its own there, `y_first`.
    """

    block: str
    width: int | None = None
    as_: str | tuple[str, ...] | None = None

    aliases = ()

    def apply(self, state: Scheduled) -> Scheduled:
        if self.width is not None and self.width < 2:
            reason = f"width {self.width} is less than 2; leave it out for one at a time"
            raise CannotApply(reason)
        found = running(state.kernel, self.block)
        if self.width and found.body.combiner not in OPERATORS:
            reason = f"no operator combines two partial results of '{found.body.combiner.value}'"
            raise CannotApply(reason)
        names = self._names()
        if len(names) != (2 if self.width else 1):
            raise CannotApply(f"`as` must give {'2 names' if self.width else '1 name'}")
        for name in names:
            edit.require_free_buffer(state.kernel, name)
        new = self._loops(found) if self.width else ()
        edit.require_free(state.kernel, (*names, *new), {found.outer.var})
        if self.width is None:
            return self._one_by_one(state, found)
        return self._in_chunks(state, found, self.width)

    def _names(self) -> tuple[str, ...]:
        """The blocks and buffers of the chunks, where there are any, and of the carry."""
        if self.as_ is not None:
            return (self.as_,) if isinstance(self.as_, str) else self.as_
        names = f"{self.block}_scan", f"{self.block}_carry"
        return names if self.width else names[1:]

    def _loops(self, found: Running) -> tuple[str, str, str, str, str]:
        """The loops over chunks; over a chunk for its running reductions, and over the terms of
        one; over a chunk for its results, and for the carry.
        """
        (prefix, carry), outer = self._names(), found.outer.var
        lane = f"{edit.index_of(outer)}_1"
        term = f"{prefix}.{edit.index_of(found.inner.var)}"
        return f"{outer}_0", f"{prefix}.{lane}", term, f"{outer}_1", f"{carry}.{lane}"

    def _one_by_one(self, state: Scheduled, found: Running) -> Scheduled:
        (carry,) = self._names()
        at, j, here = found.elsewhere, Var(found.position.name), Var(found.outer.var)
        results = found.count if found.empty is None else add(found.count, 1)
        position = replace(found.position, lower=index(0), upper=results)
        reduced = replace(position, kind=IterKind.REDUCTION)
        result, term = found.result(j), found.term_at(j)
        adding = found.adding(carry, at, result, term, (*found.own, (reduced, here)))
        copied = Load(carry, at, found.buffer.dtype)
        to = (*found.own, (position, here))
        if found.empty is None:
            parts = adding, found.storing(copied, result, to)
        else:
            guard = conjunction(adding.predicate, less(here, found.count))
            before = found.storing(copied, found.result(sub(j, 1)), to)
            parts = before, replace(adding, predicate=guard)
        body = edit.nest(found.between, seq(parts))
        loop = replace(found.outer, lower=index(0), upper=results, body=body)
        reads = {(self.block, 0): Source((carry,), shared=found.around)}
        return self._done(state, found, (loop,), (found.temporary(carry),), reads)

    def _in_chunks(self, state: Scheduled, found: Running, width: int) -> Scheduled:
        prefix, carry = self._names()
        chunks, prefix_lane, prefix_term, lane, carry_lane = self._loops(found)
        dtype, end = found.buffer.dtype, found.count
        j0, j1 = found.locals(state.kernel)
        at, first = (*found.elsewhere, Var(j1)), mul(Var(j0), width)
        last = index(0) if found.down else index(width - 1)

        def ordinal(chunk: Expr, lane: Expr) -> Expr:
            """Lanes lie as the results do in memory, be they taken downwards."""
            return add(chunk, sub(index(width - 1), lane) if found.down else lane)

        place = found.result(ordinal(first, Var(j1)))
        chunk = (IterVar(j0, index(0), ceildiv(end, width)), Var(chunks))
        passed = (replace(chunk[0], kind=IterKind.REDUCTION), Var(chunks))

        def inside(loop: str) -> tuple[IterVar, Expr]:
            return IterVar(j1, index(0), index(width)), Var(loop)

        def there(block: Block, result: Expr) -> Block:
            within = less(ordinal(mul(Var(chunks), width), result), end)
            return replace(block, predicate=conjunction(block.predicate, within))

        def in_chunk(loop: str, body: Stmt) -> Stmt:
            return replace(edit.serial_loop(loop, index(0), index(width)), body=body)

        def so_far(lane: str) -> tuple[Expr, Expr]:
            """The lanes whose terms a lane's result has."""
            ends = index(0), add(Var(lane), 1)
            return (Var(lane), index(width)) if found.down else ends

        k = replace(found.term, lower=so_far(j1)[0], upper=so_far(j1)[1])
        bound = (*found.own, chunk, inside(prefix_lane), (k, Var(prefix_term)))
        term = found.term_at(ordinal(first, Var(k.name)))
        local = found.adding(prefix, at, place, term, bound)
        terms = edit.serial_loop(prefix_term, *so_far(prefix_lane))
        assert isinstance(found.body.combiner, Combiner)
        op = OPERATORS[found.body.combiner]
        both = Binary(op, Load(carry, at, dtype), Load(prefix, at, dtype))
        result = found.storing(both, place, (*found.own, chunk, inside(lane)))
        total = Load(prefix, (*found.elsewhere, last), dtype)
        passing = found.passing(carry, at, total, (*found.own, passed, inside(carry_lane)))
        parts = (
            in_chunk(prefix_lane, replace(terms, body=there(local, Var(prefix_lane)))),
            in_chunk(lane, there(result, Var(lane))),
            in_chunk(carry_lane, there(passing, last)),
        )
        outer = edit.serial_loop(chunks, index(0), ceildiv(end, width))
        shared = (*found.around, chunks, *(x.var for x in found.between))
        reads = {
            (self.block, 0): Source((carry,), shared=found.around),
            (self.block, 1): Source((prefix,), shared=shared),
            (carry, 0): Source((prefix,), shared=shared),
        }
        buffers = tuple(found.temporary(name, width) for name in (prefix, carry))
        chunk_loop = edit.nest((outer, *found.between), seq(parts))
        return self._done(state, found, (*self._first(state, found), chunk_loop), buffers, reads)

    def _first(self, state: Scheduled, found: Running) -> tuple[Stmt, ...]:
        """What stores the result without terms, if there is one."""
        if found.empty is None:
            return ()
        taken = {*edit.names(state.kernel), *self._names(), *self._loops(found)}
        name = edit.fresh(f"{self.block}_first", taken)
        loops = {x.var: f"{name}.{edit.index_of(x.var)}" for x in found.between}
        return (found.first(found.empty, name, loops),)

    def _done(
        self,
        state: Scheduled,
        found: Running,
        parts: tuple[Stmt, ...],
        buffers: tuple[Buffer, ...],
        reads: Flow,
    ) -> Scheduled:
        """The tree with the parts in place of the old loop. reads: the sources of what is new; the
        first of the new buffers takes the terms.
        """
        body = replace_stmt(edit.tree(state.kernel), found.outer, seq(parts))
        kernel = edit.rebuild(state.kernel, body, *buffers)
        adding = buffers[0].name
        moved = {
            ((adding, number) if reader == self.block else (reader, number)): source
            for (reader, number), source in state.flow.items()
        }
        return Scheduled(kernel, {**moved, **reads})

    EXAMPLES = (
        Example("One result after the other", RUNNING_SUM, "- scan: {block: y}"),
        Example("Four results at a time", RUNNING_SUM, "- scan: {block: y, width: 4}"),
        Example("The sum of what is before each place", BEFORE, "- scan: {block: y}"),
        Example(
            "The sum from each place on, four at a time", FROM_ON, "- scan: {block: y, width: 4}"
        ),
        Example(
            "A reduction that is not running",
            ROW_SUM,
            "- scan: {block: y}",
            refused="block 'y' is not a running reduction: loop 'y.j' is over range(0, n), of "
            "which no loop around it moves one end, by 1",
        ),
    )
