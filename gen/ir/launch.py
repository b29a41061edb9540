"""What runs in a launch: the blocks and threads of a GPU.

Input: a loop that is bound to an axis and inside no other such loop: a launch. Output: its axes,
and who shares a buffer in it.

A launch has blocks and threads along the axes that its loops are bound to, as many along each as
its loops have iterations, and at least one. Every thread runs the whole launch. Of a bound loop it
runs the one iteration of its own place on the axis. A block of the IR that no loop of some axis is
around runs in the first place on that axis alone. Threads wait for each other at barriers; blocks
never do. What stands before or after a launch runs before or after all of it.
"""

from collections.abc import Iterator, Mapping

from .nodes import Barrier, Buffer, Expr, Loop, LoopKind, Node, Scope, Stmt
from .walk import loops, nested, remembered, statements

Axes = Mapping[LoopKind, Expr]

OUTSIDE = (Scope.HEAP, Scope.CONSTANT, Scope.DEVICE)
"""Where temporaries live that no launch allocates."""


def launches(stmt: Stmt) -> Iterator[Loop]:
    """The launches of a tree, in textual order."""
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        yield stmt
        return
    for inner in nested(stmt):
        yield from launches(inner)


@remembered
def axes(launch: Loop) -> Axes:
    """The axes of a launch and their extents; the verifier has seen to it that its loops agree."""
    found: dict[LoopKind, Expr] = {}
    for loop in loops(launch):
        if loop.kind.is_bound:
            found.setdefault(loop.kind, loop.upper)
    return {kind: found[kind] for kind in LoopKind if kind in found}


@remembered
def has_barrier(node: Node) -> bool:
    return any(isinstance(n, Barrier) for n in statements(node))


def owners(
    buffer: Buffer, launch: Axes, missing: frozenset[LoopKind]
) -> frozenset[LoopKind] | None:
    """The axes along which each place has memory of its own for a buffer allocated in a launch.

    missing: the axes of the launch of which no loop is around the Allocate. None where the buffer
    belongs to one thread, and is new at each entry.
    """
    blocks = frozenset(kind for kind in launch if kind.is_block)
    threads = frozenset(kind for kind in launch if kind.is_thread)
    if buffer.scope is Scope.SHARED:
        return blocks
    if not threads & missing:
        return None
    return blocks | (threads if buffer.scope is Scope.LOCAL else threads - missing)
