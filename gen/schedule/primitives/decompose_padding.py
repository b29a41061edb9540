"""decompose_padding: the border of a padded array as blocks of its own."""

from dataclasses import replace

from ...ir import nodes as ir
from ...ir.algebra import conjunction, conjuncts
from ...ir.walk import loads, loops, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.moving import freed
from ..edit.shared_loops import in_loops
from ..edit.tree import CannotApply
from ..examples import PADDED, TWICE


class DecomposePadding(Primitive):
    """Takes a block that stores `value if condition else constant` apart: blocks that fill where
    the condition does not hold, one for each of its parts, then the block where it holds, without
    asking. No iteration has a branch: the conditions are the bounds of the loops.

    The loops that hold nothing but the block are there again for each part. TVM's
    decompose_padding, which fills all of the array first.
    """

    block: str
    as_: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        condition, value, constant = _parts(block)
        own = freed(edit.tree(state.kernel), block)
        if not own:
            raise CannotApply(f"block '{self.block}' has no loop of its own")
        for loop in own:
            edit.require_serial(loop)
            if not isinstance(loop.body, ir.Loop | ir.Block):
                raise CannotApply(
                    f"there must be only loops between '{own[0].var}' and block '{self.block}'"
                )
        made, outer = self._names(block), own[0]
        inside = (f"{fill}.{edit.index_of(x.var)}" for fill in made for x in own)
        edit.require_free(state.kernel, (*made, *inside))
        assert isinstance(block.body, ir.Store)
        fills: list[ir.Stmt] = []
        before: list[ir.Expr] = [block.predicate]
        for name, part in zip(made, conjuncts(condition), strict=True):
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
        kernel = edit.replaced(state, outer, new).kernel
        return Scheduled(kernel, self._flow(state, block))

    def _names(self, block: ir.Block) -> tuple[str, ...]:
        base = self.as_ or f"{self.block}_pad"
        count = len(conjuncts(_parts(block)[0]))
        return tuple(base if k == 0 else f"{base}_{k + 1}" for k in range(count))

    def _flow(self, state: Scheduled, block: ir.Block) -> Flow:
        """The flow in which what reads the block reads its fills, too."""
        fills = self._names(block)

        def with_fills(writers: tuple[str, ...]) -> tuple[str, ...]:
            return (*writers, *fills) if block.name in writers else writers

        return {
            read: replace(source, writers=with_fills(source.writers))
            for read, source in state.flow.items()
        }

    EXAMPLES = (
        Example("An array with a zero at both ends", PADDED, "- decompose_padding: {block: t}"),
        Example(
            "A block that stores no padding",
            TWICE,
            "- decompose_padding: {block: y}",
            refused="block 'y' does not store a value where a condition holds, and a constant",
        ),
    )


def _parts(block: ir.Block) -> tuple[ir.Expr, ir.Expr, ir.Const]:
    """The condition, the value where it holds, and the constant elsewhere."""
    match block.body:
        case ir.Store(_, ir.Select(condition, value, ir.Const() as constant)) if not loads(
            condition
        ):
            return condition, value, constant
        case _:
            raise CannotApply(
                f"block '{block.name}' does not store a value where a condition holds, and a"
                " constant elsewhere"
            )


def _negated(condition: ir.Expr) -> ir.Expr:
    match condition:
        case ir.Binary(ir.BinaryOp.LT, a, b):
            return ir.Binary(ir.BinaryOp.LE, b, a)
        case ir.Binary(ir.BinaryOp.LE, a, b):
            return ir.Binary(ir.BinaryOp.LT, b, a)
        case ir.Binary(ir.BinaryOp.GT, a, b):
            return ir.Binary(ir.BinaryOp.LE, a, b)
        case ir.Binary(ir.BinaryOp.GE, a, b):
            return ir.Binary(ir.BinaryOp.LT, a, b)
        case _:
            return ir.Unary(ir.UnaryOp.NOT, condition)


def _renamed(nest: ir.Stmt, fill: str) -> ir.Stmt:
    """The nest with loops of its own names."""
    for loop in loops(nest):
        var = f"{fill}.{edit.index_of(loop.var)}"
        here = next(x for x in loops(nest) if x.var == loop.var)
        body = substitute(here.body, {loop.var: ir.Var(var)})
        nest = replace_stmt(nest, here, replace(here, var=var, body=body, annotations=()))
    return nest
