"""Where temporaries are allocated.

Input: a tree and its flow. Output: the same with every temporary allocated at the root (`hoist`:
what primitives work on, so that no allocation stands between two loops), or in the innermost
loop that holds all its accesses and that every read shares with its writer (`sink`).
"""

from collections.abc import Mapping
from dataclasses import replace

from ..ir.nodes import Allocate, Block, Buffer, Load, Loop, LoopKind, Seq, Stmt, Target
from ..ir.walk import blocks, loads, loops, seq, substitute, targets, variables, walk
from ..poly.certificate import Flow, Scheduled
from .edit import accessed, loops_around, under, update_stmts, with_body


def hoist(state: Scheduled) -> Scheduled:
    """The tree with one allocation, at the root, in textual order."""
    kernel = state.kernel
    found = tuple(b for n in walk(kernel.body) if isinstance(n, Allocate) for b in n.buffers)
    body = update_stmts(kernel.body, _unwrap)
    return replace(state, kernel=replace(kernel, body=Allocate(found, body) if found else body))


def _unwrap(stmt: Stmt) -> Stmt:
    match stmt:
        case Allocate(_, body):
            return body
        case Seq(items):
            return seq(items)
        case _:
            return stmt


def sink(state: Scheduled) -> Scheduled:
    """The hoisted tree with each temporary allocated where its values live."""
    kernel = state.kernel
    if not isinstance(kernel.body, Allocate):
        return state
    root = kernel.body.body
    homes = {b.name: _home(root, state.flow, b.name) for b in kernel.body.buffers}
    here = tuple(b for b in kernel.body.buffers if homes[b.name] is None)
    inside: dict[str, tuple[Buffer, ...]] = {}
    for b in kernel.body.buffers:
        home = homes[b.name]
        if home is not None:
            inside[home] = (*inside.get(home, ()), b)
    body = update_stmts(root, lambda s: _allocate(s, inside))
    return replace(state, kernel=replace(kernel, body=Allocate(here, body) if here else body))


def _allocate(stmt: Stmt, inside: Mapping[str, tuple[Buffer, ...]]) -> Stmt:
    if isinstance(stmt, Loop) and stmt.var in inside:
        return with_body(stmt, (Allocate(inside[stmt.var], seq(under(stmt))),))
    return stmt


def _home(root: Stmt, flow: Flow, buffer: str) -> str | None:
    """The loop in whose iterations the buffer's values live; None for the whole kernel."""
    users = [b for b in blocks(root) if buffer in accessed(b)]
    sources = [
        flow[block.name, number]
        for block in users
        for number, load in enumerate(loads(block.body))
        if load.buffer == buffer
    ]
    if not sources:
        return None
    lanes = {loop.var for loop in loops(root) if loop.kind is LoopKind.VECTORIZED}
    around = [tuple(loop.var for loop in loops_around(root, block)) for block in users]
    home = None
    for level in zip(*around, strict=False):
        var = level[0]
        if any(v != var for v in level) or any(var not in s.shared for s in sources):
            break
        if var in lanes and all(_moves(block, buffer, var) for block in users):
            break  # one buffer of all lanes, of which each has its own elements, is a vector
        home = var
    return home


def _moves(block: Block, buffer: str, lane: str) -> bool:
    """Whether all the block's accesses of the buffer depend on the lane."""
    at = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    accesses: list[Load | Target] = [*loads(block.body), *targets(block.body)]
    return all(
        any(lane in variables(substitute(i, at)) for i in a.indices)
        for a in accesses
        if a.buffer == buffer
    )
