"""split: one loop becomes several nested ones."""

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, final

from ...ir.algebra import add, ceildiv, conjunction, floordiv, index, less, mul, sub
from ...ir.nodes import Binary, BinaryOp, Block, Const, Delinearize, Expr, Loop, Var
from ...ir.walk import ancestors, replace_stmt, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..bounds import at_most, linear, same
from ..edit import (
    loop_named,
    nest,
    ranges_of,
    rebuild,
    rename_shared,
    serial,
    serial_loop,
    taken_loops,
    tree,
    update_blocks,
)
from ..examples import TWICE, UPPER


@final
@dataclass(frozen=True)
class Split(Primitive):
    """Replaces a loop by nested loops of the given extents, outermost first; one extent may be
    null, which is then as large as it has to be.

    Where the product may exceed the loop's extent, the blocks inside get a guard. With `grid` the
    parts begin at multiples of the factor and not at the loop's start: where that depends on loops
    further out, the parts of all their iterations line up, as those of a tile must.
    """

    loop: str
    factors: tuple[int | None, ...]
    as_: tuple[str, ...] | None = None
    grid: bool = False

    name: ClassVar[str] = "split"
    aliases: ClassVar[tuple[str, ...]] = ("divide_loop",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Factors that need not divide the extent: the block gets a guard",
            TWICE,
            "- split: {loop: y.i, factors: [null, 4]}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            for y.i_1 in range(4):
                with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                    y[i] = t[i] + 1.0
""",
        ),
        Example(
            "Parts that line up in all rows",
            UPPER,
            "- split: {loop: y.j, factors: [null, 4], grid: true}",
            after="""\
def upper(n, x: float32[n, n], y: InOut[float32[n, n]]):
    for y.i in range(n):
        for y.j_0 in range(y.i // 4, (n + 3) // 4):
            for y.j_1 in range(4):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j_0 * 4 + y.j_1, i, n),
                    where=y.i <= y.j_0 * 4 + y.j_1 and y.j_0 * 4 + y.j_1 < n,
                ):
                    y[i, j] = x[i, j] * 2.0
""",
        ),
        Example(
            "A loop that does not start at 0",
            TWICE,
            "- shift: {loop: y.i, by: 2}\n- split: {loop: y.i, factors: [null, 4]}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            for y.i_1 in range(4):
                with block(
                    "y",
                    i=spatial(2 + y.i_0 * 4 + y.i_1 - 2, n),
                    where=2 + y.i_0 * 4 + y.i_1 < n + 2,
                ):
                    y[i] = t[i] + 1.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        given = [f for f in self.factors if f is not None]
        if len(self.factors) < 2:
            return "it takes at least two factors"
        if any(f < 1 for f in given):
            return f"factor {min(given)} is not positive"
        if len(given) < len(self.factors) - 1:
            return "only one factor can be inferred"
        extent = linear(sub(loop.upper, loop.lower))
        if self.factors[0] is not None and None in self.factors and extent.terms:
            return "only the outermost factor can be inferred where the extent is symbolic"
        if self.grid and self.factors[0] is not None:
            return "with `grid` the outermost factor is null: there are as many parts as it takes"
        if None not in self.factors and not self._covers(state, loop):
            return f"the factors' product, {prod(given)}, may be less than the loop's extent"
        if len(self.names()) != len(self.factors):
            return f"`as` must give {len(self.factors)} names"
        return serial(loop) or taken_loops(state.kernel, self.names(), {self.loop})

    def names(self) -> tuple[str, ...]:
        """The names of the new loops, outermost first."""
        return self.as_ or tuple(f"{self.loop}_{k}" for k in range(len(self.factors)))

    def _covers(self, state: Scheduled, loop: Loop) -> bool:
        product = prod(f for f in self.factors if f is not None)
        around = ranges_of(ancestors(tree(state.kernel), loop))
        return at_most(sub(loop.upper, loop.lower), index(product), around)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        loop = loop_named(state.kernel, self.loop)
        outer, *inner = self._loops(loop)
        value: Expr = index(0) if self.grid else loop.lower
        for k, new in enumerate((outer, *inner)):
            value = add(value, mul(Var(new.var), prod(_int(x.upper) for x in inner[k:])))
        body = substitute(loop.body, {loop.var: value})
        size = prod(_int(x.upper) for x in inner)
        guards: list[Expr] = []
        if self.grid and not _divides(size, loop.lower):
            guards.append(Binary(BinaryOp.LE, loop.lower, value))
        if not self._exact(loop, size):
            guards.append(less(value, loop.upper))
        body = update_blocks(body, lambda b: _guarded(b, *guards)) if guards else body
        return Scheduled(
            rebuild(state.kernel, replace_stmt(root, loop, nest((outer, *inner), body))),
            rename_shared(state.flow, {loop.var: self.names()}),
        )

    def _loops(self, loop: Loop) -> tuple[Loop, ...]:
        given = prod(f for f in self.factors if f is not None)
        if self.grid:
            first = floordiv(loop.lower, given), ceildiv(loop.upper, given)
            ranges = (first, *((index(0), index(f)) for f in self.factors[1:] if f is not None))
        else:
            inferred = ceildiv(sub(loop.upper, loop.lower), given)
            ranges = tuple((index(0), inferred if f is None else index(f)) for f in self.factors)
        return tuple(serial_loop(v, *r) for v, r in zip(self.names(), ranges, strict=True))

    def _exact(self, loop: Loop, size: int) -> bool:
        """Whether parts of that size do not run past the end, or a delinearization stops them."""
        match loop.body:
            case Delinearize(_, _, Var(name)) if name == loop.var:
                return True
        if self.grid:
            return _divides(size, loop.upper)
        if self.factors[0] is not None:
            return same(sub(loop.upper, loop.lower), index(size * self.factors[0]))
        return _divides(size, sub(loop.upper, loop.lower))


def _int(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value.real)


def _divides(size: int, e: Expr) -> bool:
    form = linear(e)
    return all(c % size == 0 for c in (*form.terms.values(), form.const))


def _guarded(block: Block, *guards: Expr) -> Block:
    return replace(block, predicate=conjunction(block.predicate, *guards))
