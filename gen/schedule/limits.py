"""How large a step may make a tree, so that all that follows ends in time.

Input: the trees before and after a step. Output: why the new one is too large, and what to do. What
is shared counts as often as it stands there, but is counted once, so that counting is cheap however
much a step has multiplied.
"""

from ..ir import nodes as ir
from ..ir.algebra import sub
from ..ir.index.linear import constant
from ..ir.walk import children, nested, remembered
from ..poly.rewrites.equivalence import MOST_TRIPS

# What is shipped has at most 10 nested loops, 15 blocks, 1100 nodes and 400 statements of code.
MOST_NESTED = 32
MOST_BLOCKS = 256
MOST_DEPTH = 200  # walks recurse
MOST_NODES = 20_000
MOST_STATEMENTS = 4096

_LANES = 4  # of the shortest native vector


def too_large(before: ir.Kernel, after: ir.Kernel) -> tuple[str, str] | None:
    """Why a step may not make the one of the other, and what to do; None where it may. What a step
    makes no larger is not its fault.
    """
    limits = (
        (_nested, MOST_NESTED, "there would be {} loops in each other", "split less"),
        (_blocks, MOST_BLOCKS, "there would be {} blocks", "peel or copy fewer loops"),
        (_depth, MOST_DEPTH, "the tree would be {} nodes deep", "inline fewer blocks"),
        (_nodes, MOST_NODES, "the tree would have {} nodes", "inline fewer blocks"),
        (
            _written,
            MOST_STATEMENTS,
            "unrolled loops would be written out as {} statements",
            "unroll fewer loops, or fewer iterations at a time",
        ),
    )
    for count, most, what, hint in limits:
        if most < (found := count(after.body)) > count(before.body):
            return f"{what.format(found)}; the limit is {most}", hint
    return None


@remembered
def _nested(stmt: ir.Stmt) -> int:
    return isinstance(stmt, ir.Loop) + max(map(_nested, nested(stmt)), default=0)


@remembered
def _blocks(stmt: ir.Stmt) -> int:
    return sum(map(_blocks, nested(stmt))) if nested(stmt) else 1


@remembered
def _depth(node: ir.Node) -> int:
    return 1 + max(map(_depth, children(node)), default=0)


@remembered
def _nodes(node: ir.Node) -> int:
    return 1 + sum(map(_nodes, children(node)))


@remembered
def _written(stmt: ir.Stmt) -> int:
    """How many statements of code the blocks are: one for each iteration of the unrolled loops
    around, and for each native vector.
    """
    inside = sum(map(_written, nested(stmt))) if nested(stmt) else 1
    trips = constant(sub(stmt.upper, stmt.lower)) if isinstance(stmt, ir.Loop) else None
    if not isinstance(stmt, ir.Loop) or trips is None or trips < 1:
        return inside
    if stmt.kind is ir.LoopKind.VECTORIZED:
        return inside * -(-trips // _LANES)
    return inside * trips if stmt.kind is ir.LoopKind.UNROLLED and trips <= MOST_TRIPS else inside
