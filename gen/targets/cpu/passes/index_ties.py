"""Which (value, index) updates come in the order of their indices, so that no tie is won later.

Input: a lowered kernel. Output: the same with those updates marked. Of equal values the first then
stays, with no look at its index; elsewhere the index is looked at, which is right in any order.
"""

from dataclasses import replace
from itertools import count
from typing import cast

from ....ir.nodes import Block, Kernel, Loop, LoopKind, Node
from ....ir.walk import blocks, map_children, targets, variables
from ....poly.rewrites.index_order import ascending

_MARK = ("ties", "in order")


def mark(kernel: Kernel) -> Kernel:
    found, numbers = ascending(_with_lanes_in_order(kernel)), count()

    def go(node: Node) -> Node:
        if not isinstance(node, Block):
            return map_children(node, go)
        if next(numbers) in found:
            return replace(node, annotations=(*node.annotations, _MARK))
        return node

    return cast(Kernel, go(kernel)) if found else kernel


def _with_lanes_in_order(kernel: Kernel) -> Kernel:
    """With lanes that are combined into one place one after the other: of equal values that takes
    the least index, as a tree of lanes does.
    """

    def go(node: Node) -> Node:
        match map_children(node, go):
            case Loop(kind=LoopKind.VECTORIZED) as loop if not any(
                loop.var in variables(index)
                for block in blocks(loop.body)
                for target in targets(block.body)
                for index in target.indices
            ):
                return replace(loop, kind=LoopKind.SERIAL)
            case other:
                return other

    return cast(Kernel, go(kernel))


def in_order(block: Block) -> bool:
    return _MARK in block.annotations
