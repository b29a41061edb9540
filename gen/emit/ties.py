"""Which (value, index) updates come in the order of their indices, so that no tie is won later.

Input: a lowered tree. Output: the same with those updates marked: each place sees its terms by
growing index, as loops ascend. Of equal values the first then stays, with no look at its index.
"""

from dataclasses import replace

from ..ir.linear import linear
from ..ir.nodes import Block, Cast, Combiner, Expr, Init, IterKind, Node, Stmt, Update, Var
from ..ir.types import DType
from ..ir.walk import blocks, loops, map_children, targets, variables

_MARK = ("ties", "in order")


def mark(stmt: Stmt) -> Stmt:
    writers: dict[str, set[str]] = {}
    begun: set[str] = set()  # places that hold nothing before the first term
    for block in blocks(stmt):
        anew = isinstance(block.body, Init)
        for target in targets(block.body):
            if anew or block.initialises:
                begun.add(target.buffer)
            if not anew:
                writers.setdefault(target.buffer, set()).add(block.name)
    known = frozenset(loop.var for loop in loops(stmt))

    def go(node: Node) -> Node:
        if not isinstance(node, Block):
            return map_children(node, go)
        alone = all(
            t.buffer in begun and len(writers.get(t.buffer, ())) == 1 for t in targets(node.body)
        )
        if alone and _ascends(node, known):
            return replace(node, annotations=(*node.annotations, _MARK))
        return node

    return map_children(stmt, go)


def in_order(block: Block) -> bool:
    return _MARK in block.annotations


def _ascends(block: Block, known: frozenset[str]) -> bool:
    """Whether the index grows with the one reduction variable, which is a loop's own."""
    match block.body:
        case Update(Combiner.ARGMIN | Combiner.ARGMAX, places, (_, at)):
            pairs = zip(block.iters, block.bindings, strict=True)
            reduced = [(v, b) for v, b in pairs if v.kind is IterKind.REDUCTION]
            if len(reduced) != 1 or not isinstance(reduced[0][1], Var):
                return False
            name, loop = reduced[0][0].name, reduced[0][1].name
            form = linear(_plain(at))
            outside = all(name not in variables(place) for place in places)
            alone = name not in form.without(Var(name)).variables()
            return loop in known and outside and alone and form.coefficient(name) > 0
        case _:
            return False


def _plain(expr: Expr) -> Expr:
    """The expression without the casts that keep every index."""
    match expr:
        case Cast(DType.INT64, operand):
            return _plain(operand)
        case _:
            return expr
