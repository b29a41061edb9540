"""decompose_padding: the border of a padded array as blocks of its own."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import conjunction, conjuncts
from ...ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Const,
    Expr,
    Loop,
    Select,
    Stmt,
    Store,
    Unary,
    UnaryOp,
    Var,
)
from ...ir.walk import loads, loops, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled
from ..base import Example, Layer, Primitive
from ..edit.moving import freed
from ..edit.shared_loops import in_loops
from ..edit.tree import (
    CannotApply,
    block_named,
    index_of,
    prune_shared,
    rebuild,
    serial,
    taken,
    tree,
)
from ..examples import PADDED, TWICE


@final
@dataclass(frozen=True)
class DecomposePadding(Primitive):
    """Takes a block that stores `value if condition else constant` apart: blocks that fill where
    the condition does not hold, one for each of its parts, then the block where it holds, without
    asking. No iteration has a branch: the conditions are the bounds of the loops.

    The loops that hold nothing but the block are there again for each part. TVM's
    decompose_padding, which fills all of the array first.
    """

    block: str
    as_: str | None = None

    name: ClassVar[str] = "decompose_padding"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "An array with a zero at both ends",
            PADDED,
            "- decompose_padding: {block: t}",
            after="""\
def padded(n, x: float32[n], y: Out[float32[n + 2]]):
    with allocate(t=float32[n + 2]):
        for t_pad.i in range(n + 2):
            with block("t_pad", i=spatial(t_pad.i), where=t_pad.i < 1, origin=t[i]):
                t[i] = 0.0
        for t_pad_2.i in range(n + 2):
            with block(
                "t_pad_2",
                i=spatial(t_pad_2.i),
                where=1 <= t_pad_2.i and n < t_pad_2.i,
                origin=t[i],
            ):
                t[i] = 0.0
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i), where=1 <= t.i and t.i <= n):
                t[i] = x[i - 1]
        for y.i in range(n + 2):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] * 2.0
""",
        ),
        Example(
            "A block that stores no padding",
            TWICE,
            "- decompose_padding: {block: y}",
            refused="block 'y' does not store a value under a condition, and else a constant",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        _parts(block)
        own = freed(tree(state.kernel), block)
        if not own:
            return f"block '{self.block}' has no loop of its own"
        for loop in own:
            if reason := serial(loop):
                return reason
            if not isinstance(loop.body, Loop | Block):
                return f"there must be only loops between '{own[0].var}' and block '{self.block}'"
        fills = self._names(block)
        inside = (f"{fill}.{index_of(x.var)}" for fill in fills for x in own)
        return taken(state.kernel, (*fills, *inside))

    def _names(self, block: Block) -> tuple[str, ...]:
        base = self.as_ or f"{self.block}_pad"
        count = len(conjuncts(_parts(block)[0]))
        return tuple(base if k == 0 else f"{base}_{k + 1}" for k in range(count))

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, block = tree(state.kernel), block_named(state.kernel, self.block)
        outer = freed(root, block)[0]
        condition, value, constant = _parts(block)
        assert isinstance(block.body, Store)
        fills: list[Stmt] = []
        before: list[Expr] = [block.predicate]
        for name, part in zip(self._names(block), conjuncts(condition), strict=True):
            (here,) = in_loops(block, (part,))
            filled = replace(
                block,
                name=name,
                predicate=conjunction(*before, _negated(here)),
                body=replace(block.body, value=constant),
                annotations=(),
            )
            fills.append(_renamed(replace_stmt(outer, block, filled), name))
            before.append(here)
        inner = replace(
            block, predicate=conjunction(*before), body=replace(block.body, value=value)
        )
        new = seq((*fills, replace_stmt(outer, block, inner)))
        kernel = rebuild(state.kernel, replace_stmt(root, outer, new))
        return Scheduled(kernel, prune_shared(kernel, self._flow(state, block)))

    def _flow(self, state: Scheduled, block: Block) -> Flow:
        """The flow in which what reads the block reads its fills, too."""
        fills = self._names(block)

        def with_fills(writers: tuple[str, ...]) -> tuple[str, ...]:
            return (*writers, *fills) if block.name in writers else writers

        return {
            read: replace(source, writers=with_fills(source.writers))
            for read, source in state.flow.items()
        }


def _parts(block: Block) -> tuple[Expr, Expr, Const]:
    """The condition, the value where it holds, and the constant elsewhere."""
    match block.body:
        case Store(_, Select(condition, value, Const() as constant)) if not loads(condition):
            return condition, value, constant
        case _:
            raise CannotApply(
                f"block '{block.name}' does not store a value under a condition, and else a"
                " constant"
            )


def _negated(condition: Expr) -> Expr:
    match condition:
        case Binary(BinaryOp.LT, a, b):
            return Binary(BinaryOp.LE, b, a)
        case Binary(BinaryOp.LE, a, b):
            return Binary(BinaryOp.LT, b, a)
        case Binary(BinaryOp.GT, a, b):
            return Binary(BinaryOp.LE, a, b)
        case Binary(BinaryOp.GE, a, b):
            return Binary(BinaryOp.LT, a, b)
        case _:
            return Unary(UnaryOp.NOT, condition)


def _renamed(nest: Stmt, fill: str) -> Stmt:
    """The nest with loops of its own names."""
    for loop in loops(nest):
        var = f"{fill}.{index_of(loop.var)}"
        here = next(x for x in loops(nest) if x.var == loop.var)
        body = substitute(here.body, {loop.var: Var(var)})
        nest = replace_stmt(nest, here, replace(here, var=var, body=body, annotations=()))
    return nest
