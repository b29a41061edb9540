"""peel: the first iterations of a loop, or its last, in a loop of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.algebra import add, index, sub
from ...ir.index.bounds import highest, larger, lowest, smaller
from ...ir.nodes import Expr, Loop, Stmt, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import ancestors, blocks, replace_stmt, seq, substitute, variables
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.moving import new_names, renamed
from ..edit.tree import CannotApply
from ..examples import BELOW, ROW_SQUARES, ROW_SUM, STENCIL


class Peel(Primitive):
    """Cuts a loop in two that run one after the other: its first `at` iterations and the rest, or
    where `at` is negative its last `-at` and what is before.

    Where `at` names a loop further out, one part is what all iterations of the loops inside of that
    one share: of the terms of a row of a triangle, the first part is those that all rows of a block
    have, which are a rectangle, and the rest is the block's own triangle.

    `as` names the two loops. The blocks of the first part get names of their own, so that each part
    can be scheduled its own way; a guard or a bound that one part never meets is gone after
    lowering, and so are a `min`, a `max` and a turn around a ring, as in `x[(i - 1) % n]`.
    """

    loop: str
    at: int | str
    as_: tuple[str, ...] | None = None

    aliases = ("partition", "loop_partition", "cut_loop")

    def apply(self, state: Scheduled) -> Scheduled:
        loop = edit.loop_named(state.kernel, self.loop)
        if self.at == 0:
            raise CannotApply("`at` of 0 leaves the loop as it is")
        for block in blocks(loop):
            if block.initialises and self.loop in edit.reduction_loops(block):
                raise CannotApply(
                    f"loop '{self.loop}' is one of the reduction '{block.name}': "
                    "decompose_reduction first"
                )
        if len(self._names()) != 2:
            raise CannotApply("`as` must give 2 names")
        edit.require_unfused(loop)
        edit.require_free_loops(state.kernel, self._names(), {self.loop})
        root = edit.tree(state.kernel)
        first, rest = self._names()
        new = new_names(state.kernel, (loop.body,))
        cut = self._cut(loop, ancestors(root, loop))
        head = substitute(renamed(loop.body, new), {loop.var: Var(first)})
        tail = substitute(loop.body, {loop.var: Var(rest)})
        parts = (
            replace(loop, var=first, upper=cut, body=head),
            replace(loop, var=rest, lower=cut, body=tail),
        )
        kernel = edit.rebuild(state.kernel, replace_stmt(root, loop, seq(parts)))
        inside = frozenset(b.name for b in blocks(loop))
        flow = _flow(edit.unshared(state, loop, cut), loop.var, inside, new, (first, rest))
        return Scheduled(kernel, flow)

    def _names(self) -> tuple[str, ...]:
        return self.as_ or (f"{self.loop}_0", f"{self.loop}_1")

    def _cut(self, loop: Loop, around: tuple[Stmt, ...]) -> Expr:
        """Where the second part begins, never outside of the loop."""
        ranges = edit.ranges_of(around)
        if isinstance(self.at, str):
            return self._shared(loop, self.at, around)
        if self.at > 0:
            return smaller(add(loop.lower, self.at), loop.upper, ranges)
        return larger(sub(loop.upper, index(-self.at)), loop.lower, ranges)

    def _shared(self, loop: Loop, outer: str, around: tuple[Stmt, ...]) -> Expr:
        """Where what all iterations inside of the outer loop share ends, or where it begins."""
        place = next((k for k, s in enumerate(around) if _is_loop(s, outer)), None)
        if place is None:
            raise CannotApply(f"loop '{outer}' is not around loop '{self.loop}'")
        ranges, inside = edit.ranges_of(around), edit.ranges_of(around[place + 1 :])
        from_, to = _ends_within(loop, around[place + 1 :])
        if from_ == to:
            both = "both ends" if to else "neither end"
            raise CannotApply(
                f"{both} of loop '{self.loop}' depend{'' if to else 's'} on loops inside of"
                f" '{outer}'; one has to",
                _other_place(loop, around),
            )
        cut = lowest(loop.upper, inside) if to else highest(loop.lower, inside)
        if cut is None:
            end = expr_to_text(loop.upper if to else loop.lower)
            raise CannotApply(f"nothing bounds `{end}` inside of loop '{outer}'")
        return larger(cut, loop.lower, ranges) if to else smaller(cut, loop.upper, ranges)

    EXAMPLES = (
        Example(
            "The element without a left neighbour by itself",
            STENCIL,
            "- peel: {loop: y.i, at: 1, as: [y.first, y.i]}",
        ),
        Example(
            "What the rows of a block have all of, and the triangles on the diagonal",
            BELOW,
            "- split: {loop: y.i, factors: [null, 4]}\n- peel: {loop: y.j, at: y.i_0}",
        ),
        Example(
            "A loop that ends where it does for all rows",
            ROW_SQUARES,
            "- peel: {loop: t.j, at: t.i}",
            refused="neither end of loop 't.j' depends on loops inside of 't.i'; one has to",
        ),
        Example(
            "A loop of a reduction, whose init would run twice",
            ROW_SUM,
            "- peel: {loop: y.j, at: 4}",
            refused="loop 'y.j' is one of the reduction 'y': decompose_reduction first",
        ),
        Example(
            "No iterations",
            ROW_SUM,
            "- peel: {loop: y.i, at: 0}",
            refused="`at` of 0 leaves the loop as it is",
        ),
    )


def _ends_within(loop: Loop, inside: Sequence[Stmt]) -> tuple[bool, bool]:
    """Whether where the loop begins, and where it ends, changes with the loops around it."""
    changing = {r.var for r in edit.ranges_of(inside)}
    return bool(variables(loop.lower) & changing), bool(variables(loop.upper) & changing)


def _other_place(loop: Loop, around: Sequence[Stmt]) -> str:
    """A loop that `at` may name, the outermost, else a number."""
    for k, outer in enumerate(around):
        from_, to = _ends_within(loop, around[k + 1 :])
        if isinstance(outer, Loop) and from_ != to:
            return f"`at: {outer.var}` has one"
    return "no loop around it has one; a number cuts it, as in `at: 1`"


def _is_loop(s: Stmt, name: str) -> bool:
    return isinstance(s, Loop) and s.var == name


def _flow(
    flow: Flow, loop: str, inside: frozenset[str], new: Mapping[str, str], parts: tuple[str, str]
) -> Flow:
    """Each part takes from itself what was taken in one iteration, and from both what was not."""
    first, rest = parts

    def require_free(source: Source, part: str, names_: Mapping[str, str]) -> Source:
        if loop in source.shared:
            writers = tuple(names_.get(w, w) for w in source.writers)
            shared = tuple(part if s == loop else names_.get(s, s) for s in source.shared)
            return replace(source, writers=writers, shared=shared)
        both = (x for w in source.writers for x in ((new[w], w) if w in inside else (w,)))
        return replace(source, writers=tuple(both))

    found: dict[tuple[str, int], Source] = {}
    for (reader, number), source in flow.items():
        found[reader, number] = require_free(source, rest, {})
        if reader in inside:
            found[new[reader], number] = require_free(source, first, new)
    return found
