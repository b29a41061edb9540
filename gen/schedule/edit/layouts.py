"""Other places for a temporary's elements.

Input: a hoisted state, a temporary, and what becomes of its indices and its shape. Output: the
state with all accesses moved. Where values come from stays as it was: that no live one is
overwritten at its new place is the prover's to find out.
"""

from collections.abc import Callable
from dataclasses import replace

from ...ir.algebra import maximum
from ...ir.index.bounds import not_negative
from ...ir.nodes import Block, Buffer, Destination, Expr, Load, Node, Scope
from ...ir.walk import blocks, loads, map_children
from ...poly.certificate import Scheduled, Source
from .tree import CannotApply, buffer_named, rebuild, temporaries, tree

Places = tuple[Expr, ...]


def relaid(
    state: Scheduled, buffer: str, shape: Places, places: Callable[[Places], Places]
) -> Scheduled:
    """The state with every access of the buffer at `places` of its indices.

    A position that is read from an array may then stand there twice, or in another order: each read
    has the source that it had.
    """

    def go(node: Node) -> Node:
        new = map_children(node, go)
        if isinstance(new, Load | Destination) and new.buffer == buffer:
            return replace(new, indices=places(new.indices))
        return new

    root = tree(state.kernel)
    kernel = rebuild(state.kernel, map_children(root, go))
    flow: dict[tuple[str, int], Source] = {}
    for block in blocks(root):
        known: dict[Node, list[Source]] = {}
        for n, x in enumerate(loads(block.body)):
            known.setdefault(go(x), []).append(state.flow[block.name, n])
        new = go(block)
        assert isinstance(new, Block)
        for n, x in enumerate(loads(new.body)):
            own = known[x]  # of reads that are alike now, each has its own source
            flow[block.name, n] = own.pop(0) if own[1:] else own[0]
    return declared(replace(state, kernel=kernel, flow=flow), buffer, shape=shape)


def declared(state: Scheduled, buffer: str, **changes: object) -> Scheduled:
    """The state with the temporary declared otherwise."""

    def changed(b: Buffer) -> Buffer:
        return replace(b, **changes) if b.name == buffer else b  # type: ignore[arg-type]

    buffers = tuple(map(changed, temporaries(state.kernel)))
    return replace(state, kernel=rebuild(state.kernel, tree(state.kernel), buffers=buffers))


def extent(e: Expr) -> Expr:
    """The extent, or 0 where it would be less, for sizes of which nothing is left."""
    return e if not_negative(e) else maximum(e, 0)


def require_temporary(state: Scheduled, buffer: str) -> None:
    """Refuses a buffer whose layout is not the schedule's to choose."""
    if buffer_named(state.kernel, buffer).scope is Scope.GLOBAL:
        raise CannotApply(f"'{buffer}' is an argument: its layout is the caller's")


def require_free_layout(state: Scheduled, buffer: str) -> None:
    """Refuses other places for a buffer whose layout is decided."""
    known = buffer_named(state.kernel, buffer)
    if known.aligned or known.fixed:
        why = "aligned" if known.aligned else "of a stated size"
        raise CannotApply(f"'{buffer}' is {why}: do this before")
    require_temporary(state, buffer)
