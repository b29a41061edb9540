"""fuse: directly nested loops become one."""

from dataclasses import replace

from ...ir.algebra import add, index, maximum, mul, sub
from ...ir.index.bounds import inside
from ...ir.index.facts import of_kernel
from ...ir.index.linear import linear
from ...ir.nodes import Delinearize, Expr, Kernel, Loop, Stmt, Var
from ...ir.walk import ancestors, replace_stmt, substitute, variables
from ...poly.certificate import Flow, Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import FIRST, SCALE, TRIANGLE


class Fuse(Primitive):
    """Makes one loop of directly nested ones, over all combinations in the same order.

    The parts stay variables of their own, so that nothing is lost where an extent is symbolic.
    """

    loops: tuple[str, ...]
    as_: str | None = None

    aliases = ("mult_loops",)

    def apply(self, state: Scheduled) -> Scheduled:
        if len(self.loops) < 2:
            raise CannotApply("it takes at least two loops")
        nested = edit.perfect_nest(state.kernel, self.loops)
        found = tuple(loop.var for loop in nested)
        if found != self.loops:
            raise CannotApply(f"the loops, from outside in, are {', '.join(found)}")
        for loop in nested:
            used = (variables(loop.lower) | variables(loop.upper)) & set(self.loops)
            if used:
                raise CannotApply(f"the bounds of loop '{loop.var}' depend on '{min(used)}'")
            edit.require_serial(loop)
        edit.require_free_loops(state.kernel, (self._fused(),), self.loops)
        extents = self._extents(state, nested)
        fused, product = self._fused(), extents[0]
        for extent in extents[1:]:
            product = mul(product, extent)
        starts: dict[str, Expr] = {
            x.var: add(Var(x.var), x.lower) for x in nested if x.lower != index(0)
        }
        body = substitute(nested[-1].body, starts)
        loop = edit.serial_loop(fused, index(0), product)
        new = replace(loop, body=Delinearize(self.loops, extents, Var(fused), body))
        kernel = edit.rebuild(state.kernel, replace_stmt(edit.tree(state.kernel), nested[0], new))
        return Scheduled(kernel, self._flow(state.flow))

    def _fused(self) -> str:
        first, *rest = self.loops
        return self.as_ or "_".join((first, *map(edit.index_of, rest)))

    def _extents(self, state: Scheduled, nested: tuple[Loop, ...]) -> tuple[Expr, ...]:
        """The loops' numbers of iterations, none where one ends before it starts."""
        kernel = state.kernel
        around = tuple(ancestors(edit.tree(kernel), nested[0]))
        extents = (sub(loop.upper, loop.lower) for loop in nested)
        return tuple(e if _counts(kernel, e, around) else maximum(e, index(0)) for e in extents)

    def _flow(self, flow: Flow) -> Flow:
        """A read that shares all of the loops shares the fused one; one that does not, none."""
        parts = set(self.loops)
        result = {}
        for read, source in flow.items():
            kept = tuple(v for v in source.shared if v not in parts)
            whole = (self._fused(),) if parts <= set(source.shared) else ()
            result[read] = replace(source, shared=kept + whole)
        return result

    EXAMPLES = (
        Example("The parts stay variables", SCALE, "- fuse: {loops: [y.i, y.j]}"),
        Example(
            "A loop that does not start at 0: its part does",
            SCALE,
            "- shift: {loop: y.i, by: 2}\n- fuse: {loops: [y.i, y.j]}",
        ),
        Example(
            "A scalar that may be negative: there are no iterations then",
            FIRST,
            "- fuse: {loops: [y.i, y.j]}",
        ),
        Example(
            "An extent that depends on the other loop",
            TRIANGLE,
            "- fuse: {loops: [y.i, y.j]}",
            refused="the bounds of loop 'y.j' depend on 'y.i'",
        ),
    )


def _counts(kernel: Kernel, extent: Expr, around: tuple[Stmt, ...]) -> bool:
    """Whether the extent is never negative. Sizes are not; scalars are what constraints say."""
    facts = inside(of_kernel(kernel), edit.ranges_of(around))
    return facts.holds(linear(extent))
