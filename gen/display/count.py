"""What a block costs, counted on the tree: the same at every size and on every machine.

Input: a tree at any stage. Output: for each block the operations and the bytes of memory of one
instance, and how many instances there are as a product of loops' extents. An operation is one
arithmetic, comparison, selection or call on elements, whatever its type, and one for each value
that a reduction combines; index arithmetic is none. Bytes are those of arrays, as the tree reads
and writes them: what the compiler keeps in registers, and what a cache holds, is not taken off; of
buffers in registers there are none. Instances that a guard leaves out are counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import dtype_of, index, mul, sub
from ..ir.index.linear import constant, tidy
from ..ir.text.print_expr import expr_to_text
from ..ir.types import INDEX
from ..ir.walk import loads, nested, targets, walk


@final
@dataclass(frozen=True, slots=True)
class Count:
    """Of one block; read and written in bytes. trips: the product of the extents of the loops
    around it, which may name those loops.
    """

    block: str
    operations: int
    read: int
    written: int
    trips: ir.Expr

    def __str__(self) -> str:
        words = [f"{self.operations} operation{'s' * (self.operations != 1)}"]
        words += [f"{self.read} B read"] if self.read else []
        words += [f"{self.written} B written"] if self.written else []
        times = "once" if constant(self.trips) == 1 else f"times {expr_to_text(self.trips)}"
        return f"{', '.join(words)}; {times}"


def counts(kernel: ir.Kernel) -> tuple[Count, ...]:
    """A count for each block, in textual order."""
    buffers = {n.name: n for n in walk(kernel) if isinstance(n, ir.Buffer)}
    return tuple(_counts(kernel.body, (), buffers))


def _counts(
    stmt: ir.Stmt, extents: tuple[ir.Expr, ...], buffers: Mapping[str, ir.Buffer]
) -> Iterator[Count]:
    match stmt:
        case ir.Block(name, body=body):
            stored = [t.buffer for t in targets(body)]
            combined = stored if isinstance(body, ir.Update) else []
            read = [*(load.buffer for load in loads(body)), *combined]
            operations = len(combined) + sum(_is_operation(n) for n in walk(body))
            written = sum(_bytes(buffers[b]) for b in stored)
            read_ = sum(_bytes(buffers[b]) for b in read)
            yield Count(name, operations, read_, written, _product(extents))
        case ir.Loop(_, lower, upper, _, inner):
            yield from _counts(inner, (*extents, tidy(sub(upper, lower))), buffers)
        case _:
            for inside in nested(stmt):
                yield from _counts(inside, extents, buffers)


def _is_operation(node: ir.Node) -> bool:
    match node:
        case ir.Binary(_, lhs, _):
            return dtype_of(lhs) is not INDEX
        case ir.Unary() | ir.Select() | ir.Call():
            return dtype_of(node) is not INDEX
        case _:
            return False


def _bytes(buffer: ir.Buffer) -> int:
    return 0 if buffer.scope is ir.Scope.REGISTER else buffer.dtype.bytes


def _product(extents: tuple[ir.Expr, ...]) -> ir.Expr:
    """Constant factors gathered as the last one."""
    product: ir.Expr = index(1)
    factor = 1
    for extent in extents:
        known = constant(extent)
        if known is None:
            product = mul(product, extent)
        else:
            factor *= known
    return mul(product, factor)
