"""Where temporaries are allocated.

Input: a tree and its flow. Output: the same with every temporary allocated at the root (`hoist`:
what primitives work on, so that no allocation stands between two loops), or in the innermost
loop that holds all its accesses and that every read shares with its writer (`sink`).
"""

from collections.abc import Mapping
from dataclasses import replace

from ...ir.algebra import sub
from ...ir.index.linear import constant
from ...ir.launch import OUTSIDE
from ...ir.nodes import Allocate, Block, Buffer, Destination, Load, Loop, LoopKind, Stmt
from ...ir.walk import (
    accessed,
    loads,
    loops,
    map_nested,
    nested,
    nests,
    remembered,
    seq,
    statements,
    substitute,
    targets,
    variables,
)
from ...poly.certificate import Flow, Scheduled
from .tree import under, with_body


def hoist(state: Scheduled) -> Scheduled:
    """The tree with one allocation, at the root, in textual order."""
    kernel = state.kernel
    found = tuple(b for n in statements(kernel.body) if isinstance(n, Allocate) for b in n.buffers)
    body = _hoisted(kernel.body)
    return replace(state, kernel=replace(kernel, body=Allocate(found, body) if found else body))


def _hoisted(stmt: Stmt) -> Stmt:
    """The statement without allocations."""
    if not _allocates(stmt):
        return stmt
    return _hoisted(stmt.body) if isinstance(stmt, Allocate) else map_nested(stmt, _hoisted)


@remembered
def _allocates(stmt: Stmt) -> bool:
    return isinstance(stmt, Allocate) or any(map(_allocates, nested(stmt)))


def sink(state: Scheduled) -> Scheduled:
    """The hoisted tree with each temporary allocated where its values live."""
    kernel = state.kernel
    if not isinstance(kernel.body, Allocate):
        return state
    root = kernel.body.body
    homes = {b.name: _home(root, state.flow, b) for b in kernel.body.buffers}
    here = tuple(b for b in kernel.body.buffers if homes[b.name] is None)
    inside: dict[str, tuple[Buffer, ...]] = {}
    for b in kernel.body.buffers:
        home = homes[b.name]
        if home is not None:
            inside[home] = (*inside.get(home, ()), b)
    body = _allocated(root, inside)
    return replace(state, kernel=replace(kernel, body=Allocate(here, body) if here else body))


def home(state: Scheduled, buffer: str) -> str | None:
    """The loop in which `sink` allocates a buffer of a hoisted tree; None for the whole kernel."""
    found = next(
        b
        for n in statements(state.kernel.body)
        if isinstance(n, Allocate)
        for b in n.buffers
        if b.name == buffer
    )
    return _home(state.kernel.body, state.flow, found)


def _allocated(stmt: Stmt, inside: Mapping[str, tuple[Buffer, ...]]) -> Stmt:
    if inside.keys().isdisjoint(_loop_vars(stmt)):
        return stmt
    new = map_nested(stmt, lambda s: _allocated(s, inside))
    if isinstance(new, Loop) and new.var in inside:
        return with_body(new, (Allocate(inside[new.var], seq(under(new))),))
    return new


@remembered
def _loop_vars(stmt: Stmt) -> frozenset[str]:
    return frozenset(loop.var for loop in loops(stmt))


def _home(root: Stmt, flow: Flow, wanted: Buffer) -> str | None:
    """The loop in whose iterations the buffer's values live; None for the whole kernel. No launch
    allocates the GPU's memory.
    """
    buffer = wanted.name
    users = [(block, around) for block, around in nests(root) if buffer in accessed(block)]
    sources = [
        flow[block.name, number]
        for block, _ in users
        for number, load in enumerate(loads(block.body))
        if load.buffer == buffer
    ]
    if not sources:
        return None
    home = None
    for loop, *others in zip(*(around for _, around in users), strict=False):
        if any(other is not loop for other in others):
            break
        if not _runs_once(loop) and any(loop.var not in source.shared for source in sources):
            break
        if loop.kind.is_bound and wanted.scope in OUTSIDE:
            break
        vector = loop.kind is LoopKind.VECTORIZED
        if vector and all(_moves(block, buffer, loop.var) for block, _ in users):
            break  # one buffer of all lanes, of which each has its own elements, is a vector
        home = loop.var
    return home


def _runs_once(loop: Loop) -> bool:
    """Whether all reads share its iteration with what they read."""
    return constant(sub(loop.upper, loop.lower)) == 1


def _moves(block: Block, buffer: str, lane: str) -> bool:
    """Whether all the block's accesses of the buffer depend on the lane."""
    at = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    accesses: list[Load | Destination] = [*loads(block.body), *targets(block.body)]
    return all(
        any(lane in variables(substitute(i, at)) for i in a.indices)
        for a in accesses
        if a.buffer == buffer
    )
