"""Which (value, index) updates come in the order of their indices, so that no tie is won later.

Input: a lowered kernel. Output: the same with those updates marked. Of equal values the first then
stays, with no look at its index; elsewhere the index is looked at, which is right in any order.
"""

from dataclasses import replace
from itertools import count
from typing import cast

from ....ir.nodes import Block, Kernel, Node
from ....ir.walk import map_children
from ....poly.rewrites.index_order import ascending

_MARK = ("ties", "in order")


def mark(kernel: Kernel) -> Kernel:
    found, numbers = ascending(kernel), count()

    def go(node: Node) -> Node:
        if not isinstance(node, Block):
            return map_children(node, go)
        if next(numbers) in found:
            return replace(node, annotations=(*node.annotations, _MARK))
        return node

    return cast(Kernel, go(kernel)) if found else kernel


def in_order(block: Block) -> bool:
    return _MARK in block.annotations
