"""Tiles that are written along one axis and read along another, at the edges of arrays.

Input: a tree after its guards became bounds. Output: the same instances. A tile that is turned has
its rows all written before a column is read, so at an edge nothing is gained by unrolling: an
unrolled loop over the tile's rows or columns that has guards left becomes a serial one that ends
where they do. So an edge takes two short loops, not a guard at each row; what these store is not
streamed.
"""

from collections.abc import Iterator
from dataclasses import replace

from ..ir import nodes as ir
from ..ir.index.facts import Facts, map_inside, of_kernel
from ..ir.walk import blocks, loops, map_nested, substitute, variables, walk
from .loop_bounds import tightened


def turned_edges(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel)))


def _visit(stmt: ir.Stmt, facts: Facts) -> ir.Stmt:
    match stmt:
        case ir.Allocate(_, ir.Seq()) if _is_turned(stmt):
            return replace(stmt, body=map_nested(stmt.body, lambda s: _rolled(s, facts)))
        case _:
            return map_inside(stmt, facts, _visit)


def _rolled(stmt: ir.Stmt, facts: Facts) -> ir.Stmt:
    if not isinstance(stmt, ir.Loop) or stmt.kind is not ir.LoopKind.UNROLLED:
        return stmt
    bounded = tightened(stmt, facts)
    if bounded == stmt:
        return stmt
    return replace(bounded, kind=ir.LoopKind.SERIAL, body=_through_caches(bounded.body))


def _through_caches(stmt: ir.Stmt) -> ir.Stmt:
    if isinstance(stmt, ir.Block):
        kept = tuple(a for a in stmt.annotations if a[0] != "stream")
        return replace(stmt, annotations=kept)
    return map_nested(stmt, _through_caches)


def _is_turned(allocate: ir.Allocate) -> bool:
    """Whether it is of a register tile that vectors walk along more than one axis."""
    tiles = [b.name for b in allocate.buffers if b.scope is ir.Scope.REGISTER]
    return any(len(set(_axes(allocate.body, tile))) > 1 for tile in tiles)


def _axes(body: ir.Stmt, tile: str) -> Iterator[int]:
    """The axes along which lanes access the tile."""
    for loop in loops(body):
        for block in blocks(loop) if loop.kind is ir.LoopKind.VECTORIZED else ():
            values = {it.name: b for it, b in zip(block.iters, block.bindings, strict=True)}
            for node in walk(block.body):
                if isinstance(node, ir.Load | ir.Destination) and node.buffer == tile:
                    for axis, i in enumerate(node.indices):
                        if loop.var in variables(substitute(i, values)):
                            yield axis
