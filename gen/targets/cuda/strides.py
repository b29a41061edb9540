"""Which axes of its arguments a variant walks by neighbouring threads.

Input: a finished tree. Output: the axes along which threads next to each other read elements next
to each other, numbered through all arguments, as in a table of variants. Such a variant is right
for any strides, and slow where they are not 1: where another one follows, it leaves those to it.
"""

from ...ir.index.linear import linear
from ...ir.launch import launches
from ...ir.nodes import Intent, Kernel, Load, LoopKind
from ...ir.walk import blocks, loads, loops, variables


def walked(kernel: Kernel) -> frozenset[int]:
    first: dict[str, int] = {}
    count = 0
    for p in kernel.parameters:
        if p.intent is Intent.IN:
            first[p.buffer.name] = count
        count += len(p.buffer.shape)
    found: set[int] = set()
    for launch in launches(kernel.body):
        for thread in (x.var for x in loops(launch) if x.kind is LoopKind.THREAD_X):
            for load in (read for b in blocks(launch) for read in loads(b.body)):
                if load.buffer in first and (axis := _axis(load, thread)) is not None:
                    found.add(first[load.buffer] + axis)
    return frozenset(found)


def _axis(load: Load, thread: str) -> int | None:
    """The one axis along which the load moves by an element a thread."""
    moving = [k for k, i in enumerate(load.indices) if thread in variables(i)]
    steps = [linear(load.indices[k]).coefficient(thread) for k in moving]
    return moving[0] if steps == [1] else None
