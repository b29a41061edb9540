"""What compute_at, reverse_compute_at and reuse_at have in common: leaving one place for another.

Input: a hoisted tree, the block that moves and the loop that it moves into. Output: the statements
around both places, what of the block's bindings stays, and the refusals.
"""

from collections.abc import Sequence
from functools import reduce

from ...ir.nodes import Barrier, Block, Delinearize, Init, Loop, LoopKind, Stmt
from ...ir.walk import ancestors, blocks, loads, targets, variables, walk
from ...poly.certificate import Scheduled
from .folding import folding
from .new_loops import Region, touched, union
from .tree import block_named, loops_around, names, ranges_of, readers, scope_of, tree, written


def inside_of(root: Stmt, loop: Loop) -> tuple[Stmt, ...]:
    """The statements around one that stands in the loop's body, the loop itself included."""
    own = (loop, loop.body) if isinstance(loop.body, Delinearize) else (loop,)
    return (*ancestors(root, loop), *own)


def between(loop: Loop, block: Block) -> tuple[Stmt, ...]:
    """The statements around a block of the loop's body, from inside the loop on."""
    own = 2 if isinstance(loop.body, Delinearize) else 1
    return ancestors(loop, block)[own:]


def kept_iters(root: Stmt, block: Block, loop: Loop) -> frozenset[str]:
    """The iteration variables whose bindings mean the same at the new place."""
    new = inside_of(root, loop)
    common = {v for s in ancestors(root, block) if any(s is x for x in new) for v in scope_of((s,))}
    pairs = zip(block.iters, block.bindings, strict=True)
    return frozenset(
        v.name for v, b in pairs if all(name in common for name in variables(b) if "." in name)
    )


def freed(root: Stmt, block: Block) -> tuple[Loop, ...]:
    """The loops that hold nothing but the block, and go when it goes."""
    return tuple(x for x in loops_around(root, block) if len(blocks(x)) == 1)


def used_names(state: Scheduled, block: Block) -> frozenset[str]:
    """The names that the block's new loops may not take."""
    gone = {x.var for x in freed(tree(state.kernel), block)}
    return names(state.kernel) - gone


def refuse_move(state: Scheduled, block: Block, loop: Loop) -> str | None:
    """Why the block cannot leave its place, whatever the new one is."""
    root = tree(state.kernel)
    for other in blocks(root):
        if isinstance(other.body, Init) and written(other) & written(block):
            return f"its init is block '{other.name}' by now; move it before decompose_reduction"
    new: Sequence[Stmt] = inside_of(root, loop)
    for left in loops_around(root, block):
        if left.kind is not LoopKind.SERIAL and not any(left is x for x in new):
            return f"loop '{left.var}' around it is {left.kind.value} already; move it first"
        if len(blocks(left)) == 1 and any(isinstance(n, Barrier) for n in walk(left)):
            return f"loop '{left.var}' around it holds a barrier, too: move it before sync_threads"
    return None


def read_region(state: Scheduled, block: Block, loop: Loop) -> Region:
    """The box of the block's buffer that its readers read in one iteration of the loop."""
    buffers = [t.buffer for t in targets(block.body)]
    ranges = ranges_of(inside_of(tree(state.kernel), loop))
    found: list[Region] = []
    for reader, number in readers(state.flow, block.name):
        consumer = block_named(state.kernel, reader)
        load = loads(consumer.body)[number]
        if load.buffer in buffers:
            found.append(touched(consumer, load.indices, between(loop, consumer), ranges))
    return reduce(lambda a, b: union(a, b, ranges), found)


def region_of(state: Scheduled, block: Block, buffer: str, loop: Loop) -> Region:
    """The box of a buffer that one block reads in one iteration of the loop; of one that is folded,
    as if it were not.
    """
    ranges = ranges_of(inside_of(tree(state.kernel), loop))
    inside, folded = between(loop, block), folding(block, buffer)
    read = [
        touched(block, folded.meant(x).indices, inside, ranges)
        for x in loads(block.body)
        if x.buffer == buffer
    ]
    return reduce(lambda a, b: union(a, b, ranges), read)
