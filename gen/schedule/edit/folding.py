"""Buffers that are read modulo a size, and the places that these reads mean.

Input: a block and a buffer that it reads. Output: its reads as they would be of a buffer that is
not folded, and the extents that such a buffer needs. An axis is folded where all reads take
remainders of what no other axis of theirs depends on: where one does, as in `t[i % 4, i // 4]`, the
remainder is half of a place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

from ...ir.algebra import add, mod, sub
from ...ir.index.bounds import Range, highest, larger, normal
from ...ir.nodes import Binary, BinaryOp, Block, Const, Expr, Load
from ...ir.walk import loads, variables


@final
@dataclass(frozen=True, slots=True)
class Folding:
    """moduli: of each axis; None where it is not folded. extents: of the places that they mean."""

    moduli: tuple[int | None, ...]
    extents: tuple[Expr | None, ...]

    def meant(self, load: Load) -> Load:
        """A read of the folded buffer, of one that is not folded."""
        pairs = zip(load.indices, self.moduli, strict=True)
        return replace(load, indices=tuple(_inside(i) if m else i for i, m in pairs))

    def places(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where the buffer has what one that is not folded has at the indices."""
        pairs = zip(indices, self.moduli, strict=True)
        return tuple(mod(i, m) if m else i for i, m in pairs)

    def shape(self, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Of a buffer that is not folded, of the other's shape elsewhere."""
        return tuple(e or old for e, old in zip(self.extents, shape, strict=True))


def folding(block: Block, buffer: str) -> Folding:
    """How the block's reads of the buffer are folded."""
    found = [x for x in loads(block.body) if x.buffer == buffer]
    ranges = tuple(Range(v.name, v.lower, sub(v.upper, 1)) for v in block.iters)

    def extent(axis: int) -> Expr | None:
        ends = [highest(_inside(x.indices[axis]), ranges) for x in found]
        known = [normal(add(end, 1)) for end in ends if end is not None]
        return reduce(lambda a, b: larger(a, b, ()), known) if len(known) == len(ends) else None

    moduli: list[int | None] = []
    extents: list[Expr | None] = []
    for axis in range(len(found[0].indices)):
        moduli_ = {_modulus(x, axis) for x in found}
        modulus = moduli_.pop() if len(moduli_) == 1 else None
        extents.append(extent(axis) if modulus else None)
        moduli.append(modulus if extents[-1] else None)
    return Folding(tuple(moduli), tuple(extents))


def _modulus(load: Load, axis: int) -> int | None:
    """What the index is a remainder of; None where it is none, or not by itself."""
    others = (i for k, i in enumerate(load.indices) if k != axis)
    match load.indices[axis]:
        case Binary(BinaryOp.MOD, value, Const(int(divisor))) if divisor > 0:
            apart = not any(variables(value) & variables(i) for i in others)
            return int(divisor) if apart else None
        case _:
            return None


def _inside(remainder: Expr) -> Expr:
    return remainder.lhs if isinstance(remainder, Binary) else remainder
