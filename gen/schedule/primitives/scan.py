"""scan: running reductions in one pass."""

from dataclasses import replace

from ...ir.algebra import add, ceildiv, conjunction, index, less, mul
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


class Scan(Primitive):
    """Computes running reductions, `y[j] = sum(x[k] for k in range(j + 1))`, in one pass: what is
    carried from one result to the next holds the terms so far.

    With a `width`, the results are taken that many at a time: running reductions that start anew
    in each chunk, and so need not wait for each other, are combined with the carry, which is kept
    once for each place in a chunk, so that it can be a vector. `as` names the block and buffer of
    those (with a width only), and those of the carry.
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
        reduced = replace(found.position, kind=IterKind.REDUCTION)
        adding = found.adding(carry, at, j, j, (*found.own, (reduced, here)))
        copied = Load(carry, at, found.buffer.dtype)
        storing = found.storing(copied, j, (*found.own, (found.position, here)))
        loop = replace(found.outer, body=edit.nest(found.between, seq((adding, storing))))
        reads = {(self.block, 0): Source((carry,), shared=found.around)}
        return self._done(state, found, loop, (found.temporary(carry),), reads)

    def _in_chunks(self, state: Scheduled, found: Running, width: int) -> Scheduled:
        prefix, carry = self._names()
        chunks, prefix_lane, prefix_term, lane, carry_lane = self._loops(found)
        dtype, end = found.buffer.dtype, found.outer.upper
        j0, j1 = found.locals(state.kernel)
        at, first = (*found.elsewhere, Var(j1)), mul(Var(j0), width)
        place = add(first, Var(j1))
        chunk = (IterVar(j0, index(0), ceildiv(end, width)), Var(chunks))
        so_far = (replace(chunk[0], kind=IterKind.REDUCTION), Var(chunks))

        def inside(loop: str) -> tuple[IterVar, Expr]:
            return IterVar(j1, index(0), index(width)), Var(loop)

        def there(block: Block, result: Expr) -> Block:
            within = less(add(mul(Var(chunks), width), result), end)
            return replace(block, predicate=conjunction(block.predicate, within))

        def in_chunk(loop: str, body: Stmt) -> Stmt:
            return replace(edit.serial_loop(loop, index(0), index(width)), body=body)

        k = replace(found.term, lower=index(0), upper=add(Var(j1), 1))
        bound = (*found.own, chunk, inside(prefix_lane), (k, Var(prefix_term)))
        local = found.adding(prefix, at, place, add(first, Var(k.name)), bound)
        terms = edit.serial_loop(prefix_term, index(0), add(Var(prefix_lane), 1))
        assert isinstance(found.body.combiner, Combiner)
        op = OPERATORS[found.body.combiner]
        both = Binary(op, Load(carry, at, dtype), Load(prefix, at, dtype))
        result = found.storing(both, place, (*found.own, chunk, inside(lane)))
        total = Load(prefix, (*found.elsewhere, index(width - 1)), dtype)
        passing = found.passing(carry, at, total, (*found.own, so_far, inside(carry_lane)))
        parts = (
            in_chunk(prefix_lane, replace(terms, body=there(local, Var(prefix_lane)))),
            in_chunk(lane, there(result, Var(lane))),
            in_chunk(carry_lane, there(passing, index(width - 1))),
        )
        outer = edit.serial_loop(chunks, index(0), ceildiv(end, width))
        shared = (*found.around, chunks, *(x.var for x in found.between))
        reads = {
            (self.block, 0): Source((carry,), shared=found.around),
            (self.block, 1): Source((prefix,), shared=shared),
            (carry, 0): Source((prefix,), shared=shared),
        }
        buffers = tuple(found.temporary(name, width) for name in (prefix, carry))
        return self._done(
            state, found, edit.nest((outer, *found.between), seq(parts)), buffers, reads
        )

    def _done(
        self, state: Scheduled, found: Running, loop: Stmt, buffers: tuple[Buffer, ...], reads: Flow
    ) -> Scheduled:
        """The tree with the loop in place of the old one. reads: the sources of what is new; the
        first of the new buffers takes the terms.
        """
        body = replace_stmt(edit.tree(state.kernel), found.outer, loop)
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
        Example(
            "A reduction that is not running",
            ROW_SUM,
            "- scan: {block: y}",
            refused="block 'y' is not a running reduction: loop 'y.j' is over range(0, n), not "
            "over range(0, the variable of a loop around it + 1)",
        ),
    )
