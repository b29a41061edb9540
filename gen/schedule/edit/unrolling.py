"""How many statements loops come to once they are written out: what short loops are found by."""

from ...ir import nodes as ir
from ...ir.algebra import sub
from ...ir.index.linear import constant
from ...ir.walk import nested, remembered
from .notes import UNROLL, noted


def written_out(loop: ir.Loop) -> int | None:
    """How many statements all iterations of the loop are; None where its extent is not constant, or
    loops stay in it.
    """
    count, extent = statements(loop.body), constant(sub(loop.upper, loop.lower))
    return None if count is None or extent is None else count * max(extent, 0)


@remembered
def statements(stmt: ir.Stmt) -> int | None:
    """How many statements it comes to with its unrolled loops written out, a vector statement being
    one; None where other loops stay.
    """
    if isinstance(stmt, ir.Loop) and stmt.kind is not ir.LoopKind.VECTORIZED:
        unrolled = stmt.kind is ir.LoopKind.UNROLLED or UNROLL in noted(stmt)
        return written_out(stmt) if unrolled else None
    counts = [statements(s) for s in nested(stmt)] or [1]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
