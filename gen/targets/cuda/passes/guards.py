"""Guards inside launches: bounds of loops where all threads need not stay together.

Input: a tree in launch form. Output: the same instances. A guard that follows from what is around
is gone; one that all blocks of a loop share is its bound. Where a barrier is inside, all threads
have to reach it, so guards stay with the blocks. So they do in loops that run a few times, whatever
the sizes are: compilers unroll those, and their loads are then on their way together. Axes stay as
they are. Loops are not cut into a
full part and a tail: that doubles the code, and most guards of a launch differ from thread to
thread.
"""

from dataclasses import replace

from ....ir.algebra import sub
from ....ir.index.facts import Facts, map_inside, of_kernel
from ....ir.index.linear import constant
from ....ir.launch import has_barrier
from ....ir.nodes import Block, Kernel, Loop, LoopKind, Stmt
from ....lower.loop_bounds import tightened, unguarded

_FEW = 8


def guards_as_bounds(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_visit(kernel.body, of_kernel(kernel)))


def _visit(stmt: Stmt, facts: Facts) -> Stmt:
    if isinstance(stmt, Block):
        return unguarded(stmt, facts)
    if isinstance(stmt, Loop) and stmt.kind is LoopKind.SERIAL and not has_barrier(stmt):
        stmt = stmt if _runs_a_few_times(stmt) else tightened(stmt, facts)
    return map_inside(stmt, facts, _visit)


def _runs_a_few_times(loop: Loop) -> bool:
    times = constant(sub(loop.upper, loop.lower))
    return times is not None and times <= _FEW
