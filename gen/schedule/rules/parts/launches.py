"""Loops as launches: what rules for GPUs share.

Input: a draft, and a block that is in no launch. Output: the draft with the block in one, proved.
Which loops may run at once, the proof is asked.
"""

from collections.abc import Sequence
from math import prod

from ....ir.index.linear import constant
from ....ir.nodes import Allocate, Buffer, Destination, Load, Scope
from ....ir.walk import blocks, loads, loops, statements, substitute, targets, variables
from ...edit import allocation
from ...edit.launches import launched
from ...edit.tree import loop_named
from .draft import Draft
from .nest import Nest, nest_of

THREADS = 256  # of a block: enough to hide memory's delay at any number of registers
MOST_FUSED = 3  # loops: the product of their extents is in 64 bits up to 2 million along each
FEW_BYTES = 2048  # that a thread may have of its own


def in_launch(nest: Nest) -> bool:
    return any(loop.kind.is_bound for loop in nest.loops)


def settled(draft: Draft) -> Draft:
    """With all blocks done that are in launches."""
    return draft.settled(*(block.name for block in launched(draft.kernel)))


def threads(
    draft: Draft, chosen: Sequence[str], label: str, count: int = THREADS, each: int = 1
) -> Draft:
    """A launch of a thread for each point of loops directly inside one another; of a single loop,
    for `each` that are as far apart as there are threads. Of many loops, the outer ones are axes of
    their own, and those left are the host's.
    """
    parts = [f"{label}.block", f"{label}.thread"]
    outer, line = chosen[:-MOST_FUSED], chosen[-1]
    if len(chosen) > 1:
        line = f"{label}.points"
        draft = draft.step("fuse", loops=list(chosen[-MOST_FUSED:]), as_=line)
    if each > 1 and len(chosen) == 1:
        turn = f"{label}.turn"
        names = [parts[0], turn, parts[1]]
        draft = draft.step("split", loop=line, factors=[None, each, count], as_=names)
        draft = draft.step("reorder", loops=[*parts, turn]).step("unroll", loop=turn)
    else:
        draft = draft.step("split", loop=line, factors=[None, count], as_=parts)
    if not outer:
        return at_home(draft.step("gpu", loops=parts), parts[1])
    for loop, axis in zip((parts[0], *reversed(outer)), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    return at_home(draft.step("bind", loop=parts[1], axis="threadIdx.x"), parts[1])


def rows(draft: Draft, chosen: Sequence[str], label: str) -> Draft:
    """A launch of a block for each point of all loops but the last, which its threads share out:
    where how far that goes depends on where a row is.
    """
    *outer, last = chosen
    parts = [f"{label}.turn", f"{label}.thread"]
    draft = draft.step("split", loop=last, factors=[None, THREADS], as_=parts)
    for loop, axis in zip(reversed(outer), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    return draft.step("bind", loop=parts[1], axis="threadIdx.x")


def one_thread(draft: Draft, name: str, *, whole: bool) -> Draft:
    """A launch of one thread: for a block and its own loops, or for all loops that run it."""
    nest = nest_of(draft.kernel, name)
    around = nest.loops if whole else nest.own
    unit = f"{name}.one"
    inner = {"loop": around[0].var} if around else {"block": name}
    draft = draft.step("add_unit_loop", **inner, as_=[unit])
    return at_home(draft.step("bind", loop=unit, axis="threadIdx.x"), unit)


def kept(draft: Draft) -> dict[str, Buffer]:
    """The temporaries, wherever they are allocated, in textual order."""
    found = (n for n in statements(draft.kernel.body) if isinstance(n, Allocate))
    return {b.name: b for n in found for b in n.buffers}


def at_home(draft: Draft, thread: str) -> Draft:
    """With temporaries that one thread has for itself in the GPU's memory, where they are too large
    for its own.
    """
    inside = {loop.var for loop in loops(loop_named(draft.kernel, thread))} | {thread}
    for buffer in kept(draft).values():
        home = allocation.home(draft.state, buffer.name)
        if home in inside and buffer.scope is Scope.AUTO and not _small(draft, buffer, home):
            draft = draft.step("set_scope", buffer=buffer.name, scope="device")
    return draft


def _small(draft: Draft, buffer: Buffer, home: str) -> bool:
    """Whether what an iteration of the loop uses of a buffer is a few elements, by what is
    written.
    """
    most = [1] * len(buffer.shape)
    inner = {loop.var: loop for loop in loops(loop_named(draft.kernel, home)) if loop.var != home}
    for block in blocks(loop_named(draft.kernel, home)):
        at = dict(zip((it.name for it in block.iters), block.bindings, strict=True))
        accesses: list[Load | Destination] = [*loads(block.body), *targets(block.body)]
        for access in accesses:
            if access.buffer == buffer.name:
                for axis, index in enumerate(access.indices):
                    moving = variables(substitute(index, at)) & inner.keys()
                    extent = constant(buffer.shape[axis]) if moving else 1
                    most[axis] = max(most[axis], FEW_BYTES if extent is None else extent)
    return prod(most) * buffer.dtype.bytes <= FEW_BYTES
