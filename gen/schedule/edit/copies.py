"""What the steps have in common that put a copy of a buffer between it and its users.

Input: a hoisted state, blocks and buffers. Output: how a block sees a buffer that is folded, the
block that copies, blocks that use the copy, and the flow in which they do.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, final

from ...ir import nodes as ir
from ...ir.algebra import TRUE, add, index, mod, sub
from ...ir.index.bounds import LoopRange, highest, larger, normal
from ...ir.walk import loads, map_children, variables
from ...poly.certificate import Flow, Scheduled, Source
from .tree import block_named, local_name, update_blocks


@final
@dataclass(frozen=True, slots=True)
class Folding:
    """moduli: of each axis; None where it is not folded. extents: of the places that they mean."""

    moduli: tuple[int | None, ...]
    extents: tuple[ir.Expr | None, ...]

    def meant(self, load: ir.Load) -> ir.Load:
        """A read of the folded buffer, of one that is not folded."""
        pairs = zip(load.indices, self.moduli, strict=True)
        return replace(load, indices=tuple(_inside(i) if m else i for i, m in pairs))

    def places(self, indices: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
        """Where the buffer has what one that is not folded has at the indices."""
        pairs = zip(indices, self.moduli, strict=True)
        return tuple(mod(i, m) if m else i for i, m in pairs)

    def shape(self, shape: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        """Of a buffer that is not folded, of the other's shape elsewhere."""
        return tuple(e or old for e, old in zip(self.extents, shape, strict=True))


def folding(block: ir.Block, buffer: str) -> Folding:
    """How the block's reads of the buffer are folded: taken modulo a size.

    An axis is where all reads take remainders of what no other axis of theirs depends on: where one
    does, as in `t[i % 4, i // 4]`, the remainder is half of a place.
    """
    found = [x for x in loads(block.body) if x.buffer == buffer]
    ranges = tuple(LoopRange(v.name, v.lower, sub(v.upper, 1)) for v in block.iters)

    def extent(axis: int) -> ir.Expr | None:
        ends = [highest(_inside(x.indices[axis]), ranges) for x in found]
        known = [normal(add(end, 1)) for end in ends if end is not None]
        return reduce(lambda a, b: larger(a, b, ()), known) if len(known) == len(ends) else None

    moduli: list[int | None] = []
    extents: list[ir.Expr | None] = []
    for axis in range(len(found[0].indices)):
        moduli_ = {_modulus(x, axis) for x in found}
        modulus = moduli_.pop() if len(moduli_) == 1 else None
        extents.append(extent(axis) if modulus else None)
        moduli.append(modulus if extents[-1] else None)
    return Folding(tuple(moduli), tuple(extents))


def _modulus(load: ir.Load, axis: int) -> int | None:
    """What the index is a remainder of; None where it is none, or not by itself."""
    others = (i for k, i in enumerate(load.indices) if k != axis)
    match load.indices[axis]:
        case ir.Binary(ir.BinaryOp.MOD, value, ir.Const(int(divisor))) if divisor > 0:
            apart = not any(variables(value) & variables(i) for i in others)
            return int(divisor) if apart else None
        case _:
            return None


def _inside(remainder: ir.Expr) -> ir.Expr:
    return remainder.lhs if isinstance(remainder, ir.Binary) else remainder


def copying(
    kernel: ir.Kernel, name: str, to: ir.Buffer, source: ir.Buffer, folded: Folding | None = None
) -> ir.Block:
    """A block that copies a whole buffer, not yet in loops. folded: how the source lies."""
    iters = tuple(
        ir.IterVar(local_name(kernel, f"d{k}", ()), index(0), extent)
        for k, extent in enumerate(to.shape)
    )
    at = tuple(ir.Var(v.name) for v in iters)
    from_ = folded.places(at) if folded else at
    body = ir.Store(ir.Destination(to.name, at), ir.Load(source.name, from_, source.dtype))
    return ir.Block(name, iters, at, TRUE, body)


def using(block: ir.Block, buffer: str, new: Callable[[Any], ir.Load | ir.Destination]) -> ir.Block:
    """The block with other accesses (loads and targets) in place of those of a buffer."""

    def go(n: Any) -> Any:
        found = map_children(n, go)
        is_access = isinstance(found, ir.Load | ir.Destination) and found.buffer == buffer
        return new(found) if is_access else found

    return replace(block, body=go(block.body))


def on_copy(body: ir.Stmt, users: Sequence[ir.Block], buffer: str, copy: str) -> ir.Stmt:
    """The tree in which some blocks use a copy in place of the buffer."""

    def go(block: ir.Block) -> ir.Block:
        mine = any(block is user for user in users)
        return using(block, buffer, lambda x: replace(x, buffer=copy)) if mine else block

    return update_blocks(body, go)


def from_copy(
    flow: Flow, reading: Iterable[ir.Block], buffer: str, copy: str, shared: tuple[str, ...] = ()
) -> Flow:
    """The flow in which blocks read what a copy has of a buffer, and the copy what they read.

    shared: the loops around the copy.
    """
    result, sources = dict(flow), []
    for block in reading:
        for k, load in enumerate(loads(block.body)):
            if load.buffer == buffer:
                sources.append(flow[block.name, k])
                result[block.name, k] = Source((copy,), shared=shared)
    writers = dict.fromkeys(w for s in sources for w in s.writers)
    common = set(sources[0].shared).intersection(*(s.shared for s in sources))
    result[copy, 0] = Source(
        tuple(writers),
        any(s.initial for s in sources),
        tuple(v for v in sources[0].shared if v in common),
    )
    return result


def through_copy(
    state: Scheduled, block: ir.Block, buffer: str, copy: str, shared: tuple[str, ...] = ()
) -> Flow:
    """The flow in which what a block writes to a buffer comes there by a copy."""
    result: dict[tuple[str, int], Source] = {(copy, 0): Source((block.name,), shared=shared)}
    for (reader, number), source in state.flow.items():
        load = loads(block_named(state.kernel, reader).body)[number]
        if load.buffer == buffer:
            writers = tuple(copy if w == block.name else w for w in source.writers)
            source = replace(source, writers=writers)
        result[reader, number] = source
    return result
