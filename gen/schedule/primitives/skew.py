"""skew: an inner loop counts further with each iteration of an outer one."""

from ...ir.algebra import add, mul, sub
from ...ir.index.bounds import normal
from ...ir.nodes import Var
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, perfect_nest, renumbered, require_unfused
from ..examples import SCALE


class Skew(Primitive):
    """Adds `factor` times the first loop's variable to that of the second, which is inside it.

    By itself it changes nothing that runs. Where iterations depend on their neighbours in both
    loops, those of a diagonal do not depend on each other: skew, reorder, and the inner loop is
    parallel (Wolfe 1986).
    """

    loops: tuple[str, ...]
    factor: int = 1

    def apply(self, state: Scheduled) -> Scheduled:
        if len(self.loops) != 2:
            raise CannotApply("it takes two loops")
        if self.factor == 0:
            raise CannotApply("a factor of 0 changes nothing")
        nest = perfect_nest(state.kernel, self.loops)
        outer, inner = self.loops
        if nest[0].var != outer:
            raise CannotApply(f"loop '{inner}' is not inside '{outer}'")
        require_unfused(nest[0])
        require_unfused(nest[-1])
        outer, inner = self.loops
        loop = perfect_nest(state.kernel, self.loops)[-1]
        offset = mul(Var(outer), self.factor)
        lower, upper = normal(add(loop.lower, offset)), normal(add(loop.upper, offset))
        return renumbered(state, loop, lower, upper, normal(sub(Var(inner), offset)))

    EXAMPLES = (
        Example("Diagonals", SCALE, "- skew: {loops: [y.i, y.j]}"),
        Example(
            "An outer loop by an inner one",
            SCALE,
            "- skew: {loops: [y.j, y.i]}",
            refused="loop 'y.i' is not inside 'y.j'",
        ),
    )
