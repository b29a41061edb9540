"""split: one loop becomes several nested ones."""

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, final

from ...ir.algebra import add, ceildiv, conjunction, index, less, mul, sub
from ...ir.nodes import Block, Const, Delinearize, Expr, Loop, Var
from ...ir.walk import ancestors, replace_stmt, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..bounds import at_most, linear
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
from ..examples import TWICE


@final
@dataclass(frozen=True)
class Split(Primitive):
    """Replaces a loop by nested loops of the given extents, outermost first; one extent may be
    null, which is then as large as it has to be.

    Where the product may exceed the loop's extent, the blocks inside get a guard.
    """

    loop: str
    factors: tuple[int | None, ...]
    as_: tuple[str, ...] | None = None

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
        extents = self._extents(loop)
        value: Expr = loop.lower
        for k, var in enumerate(self.names()):
            value = add(value, mul(Var(var), prod(_int(e) for e in extents[k + 1 :])))
        body = substitute(loop.body, {loop.var: value})
        if not self._exact(loop, extents):
            guard = less(value, loop.upper)
            body = update_blocks(body, lambda b: _guarded(b, guard))
        new = nest(
            (serial_loop(v, index(0), e) for v, e in zip(self.names(), extents, strict=True)), body
        )
        return Scheduled(
            rebuild(state.kernel, replace_stmt(root, loop, new)),
            rename_shared(state.flow, {loop.var: self.names()}),
        )

    def _extents(self, loop: Loop) -> tuple[Expr, ...]:
        given = prod(f for f in self.factors if f is not None)
        inferred = ceildiv(sub(loop.upper, loop.lower), given)
        return tuple(inferred if f is None else index(f) for f in self.factors)

    def _exact(self, loop: Loop, extents: tuple[Expr, ...]) -> bool:
        """Whether nothing runs past the end, or a delinearization stops it there."""
        match loop.body:
            case Delinearize(_, _, Var(name)) if name == loop.var:
                return True
        extent = linear(sub(loop.upper, loop.lower))
        inner = prod(_int(e) for e in extents[1:])
        if self.factors[0] is not None:
            return not extent.terms and extent.const == inner * _int(extents[0])
        return all(c % inner == 0 for c in (*extent.terms.values(), extent.const))


def _int(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value.real)


def _guarded(block: Block, guard: Expr) -> Block:
    return replace(block, predicate=conjunction(block.predicate, guard))
