"""merge: sibling loops become one."""

from collections.abc import Iterator

from ...ir.algebra import less
from ...ir.index.bounds import larger, smaller
from ...ir.index.linear import same
from ...ir.nodes import Binary, BinaryOp, Expr, Loop, Seq, Stmt, Var
from ...ir.walk import ancestors, blocks, replace_stmt, seq, substitute
from ...poly.certificate import Scheduled
from ...poly.queries.distances import lag
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.shared_loops import share_loop
from ..edit.tree import CannotApply
from ..examples import SCALE, SHARE, TWICE
from .shift import Shift


class Merge(Primitive):
    """Makes one loop of siblings; each iteration runs the bodies in the loops' order.

    It stands where the first loop stood. Where one loop starts after another, or ends before it,
    its blocks get a guard. The prover decides whether the new order keeps every value.
    """

    loops: tuple[str, ...]
    as_: tuple[str, ...] | None = None

    aliases = ("merge_exprs",)

    def apply(self, state: Scheduled) -> Scheduled:
        if len(self.loops) < 2:
            raise CannotApply("it takes at least two loops")
        if len(set(self.loops)) < len(self.loops):
            raise CannotApply("a loop is named twice")
        found = self._found(state)
        parents = [ancestors(edit.tree(state.kernel), loop) for loop in found]
        for loop, around in zip(found, parents, strict=True):
            if not isinstance(around[-1] if around else None, Seq):
                raise CannotApply(f"loop '{loop.var}' has no siblings")
            if around[-1] is not parents[0][-1]:
                raise CannotApply(f"loops '{found[0].var}' and '{loop.var}' are not siblings")
            edit.require_serial(loop)
        if self.as_ is not None and len(self.as_) != 1:
            raise CannotApply("`as` must give 1 name")
        edit.require_free_loops(state.kernel, (self._merged(),), self.loops)
        root, var = edit.tree(state.kernel), self._merged()
        around = ancestors(root, found[0])
        ranges = edit.ranges_of(around)
        lower, upper = found[0].lower, found[0].upper
        for loop in found[1:]:
            lower, upper = smaller(lower, loop.lower, ranges), larger(upper, loop.upper, ranges)
        bodies = tuple(_body(loop, var, lower, upper) for loop in found)
        merged = edit.with_body(Loop(var, lower, upper, found[0].kind, Seq(())), bodies)
        parent = around[-1]
        assert isinstance(parent, Seq)
        first = next(k for k, s in enumerate(parent.body) if any(s is x for x in found))
        kept = [
            merged if k == first else s
            for k, s in enumerate(parent.body)
            if k == first or not any(s is x for x in found)
        ]
        kernel = edit.rebuild(state.kernel, replace_stmt(root, parent, seq(tuple(kept))))
        flow = edit.rename_shared(state.flow, {loop.var: (var,) for loop in found})
        inside = [{b.name for b in blocks(loop)} for loop in found]
        met = {
            read
            for read, source in state.flow.items()
            if not any({read[0], *source.writers} <= together for together in inside)
        }
        return Scheduled(kernel, share_loop(kernel, flow, var, met))

    def _merged(self) -> str:
        return self.as_[0] if self.as_ else self.loops[0]

    def _found(self, state: Scheduled) -> tuple[Loop, ...]:
        return tuple(edit.loop_named(state.kernel, name) for name in self.loops)

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """Shifts of the later loops."""
        found, shifts = self._found(state), [0]
        for k, loop in enumerate(found[1:], 1):
            lags = [lag(state.kernel, other.var, loop.var) for other in found[:k]]
            known = [a + b for a, b in zip(lags, shifts, strict=True) if a is not None]
            if len(known) < k:
                return
            shifts.append(max(0, *known))
        steps = (Shift(x.var, by) for x, by in zip(found, shifts, strict=True) if by)
        yield (*steps, self)

    EXAMPLES = (
        Example(
            "The temporary moves into the merged loop",
            TWICE,
            "- merge: {loops: [t.i, y.i], as: [both.i]}",
        ),
        Example(
            "Loops over different ranges: each block gets a guard",
            TWICE,
            "- shift: {loop: y.i, by: 1}\n- merge: {loops: [t.i, y.i]}",
        ),
        Example(
            "A value that is not complete before the loop ends",
            SHARE,
            "- merge: {loops: [t.i, y.i]}",
            refused="the proof was refused: what y[i=0] reads from 't' lacks the term t[1]",
        ),
        Example(
            "Loops in one another",
            SCALE,
            "- merge: {loops: [y.i, y.j]}",
            refused="loop 'y.i' has no siblings",
        ),
    )


def _body(loop: Loop, var: str, lower: Expr, upper: Expr) -> Stmt:
    """The loop's body under the merged loop's variable, with a guard where that runs further."""
    body = substitute(loop.body, {loop.var: Var(var)})
    guards: list[Expr] = []
    if not same(loop.lower, lower):
        guards.append(Binary(BinaryOp.GE, Var(var), loop.lower))
    if not same(loop.upper, upper):
        guards.append(less(Var(var), loop.upper))
    return edit.guarded(body, *guards)
