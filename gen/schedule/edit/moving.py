"""What compute_at, reverse_compute_at and reuse_at have in common: leaving one place for another.

Input: a hoisted tree, the block that moves and the loop that it moves into. Output: the statements
around both places, what of the block's bindings stays, and the refusals.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from ...ir.nodes import Barrier, Block, Delinearize, Init, Kernel, Loop, LoopKind, Seq, Stmt, Var
from ...ir.walk import (
    ancestors,
    blocks,
    loads,
    replace_stmt,
    seq,
    statements,
    substitute,
    targets,
    variables,
)
from ...poly.certificate import Scheduled
from .copies import folding
from .new_loops import Region, touched, union
from .tree import (
    CannotApply,
    block_named,
    containing,
    fresh,
    insert,
    loops_around,
    names,
    ranges_of,
    readers,
    scope_of,
    tree,
    under,
    update_stmts,
    with_body,
    written,
)


def inside_of(root: Stmt, loop: Loop) -> tuple[Stmt, ...]:
    """The statements around one that stands in the loop's body, the loop itself included."""
    own = (loop, loop.body) if isinstance(loop.body, Delinearize) else (loop,)
    return (*ancestors(root, loop), *own)


def between(loop: Loop, block: Block) -> tuple[Stmt, ...]:
    """The statements around a block of the loop's body, from inside the loop on."""
    own = 2 if isinstance(loop.body, Delinearize) else 1
    return ancestors(loop, block)[own:]


def put(
    root: Stmt, loop: Loop | None, new: Stmt, beside: Callable[[Block], bool], *, after: bool
) -> Stmt:
    """The tree with a statement in the loop's body, or where all loops are: before the first
    statement there that holds such a block, or after the last.
    """
    there = under(loop) if loop else root.body if isinstance(root, Seq) else (root,)
    found = containing(there, beside)
    body = insert(there, found[-1] + 1 if after else found[0], new)
    return replace_stmt(root, loop, with_body(loop, body)) if loop else seq(body)


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


def require_movable(state: Scheduled, block: Block, loop: Loop) -> None:
    """Refuses a block that cannot leave its place, whatever the new one is."""
    root = tree(state.kernel)
    for other in blocks(root):
        if isinstance(other.body, Init) and written(other) & written(block):
            name = other.name
            raise CannotApply(
                f"its init is block '{name}' by now; move it before decompose_reduction"
            )
    new: Sequence[Stmt] = inside_of(root, loop)
    for left in loops_around(root, block):
        if left.kind is not LoopKind.SERIAL and not any(left is x for x in new):
            reason = f"loop '{left.var}' around it is {left.kind.value} already; move it first"
            raise CannotApply(reason)
        if len(blocks(left)) == 1 and any(isinstance(n, Barrier) for n in statements(left)):
            reason = (
                f"loop '{left.var}' around it holds a barrier, too: move it before sync_threads"
            )
            raise CannotApply(reason)


def require_around(kernel: Kernel, loop: Loop, block: Block) -> None:
    """Refuses a loop that is not around the block."""
    if not any(loop is x for x in loops_around(tree(kernel), block)):
        raise CannotApply(f"loop '{loop.var}' is not around block '{block.name}'")


def require_outside(state: Scheduled, block: Block, loop: Loop) -> None:
    """Refuses to move a block into a loop that is around it."""
    if any(loop is x for x in loops_around(tree(state.kernel), block)):
        raise CannotApply(f"loop '{loop.var}' is around block '{block.name}' already")


def new_names(kernel: Kernel, copied: Iterable[Stmt]) -> dict[str, str]:
    """Names for a copy of the statements: of their blocks, and of what their loops bind."""
    used, new = set(names(kernel)), dict[str, str]()
    for s in copied:
        bound = scope_of(n for n in statements(s) if isinstance(n, Loop | Delinearize))
        for name in (*(b.name for b in blocks(s)), *bound):
            new[name] = fresh(name, used)
            used.add(new[name])
    return new


def renamed(s: Stmt, new: Mapping[str, str]) -> Stmt:
    """A copy of the statement under other names."""

    def go(x: Stmt) -> Stmt:
        match x:
            case Block():
                return replace(x, name=new[x.name])
            case Loop():
                body = substitute(x.body, {x.var: Var(new[x.var])})
                return replace(x, var=new[x.var], body=body)
            case Delinearize():
                body = substitute(x.body, {v: Var(new[v]) for v in x.vars})
                return replace(x, vars=tuple(new[v] for v in x.vars), body=body)
            case _:
                return x

    return update_stmts(s, go)


def read_region(state: Scheduled, block: Block, loop: Loop) -> Region:
    """The box of the block's buffer that its readers read in one iteration of the loop. Where it
    has several, as of a tuple, they are alike, or it raises CannotApply.
    """
    first, *others = targets(block.body)
    buffers = [first.buffer, *(t.buffer for t in others)]
    if other := next((t for t in others if t.indices != first.indices), None):
        raise CannotApply(
            f"block '{block.name}' fills '{first.buffer}' and '{other.buffer}' at places that"
            " differ"
        )
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
