"""Integer scalars without which positions are affine: strides, dilations, groups.

Input: a plain kernel. Output: which scalars are factors or divisors of what varies, and which of
them say how far apart the elements of a line are. Where such a scalar is a known number, there are
vectors where else there are gathers; so its default is worth a variant of its own.
"""

from collections.abc import Iterator

from ....ir.algebra import dtype_of
from ....ir.nodes import Binary, BinaryOp, Block, Expr, Kernel
from ....ir.types import INDEX
from ....ir.walk import blocks, variables, walk
from .nest import nest_of

_UNEVEN = (BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.MOD)


def factors(kernel: Kernel) -> tuple[str, ...]:
    """The integer scalars that something which varies is multiplied or divided by."""
    known = {scalar.name for scalar in kernel.scalars}
    found = [names for block in blocks(kernel.body) for names in _products(block)]
    return tuple(
        s.name for s in kernel.scalars if any(s.name in names and names - known for names in found)
    )


def of_lines(kernel: Kernel) -> frozenset[str]:
    """Those that the place in a line is multiplied by."""
    found = set[str]()
    for block in blocks(kernel.body):
        line = nest_of(kernel, block.name).inner
        found |= {name for names in _products(block) if line in names for name in names}
    return frozenset(found)


def _products(block: Block) -> Iterator[frozenset[str]]:
    for node in walk(block):
        match node:
            case Binary(op, lhs, rhs) if op in _UNEVEN and _integer(node):
                if variables(lhs) and variables(rhs):
                    yield variables(node)
            case _:
                pass


def _integer(node: Expr) -> bool:
    return dtype_of(node) is INDEX
