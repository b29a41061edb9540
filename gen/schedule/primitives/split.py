"""split: one loop becomes several nested ones."""

from dataclasses import replace
from functools import reduce
from math import prod
from typing import cast

from ...ir.algebra import TRUE, add, ceildiv, floordiv, index, less, mul, sub
from ...ir.index.bounds import at_most
from ...ir.index.linear import Linear, constant, linear, same
from ...ir.nodes import Binary, BinaryOp, Const, Delinearize, Expr, Kernel, Loop, Var
from ...ir.types import INDEX
from ...ir.walk import ancestors, blocks, substitute, variables
from ...poly.certificate import Scheduled
from ...poly.queries.times import includes
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.points import context
from ..edit.tree import CannotApply
from ..examples import BLOCKED, SCALE, TWICE, UPPER
from ..limits import MOST_NESTED


class Split(Primitive):
    """Replaces a loop by nested loops of the given extents, outermost first; one extent may be
    null, which is then as large as it has to be.

    Where the product may exceed the loop's extent, the blocks inside get a guard. With `grid` the
    parts begin at multiples of the factor and not at the loop's start: where that depends on loops
    further out, the parts of all their iterations line up, as those of a tile must.

    A factor that is given at run time, `[null, b]`, is a dim or an int64 scalar that is at least 1
    by the spec's constraints. Parts of such a size may be reordered where the nest is permutable.
    """

    loop: str
    factors: tuple[int | str | None, ...]
    as_: tuple[str, ...] | None = None
    grid: bool = False

    aliases = ("divide_loop",)

    def apply(self, state: Scheduled) -> Scheduled:
        loop = edit.loop_named(state.kernel, self.loop)
        if not self.grid and self.factors[:1] == (None,) and _starts_with_result(state, loop):
            return replace(self, grid=True).apply(state)
        self._require_factors(state, loop)
        outer, *inner = self._loops(loop)
        value: Expr = index(0) if self.grid else loop.lower
        for k, new in enumerate((outer, *inner)):
            value = add(value, mul(Var(new.var), _product(*(x.upper for x in inner[k:]))))
        size = _product(*(x.upper for x in inner))
        guards: list[Expr] = []
        if self.grid and not _divides(size, loop.lower):
            guards.append(Binary(BinaryOp.LE, loop.lower, value))
        if not self._exact(loop, size):
            guards.append(less(value, loop.upper))
        body = edit.guarded(substitute(loop.body, {loop.var: value}), *guards)
        after = edit.replaced(state, loop, edit.nest((outer, *inner), body))
        flow = edit.rename_shared(edit.unshared(state, loop, value), {loop.var: self.names()})
        return replace(after, flow=flow)

    def _require_factors(self, state: Scheduled, loop: Loop) -> None:
        if len(self.factors) < 2:
            raise CannotApply("it takes at least two factors")
        if len(self.factors) > MOST_NESTED:
            loops = f"{len(self.factors)} factors would be as many loops in each other"
            raise CannotApply(f"{loops}; the limit is {MOST_NESTED}")
        if len(self.names()) != len(self.factors):
            raise CannotApply(f"`as` must give {len(self.factors)} names")
        if any(isinstance(f, str) for f in self.factors):
            self._require_symbolic(state.kernel)
            edit.require_unfused(loop)
        else:
            self._require_numbers(state, loop)
            edit.require_serial(loop)
        edit.require_free_loops(state.kernel, self.names(), {self.loop})

    def _require_symbolic(self, kernel: Kernel) -> None:
        if len(self.factors) != 2 or self.factors[0] is not None or self.grid:
            raise CannotApply(
                "a factor that is given at run time is the second of two, `[null, b]`, of a loop"
                " whose start depends on no other"
            )
        size = str(self.factors[1])
        known = (*kernel.dims, *(s.name for s in kernel.scalars if s.dtype is INDEX))
        if size not in known:
            raise CannotApply(
                f"there is no dim or int64 scalar '{size}'", edit.nearest(size, known)
            )
        positive = Binary(BinaryOp.GE, Var(size), index(1))
        if not includes(context(kernel, ()), (), (positive,), (), TRUE):
            raise CannotApply(
                f"'{size}' may be less than 1; the spec's constraints must say `{size} >= 1`"
            )

    def _require_numbers(self, state: Scheduled, loop: Loop) -> None:
        given = self._numbers()
        if any(f < 1 for f in given):
            raise CannotApply(f"factor {min(given)} is not positive")
        if len(given) < len(self.factors) - 1:
            raise CannotApply("only one factor can be inferred")
        extent = constant(sub(loop.upper, loop.lower))
        if self.factors[0] is not None and None in self.factors and extent is None:
            raise CannotApply(
                "only the outermost factor can be inferred where the extent is symbolic"
            )
        if self.grid and self.factors[0] is not None:
            raise CannotApply(
                "with `grid` the outermost factor is null: there are as many parts as it takes"
            )
        if None not in self.factors and not self._covers(state, loop):
            raise CannotApply(
                f"the factors' product, {prod(given)}, may be less than the loop's extent"
            )

    def _numbers(self) -> tuple[int, ...]:
        return tuple(f for f in self.factors if isinstance(f, int))

    def names(self) -> tuple[str, ...]:
        """The names of the new loops, outermost first."""
        return self.as_ or tuple(f"{self.loop}_{k}" for k in range(len(self.factors)))

    def _covers(self, state: Scheduled, loop: Loop) -> bool:
        product = prod(self._numbers())
        around = edit.ranges_of(ancestors(edit.tree(state.kernel), loop))
        return at_most(sub(loop.upper, loop.lower), index(product), around)

    def _loops(self, loop: Loop) -> tuple[Loop, ...]:
        sizes = tuple(Var(f) if isinstance(f, str) else index(f) for f in self.factors if f)
        given = _product(*sizes)
        inferred: tuple[Expr, Expr] = index(0), ceildiv(sub(loop.upper, loop.lower), given)
        if self.grid:
            inferred = floordiv(loop.lower, given), ceildiv(loop.upper, given)
        each = iter(sizes)
        ranges = (inferred if f is None else (index(0), next(each)) for f in self.factors)
        return tuple(edit.serial_loop(v, *r) for v, r in zip(self.names(), ranges, strict=True))

    def _exact(self, loop: Loop, size: Expr) -> bool:
        """Whether parts of that size do not run past the end, or a delinearization stops them."""
        match loop.body:
            case Delinearize(_, _, Var(name)) if name == loop.var:
                return True
        if self.grid:
            return _divides(size, loop.upper)
        if self.factors[0] is not None:
            return same(sub(loop.upper, loop.lower), mul(size, self._numbers()[0]))
        return _divides(size, sub(loop.upper, loop.lower))

    EXAMPLES = (
        Example(
            "Factors that need not divide the extent: the block gets a guard",
            TWICE,
            "- split: {loop: y.i, factors: [null, 4]}",
        ),
        Example(
            "Parts that line up in all rows",
            UPPER,
            "- split: {loop: y.j, factors: [null, 4], grid: true}",
        ),
        Example(
            "A loop that does not start at 0",
            TWICE,
            "- shift: {loop: y.i, by: 2}\n- split: {loop: y.i, factors: [null, 4]}",
        ),
        Example(
            "A factor that each call gives", BLOCKED, "- split: {loop: y.i, factors: [null, b]}"
        ),
        Example(
            "A factor that may be 0",
            SCALE,
            "- split: {loop: y.i, factors: [null, n]}",
            refused="'n' may be less than 1; the spec's constraints must say `n >= 1`",
        ),
        Example(
            "A loop that is not there",
            TWICE,
            "- split: {loop: y.k, factors: [null, 4]}",
            refused="there is no loop 'y.k'",
        ),
        Example(
            "Factors whose product is too small for some n",
            TWICE,
            "- split: {loop: y.i, factors: [2, 4]}",
            refused="the factors' product, 8, may be less than the loop's extent",
        ),
    )


def _starts_with_result(state: Scheduled, loop: Loop) -> bool:
    """Whether the loop is over the terms of a sum that has an init, from where its result says."""
    return any(
        block.initialises
        and loop.var in edit.reduction_loops(block)
        and variables(loop.lower) & edit.spatial_loops(block)
        for block in blocks(loop)
    )


def _product(*factors: Expr) -> Expr:
    return reduce(lambda a, b: mul(a, b), factors, cast(Expr, index(1)))


def _divides(size: Expr, e: Expr) -> bool:
    return isinstance(size, Const) and linear(e).modulo(int(size.value.real)) == Linear()
